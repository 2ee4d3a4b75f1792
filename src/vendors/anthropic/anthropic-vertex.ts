import { parseVendorJson } from '../../core/json.ts'
import type { MemberNames } from '../../core/known-members.ts'
import { retryAfterSeconds } from '../../wire/headers.ts'
import { keyHeaders } from '../shared/bearer-headers.ts'
import { type GoogleCloudOptions, googleCloudAddress, withRemedy } from '../shared/google-cloud.ts'
import { googleErrorFrom, googleFailure } from '../shared/google-error.ts'
import { keyPool } from '../shared/key-pool.ts'
import { modelAbilities } from '../shared/messages-abilities.ts'
import { chatFromWire } from '../shared/messages-answer.ts'
import { ownsReasoning, thinksUnseen } from '../shared/messages-reasoning.ts'
import { checkVendorOptions } from '../shared/vendor-options.ts'
import {
  type ApiKeys,
  type ConnectionOptions,
  type UnlistedModelOptions,
  type Vendor,
  type VendorFailure,
  vendorConnection,
  type WireAnswer,
} from '../vendor.ts'
import { chatDecoder } from './chat-decoder.ts'
import { mostOutputTokens, SURCHARGES_LEFT_OUT } from './chat-to-wire.ts'
import { errorFrom } from './error-from.ts'
import { hostedChatToWire, hostedMessages, type MessagesHost } from './hosted-messages.ts'
import { anthropicMedia } from './media-tokens.ts'
import { ANTHROPIC_PRICE_MEMBERS } from './price-members.ts'

/** Options of {@link anthropicVertex}. */
export interface AnthropicVertexOptions
  extends Required<Pick<GoogleCloudOptions, 'project' | 'location'>>,
    Pick<GoogleCloudOptions, 'baseURL'>,
    UnlistedModelOptions,
    ConnectionOptions {
  /** Id of the vendor, for several projects or locations. Default `anthropic-vertex`. */
  readonly id?: string | undefined
  /** Display name. Default `Claude on Vertex AI`. */
  readonly displayName?: string | undefined
  /** A provider of tokens, such as `googleDefaultCredentials()`. If omitted, the vendor is not configured. */
  readonly apiKey?: ApiKeys
}

const ANTHROPIC_VERTEX_OPTIONS = {
  id: true,
  displayName: true,
  apiKey: true,
  project: true,
  location: true,
  baseURL: true,
  passUnknownModels: true,
  headers: true,
  query: true,
  tls: true,
  proxy: true,
} satisfies MemberNames<AnthropicVertexOptions>

/** Fields of a Messages request that the cloud accepts (Anthropic, "Claude on Vertex AI"; recorded rejections). */
const FIELDS: ReadonlySet<string> = new Set([
  ...['messages', 'system', 'max_tokens', 'metadata', 'stop_sequences', 'stream', 'temperature', 'top_p', 'top_k'],
  ...['tools', 'tool_choice', 'thinking', 'output_config', 'output_format', 'cache_control', 'context_management'],
  ...['safeguards', 'anthropic_version'],
])

const BETAS: ReadonlyMap<string, string | undefined> = new Map([
  ['advanced-tool-use', 'tool-search-tool-2025-10-19'],
  ...[
    ...['claude-code', 'compact', 'computer-use', 'context-1m', 'context-management', 'dangerous-tool-use'],
    ...['interleaved-thinking', 'per-turn-control', 'thinking-binding-controls', 'thinking-display-updates'],
    ...['tool-search-tool', 'web-search'],
  ].map((name) => [name, undefined] as const),
])

/** Older models, whose price is the same in all locations (Anthropic, "Claude on Vertex AI", pricing). */
const OLDER_MODELS = /^claude-(?:3|(?:opus|sonnet)-4(?:-1)?(?:@|$))/

/**
 * Creates the vendor Claude on Vertex AI: the Messages API inside Google Cloud's. `upstream` of a model is Google's id, such as
 * `claude-sonnet-4-5@20250929`.
 * @throws TypeError for an unknown option, and naming the option and variable if project or location is invalid.
 */
export function anthropicVertex(options: AnthropicVertexOptions): Vendor {
  checkVendorOptions('anthropicVertex', options, ANTHROPIC_VERTEX_OPTIONS)
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const { origin, path, place } = googleCloudAddress('anthropicVertex', options, pool)
  if (place === undefined)
    throw new TypeError('anthropicVertex: set project (GOOGLE_CLOUD_PROJECT) and location (GOOGLE_CLOUD_LOCATION)')
  const models = `${path}/publishers/anthropic/models`
  const host: MessagesHost = {
    path: (upstream, stream) =>
      `${models}/${encodeURIComponent(upstream).replaceAll('%40', '@')}:${stream ? 'streamRawPredict' : 'rawPredict'}`,
    countPath: `${models}/count-tokens:rawPredict`,
    headers: keyHeaders('x-goog-api-key'),
    version: 'vertex-2023-10-16',
    fields: FIELDS,
    refusedMembers: new Map([
      ['scope', 'cache_control.scope'],
      ['eager_input_streaming', 'tools.eager_input_streaming'],
    ]),
    betas: BETAS,
    countBetas: new Set(['claude-code', 'interleaved-thinking', 'context-management']),
    hiddenEvents: new Set(['vertex_event']),
    leavesOut: new Set(['speed', 'inference_geo']),
  }
  return {
    id: options.id ?? 'anthropic-vertex',
    telemetryName: 'gcp.vertex_ai',
    displayName: options.displayName ?? 'Claude on Vertex AI',
    origin,
    ...vendorConnection(options),
    ...pool,
    configuredBy:
      'GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or anthropicVertex({ project, location, apiKey: googleDefaultCredentials() })',
    models: [],
    catalogId: 'vertex',
    // Listed prices apply to the global location.
    catalogIds: (upstream) => {
      if (!upstream.startsWith('claude-')) return []
      return place.location === 'global' || OLDER_MODELS.test(upstream) ? [upstream] : ['', upstream]
    },
    claims: ['claude-*'],
    passUnknownModels: options.passUnknownModels ?? false,
    chat: {
      toWire: (call) => hostedChatToWire(call, host),
      leavesOut: SURCHARGES_LEFT_OUT,
      takesCacheControl: () => true,
      mostOutputTokens,
      makesAnswerFormats: () => true,
      fromWire: chatFromWire,
      decoder: (call, writer) => chatDecoder(call, writer, apiKeys),
      reasonsUnseen: ({ model, request }) => thinksUnseen(modelAbilities(model.upstream), request.reasoning_effort),
      takesImageUrls: () => false,
    },
    messages: hostedMessages(host, apiKeys),
    media: anthropicMedia,
    priceMembers: ANTHROPIC_PRICE_MEMBERS,
    ownsReasoning,
    errorFrom: (answer, nowMs) =>
      withRemedy(cloudError(answer, nowMs, apiKeys) ?? errorFrom(answer, nowMs, apiKeys), answer, place),
  }
}

/** Returns a rejection by the cloud before the model was called, or `undefined` if the error comes from the model's API. */
function cloudError(answer: WireAnswer, nowMs: number, apiKeys: readonly string[]): VendorFailure | undefined {
  const error = googleErrorFrom(parseVendorJson(new TextDecoder().decode(answer.body)))
  if (error === undefined || (error.token === undefined && error.httpStatus === undefined)) return undefined
  const failure = googleFailure(error, answer.status, apiKeys)
  return { ...failure, retryAfterSeconds: failure.retryAfterSeconds ?? retryAfterSeconds(answer.headers, nowMs) }
}
