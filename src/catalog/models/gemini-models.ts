import type { ImageAbilities, ModelDefinition } from '../model.ts'
import type { ImageFamily } from '../model-facts.ts'

// Each list is created by a call that is marked as pure, so that a bundle with one builder contains only the rows of its kind.

/** Ratios of every image model, and of models that also generate strips (Gemini API, "Image generation"). */
export const INTERACTION_RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'] as const
export const STRIP_RATIOS = ['1:4', '4:1', '1:8', '8:1'] as const

/** Chat models of Gemini (API specification, "Chat completion request"). Longest answers: the vendor's model table. */
export const GEMINI_CHAT_MODELS: readonly ModelDefinition[] = /* @__PURE__ */ chatModels()

/** Embedding models of Gemini (API specification, "Embedding request and response"). `contextTokens` applies to one text. */
export const GEMINI_EMBEDDING_MODELS: readonly ModelDefinition[] = /* @__PURE__ */ embeddingModels()

/**
 * Image models of the interactions shape (API specification, "Interactions-style image request"). Sizes and tokens: Gemini
 * API, "Image generation".
 */
export const GEMINI_IMAGE_MODELS: readonly ModelDefinition[] = /* @__PURE__ */ imageModels()

/**
 * Image models of Gemini that need no row, in matching order: final forms of previews, then all later models, whose abilities
 * only the vendor knows. Calls to later models reserve the price of the most expensive model.
 */
export const GEMINI_IMAGE_FAMILIES: readonly ImageFamily[] = /* @__PURE__ */ imageFamilies()

function chatModels(): ModelDefinition[] {
  return [
    {
      id: 'gmn-2.5-pro',
      kind: 'chat',
      vendor: 'gemini',
      upstream: 'gemini-2.5-pro',
      aliases: ['gemini-2.5-pro'],
      limits: { contextTokens: 1_048_576, maxOutputTokens: 65_536 },
      created: Date.UTC(2025, 5, 17) / 1000,
      displayName: 'Gemini 2.5 Pro',
    },
    {
      id: 'gmn-2.5-flash',
      kind: 'chat',
      vendor: 'gemini',
      upstream: 'gemini-2.5-flash',
      aliases: ['gemini-2.5-flash'],
      limits: { contextTokens: 1_048_576, maxOutputTokens: 65_536 },
      created: Date.UTC(2025, 5, 17) / 1000,
      displayName: 'Gemini 2.5 Flash',
    },
  ]
}

function embeddingModels(): ModelDefinition[] {
  const sizes = { dimensions: 3072, nativeDimensions: { min: 128, max: 3072 } }
  return [
    {
      id: 'text-embedding-004',
      kind: 'embedding',
      vendor: 'gemini',
      limits: { contextTokens: 2048, dimensions: 768, nativeDimensions: [768] },
      created: Date.UTC(2024, 4, 14) / 1000,
      displayName: 'Text Embedding 004',
    },
    {
      id: 'gmn-embedding-001',
      kind: 'embedding',
      vendor: 'gemini',
      upstream: 'gemini-embedding-001',
      aliases: ['gemini-embedding-001'],
      limits: { contextTokens: 2048, ...sizes },
      created: Date.UTC(2025, 6, 14) / 1000,
      displayName: 'Gemini Embedding 001',
    },
    {
      id: 'gmn-embedding-2-preview',
      kind: 'embedding',
      vendor: 'gemini',
      upstream: 'gemini-embedding-2-preview',
      aliases: ['gemini-embedding-2-preview'],
      limits: { contextTokens: 8192, ...sizes },
      displayName: 'Gemini Embedding 2 Preview',
    },
  ]
}

function flash31Image(): ImageAbilities {
  return {
    sizes: ['512px', '1K', '2K', '4K'],
    defaultSize: '1K',
    aspectRatios: [...INTERACTION_RATIOS, ...STRIP_RATIOS],
    referenceImages: { min: 0, max: 14 },
    outputTokens: { '512px': 747, '1K': 1120, '2K': 1680, '4K': 2520, default: 2520 },
    inputTokensPerImage: 1120,
  }
}

function pro3Image(): ImageAbilities {
  return {
    sizes: ['1K', '2K', '4K'],
    defaultSize: '1K',
    aspectRatios: INTERACTION_RATIOS,
    referenceImages: { min: 0, max: 14 },
    outputTokens: { '1K': 1120, '2K': 1120, '4K': 2000, default: 2000 },
    inputTokensPerImage: 560,
  }
}

function flash25Image(): ImageAbilities {
  return {
    sizes: ['1K'],
    defaultSize: '1K',
    aspectRatios: INTERACTION_RATIOS,
    referenceImages: { min: 0, max: 3 },
    refusedFields: ['generation_config.thinking_level'],
    outputTokens: { default: 1290 },
    inputTokensPerImage: 258,
  }
}

function imageFamilies(): ImageFamily[] {
  const images = { catalogs: ['gemini', 'vertex'], protocol: 'interactions', kinds: ['image'] } as const
  const { sizes: _sizes, aspectRatios: _ratios, ...unknown } = flash31Image()
  return [
    { ...images, ids: /^gemini-2\.5-flash-image/, image: flash25Image() },
    { ...images, ids: /^(?:gemini-3-pro-image|nano-banana-pro-preview$)/, image: pro3Image() },
    { ...images, ids: /^gemini-3\.1-flash-image/, image: flash31Image() },
    { ...images, ids: /^gemini-(?:nano-banana-\d|\d.*-image(?:-|$))/, image: unknown },
  ]
}

function imageModels(): ModelDefinition[] {
  return [
    {
      id: 'gmn-3.1-flash-image-preview',
      kind: 'image',
      vendor: 'gemini',
      upstream: 'gemini-3.1-flash-image-preview',
      protocol: 'interactions',
      aliases: ['gemini-3.1-flash-image-preview'],
      limits: { contextTokens: 131_072, maxOutputTokens: 32_768 },
      image: flash31Image(),
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
      image: pro3Image(),
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
      image: flash25Image(),
      created: Date.UTC(2025, 9, 2) / 1000,
      displayName: 'Gemini 2.5 Flash Image',
    },
  ]
}
