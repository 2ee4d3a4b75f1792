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
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { Observer } from '../core/observer.ts'
import { CallSpans } from './call-spans.ts'
import type { SemanticConventions } from './names.ts'
import type { OtelApi } from './trace-context.ts'

export {
  type NoResource,
  type OtelMetricProducer,
  type OtelMetricsOptions,
  otelMetrics,
} from './metric-producer.ts'
export type { SemanticConventions } from './names.ts'
export type { OtelDataPoint, OtelHistogram, OtelMetric } from './otel-metric.ts'
export type { OtelApi } from './trace-context.ts'

/** Options of {@link otel}. */
export interface OtelOptions {
  /** Ids of vendors that get the trace context, such as a server of your own. Baggage never leaves. Default: none. */
  readonly propagateTo?: readonly string[]
  /**
   * Keeps the host's HTTP instrumentation away from calls to other hosts: it would send the trace context to every vendor. Default true.
   * False: the instrumentation has its spans below ours and decides what is sent; `propagateTo` has no effect.
   */
  readonly hideFromVendors?: boolean
  /**
   * What a caller's `traceparent` is, where the host has no span of its own. `parent`, the default: the span's parent, whose sampling
   * decision holds. `link`: a link, for callers who must not decide. `ignore`: nothing. The same for the `traceparent` in a tool call's
   * message, which as a parent goes before a span of the host.
   */
  readonly incoming?: 'parent' | 'link' | 'ignore'
  /** Spans of the calls to vendors, which have the tokens. Default true. */
  readonly attempts?: boolean
  /** Also writes `gen_ai.usage.cost`, a double. Default false: only `signalbox.cost`, exact decimal dollars. */
  readonly costAttribute?: boolean
  /** Names of attributes: of October 2026, the default, or of version 1.41. */
  readonly semconv?: SemanticConventions
  /** Default: the registered one. */
  readonly tracerProvider?: TracerProvider
  /** The host's copy of `@opentelemetry/api`, where another one would be found here: copies of unequal versions do not work together. */
  readonly api?: OtelApi
}

const OTEL_OPTIONS = {
  propagateTo: true,
  hideFromVendors: true,
  incoming: true,
  attempts: true,
  costAttribute: true,
  semconv: true,
  tracerProvider: true,
  api: true,
} satisfies MemberNames<OtelOptions>

/**
 * Makes spans of requests, of calls to vendors, and of calls of the MCP server's tools. No span holds a prompt, an answer or a credential.
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
