import type { MemberNames } from '../../core/known-members.ts'
import type { InteractionRequest } from '../../endpoints/images/interactions/interaction-request.ts'
import { keyPool } from '../shared/key-pool.ts'
import { vendorAddress } from '../shared/vendor-address.ts'
import { checkVendorOptions } from '../shared/vendor-options.ts'
import {
  type ApiKeys,
  type ConnectionOptions,
  type ImageOperation,
  type UnlistedModelOptions,
  type Vendor,
  vendorConnection,
} from '../vendor.ts'
import type { GeminiApi } from './api-request.ts'
import { generateContentBatches } from './batches.ts'
import { embeddingsFromWire, embeddingsToWire, MAX_EMBEDDING_INPUTS } from './embeddings.ts'
import { errorFrom } from './error-from.ts'
import { generateContent, generatedImages } from './generate-content.ts'
import { interactionFromWire } from './interactions/interaction-from-wire.ts'
import { InteractionStream } from './interactions/interaction-stream.ts'
import { interactionToWire } from './interactions/interaction-to-wire.ts'
import { transcriptions } from './transcriptions.ts'

export { type VertexOptions, vertex } from './vertex.ts'

/** Options of {@link gemini}. */
export interface GeminiOptions extends UnlistedModelOptions, ConnectionOptions {
  /** One or several API keys, used in turn. If omitted or empty, the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Origin of the API, with an optional path prefix. Default `https://generativelanguage.googleapis.com`. */
  readonly baseURL?: string | undefined
  /** API version in paths. Default `v1beta`, which has every model. */
  readonly apiVersion?: string | undefined
  /**
   * API for images. Default `interactions`, whose answers can be continued. `generateContent` is the older API with the same
   * requests and answers, but nothing can be continued.
   */
  readonly images?: 'interactions' | 'generateContent' | undefined
}

const GEMINI_OPTIONS = {
  apiKey: true,
  baseURL: true,
  apiVersion: true,
  images: true,
  passUnknownModels: true,
  headers: true,
  query: true,
  tls: true,
  proxy: true,
} satisfies MemberNames<GeminiOptions>

/**
 * Creates the vendor Google Gemini with its native API: chat and transcription through `generateContent`, embeddings through
 * `batchEmbedContents`, images through Interactions.
 * @throws TypeError if `baseURL`, `apiVersion` or `images` is invalid.
 */
export function gemini(options: GeminiOptions = {}): Vendor {
  checkVendorOptions('gemini', options, GEMINI_OPTIONS)
  const apiVersion = options.apiVersion ?? 'v1beta'
  if (!/^v\d\w*$/.test(apiVersion)) throw new TypeError(`apiVersion is not a version such as v1beta: ${apiVersion}`)
  const imagesBy = options.images ?? 'interactions'
  if (imagesBy !== 'interactions' && imagesBy !== 'generateContent')
    throw new TypeError(`images is neither interactions nor generateContent: ${String(imagesBy)}`)
  const versionPath = `/${apiVersion}`
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://generativelanguage.googleapis.com', versionPath)
  const basePath = `${prefix}${versionPath}`
  const api: GeminiApi = { basePath, hasCallIds: true, wrapsCounts: true }
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  return {
    id: 'gemini',
    telemetryName: 'gcp.gemini',
    displayName: 'Google Gemini',
    origin,
    ...vendorConnection(options),
    ...pool,
    configuredBy: 'GEMINI_API_KEY or gemini({ apiKey })',
    models: [],
    claims: ['gemini-*', 'gemma-*', 'imagen-*', 'veo-*'],
    passUnknownModels: options.passUnknownModels ?? false,
    ...generateContent(api),
    embeddings: {
      maxInputs: MAX_EMBEDDING_INPUTS,
      takesTokens: false,
      toWire: (call) => embeddingsToWire(call, basePath),
      fromWire: embeddingsFromWire,
    },
    images: {
      interactions: imagesBy === 'generateContent' ? generatedImages(api) : interactions(basePath),
    },
    transcription: transcriptions(basePath),
    batches: generateContentBatches({ prefix, apiVersion }, apiKeys),
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
