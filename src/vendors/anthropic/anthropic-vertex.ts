import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { memberNames } from '../../core/known-members.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EventLines } from '../../endpoints/event-reader.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import type { PriceMembers } from '../../endpoints/price-members.ts'
import { asBuffer } from '../../wire/chunks.ts'
import { retryAfterSeconds } from '../../wire/headers.ts'
import { editMembers } from '../../wire/json-edits.ts'
import {
  type GoogleCloudOptions,
  googleCloudAddress,
  googleErrorFrom,
  googleFailure,
  withRemedy,
} from '../shared/google.ts'
import { hasHiddenThinking, modelAbilities, ownsReasoning } from '../shared/messages-abilities.ts'
import { chatFromWire } from '../shared/messages-answer.ts'
import { commonParts, type KeyHeaders, keyHeaders } from '../shared/vendor-options.ts'
import type {
  ApiKeys,
  MediaRules,
  MessagesOperation,
  NamedVendorOptions,
  Vendor,
  VendorCall,
  VendorFailure,
  VendorOptions,
  WireAnswer,
  WireRequest,
} from '../vendor.ts'
import { chatDecoder, messagesRequestFor, mostOutputTokens, SURCHARGES_LEFT_OUT } from './chat-to-wire.ts'
import { errorFrom, messagesStreamError } from './error-from.ts'
import {
  AutomaticMarks,
  acceptedMessages,
  callerHeader,
  extraFeatures,
  MessagesPassThrough,
  messagesOperation,
} from './messages-operation.ts'

/** Options of {@link anthropicVertex}. */
export interface AnthropicVertexOptions
  extends Required<Pick<GoogleCloudOptions, 'project' | 'location'>>,
    Pick<GoogleCloudOptions, 'baseURL'>,
    NamedVendorOptions {
  /** A provider of tokens, such as `googleDefaultCredentials()`. If omitted, the vendor is not configured. */
  readonly apiKey?: ApiKeys
}

