import type { Attributes, Context, Link, Span, TextMapGetter, Tracer, TracerProvider } from '@opentelemetry/api'
import { formatDollars } from '../core/money.ts'
import type {
  AttemptEnd,
  AttemptFacts,
  Observer,
  RequestEnd,
  RequestFacts,
  StoreFacts,
  ToolCallEnd,
  ToolCallFacts,
} from '../core/observer.ts'
import type { Usage } from '../core/usage.ts'
import * as names from './names.ts'

/** Used parts of the package `@opentelemetry/api`. */
export type OtelApi = Pick<
  typeof import('@opentelemetry/api'),
  'context' | 'trace' | 'propagation' | 'createContextKey' | 'ROOT_CONTEXT' | 'SpanKind' | 'SpanStatusCode'
>

/** Options of {@link otel}. */
export interface OtelOptions {
  /** Ids of vendors that get the trace context, such as your own server. Baggage is never sent. Default: none. */
  readonly propagateTo?: readonly string[]
  /**
   * Whether to hide calls to vendors from the host's HTTP instrumentation, which would send the trace context to every vendor. If
   * false, the instrumentation creates its spans below the gateway's and decides what is sent, and `propagateTo` has no effect.
   * Default true.
   */
  readonly hideFromVendors?: boolean
  /**
   * Use of a caller's `traceparent` if the host has no span. With `parent`, the default, it is the span's parent, and its sampling
   * decision applies. With `link` it becomes a link, for callers who must not decide. With `ignore` it is not used. The option also
   * applies to the `traceparent` in the message of a tool call, which as a parent takes precedence over a span of the host.
   */
  readonly incoming?: 'parent' | 'link' | 'ignore'
  /** Whether calls to vendors have spans, which contain the tokens. Default true. */
  readonly attempts?: boolean
  /** Whether to add `gen_ai.usage.cost`, a double. By default only `signalbox.cost` is set, in exact decimal dollars. */
  readonly costAttribute?: boolean
  /** Version of the attribute names: October 2026, the default, or 1.41. */
  readonly semconv?: names.SemanticConventions
  /** Tracer provider. Defaults to the registered one. */
  readonly tracerProvider?: TracerProvider
  /** The host's copy of `@opentelemetry/api`, if this package would find another one: different versions do not work together. */
  readonly api?: OtelApi
}

/** Options with the defaults filled in. */
interface SpanSettings extends Required<Omit<OtelOptions, 'tracerProvider' | 'propagateTo'>> {
  readonly tracer: Tracer
  readonly propagateTo: ReadonlySet<string>
}

/** A request and its calls to vendors. */
interface RequestSpan {
  readonly span: Span
  readonly context: Context
  readonly attempts: AttemptSpan[]
  end: RequestEnd | undefined
}

/** Minimum duration in milliseconds for a store operation to become an event of its request's span. */
const GAP_MS = 1

interface AttemptSpan {
  /** Span of the request, or `undefined` if the call runs after its request. */
  readonly request: RequestSpan | undefined
  readonly span: Span | undefined
  readonly context: Context
  readonly facts: AttemptFacts
  end: AttemptEnd | undefined
}

/**
 * Creates a span for each request, each call to a vendor, and each tool call. Contexts travel with the request, so no context manager
 * is needed. Spans of vendor calls stay open until the request is settled: only then is it known which call is charged, and how much.
 */
export class CallSpans implements Observer {
  readonly #settings: SpanSettings
  readonly #suppressed: symbol
  /** Context of most calls: it only suppresses tracing. */
  readonly #suppressedRoot: Context
  /** Headers of calls; absent if no vendor gets a trace context. */
  readonly attemptHeaders?: (attempt: unknown) => readonly string[]

  constructor(settings: SpanSettings) {
    this.#settings = settings
    const { api, hideFromVendors, propagateTo } = settings
    // The key of `suppressTracing` in @opentelemetry/core, which instrumentations obey.
    this.#suppressed = api.createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
    this.#suppressedRoot = api.ROOT_CONTEXT.setValue(this.#suppressed, true)
    // The host's instrumentation also propagates the calls that it sees.
    if (hideFromVendors && propagateTo.size > 0) this.attemptHeaders = this.#headersOf.bind(this)
  }

