import type { Attributes, HrTime } from '@opentelemetry/api'
import type { GatewayMetrics } from '../metrics/gateway-metrics.ts'
import { HistogramSeries, type MetricFamily, MoneySeries, type NumberSeries } from '../metrics/metric-family.ts'
import { VERSION } from '../metrics/version.ts'

/** A point of a metric, as `@opentelemetry/sdk-metrics` has it. */
export interface OtelDataPoint<Value> {
  readonly startTime: HrTime
  readonly endTime: HrTime
  readonly attributes: Attributes
  readonly value: Value
}

/** Counts by bucket; each bound is inclusive, and the last bucket has none. */
export interface OtelHistogram {
  readonly buckets: { boundaries: number[]; counts: number[] }
  readonly sum: number
  readonly count: number
}

interface OtelMetricOf<Type extends number, Value> {
  readonly descriptor: {
    readonly name: string
    readonly description: string
    readonly unit: string
    /** `ValueType.DOUBLE` */
    readonly valueType: 1
  }
  /** `AggregationTemporality.CUMULATIVE` */
  readonly aggregationTemporality: 1
  /** `DataPointType`: histogram 0, gauge 2, sum 3. */
  readonly dataPointType: Type
  readonly dataPoints: OtelDataPoint<Value>[]
}

export type OtelMetric =
  | OtelMetricOf<0, OtelHistogram>
  | OtelMetricOf<2, number>
  | (OtelMetricOf<3, number> & { readonly isMonotonic: true })

/** What {@link otelMetrics} gives to a reader of `@opentelemetry/sdk-metrics`. */
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

/** A resource without attributes; readers take their own. */
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

/**
 * The numbers of `prometheus()` for OpenTelemetry, under the same names and labels: no second count. Give it to a reader:
 * `new PeriodicExportingMetricReader({ exporter, metricProducers: [otelMetrics(metrics)] })`. Sums and histograms are cumulative, from
 * the making of this producer's `metrics` on.
 */
export function otelMetrics(metrics: GatewayMetrics): OtelMetricProducer {
  return {
    async collect() {
      metrics.refresh()
      const times = { startTime: timeOf(metrics.startedAtMs), endTime: timeOf(Date.now()) }
      const found = metrics.set.families.map((family) => metricOf(family, times))
      const scope = { name: 'signalbox', version: VERSION }
      // What has no series yet is left out: an empty metric tells nothing.
      const scopeMetrics = [{ scope, metrics: found.filter(({ dataPoints }) => dataPoints.length > 0) }]
      return { resourceMetrics: { resource: NO_RESOURCE, scopeMetrics }, errors: [] }
    },
  }
}

interface Times {
  readonly startTime: HrTime
  readonly endTime: HrTime
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
  const shared = { descriptor, aggregationTemporality: 1 } as const
  const pointsOf = <Value>(read: (series: AnySeries) => Value): OtelDataPoint<Value>[] =>
    series.map((one) => ({ ...times, attributes: attributesOf(labels, one.values), value: read(one) }))
  if (kind === 'histogram') return { ...shared, dataPointType: 0, dataPoints: pointsOf(histogramOf) }
  return kind === 'gauge'
    ? { ...shared, dataPointType: 2, dataPoints: pointsOf(numberOf) }
    : { ...shared, dataPointType: 3, isMonotonic: true, dataPoints: pointsOf(numberOf) }
}

/** Units by the end of a metric's name. */
const UNITS: readonly (readonly [ending: string, unit: string])[] = [
  ['_seconds', 's'],
  ['_dollars_total', 'USD'],
  ['tokens_total', '{token}'],
]

/** A label without a value says nothing. */
function attributesOf(labels: readonly string[], values: readonly string[]): Attributes {
  const attributes: Attributes = {}
  for (const [index, label] of labels.entries()) if (values[index]) attributes[label] = values[index]
  return attributes
}

function numberOf(series: AnySeries): number {
  if (series instanceof MoneySeries) return Number(series.nanoDollars) / 1e9
  return series instanceof HistogramSeries ? series.sum : series.value
}

function histogramOf(series: AnySeries): OtelHistogram {
  if (!(series instanceof HistogramSeries)) throw new TypeError('a histogram has a series of another kind')
  const counts = [...series.counts]
  const count = counts.reduce((total, some) => total + some, 0)
  return { buckets: { boundaries: [...series.bounds], counts }, sum: series.sum, count }
}
