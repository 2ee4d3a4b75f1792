import type { Attributes, HrTime } from '@opentelemetry/api'
import { HistogramSeries } from '../metrics/metric-family.ts'

/** Data point in the form of `@opentelemetry/sdk-metrics`. */
export interface OtelDataPoint<Value> {
  readonly startTime: HrTime
  readonly endTime: HrTime
  readonly attributes: Attributes
  readonly value: Value
}

/** Counts by bucket. Each bound is inclusive, and the last bucket has none. */
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
    /** Value of `ValueType.DOUBLE`. */
    readonly valueType: 1
  }
  /** Value of `AggregationTemporality.CUMULATIVE`. */
  readonly aggregationTemporality: 1
  /** Value of `DataPointType`: histogram 0, gauge 2, sum 3. */
  readonly dataPointType: Type
  readonly dataPoints: OtelDataPoint<Value>[]
}

/** Metric in the form that a reader of OpenTelemetry's SDK collects: a histogram, a gauge or a sum. */
export type OtelMetric =
  | OtelMetricOf<0, OtelHistogram>
  | OtelMetricOf<2, number>
  | (OtelMetricOf<3, number> & { readonly isMonotonic: true })

/** Times that data points share. */
export interface Times {
  readonly startTime: HrTime
  readonly endTime: HrTime
}

/** Kinds of metrics, cumulative. */
export const HISTOGRAM = { aggregationTemporality: 1, dataPointType: 0 } as const
export const SUM = { aggregationTemporality: 1, dataPointType: 3, isMonotonic: true } as const

/** Returns the counts of a series. */
export function histogramOf(series: object): OtelHistogram {
  if (!(series instanceof HistogramSeries)) throw new TypeError('a histogram has a series of another kind')
  const counts = [...series.counts]
  const count = counts.reduce((total, some) => total + some, 0)
  return { buckets: { boundaries: [...series.bounds], counts }, sum: series.sum, count }
}