  /** Returns `undefined` if nobody records spans and no trace is continued. */
  toolCallStarted(facts: ToolCallFacts): ToolCallSpan | undefined {
    return startToolCall(this.#settings, facts)
  }

  toolCallEnded(toolCall: unknown, end: ToolCallEnd): void {
    if (toolCall !== undefined) endToolCall(this.#settings, toolCall as ToolCallSpan, end)
  }

  /** Returns `null` if {@link toolCallStarted} returned `undefined`: in other places `undefined` means a call without a request. */
  requestStarted(facts: RequestFacts, toolCall?: unknown): RequestSpan | null {
    const { api, tracer } = this.#settings
    const { parent, links, isInner } =
      toolCall === undefined ? originOf(this.#settings, facts) : withinToolCall(toolCall as ToolCallSpan)
    const span = tracer.startSpan(
      `signalbox ${facts.endpoint}`,
      {
        kind: isInner ? api.SpanKind.INTERNAL : api.SpanKind.SERVER,
        startTime: facts.startedAtMs,
        attributes: { [names.REQUEST_ID]: facts.requestId, [names.ENDPOINT]: facts.endpoint },
        links,
      },
      parent,
    )
    if (!api.trace.isSpanContextValid(span.spanContext())) return null
    return { span, context: api.trace.setSpan(parent, span), attempts: [], end: undefined }
  }

  attemptStarted(request: unknown, facts: AttemptFacts): AttemptSpan | undefined {
    const call = request as RequestSpan | null | undefined
    if (call === null) return undefined
    const { api, tracer, attempts } = this.#settings
    // The active context belongs to whatever resumed the request.
    const parent = call?.context ?? api.ROOT_CONTEXT
    const operation = names.OPERATIONS[facts.kind] ?? names.OTHER_OPERATION
    const own =
      call === undefined ? { [names.REQUEST_ID]: facts.requestId, [names.ENDPOINT]: facts.endpoint } : undefined
    const span = attempts
      ? tracer.startSpan(
          `${operation} ${facts.upstream}`,
          {
            kind: api.SpanKind.CLIENT,
            startTime: facts.startedAtMs,
            attributes: { [names.OPERATION_NAME]: operation, ...attemptAttributes(facts), ...own },
          },
          parent,
        )
      : undefined
    const context = span === undefined ? parent : api.trace.setSpan(parent, span)
    const attempt: AttemptSpan = { request: call, span, context, facts, end: undefined }
    call?.attempts.push(attempt)
    return attempt
  }

  attemptEnded(attempt: unknown, end: AttemptEnd): void {
    const ended = attempt as AttemptSpan | undefined
    if (ended === undefined) return
    ended.end = end
    if (ended.request === undefined || ended.request.end !== undefined) this.#endAttempt(ended, end, undefined)
  }

  /** Adds only operations that explain a gap. */
  store(request: unknown, { operation, isOk, durationMs }: StoreFacts): void {
    if (isOk && durationMs < GAP_MS) return
    const call = request as RequestSpan | null | undefined
    if (call?.span.isRecording() !== true) return
    call.span.addEvent(operation, { [names.OUTCOME]: isOk ? 'ok' : 'failed', [names.STORE_MS]: durationMs })
  }

  requestEnded(request: unknown, end: RequestEnd): void {
    const call = request as RequestSpan | null | undefined
    if (call == null) return
    const { span, attempts } = call
    call.end = end
    const charged = attempts.findLast(({ facts }) => facts.vendor === end.vendor && facts.model === end.model)
    for (const attempt of attempts)
      if (attempt.end !== undefined) this.#endAttempt(attempt, attempt.end, attempt === charged ? end : undefined)
    if (span.isRecording()) {
      span.setAttributes(requestAttributes(end))
      // A disconnect is not an error of the gateway, and a rejection is caused by the caller.
      if (end.outcome === 'failed' || end.status >= 500)
        span.setStatus({ code: this.#settings.api.SpanStatusCode.ERROR })
    }
    span.end(end.endedAtMs)
  }

  #endAttempt({ span }: AttemptSpan, end: AttemptEnd, charged: RequestEnd | undefined): void {
    if (span === undefined) return
    if (span.isRecording()) {
      const { code, outcome, status, firstByteMs } = end
      span.setAttribute(names.OUTCOME, outcome)
      if (status !== undefined) span.setAttribute(names.STATUS_CODE, status)
      if (firstByteMs !== undefined) span.setAttribute(names.TIME_TO_FIRST_CHUNK, firstByteMs / 1000)
      if (outcome === 'aborted') span.setAttribute(names.ERROR_TYPE, 'client_closed_request')
      else if (outcome !== 'ok') {
        span.setAttribute(names.ERROR_TYPE, code ?? outcome)
        span.setStatus({ code: this.#settings.api.SpanStatusCode.ERROR })
      }
      if (charged !== undefined) span.setAttributes(this.#chargeAttributes(charged))
    }
    span.end(end.endedAtMs)
  }

  #chargeAttributes({ usage, costNanoDollars }: RequestEnd): Attributes {
    const { costAttribute, semconv } = this.#settings
    const attributes = usage === undefined ? {} : usageAttributes(usage, names.NAMES[semconv])
    if (costAttribute) attributes[names.COST_AMOUNT] = Number(costNanoDollars) / 1e9
    return attributes
  }

  runSend<Result>(attempt: unknown, run: () => Result): Result {
    const { api, hideFromVendors } = this.#settings
    if (!hideFromVendors) return attempt === undefined ? run() : api.context.with((attempt as AttemptSpan).context, run)
    const active = api.context.active()
    const hidden = active === api.ROOT_CONTEXT ? this.#suppressedRoot : active.setValue(this.#suppressed, true)
    return api.context.with(hidden, run)
  }

  #headersOf(attempt: unknown): readonly string[] {
    const { api, propagateTo } = this.#settings
    if (attempt === undefined) return []
    const { facts, context } = attempt as AttemptSpan
    if (!propagateTo.has(facts.vendor)) return []
    const own = api.trace.getSpan(context)
    if (own === undefined) return []
    const headers: string[] = []
    // Starts from an empty context, so that baggage is not sent.
    api.propagation.inject(api.trace.setSpan(api.ROOT_CONTEXT, own), headers, HEADER_SETTER)
    return headers
  }
}

function withinToolCall({ context }: ToolCallSpan): Origin {
  return { parent: context, links: NO_LINKS, isInner: true }
}

const HEADER_SETTER = { set: (headers: string[], name: string, value: string) => void headers.push(name, value) }

const OUTPUT_TYPES: Readonly<Record<string, string>> = { image: 'image', speech: 'speech', video: 'video' }

function attemptAttributes({ provider, vendor, model, upstream, origin, isStream, kind }: AttemptFacts): Attributes {
  const server = serverOf(origin)
  const attributes: Attributes = {
    [names.PROVIDER_NAME]: provider,
    [names.REQUEST_MODEL]: upstream,
    [names.SERVER_ADDRESS]: server.address,
    [names.SERVER_PORT]: server.port,
    [names.VENDOR]: vendor,
    [names.MODEL]: model,
  }
  if (isStream) attributes[names.REQUEST_STREAM] = true
  const output = OUTPUT_TYPES[kind]
  if (output !== undefined) attributes[names.OUTPUT_TYPE] = output
  return attributes
}

interface Server {
  readonly address: string
  readonly port: number
}

/** Servers by origin. There are as many as vendors in this process. */
const servers = new Map<string, Server>()

function serverOf(origin: string): Server {
  const known = servers.get(origin)
  if (known !== undefined) return known
  const { hostname, port, protocol } = new URL(origin)
  const server = { address: hostname, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) }
  servers.set(origin, server)
  return server
}

function usageAttributes(usage: Usage, { cacheWriteTokens }: names.SemanticNames): Attributes {
  const attributes: Attributes = {}
  if (usage.inputTokens !== undefined) attributes[names.INPUT_TOKENS] = usage.inputTokens
  if (usage.cachedInputTokens !== undefined) attributes[names.CACHE_READ_TOKENS] = usage.cachedInputTokens
  if (usage.cacheWriteTokens !== undefined) attributes[cacheWriteTokens] = usage.cacheWriteTokens
  if (usage.outputTokens !== undefined) attributes[names.OUTPUT_TOKENS] = usage.outputTokens
  if (usage.reasoningTokens !== undefined) attributes[names.REASONING_TOKENS] = usage.reasoningTokens
  return attributes
}

function requestAttributes(end: RequestEnd): Attributes {
  const { accountId, keyId, requestedModel, model, vendor, code } = end
  const attributes: Attributes = {
    [names.ENDING]: end.outcome,
    [names.STATUS_CODE]: end.status,
    [names.ATTEMPTS]: end.attempts,
    [names.COST]: formatDollars(end.costNanoDollars),
  }
  if (accountId !== undefined) attributes[names.ACCOUNT_ID] = accountId
  if (keyId !== undefined) attributes[names.KEY_ID] = keyId
  // The caller's model name is included only after the catalog has recognised it.
  if (model !== undefined && requestedModel !== undefined) attributes[names.REQUESTED_MODEL] = requestedModel
  if (model !== undefined) attributes[names.MODEL] = model
  if (vendor !== undefined) attributes[names.VENDOR] = vendor
  if (code !== undefined) attributes[names.ERROR_TYPE] = code
  return attributes
}

/** Tool call, and the context of its requests. */
interface ToolCallSpan {
  readonly span: Span
  readonly context: Context
}

/** Error code of calls to an unknown tool (JSON-RPC 2.0, "Error object"). */
const INVALID_PARAMS = '-32602'

/** Returns `undefined` if nobody records spans and no trace is continued. */
function startToolCall(settings: SpanSettings, facts: ToolCallFacts): ToolCallSpan | undefined {
  const { api, tracer } = settings
  const { parent, links } = toolCallOrigin(settings, facts)
  const span = tracer.startSpan(
    facts.tool === undefined ? facts.method : `${facts.method} ${facts.tool}`,
    { kind: api.SpanKind.SERVER, startTime: facts.startedAtMs, attributes: toolCallAttributes(facts), links },
    parent,
  )
  if (!api.trace.isSpanContextValid(span.spanContext())) return undefined
  return { span, context: api.trace.setSpan(parent, span) }
}

function endToolCall({ api }: SpanSettings, { span }: ToolCallSpan, end: ToolCallEnd): void {
  const { outcome, code, endedAtMs } = end
  if (span.isRecording()) {
    span.setAttribute(names.ENDING, outcome)
    if (code !== undefined) span.setAttribute(names.ERROR_CODE, code)
    if (outcome === 'refused') span.setAttribute(names.RPC_STATUS_CODE, INVALID_PARAMS)
    const type = ERROR_TYPES[outcome]
    if (type !== undefined) span.setAttribute(names.ERROR_TYPE, type)
    // A disconnect is not an error. An error that the model reads is one, although the HTTP status is 200.
    if (outcome === 'failed' || outcome === 'refused') span.setStatus({ code: api.SpanStatusCode.ERROR })
  }
  span.end(endedAtMs)
}

const ERROR_TYPES: Readonly<Record<ToolCallEnd['outcome'], string | undefined>> = {
  completed: undefined,
  failed: 'tool_error',
  abandoned: 'client_closed_request',
  refused: INVALID_PARAMS,
}

function toolCallAttributes(facts: ToolCallFacts): Attributes {
  const { tool, method, sessionId, protocolVersion, messageId, accountId, keyId } = facts
  const attributes: Attributes = {
    [names.MCP_METHOD]: method,
    [names.OPERATION_NAME]: 'execute_tool',
    [names.ACCOUNT_ID]: accountId,
    [names.KEY_ID]: keyId,
  }
  if (tool !== undefined) attributes[names.TOOL_NAME] = tool
  if (messageId !== undefined) attributes[names.RPC_REQUEST_ID] = messageId
  if (sessionId !== undefined) attributes[names.MCP_SESSION_ID] = sessionId
  if (protocolVersion !== undefined) attributes[names.MCP_PROTOCOL_VERSION] = protocolVersion
  return attributes
}

/** Parent and links of a span. */
interface Origin {
  readonly parent: Context
  readonly links: Link[]
  /** Whether the parent is another span of this process. */
  readonly isInner: boolean
}

const NO_LINKS: Link[] = []

/** Returns the origin of a request's span. A span of the host takes precedence, because the host has already read the headers. */
function originOf({ api, incoming }: SpanSettings, facts: Pick<RequestFacts, 'header'>): Origin {
  const active = api.context.active()
  if (api.trace.getSpan(active) !== undefined) return { parent: active, links: NO_LINKS, isInner: true }
  const alone = { parent: active, links: NO_LINKS, isInner: false }
  if (incoming === 'ignore') return alone
  const extracted = api.propagation.extract(active, facts, HEADER_GETTER)
  const remote = extracted === active ? undefined : api.trace.getSpanContext(extracted)
  if (remote === undefined) return alone
  return incoming === 'link'
    ? { ...alone, links: [{ context: remote }] }
    : { ...alone, parent: api.trace.setSpanContext(active, remote) }
}

/**
 * Returns the origin of a tool call's span. The trace context of the message takes precedence: it names the caller's span of this
 * call, and a connection may carry several. The trace of the HTTP request then becomes a link.
 */
function toolCallOrigin(settings: SpanSettings, facts: ToolCallFacts): Origin {
  const { api, incoming } = settings
  const carrier = originOf(settings, facts)
  if (incoming === 'ignore') return carrier
  const remote = api.trace.getSpanContext(api.propagation.extract(api.ROOT_CONTEXT, facts, MESSAGE_GETTER))
  if (remote === undefined) return carrier
  if (incoming === 'link') return { ...carrier, links: [...carrier.links, { context: remote }] }
  const outer = api.trace.getSpanContext(carrier.parent)
  return {
    parent: api.trace.setSpanContext(api.context.active(), remote),
    links: outer === undefined ? NO_LINKS : [{ context: outer }],
    isInner: carrier.isInner,
  }
}

const keys = (): string[] => ['traceparent', 'tracestate']

const HEADER_GETTER: TextMapGetter<Pick<RequestFacts, 'header'>> = {
  get: (facts, name) => facts.header(name.toLowerCase()),
  keys,
}

const MESSAGE_GETTER: TextMapGetter<ToolCallFacts> = { get: (facts, name) => facts.metadata(name), keys }
