import { type ExactMembers, exactJsonText, parseExactJson } from '../../core/exact-json.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../../core/json.ts'
import { checkEnumerated, memberNames } from '../../core/known-members.ts'
import { type AwsLocation, awsAddress, awsFailure, baseModelId, listedModelIds } from '../shared/aws.ts'
import { hasHiddenThinking, modelAbilities, ownsReasoning } from '../shared/messages-abilities.ts'
import { chatFromWire } from '../shared/messages-answer.ts'
import {
  commonParts,
  type ResourceAddress,
  resourceAddress,
  type VendorObjectOptions,
  vendorAddress,
} from '../shared/vendor-options.ts'
import type {
  ApiKeys,
  NamedVendorOptions,
  NativeBatches,
  NativeCall,
  NativeReport,
  NativeResult,
  Vendor,
  VendorOptions,
  WireAnswer,
} from '../vendor.ts'
import { ANTHROPIC_PRICE_MEMBERS, anthropicMedia } from './anthropic-vertex.ts'
import {
  chatDecoder,
  chatToWire,
  keyHeadersFor,
  type MessagesAddress,
  mostOutputTokens,
  SURCHARGES_LEFT_OUT,
} from './chat-to-wire.ts'
import { errorFrom } from './error-from.ts'
import { messagesOperation } from './messages-operation.ts'

export { type AnthropicVertexOptions, anthropicVertex } from './anthropic-vertex.ts'

/** Options of {@link anthropic}. */
export interface AnthropicOptions extends VendorOptions, VendorObjectOptions {
  /** Origin of the API, with an optional path prefix. A trailing `/v1` is accepted. Default `https://api.anthropic.com`. */
  readonly baseURL?: string | undefined
  /** Value of the `anthropic-version` header if the caller sends none. Default `2023-06-01`. */
  readonly version?: string | undefined
}

const ANTHROPIC_OPTIONS = memberNames<Omit<AnthropicOptions, keyof VendorOptions>>()(
  'baseURL version allowVendorObjects',
)

/** Options of {@link anthropicFoundry}. */
export interface AnthropicFoundryOptions extends ResourceAddress, NamedVendorOptions {
  /** Name of the resource: `my-resource` of `https://my-resource.services.ai.azure.com`. */
  readonly resource?: string | undefined
  /** Address in place of `resource`, with or without `/anthropic/v1/messages`. */
  readonly endpoint?: string | undefined
  /** Value of the `anthropic-version` header if the caller sends none. Default `2023-06-01`. */
  readonly version?: string | undefined
}

const ANTHROPIC_FOUNDRY_OPTIONS = memberNames<Omit<AnthropicFoundryOptions, keyof VendorOptions>>()(
  'id displayName resource endpoint version',
)

/** Options of {@link anthropicBedrock}. */
export interface AnthropicBedrockOptions extends AwsLocation, NamedVendorOptions {
  /** API keys of Bedrock, or a provider of `signalbox/credentials`. If omitted, the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Service. Default `bedrock-runtime`. */
  readonly service?: 'bedrock-runtime' | 'bedrock-mantle' | undefined
  /** Value of the `anthropic-version` header if the caller sends none. Default `2023-06-01`. */
  readonly version?: string | undefined
}

const ANTHROPIC_BEDROCK_OPTIONS = memberNames<Omit<AnthropicBedrockOptions, keyof VendorOptions>>()(
  'id displayName region endpoint service version',
)

/**
 * Creates the vendor Anthropic. Its Messages API is passed through for Messages callers and translated for chat.
 * @throws TypeError if `baseURL` is not an http(s) URL.
 */
export function anthropic(options: AnthropicOptions = {}): Vendor {
  const common = commonParts('anthropic', options, ANTHROPIC_OPTIONS, { id: 'anthropic', displayName: 'Anthropic' })
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://api.anthropic.com', '/v1')
  const address = messagesAddress(prefix, options)
  return {
    ...messagesVendor(common, origin, address),
    configuredBy: 'ANTHROPIC_API_KEY or anthropic({ apiKey })',
    claims: ['claude-*'],
    // Claude in the clouds has other batch APIs, or no batch API.
    batches: messageBatches(address),
  }
}

/**
 * Creates the vendor Claude in Microsoft Foundry: the same API at your own resource. `upstream` of a model is the name of its
 * deployment, which should be the model's own id, because abilities are looked up by it.
 * @throws TypeError unless exactly one of `resource` and `endpoint` is given and valid.
 */