const ANTHROPIC_VERTEX_OPTIONS = memberNames<Omit<AnthropicVertexOptions, keyof VendorOptions>>()(
  'id displayName project location baseURL',
)

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
  const usual = { id: 'anthropic-vertex', displayName: 'Claude on Vertex AI' }
  const common = commonParts('anthropicVertex', options, ANTHROPIC_VERTEX_OPTIONS, usual)
  const { apiKeys } = common
  const { origin, path, place } = googleCloudAddress('anthropicVertex', options, common)
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
    ...common,
    telemetryName: 'gcp.vertex_ai',
    origin,
    configuredBy:
      'GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or anthropicVertex({ project, location, apiKey: googleDefaultCredentials() })',
    catalogId: 'vertex',
    // Listed prices apply to the global location.
    catalogIds: (upstream) => {
      if (!upstream.startsWith('claude-')) return []
      return place.location === 'global' || OLDER_MODELS.test(upstream) ? [upstream] : ['', upstream]
    },
    claims: ['claude-*'],
    chat: {
      toWire: (call) => hostedChatToWire(call, host),
      leavesOut: SURCHARGES_LEFT_OUT,
      takesCacheControl: () => true,
      mostOutputTokens,
      makesAnswerFormats: () => true,
      fromWire: chatFromWire,
      decoder: (call, writer) => chatDecoder(call, writer, apiKeys),
      hasHiddenReasoning: ({ model, request }) =>
        hasHiddenThinking(modelAbilities(model.upstream), request.reasoning_effort),
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

/** The Messages API inside a cloud's own API. The model is in the path, and the version in the body. */
interface MessagesHost {
  /** Path of a call below the origin. */
  path(upstream: string, stream: boolean): string
  /** Path of the token count, whose body names the model. */
  readonly countPath: string
  readonly headers: KeyHeaders
  /** `anthropic_version` of every body. */
  readonly version: string
  /** Members of a request that the host accepts. Others are dropped and reported. */
  readonly fields: ReadonlySet<string>
  /** Nested members that the host rejects, and their names in reports to the caller: `scope`, `cache_control.scope`. */
  readonly refusedMembers: ReadonlyMap<string, string>
  /** Supported betas by name without date, with the host's full name if it differs. */
  readonly betas: ReadonlyMap<string, string | undefined>
  /** Betas that the host's token count accepts. */
  readonly countBetas: ReadonlySet<string>
  /** The host's own stream events, which clients of the dialect cannot read. */
  readonly hiddenEvents: ReadonlySet<string>
  /** Price fields of members that are not in `fields`. */
  readonly leavesOut: ReadonlySet<string>
}

/** Version of Anthropic's own API whose rules requests follow. */
const RULES_VERSION = '2023-06-01'

/** Writes a chat as a Messages request of the host. */
function hostedChatToWire(call: VendorCall<ChatRequest>, host: MessagesHost): WireRequest {
  const dropped = new Set<string>()
  const { model: _inPath, ...body } = messagesRequestFor(call, RULES_VERSION, (field) => void dropped.add(field))
  return {
    path: host.path(call.model.upstream, call.stream),
    headers: host.headers(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body: exactJsonText({ anthropic_version: host.version, ...body }),
    dropped: [...dropped],
  }
}

/** Creates the Messages operation of a host. Only the model, the version and rejected members of the caller's bytes change. */
function hostedMessages(host: MessagesHost, apiKeys: readonly string[]): MessagesOperation {
  // Answers have the form of Anthropic's own API.
  const own = messagesOperation({ path: '', version: RULES_VERSION }, apiKeys)
  return {
    ...own,
    takesImageUrls: false,
    leavesOut: host.leavesOut,
    extraFeatures: ({ betas: _none, fallbacks: _nobody, ...request }, header) =>
      extraFeatures(request as MessagesRequest, (name) =>
        name === 'anthropic-beta' ? betasOf(header(name), host).sent.join() : header(name),
      ),
    stream: (call) => new HostedStream(call, apiKeys, host.hiddenEvents),
    toWire: (call) =>
      toWire(call, host, { path: host.path(call.model.upstream, call.stream), namesModel: false, betas: undefined }),
    tokenCount: {
      ...own.tokenCount,
      toWire: (call) => toWire(call, host, { path: host.countPath, namesModel: true, betas: host.countBetas }),
    },
  }
}

/** Differences of a kind of call. */
interface HostedCall {
  readonly path: string
  readonly namesModel: boolean
  /** Supported betas of the host, or `undefined` for all. */
  readonly betas: ReadonlySet<string> | undefined
}

function toWire(
  call: VendorCall<MessagesRequest>,
  host: MessagesHost,
  { path, namesModel, betas: allowed }: HostedCall,
): WireRequest {
  const { bytes, model, stream, apiKey } = call
  const { own, dropped } = acceptedMessages(call)
  const marks = AutomaticMarks.for(call)
  const request = marks?.inRequest(own ?? call.request) ?? own ?? call.request
  const unknown = Object.keys(request).filter((name) => !host.fields.has(name) && name !== 'model')
  const changes = new Map<string, string | undefined>([
    ['model', namesModel ? JSON.stringify(model.upstream) : undefined],
    ['anthropic_version', JSON.stringify(host.version)],
    ...unknown.map((name) => [name, undefined] as const),
  ])
  const source = own === undefined && bytes !== undefined ? asBuffer(bytes) : undefined
  const isPlain = source !== undefined && ![...host.refusedMembers.keys()].some((name) => source.includes(`"${name}"`))
  const marked = isPlain && marks !== undefined ? marks.inBytes(source) : source
  const edited = isPlain && marked !== undefined ? editMembers(marked, changes)?.apply(marked) : undefined
  const cleaned = edited === undefined ? withoutMembers(request, host.refusedMembers) : undefined
  const betas = betasOf(callerHeader(call, 'anthropic-beta'), host, allowed)
  return {
    path,
    headers: [
      ...host.headers(apiKey, stream ? 'text/event-stream' : 'application/json'),
      ...(betas.sent.length === 0 ? [] : ['anthropic-beta', betas.sent.join()]),
    ],
    body: edited ?? bodyWith(changes, cleaned!.value),
    dropped: [
      ...dropped,
      ...unknown.filter((name) => (request[name] ?? null) !== null),
      ...(cleaned?.removed ?? []),
      ...(betas.lost.length === 0 ? [] : ['anthropic-beta']),
    ],
  }
}

/** Returns the request as text with the changes of `editMembers`. */
function bodyWith(changes: ReadonlyMap<string, string | undefined>, request: object): string {
  const kept = Object.entries(request).filter(([name]) => !changes.has(name))
  const set = [...changes].flatMap(([name, value]) => (value === undefined ? [] : [[name, JSON.parse(value)] as const]))
  return exactJsonText(Object.fromEntries([...set, ...kept]))
}

/** Removes members with these names at any depth, except in tools' inputs and schemas, which belong to the caller. */
function withoutMembers(
  value: MessagesRequest,
  refused: ReadonlyMap<string, string>,
): { value: MessagesRequest; removed: readonly string[] } {
  const removed = new Set<string>()
  const walk = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(walk)
    if (!isJsonObject(one)) return one
    return Object.fromEntries(
      Object.entries(one).flatMap(([name, member]) => {
        const shown = refused.get(name)
        if (shown !== undefined) {
          removed.add(shown)
          return []
        }
        return [[name, OPAQUE_MEMBERS.has(name) ? member : walk(member)]]
      }),
    )
  }
  return { value: walk(value) as MessagesRequest, removed: [...removed] }
}

const OPAQUE_MEMBERS: ReadonlySet<string> = new Set(['input', 'input_schema', 'schema', 'metadata', 'input_examples'])

const DATE = /-\d{4}-?\d{2}-?\d{2}$/

/** Splits the betas of a header into supported and unsupported ones. */
function betasOf(
  header: string | undefined,
  host: MessagesHost,
  allowed?: ReadonlySet<string>,
): { sent: readonly string[]; lost: readonly string[] } {
  const sent: string[] = []
  const lost: string[] = []
  for (const part of (header ?? '').split(',')) {
    const beta = part.trim()
    const name = beta.replace(DATE, '')
    if (beta === '') continue
    if (host.betas.has(name) && allowed?.has(name) !== false) sent.push(host.betas.get(name) ?? beta)
    else lost.push(beta)
  }
  return { sent, lost }
}

/** Passes a stream on without the host's own events. */
class HostedStream extends MessagesPassThrough {
  readonly #hidden: ReadonlySet<string>

  constructor(
    call: Pick<VendorCall<MessagesRequest>, 'publicModel' | 'conversation'>,
    apiKeys: readonly string[],
    hidden: ReadonlySet<string>,
  ) {
    super(call, (event) => messagesStreamError(event, apiKeys))
    this.#hidden = hidden
  }

  protected override readEvent(event: EventLines, isRest: boolean): void {
    if (event.name !== undefined && this.#hidden.has(event.name)) this.drop()
    else super.readEvent(event, isRest)
  }
}

/**
 * Width × height ÷ 750, or one token per 28 × 28 pixels, whichever is more (Anthropic, "Vision",
 * https://platform.claude.com/docs/en/build-with-claude/vision, which had the first rule before the second).
 */
const PIXELS_PER_TOKEN = 750
const PATCH_SIDE = 28

/**
 * A page is read as text, of 1,500 to 3,000 tokens, and as an image (Anthropic, "PDF support",
 * https://docs.anthropic.com/en/docs/build-with-claude/pdf-support).
 */
const TEXT_TOKENS_PER_PAGE = 3_000
/** An estimate for every model: the maximum tokens of an image before 4.7. The size of rendered pages is not documented. */
const PAGE_IMAGE_TOKENS = 1_600

/** Anthropic's rules for images and PDF files. It does not support audio. */
export const anthropicMedia: MediaRules = {
  tokens({ kind, width, height, pages }, upstream) {
    const { maxImageTokens } = modelAbilities(upstream)
    if (kind === 'image') {
      if (width === undefined || height === undefined) return maxImageTokens
      const patches = Math.ceil(width / PATCH_SIDE) * Math.ceil(height / PATCH_SIDE)
      return Math.min(maxImageTokens, Math.max(patches, Math.ceil((width * height) / PIXELS_PER_TOKEN)))
    }
    return pages === undefined ? undefined : pages * (TEXT_TOKENS_PER_PAGE + PAGE_IMAGE_TOKENS)
  },
  contextTokens: (upstream) => modelAbilities(upstream).contextTokens,
}

/**
 * Price members of Anthropic's API (types of `@anthropic-ai/sdk` 1.14). The price fields of the endpoint have the others: service
 * tier, speed, region, tools that run at the vendor, betas and fallbacks.
 */
export const ANTHROPIC_PRICE_MEMBERS: PriceMembers = {
  // Another organization pays then, at terms that the operator does not know.
  messages: [{ path: 'billing_policy.bill_to', field: 'billing_policy', ordinary: ['self'] }],
}
