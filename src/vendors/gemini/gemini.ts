import type { InteractionRequest } from '../../endpoints/images/interactions/interaction-request.ts'
import { keyPool } from '../shared/key-pool.ts'
import { vendorAddress } from '../shared/vendor-address.ts'
import { vendorConnection } from '../shared/vendor-connection.ts'
import type { ApiKeys, ConnectionOptions, ImageOperation, UnlistedModelOptions, Vendor } from '../vendor.ts'
import { chatDecoder } from './chat-decoder.ts'
import { chatFromWire } from './chat-from-wire.ts'
import { chatToWire, SURCHARGES_LEFT_OUT } from './chat-to-wire.ts'
import { countTokens } from './count-tokens.ts'
import { embeddingsFromWire, embeddingsToWire, MAX_EMBEDDING_INPUTS } from './embeddings.ts'
import { errorFrom } from './error-from.ts'
import { generatedImageFromWire } from './interactions/generated-image-from-wire.ts'
import { GeneratedImageStream } from './interactions/generated-image-stream.ts'
import { generatedImageToWire } from './interactions/generated-image-to-wire.ts'
import { interactionFromWire } from './interactions/interaction-from-wire.ts'
import { InteractionStream } from './interactions/interaction-stream.ts'
import { interactionToWire } from './interactions/interaction-to-wire.ts'
import { geminiMedia } from './media-tokens.ts'
import { modelAbilities } from './model-abilities.ts'
import { ownsReasoning, thinks } from './reasoning.ts'

/** Options of {@link gemini}. */
export interface GeminiOptions extends UnlistedModelOptions, ConnectionOptions {
  /** One key, or several to take turns. Absent or empty: the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Origin of the API, path prefix allowed. Default: `https://generativelanguage.googleapis.com`. */
  readonly baseURL?: string | undefined
  /** Version of the API in paths. Default: `v1beta`, which has every model. */
  readonly apiVersion?: string | undefined
  /**
   * The API for pictures. `interactions` (default): answers can be continued. `generateContent`: the older API with the
   * same requests and answers, but nothing can be continued.
   */
  readonly images?: 'interactions' | 'generateContent' | undefined
}

/**
 * Google's Gemini models by their native API: chat by `generateContent`, embeddings by `batchEmbedContents`,
 * pictures by Interactions.
 * @throws TypeError when `baseURL`, `apiVersion` or `images` cannot be used.
 */
export function gemini(options: GeminiOptions = {}): Vendor {
  const apiVersion = options.apiVersion ?? 'v1beta'
  if (!/^v\d\w*$/.test(apiVersion)) throw new TypeError(`apiVersion is not a version such as v1beta: ${apiVersion}`)
  const imagesBy = options.images ?? 'interactions'
  if (imagesBy !== 'interactions' && imagesBy !== 'generateContent')
    throw new TypeError(`images is neither interactions nor generateContent: ${String(imagesBy)}`)
  const versionPath = `/${apiVersion}`
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://generativelanguage.googleapis.com', versionPath)
  const basePath = `${prefix}${versionPath}`
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  return {
    id: 'gemini',
    displayName: 'Google Gemini',
    origin,
    ...vendorConnection(options),
    ...pool,
    configuredBy: 'GEMINI_API_KEY or gemini({ apiKey })',
    models: [],
    passUnknownModels: options.passUnknownModels ?? false,
    chat: {
      toWire: (call) => chatToWire(call, basePath),
      leavesOut: SURCHARGES_LEFT_OUT,
      fromWire: chatFromWire,
      decoder: chatDecoder,
      reasonsUnseen: ({ model, request }) => thinks(request.reasoning_effort, modelAbilities(model.upstream).thinking),
      takesImageUrls: (model) => modelAbilities(model.upstream).fetchesUrls,
    },
    tokenCount: countTokens(basePath),
    embeddings: {
      maxInputs: MAX_EMBEDDING_INPUTS,
      takesTokens: false,
      toWire: (call) => embeddingsToWire(call, basePath),
      fromWire: embeddingsFromWire,
    },
    images: {
      interactions: imagesBy === 'generateContent' ? generatedImages(basePath) : interactions(basePath),
    },
    media: geminiMedia,
    ownsReasoning,
    errorFrom: (answer, nowMs) => errorFrom(answer, nowMs, apiKeys),
  }
}

function interactions(basePath: string): ImageOperation<InteractionRequest> {
  return {
    toWire: (call) => interactionToWire(call, basePath),
    fromWire: interactionFromWire,
    stream: (call) => new InteractionStream(call),
  }
}

function generatedImages(basePath: string): ImageOperation<InteractionRequest> {
  return {
    toWire: (call) => generatedImageToWire(call, basePath),
    fromWire: generatedImageFromWire,
    stream: (call) => new GeneratedImageStream(call),
  }
}