export function anthropicFoundry(options: AnthropicFoundryOptions): Vendor {
  const usual = { id: 'anthropic-foundry', displayName: 'Claude in Foundry' }
  const common = commonParts('anthropicFoundry', options, ANTHROPIC_FOUNDRY_OPTIONS, usual)
  const given = resourceAddress('anthropicFoundry', options, 'services.ai.azure.com')
  const { origin, prefix } = vendorAddress(given)
  const base = prefix.replace(/(?:\/anthropic)?(?:\/v1(?:\/messages)?)?$/, '/anthropic')
  return {
    ...messagesVendor(common, origin, messagesAddress(base, options)),
    configuredBy: 'ANTHROPIC_FOUNDRY_API_KEY or anthropicFoundry({ apiKey })',
  }
}

/**
 * Creates the vendor Claude in Amazon Bedrock with its Messages API. Requests of Messages callers pass through unchanged, including
 * features that other APIs of Bedrock lack.
 * @throws TypeError unless exactly one of `region` and `endpoint` is given and valid.
 */
export function anthropicBedrock(options: AnthropicBedrockOptions): Vendor {
  const usual = { id: 'anthropic-bedrock', displayName: 'Claude in Amazon Bedrock' }
  const common = commonParts('anthropicBedrock', options, ANTHROPIC_BEDROCK_OPTIONS, usual)
  checkEnumerated(options.service, ['bedrock-runtime', 'bedrock-mantle'], 'anthropicBedrock', 'service')
  const { origin, prefix } = awsAddress('anthropicBedrock', options.service ?? 'bedrock-runtime', options)
  const vendor = messagesVendor(common, origin, {
    ...messagesAddress(`${prefix}/anthropic`, options),
    keyHeaders: (apiKey) => ['authorization', `Bearer ${apiKey}`],
  })
  return {
    ...vendor,
    configuredBy: 'AWS_BEARER_TOKEN_BEDROCK or anthropicBedrock({ apiKey })',
    catalogId: 'bedrock',
    catalogIds: (upstream) => (baseModelId(upstream).startsWith('anthropic.') ? listedModelIds(upstream) : []),
    errorFrom: (answer, nowMs) => awsFailure(answer, nowMs, vendor.apiKeys) ?? vendor.errorFrom(answer, nowMs),
  }
}

/** Creates the vendor at an address. The names are for display. */
function messagesVendor(
  common: ReturnType<typeof commonParts>,
  origin: string,
  address: MessagesAddress,
): Omit<Vendor, 'configuredBy'> {
  const { apiKeys } = common
  return {
    ...common,
    origin,
    catalogId: 'anthropic',
    chat: {
      toWire: (call) => chatToWire(call, address),
      leavesOut: SURCHARGES_LEFT_OUT,
      takesCacheControl: () => true,
      takesFileUrls: () => true,
      mostOutputTokens,
      makesAnswerFormats: () => true,
      fromWire: chatFromWire,
      decoder: (call, writer) => chatDecoder(call, writer, apiKeys),
      hasHiddenReasoning: ({ model, request }) =>
        hasHiddenThinking(modelAbilities(model.upstream), request.reasoning_effort),
    },
    messages: messagesOperation(address, apiKeys),
    media: anthropicMedia,
    priceMembers: ANTHROPIC_PRICE_MEMBERS,
    ownsReasoning,
    errorFrom: (answer, nowMs) => errorFrom(answer, nowMs, apiKeys),
  }
}

function messagesAddress(prefix: string, { version }: Pick<AnthropicOptions, 'version'>): MessagesAddress {
  return { path: `${prefix}/v1/messages`, version: version ?? '2023-06-01' }
}

/** Statuses of the errors of single calls, by type (Anthropic, "Errors"). Results of batches have no status. */
const STATUSES: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['conflict_error', 409],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])

const BEGIN = '{"requests":['
const END = ']}'

/**
 * Batches of the Messages API (Anthropic API reference, "Message Batches"): the creation carries the requests, and results arrive
 * in any order. A batch has no name, so it cannot be found again if its creation got no answer. Results are read at the vendor's
 * own address rather than the one in the batch, so that the key is sent nowhere else.
 */
