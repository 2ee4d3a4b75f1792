import type { ModelDefinition } from '../../catalog/model.ts'
import { activeRules, PASS_ALL, plainMessages } from '../shared/chat-fields.ts'
import { keyPool } from '../shared/key-pool.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { errorReader } from '../shared/openai-error.ts'
import { openaiImageEdits, openaiImages } from '../shared/openai-images.ts'
import { openaiResponses } from '../shared/openai-responses.ts'
import { vendorAddress } from '../shared/vendor-address.ts'
import type { ApiKeys, UnlistedModelOptions, Vendor } from '../vendor.ts'

/** Options of {@link openaiCompatible}. */
export interface OpenAICompatibleOptions extends UnlistedModelOptions {
  /** Id of the vendor: lower-case letters, digits and dashes. */
  readonly id: string
  /** Name for people; the id by default. */
  readonly displayName?: string | undefined
  /**
   * As OpenAI's SDKs take it: `https://host.example/v1`. `/chat/completions`, `/embeddings`, `/images/generations` and
   * `/images/edits` are appended.
   */
  readonly baseURL: string
  /** One key or several; without one no credential is sent. */
  readonly apiKey?: ApiKeys
  /** The models it serves. Those of kind `image` need `protocol: 'generations'`. */
  readonly models: readonly Omit<ModelDefinition, 'vendor'>[]
  /** Most texts of one embedding call; 2048 by default. */
  readonly maxEmbeddingInputs?: number | undefined
  /** Sends reasoning and vendor state of earlier answers back, for servers that require it; removed by default. */
  readonly replaysExtensions?: boolean | undefined
  /** True for a server that has `/responses` too; elsewhere such requests are translated into chat completions. */
  readonly responses?: boolean | undefined
}

const ID = /^[a-z0-9][a-z0-9-]*$/

/**
 * Any server that speaks OpenAI's dialect of chat completions, embeddings and images.
 * @throws TypeError when the id or `baseURL` is not of the stated form.
 */
export function openaiCompatible(options: OpenAICompatibleOptions): Vendor {
  if (!ID.test(options.id)) throw new TypeError(`a vendor id is lower-case letters, digits and dashes: ${options.id}`)
  const pool = keyPool(options.apiKey)
  const { origin, prefix } = vendorAddress(options.baseURL)
  const errors = errorReader({}, pool.apiKeys)
  const rules = activeRules(options.replaysExtensions === true ? PASS_ALL : { ...PASS_ALL, messages: plainMessages })
  return {
    id: options.id,
    displayName: options.displayName ?? options.id,
    origin,
    // An empty key is one key: the server needs no credential, only its address.
    ...(pool.apiKeys.length === 0 ? { apiKeys: [''] } : pool),
    configuredBy: `openaiCompatible({ id: '${options.id}', apiKey })`,
    passUnknownModels: options.passUnknownModels ?? false,
    models: options.models.map((model) => ({ ...model, vendor: options.id })),
    chat: openaiChat({
      path: `${prefix}/chat/completions`,
      rulesFor: () => rules,
      streamFailure: errors.fromStream,
    }),
    ...(options.responses === true
      ? {
          responses: openaiResponses({
            path: `${prefix}/responses`,
            allowsVendorObjects: false,
            streamFailure: errors.fromStream,
          }),
        }
      : {}),
    embeddings: openaiEmbeddings({
      path: `${prefix}/embeddings`,
      maxInputs: options.maxEmbeddingInputs ?? 2048,
      takesTokens: true,
      rules: {},
      givesBase64: true,
      prefersBase64: false,
    }),
    images: {
      generations: openaiImages({ path: `${prefix}/images/generations`, streamFailure: errors.fromStream }),
    },
    imageEdits: openaiImageEdits({ path: `${prefix}/images/edits`, streamFailure: errors.fromStream }),
    errorFrom: errors.fromAnswer,
  }
}
