/**
 * Spans of gateways, for OpenTelemetry. Needs `@opentelemetry/api`, and an SDK that the host sets up; without one nothing is recorded.
 *
 * @example
 * import { otel } from 'signalbox/otel'
 *
 * const gateway = createGateway({ vendors, billing: 'off', observe: [otel()] })
 */

import * as installedApi from '@opentelemetry/api'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { Observer } from '../core/observer.ts'
import { CallSpans, type OtelOptions } from './call-spans.ts'

export type { OtelApi, OtelOptions } from './call-spans.ts'
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
