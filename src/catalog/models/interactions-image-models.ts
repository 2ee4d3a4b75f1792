import type { ModelDefinition } from '../define-model.ts'

// Gemini API, "Image generation", tables of aspect ratios, sizes and tokens.
const TEN_RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'] as const
const FOURTEEN_RATIOS = [...TEN_RATIOS, '1:4', '4:1', '1:8', '8:1'] as const

/** Image models of the interactions shape (API specification, "Interactions-style image request"). */
export const INTERACTIONS_IMAGE_MODELS: readonly ModelDefinition[] = [
  {
    id: 'gmn-3.1-flash-image-preview',
    kind: 'image',
    vendor: 'gemini',
    upstream: 'gemini-3.1-flash-image-preview',
    protocol: 'interactions',
    aliases: ['gemini-3.1-flash-image-preview'],
    limits: { contextTokens: 131_072, maxOutputTokens: 32_768 },
    image: {
      sizes: ['512px', '1K', '2K', '4K'],
      defaultSize: '1K',
      aspectRatios: FOURTEEN_RATIOS,
      referenceImages: { min: 0, max: 14 },
      outputTokens: { '512px': 747, '1K': 1120, '2K': 1680, '4K': 2520, default: 2520 },
      inputTokensPerImage: 1120,
    },
    displayName: 'Gemini 3.1 Flash Image Preview',
  },
  {
    id: 'gmn-3-pro-image-preview',
    kind: 'image',
    vendor: 'gemini',
    upstream: 'gemini-3-pro-image-preview',
    protocol: 'interactions',
    aliases: ['gemini-3-pro-image-preview'],
    limits: { contextTokens: 65_536, maxOutputTokens: 32_768 },
    image: {
      sizes: ['1K', '2K', '4K'],
      defaultSize: '1K',
      aspectRatios: TEN_RATIOS,
      referenceImages: { min: 0, max: 14 },
      outputTokens: { '1K': 1120, '2K': 1120, '4K': 2000, default: 2000 },
      inputTokensPerImage: 560,
    },
    displayName: 'Gemini 3 Pro Image Preview',
  },
  {
    id: 'gmn-2.5-flash-image',
    kind: 'image',
    vendor: 'gemini',
    upstream: 'gemini-2.5-flash-image',
    protocol: 'interactions',
    aliases: ['gmn-2.5-flash-image-preview', 'gemini-2.5-flash-image', 'gemini-2.5-flash-image-preview'],
    limits: { contextTokens: 65_536, maxOutputTokens: 32_768 },
    image: {
      sizes: ['1K'],
      defaultSize: '1K',
      aspectRatios: TEN_RATIOS,
      referenceImages: { min: 0, max: 3 },
      refusedFields: ['generation_config.thinking_level'],
      outputTokens: { default: 1290 },
      inputTokensPerImage: 258,
    },
    created: Date.UTC(2025, 9, 2) / 1000,
    displayName: 'Gemini 2.5 Flash Image',
  },
]
