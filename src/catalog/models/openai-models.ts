import type { ImageAbilities, ModelDefinition } from '../model.ts'

/**
 * What the `gp-image-*` models have in common (API specification, "Image edit request"; OpenAI API reference, images).
 * Tokens are those of OpenAI's guide to image generation. A reference picture counts at most some hundred tokens, and
 * 6,240 more at high fidelity.
 */
const GPT_IMAGE: ImageAbilities = {
  sizes: ['auto', '1024x1024', '1024x1536', '1536x1024'],
  defaultSize: 'auto',
  referenceImages: { min: 1, max: 16 },
  maxImages: 10,
  takesMask: true,
  qualities: ['auto', 'low', 'medium', 'high'],
  outputTokens: {
    'low 1024x1024': 272,
    'low 1024x1536': 408,
    'low 1536x1024': 400,
    'medium 1024x1024': 1056,
    'medium 1024x1536': 1584,
    'medium 1536x1024': 1568,
    'high 1024x1024': 4160,
    'high 1024x1536': 6240,
    'high 1536x1024': 6208,
  },
  inputTokensPerImage: 7000,
}

/** Image models of OpenAI's shape (API specification, "Image edit request" and note 1 of "Endpoints"). */
export const OPENAI_IMAGE_MODELS: readonly ModelDefinition[] = [
  {
    id: 'gp-image-2',
    kind: ['image', 'image_edit'],
    vendor: 'openai',
    upstream: 'gpt-image-2',
    protocol: 'generations',
    aliases: ['gpt-image-2'],
    // The specification's rule, and the vendor's largest picture: 3840x2160.
    image: { ...GPT_IMAGE, freeSize: { multipleOf: 16, maxSide: 3840, maxRatio: 3, maxPixels: 3840 * 2160 } },
    created: Date.UTC(2026, 3, 21) / 1000,
    displayName: 'GPT Image 2',
  },
  {
    id: 'gp-image-1',
    kind: 'image_edit',
    vendor: 'openai',
    upstream: 'gpt-image-1',
    protocol: 'generations',
    aliases: ['gpt-image-1'],
    image: GPT_IMAGE,
    created: Date.UTC(2025, 3, 23) / 1000,
    displayName: 'GPT Image 1',
  },
  {
    id: 'de-2',
    kind: 'image_edit',
    vendor: 'openai',
    upstream: 'dall-e-2',
    protocol: 'generations',
    aliases: ['dall-e-2'],
    image: {
      sizes: ['256x256', '512x512', '1024x1024'],
      defaultSize: '1024x1024',
      referenceImages: { min: 1, max: 1 },
      maxImages: 10,
      takesMask: true,
      qualities: ['standard'],
      refusedFields: ['output_format', 'background', 'output_compression', 'stream', 'partial_images'],
      answersWithUrls: true,
    },
    created: Date.UTC(2022, 10, 3) / 1000,
    displayName: 'DALL·E 2',
  },
]
