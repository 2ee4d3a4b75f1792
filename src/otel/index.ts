/**
 * Spans of gateways, for OpenTelemetry. Needs `@opentelemetry/api`, and an SDK that the host sets up; without one nothing is recorded.
 *
 * @example
 * import { otel } from 'signalbox/otel'
 *
 * const gateway = createGateway({ vendors, billing: 'off', observe: [otel()] })
 */

import type { TracerProvider } from '@opentelemetry/api'
import * as installedApi from '@opentelemetry/api'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { Observer } from '../core/observer.ts'
import { CallSpans } from './call-spans.ts'
import type { SemanticConventions } from './names.ts'
import type { OtelApi } from './trace-context.ts'

export {
  type NoResource,
  type OtelDataPoint,
  type OtelHistogram,
  type OtelMetric,
  type OtelMetricProducer,
  type OtelMetricsOptions,
  otelMetrics,
} from './metrics.ts'
export type { SemanticConventions } from './names.ts'
export type { OtelApi } from './trace-context.ts'

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
  readonly semconv?: SemanticConventions
  /** Tracer provider. Defaults to the registered one. */
  readonly tracerProvider?: TracerProvider
  /** The host's copy of `@opentelemetry/api`, if this package would find another one: different versions do not work together. */
  readonly api?: OtelApi
}

const OTEL_OPTIONS = memberNames<OtelOptions>()(
  'propagateTo hideFromVendors incoming attempts costAttribute semconv tracerProvider api',
)

/**
 * Creates spans of requests, of calls to vendors, and of tool calls of the MCP server. No span contains a prompt, an answer or a
 * credential.
 * @throws TypeError for an unknown `incoming` or `semconv`.
 */
export function otel(options: OtelOptions = {}): Observer {
  checkMembers(options, OTEL_OPTIONS, 'otel')
  const { propagateTo = [], hideFromVendors = true, incoming = 'parent', attempts = true } = options
  const { costAttribute = false, semconv = '2026-10', api = installedApi, tracerProvider } = options
  if (!['parent', 'link', 'ignore'].includes(incoming)) throw new TypeError(`otel: unknown incoming "${incoming}"`)
  if (!['2026-10', '1.41'].includes(semconv)) throw new TypeError(`otel: unknown semconv "${semconv}"`)
  const tracer = (tracerProvider ?? api.trace).getTracer('signalbox')
  const settings = { api, tracer, propagateTo: new Set(propagateTo), hideFromVendors, incoming, attempts }
  return new CallSpans({ ...settings, costAttribute, semconv })
}