function messageBatches(address: MessagesAddress): NativeBatches {
  const root = `${address.path}/batches`
  const headers = (apiKey: string): string[] => [
    ...keyHeadersFor(address, apiKey),
    'anthropic-version',
    address.version,
    'accept-encoding',
    'identity',
  ]
  const call = (method: NativeCall['method'], path: string, apiKey: string): NativeCall => ({
    method,
    path: `${root}/${path}`,
    headers: headers(apiKey),
    body: null,
  })
  return {
    // 256 MB of a body, and 32 MB of a request.
    limits: { maxRequests: 100_000, maxBytes: 256_000_000 - BEGIN.length - END.length, maxLineBytes: 32_000_000 },
    // These headers apply to a whole batch.
    takes: ({ path, headers: given }) =>
      path === address.path &&
      headerOf(given, 'anthropic-beta') === undefined &&
      headerOf(given, 'anthropic-version') === address.version,
    line: ({ customId, body }) => `{"custom_id":${JSON.stringify(customId)},"params":${body}}`,
    create: (_input, apiKey) => ({
      method: 'POST',
      path: root,
      headers: [...headers(apiKey), 'content-type', 'application/json'],
      body: { before: BEGIN, between: ',', after: END },
    }),
    created: (answer) => batchFrom(answer)?.id,
    read: (batchId, apiKey) => call('GET', encodeURIComponent(batchId), apiKey),
    report,
    results: (batchId, apiKey) => call('GET', `${encodeURIComponent(batchId)}/results`, apiKey),
    result,
    cancel: (batchId, apiKey) => call('POST', `${encodeURIComponent(batchId)}/cancel`, apiKey),
    remove: ({ batchId }, apiKey) =>
      batchId === undefined ? [] : [call('DELETE', encodeURIComponent(batchId), apiKey)],
  }
}

/** The value of a header in a flat list; names are in lower case. */
function headerOf(headers: readonly string[], name: string): string | undefined {
  const position = headers.findIndex((text, index) => index % 2 === 0 && text === name)
  return position === -1 ? undefined : headers[position + 1]
}

interface MessageBatch {
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>>
}

function batchFrom({ body }: WireAnswer): MessageBatch | undefined {
  const fields = parseVendorJson(new TextDecoder().decode(body))
  if (!isJsonObject(fields) || fields['type'] !== 'message_batch') return undefined
  const { id } = fields
  return typeof id === 'string' && id !== '' ? { id, fields } : undefined
}

function report(answer: WireAnswer): NativeReport | undefined {
  const batch = batchFrom(answer)
  if (batch === undefined) return undefined
  const { processing_status: status, results_url: resultsUrl, cancel_initiated_at: cancelledAt } = batch.fields
  if (typeof status !== 'string') return undefined
  const counts = objectOf(batch.fields['request_counts'])
  const hasEnded = status === 'ended'
  return {
    state: hasEnded ? 'ended' : 'running',
    isExpired: hasEnded && Number(counts['expired'] ?? 0) > 0,
    isCancelled: hasEnded && typeof cancelledAt === 'string',
    // Without an address they are archived, and cannot be had.
    results: hasEnded && typeof resultsUrl === 'string' ? [batch.id] : [],
    failure: undefined,
  }
}

/** Arguments of tools have the vendor's digits. */
const EXACT: ExactMembers = new Map([['input', 'text']])

function result(line: string): NativeResult | undefined {
  const entry = parseExactJson(line, EXACT)
  const { custom_id: customId, result: outcome } = objectOf(entry)
  if (typeof customId !== 'string' || !isJsonObject(outcome)) return undefined
  switch (outcome['type']) {
    case 'succeeded':
      return isJsonObject(outcome['message'])
        ? { customId, kind: 'answered', status: 200, body: exactJsonText(outcome['message']) }
        : undefined
    case 'errored':
      return { customId, kind: 'answered', ...failureFrom(outcome['error']) }
    case 'expired':
      return { customId, kind: 'expired' }
    case 'canceled':
      return { customId, kind: 'cancelled' }
    default:
      return undefined
  }
}

/** The answer that a single call would have had. */
function failureFrom(given: unknown): { readonly status: number; readonly body: string } {
  const outer = objectOf(given)
  // The error itself, or an answer around it.
  const inner = isJsonObject(outer['error']) ? outer['error'] : outer
  const body = JSON.stringify({ type: 'error', error: inner })
  return { status: STATUSES.get(inner['type']) ?? 500, body }
}
