import type { Attributes, HrTime } from '@opentelemetry/api'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { GatewayMetrics } from '../metrics/gateway-metrics.ts'
import { HistogramSeries, type MetricFamily, MoneySeries, type NumberSeries } from '../metrics/metric-family.ts'
import { VERSION } from '../metrics/version.ts'
import { genAiMetrics } from './gen-ai-metrics.ts'
import { HISTOGRAM, histogramOf, type OtelDataPoint, type OtelMetric, SUM, type Times } from './otel-metric.ts'

/** Metric producer for a reader of `@opentelemetry/sdk-metrics`. */
export interface OtelMetricProducer {
  collect(): Promise<{
    readonly resourceMetrics: {
      readonly resource: NoResource
      readonly scopeMetrics: {
        readonly scope: { readonly name: string; readonly version: string }
        readonly metrics: OtelMetric[]
      }[]
    }
    readonly errors: unknown[]
  }>
}

/** Resource without attributes; readers use their own. */
export interface NoResource {
  readonly attributes: Attributes
  merge<Other>(other: Other | null): Other | NoResource
  getRawAttributes(): []
}

const NO_RESOURCE: NoResource = {
  attributes: {},
  merge: (other) => other ?? NO_RESOURCE,
  getRawAttributes: () => [],
}

/** Options of {@link otelMetrics}. */
export interface OtelMetricsOptions {
  /**
   * Names of the metrics. `signalbox` selects the names and labels of `prometheus()`; `gen_ai` selects those of OpenTelemetry's GenAI
   * conventions, as far as these define them. Default: both.
   */
  readonly names?: 'signalbox' | 'gen_ai' | 'both'
}

const OTEL_METRICS_OPTIONS = { names: true } satisfies MemberNames<OtelMetricsOptions>

/**
 * Exports the counts of `prometheus()` to OpenTelemetry, under the same names and labels and under those of the GenAI conventions.
 * Pass it to a reader: `new PeriodicExportingMetricReader({ exporter, metricProducers: [otelMetrics(metrics)] })`. Sums and
 * histograms are cumulative, from the creation of `metrics` on.
 * @throws TypeError for unknown `names`.
 */
export function otelMetrics(metrics: GatewayMetrics, options: OtelMetricsOptions = {}): OtelMetricProducer {
  checkMembers(options, OTEL_METRICS_OPTIONS, 'otelMetrics')
  const { names = 'both' } = options
  if (!['signalbox', 'gen_ai', 'both'].includes(names)) throw new TypeError(`otelMetrics: unknown names "${names}"`)
  return {
    async collect() {
      metrics.refresh()
      const times = { startTime: timeOf(metrics.startedAtMs), endTime: timeOf(Date.now()) }
      const found = [
        ...(names === 'gen_ai' ? [] : metrics.set.families.map((family) => metricOf(family, times))),
        ...(names === 'signalbox' ? [] : genAiMetrics(metrics, times)),
      ]
      const scope = { name: 'signalbox', version: VERSION }
      // Metrics without series are omitted, because they contain no data.
      const scopeMetrics = [{ scope, metrics: found.filter(({ dataPoints }) => dataPoints.length > 0) }]
      return { resourceMetrics: { resource: NO_RESOURCE, scopeMetrics }, errors: [] }
    },
  }
}

function timeOf(unixMs: number): HrTime {
  const seconds = Math.floor(unixMs / 1000)
  return [seconds, Math.round((unixMs - seconds * 1000) * 1e6)]
}

type AnySeries = NumberSeries | MoneySeries | HistogramSeries

function metricOf({ description, series }: MetricFamily<AnySeries>, times: Times): OtelMetric {
  const { name, kind, help, labels } = description
  const unit = UNITS.find(([ending]) => name.endsWith(ending))?.[1] ?? ''
  const descriptor = { name, description: help, unit, valueType: 1 } as const
  const pointsOf = <Value>(read: (series: AnySeries) => Value): OtelDataPoint<Value>[] =>
    series.map((one) => ({ ...times, attributes: attributesOf(labels, one.values), value: read(one) }))
  if (kind === 'histogram') return { ...HISTOGRAM, descriptor, dataPoints: pointsOf(histogramOf) }
  return kind === 'gauge'
    ? { aggregationTemporality: 1, dataPointType: 2, descriptor, dataPoints: pointsOf(numberOf) }
    : { ...SUM, descriptor, dataPoints: pointsOf(numberOf) }
}

/** Units by suffix of a metric's name. */
const UNITS: readonly (readonly [ending: string, unit: string])[] = [
  ['_seconds', 's'],
  ['_dollars_total', 'USD'],
  ['tokens_total', '{token}'],
]

/** Omits labels without a value. */
function attributesOf(labels: readonly string[], values: readonly string[]): Attributes {
  const attributes: Attributes = {}
  for (const [index, label] of labels.entries()) if (values[index]) attributes[label] = values[index]
  return attributes
}

function numberOf(series: AnySeries): number {
  if (series instanceof MoneySeries) return Number(series.nanoDollars) / 1e9
  return series instanceof HistogramSeries ? series.sum : series.value
}
