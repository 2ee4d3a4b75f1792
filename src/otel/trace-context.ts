import type { Context, Link, TextMapGetter, Tracer } from '@opentelemetry/api'
import type { RequestFacts, ToolCallFacts } from '../core/observer.ts'
import type * as names from './names.ts'

/** Used parts of the package `@opentelemetry/api`. */
export type OtelApi = Pick<
  typeof import('@opentelemetry/api'),
  'context' | 'trace' | 'propagation' | 'createContextKey' | 'ROOT_CONTEXT' | 'SpanKind' | 'SpanStatusCode'
>

/** Options with the defaults filled in. */
export interface SpanSettings {
  readonly api: OtelApi
  readonly tracer: Tracer
  readonly propagateTo: ReadonlySet<string>
  readonly hideFromVendors: boolean
  readonly incoming: 'parent' | 'link' | 'ignore'
  readonly attempts: boolean
  readonly costAttribute: boolean
  readonly semconv: names.SemanticConventions
}

/** Parent and links of a span. */
export interface Origin {
  readonly parent: Context
  readonly links: Link[]
  /** Whether the parent is another span of this process. */
  readonly isInner: boolean
}

export const NO_LINKS: Link[] = []

/** Returns the origin of a request's span. A span of the host takes precedence, because the host has already read the headers. */
export function originOf({ api, incoming }: SpanSettings, facts: Pick<RequestFacts, 'header'>): Origin {
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
export function toolCallOrigin(settings: SpanSettings, facts: ToolCallFacts): Origin {
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
