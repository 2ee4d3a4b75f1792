import { keyPool } from '../shared/key-pool.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { errorReader } from '../shared/openai-error.ts'
import {
  DEFAULT_TOKEN_LIMIT_FIELD,
  OPENAI_RULES,
  type TokenLimitField,
  tokenLimitField,
} from '../shared/openai-field-rules.ts'
import { openaiImageEdits, openaiImages } from '../shared/openai-images.ts'
import { openaiResponses } from '../shared/openai-responses.ts'
import { effortUnseen, reasonsUnseen } from '../shared/reasons-unseen.ts'
import { vendorAddress } from '../shared/vendor-address.ts'
import { vendorConnection } from '../shared/vendor-connection.ts'
import type { ApiKeys, ConnectionOptions, UnlistedModelOptions, Vendor } from '../vendor.ts'
import { openaiMedia } from './media-tokens.ts'
import { OPENAI_SPEECH_MODELS, openaiSpeech } from './openai-speech.ts'

const API_PATH = '/v1'

/** Options of {@link openai}. */
export interface OpenAIOptions extends UnlistedModelOptions, ConnectionOptions {
  /** One key or several; without one the vendor is not configured and its models are listed as unavailable. */
  readonly apiKey?: ApiKeys
  /** Origin, with or without a path prefix and `/v1`; `https://api.openai.com` by default. */
  readonly baseURL?: string | undefined
  /** The field in which a model takes its token bound, by the vendor's id; wins over the built-in table. */
  readonly tokenLimitFields?: Readonly<Record<string, TokenLimitField>> | undefined
  /** The same for models that no table lists; `max_completion_tokens` by default. */
  readonly defaultTokenLimitField?: TokenLimitField | undefined
  /**
   * Does the server have `/v1/responses`? True by default; false: such requests are translated into chat completions, for servers
   * behind `baseURL` that have only those.
   */
  readonly responses?: boolean | undefined
  /**
   * May callers of Responses name files, vector stores, containers and prompts? False by default: all accounts of the gateway
   * share the operator's, so each caller could read what another one stored.
   */
  readonly allowVendorObjects?: boolean | undefined
}

/**
 * OpenAI: responses, chat completions, embeddings, images, edits of images, and speech.
 * @throws TypeError when `baseURL` is not an http(s) URL without query and credentials.
 */
export function openai(options: OpenAIOptions = {}): Vendor {
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://api.openai.com', API_PATH)
  const errors = errorReader({}, apiKeys)
  const fieldOf = (upstream: string): TokenLimitField =>
    tokenLimitField(upstream, options.tokenLimitFields, options.defaultTokenLimitField ?? DEFAULT_TOKEN_LIMIT_FIELD)
  return {
    id: 'openai',
    displayName: 'OpenAI',
    origin,
    ...vendorConnection(options),
    ...pool,
    configuredBy: 'OPENAI_API_KEY or openai({ apiKey })',
    models: OPENAI_SPEECH_MODELS,
    passUnknownModels: options.passUnknownModels ?? false,
    chat: openaiChat({
      path: `${prefix}${API_PATH}/chat/completions`,
      rulesFor: (upstream) => OPENAI_RULES[fieldOf(upstream)],
      reasonsUnseen,
      streamFailure: errors.fromStream,
    }),
    ...(options.responses === false
      ? {}
      : {
          responses: openaiResponses({
            path: `${prefix}${API_PATH}/responses`,
            allowsVendorObjects: options.allowVendorObjects === true,
            reasonsUnseen: effortUnseen,
            streamFailure: errors.fromStream,
          }),
        }),
    embeddings: openaiEmbeddings({
      path: `${prefix}${API_PATH}/embeddings`,
      maxInputs: 2048,
      takesTokens: true,
      rules: {},
      givesBase64: true,
      prefersBase64: true,
    }),
    images: {
      generations: openaiImages({
        path: `${prefix}${API_PATH}/images/generations`,
        streamFailure: errors.fromStream,
      }),
    },
    imageEdits: openaiImageEdits({ path: `${prefix}${API_PATH}/images/edits`, streamFailure: errors.fromStream }),
    speech: openaiSpeech(`${prefix}${API_PATH}/audio/speech`),
    media: openaiMedia,
    errorFrom: errors.fromAnswer,
  }
}
