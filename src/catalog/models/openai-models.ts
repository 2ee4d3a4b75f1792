import type { ImageAbilities, ModelDefinition } from '../model.ts'
import type { ImageFamily } from '../model-facts.ts'

/**
 * Common abilities of the `gp-image-*` models (API specification, "Image edit request"; OpenAI API reference, images). Token
 * counts are from OpenAI's guide to image generation. A reference image counts at most some hundred tokens, and 6,240 more at
 * high fidelity.
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

/** Rule of the specification for free sizes, and the vendor's largest image: 3840x2160. */
const FREE_SIZE_IMAGE: ImageAbilities = {
  ...GPT_IMAGE,
  freeSize: { multipleOf: 16, maxSide: 3840, maxRatio: 3, maxPixels: 3840 * 2160 },
}

/** Allowance for tokens that a model spends on planning an image; the vendor publishes no number. */
const PLANNING_TOKENS = 4096

/**
 * Abilities of GPT Image 2.5 and of newer models (types of OpenAI's SDK 7.59). The vendor publishes no tokens for `xhigh` and `max`,
 * so holds assume 1.5 and 2 times those of `high`.
 */
const PLANNED_IMAGE: ImageAbilities = {
  ...FREE_SIZE_IMAGE,
  qualities: ['auto', 'low', 'medium', 'high', 'xhigh', 'max'],
  outputTokens: /* @__PURE__ */ Object.fromEntries(
    Object.entries(GPT_IMAGE.outputTokens ?? {}).flatMap(([key, tokens]) => [
      [key, tokens + PLANNING_TOKENS],
      ...(key.startsWith('high ')
        ? [
            [key.replace('high', 'xhigh'), tokens * 1.5 + PLANNING_TOKENS],
            [key.replace('high', 'max'), tokens * 2 + PLANNING_TOKENS],
          ]
        : []),
    ]),
  ),
}

/** Fields that GPT Image models support and older models do not (OpenAI API, "Create image"). */
const GPT_IMAGE_FIELDS = [
  'output_format',
  'background',
  'output_compression',
  'moderation',
  'stream',
  'partial_images',
] as const

const DALL_E_2: ImageAbilities = {
  sizes: ['256x256', '512x512', '1024x1024'],
  defaultSize: '1024x1024',
  referenceImages: { min: 1, max: 1 },
  maxImages: 10,
  takesMask: true,
  qualities: ['standard'],
  refusedFields: GPT_IMAGE_FIELDS,
  answersWithUrls: true,
}

const DALL_E_3: ImageAbilities = {
  sizes: ['1024x1024', '1792x1024', '1024x1792'],
  defaultSize: '1024x1024',
  maxImages: 1,
  qualities: ['standard', 'hd'],
  refusedFields: GPT_IMAGE_FIELDS,
  answersWithUrls: true,
}

const IMAGES = { catalogs: ['openai'], protocol: 'generations' } as const

/**
 * Image models of OpenAI that need no row, in matching order. The last family is the default of all later `gpt-image-*` models.
 * OpenAI shut down `dall-e-3` on 2026-05-12; a server of its dialect may still have it.
 */
export const OPENAI_IMAGE_FAMILIES: readonly ImageFamily[] = [
  { ...IMAGES, ids: /^dall-e-3$/, kinds: ['image'], image: DALL_E_3 },
  { ...IMAGES, ids: /^dall-e-2$/, kinds: ['image', 'image_edit'], image: DALL_E_2 },
  { ...IMAGES, ids: /^(?:gpt-image-1(?!\d)|chatgpt-image-)/, kinds: ['image', 'image_edit'], image: GPT_IMAGE },
  { ...IMAGES, ids: /^gpt-image-2(?![\d.])/, kinds: ['image', 'image_edit'], image: FREE_SIZE_IMAGE },
  { ...IMAGES, ids: /^gpt-image-\d/, kinds: ['image', 'image_edit'], image: PLANNED_IMAGE },
]

/** Image models of OpenAI's shape (API specification, "Image edit request" and note 1 of "Endpoints"). */
export const OPENAI_IMAGE_MODELS: readonly ModelDefinition[] = [
  {
    id: 'gp-image-2',
    kind: ['image', 'image_edit'],
    vendor: 'openai',
    upstream: 'gpt-image-2',
    protocol: 'generations',
    aliases: ['gpt-image-2'],
    image: FREE_SIZE_IMAGE,
    created: Date.UTC(2026, 3, 21) / 1000,
    displayName: 'GPT Image 2',
  },
  {
    id: 'gp-image-1',
    kind: ['image', 'image_edit'],
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
    kind: ['image', 'image_edit'],
    vendor: 'openai',
    upstream: 'dall-e-2',
    protocol: 'generations',
    aliases: ['dall-e-2'],
    image: DALL_E_2,
    created: Date.UTC(2022, 10, 3) / 1000,
    displayName: 'DALL·E 2',
  },
]
