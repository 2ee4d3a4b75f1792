import type { Attributes, HrTime } from '@opentelemetry/api'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { GatewayMetrics } from '../metrics/gateway-metrics.ts'
import { type AnySeries, HistogramSeries, type MetricFamily, MoneySeries, VERSION } from '../metrics/metric-family.ts'
import * as names from './names.ts'

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

const OTEL_METRICS_OPTIONS = memberNames<OtelMetricsOptions>()('names')

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

type TokenKind = keyof typeof names.TOKEN_METRICS

/** Tokens other than text, by the count that includes them. */
const PARTS: Readonly<Partial<Record<TokenKind, readonly (readonly [kind: string, modality: string])[]>>> = {
  input: [
    ['input_image', 'image'],
    ['input_audio', 'audio'],
  ],
  output: [['output_image', 'image']],
}

/**
 * Returns the metrics under the names of OpenTelemetry's GenAI conventions: durations, times to the first content and per later
 * token, and tokens by modality. Attributes are operation, provider and model; account, key and address are not included.
 */
function genAiMetrics(metrics: GatewayMetrics, times: Times): OtelMetric[] {
  const { duration, firstByte, perToken } = metrics.set
  const ofCall = ([endpoint = '', model = '', vendor = '']: readonly string[]): Attributes | undefined => {
    const kind = metrics.kinds.get(endpoint)
    const route = routeOf(metrics, model, vendor)
    if (kind === undefined || route === undefined) return undefined
    return { [names.OPERATION_NAME]: names.OPERATIONS[kind] ?? names.OTHER_OPERATION, ...route }
  }
  const ofRoute = ([model = '', vendor = '']: readonly string[]) => routeOf(metrics, model, vendor)
  return [
    ...histograms(names.DURATION_METRICS, duration, ofCall, times),
    ...histograms(names.FIRST_CHUNK_METRICS, firstByte, ofCall, times),
    ...histograms(names.PER_TOKEN_METRICS, perToken, ofRoute, times),
    ...tokenSums(metrics, times),
  ]
}

/** Returns `undefined` if no vendor was called. */
function routeOf({ providers }: GatewayMetrics, model: string, vendor: string): Attributes | undefined {
  const provider = providers.get(vendor)
  return provider === undefined ? undefined : { [names.PROVIDER_NAME]: provider, [names.REQUEST_MODEL]: model }
}

/** Merges series with equal attributes: several endpoints have the operation `chat`. */
function histograms(
  metricNames: readonly string[],
  family: GatewayMetrics['set']['duration'],
  attributesOf: (values: readonly string[]) => Attributes | undefined,
  times: Times,
): OtelMetric[] {
  const merged = new Map<string, { readonly attributes: Attributes; value: OtelHistogram }>()
  for (const series of family.series) {
    const attributes = attributesOf(series.values)
    if (attributes === undefined) continue
    const key = JSON.stringify(attributes)
    const known = merged.get(key)
    if (known === undefined) merged.set(key, { attributes, value: histogramOf(series) })
    else known.value = sumOf(known.value, series)
  }
  const dataPoints = [...merged.values()].map((point) => ({ ...times, ...point }))
  return metricNames.map((name) => ({
    ...HISTOGRAM,
    descriptor: describe(name, family.description.help, 's'),
    dataPoints,
  }))
}

function sumOf(one: OtelHistogram, series: HistogramSeries): OtelHistogram {
  const other = histogramOf(series)
  const counts = one.buckets.counts.map((count, index) => count + (other.buckets.counts[index] ?? 0))
  return {
    buckets: { boundaries: one.buckets.boundaries, counts },
    sum: one.sum + other.sum,
    count: one.count + other.count,
  }
}

function tokenSums(metrics: GatewayMetrics, times: Times): OtelMetric[] {
  const { tokens } = metrics.set
  const found = new Map<string, Map<string, { readonly attributes: Attributes; value: number }>>()
  const add = (kind: TokenKind, route: Attributes, modality: string, count: number): void => {
    if (count === 0) return
    const attributes = { ...route, [names.TOKEN_MODALITY]: modality }
    const points = found.get(kind) ?? new Map()
    found.set(kind, points)
    const key = JSON.stringify(attributes)
    const known = points.get(key)
    if (known === undefined) points.set(key, { attributes, value: count })
    else known.value += count
  }
  const countOf = (model: string, vendor: string, kind: string): number =>
    tokens.series.find(({ values }) => values[0] === model && values[1] === vendor && values[2] === kind)?.value ?? 0
  for (const { values, value } of tokens.series) {
    const [model = '', vendor = '', kind = ''] = values
    const route = routeOf(metrics, model, vendor)
    if (route === undefined || !isTokenKind(kind)) continue
    let text = value
    for (const [part, modality] of PARTS[kind] ?? []) {
      const count = countOf(model, vendor, part)
      add(kind, route, modality, count)
      text -= count
    }
    add(kind, route, 'text', Math.max(0, text))
  }
  return [...found].map(([kind, points]) => ({
    ...SUM,
    descriptor: describe(names.TOKEN_METRICS[kind as TokenKind], 'Tokens that were charged for.', '{token}'),
    dataPoints: [...points.values()].map((point) => ({ ...times, ...point })),
  }))
}

function isTokenKind(kind: string): kind is TokenKind {
  return Object.hasOwn(names.TOKEN_METRICS, kind)
}

function describe(name: string, description: string, unit: string): OtelMetric['descriptor'] {
  return { name, description, unit, valueType: 1 }
}

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
interface Times {
  readonly startTime: HrTime
  readonly endTime: HrTime
}

/** Kinds of metrics, cumulative. */
const HISTOGRAM = { aggregationTemporality: 1, dataPointType: 0 } as const
const SUM = { aggregationTemporality: 1, dataPointType: 3, isMonotonic: true } as const

/** Returns the counts of a series. */
function histogramOf(series: object): OtelHistogram {
  if (!(series instanceof HistogramSeries)) throw new TypeError('a histogram has a series of another kind')
  const counts = [...series.counts]
  const count = counts.reduce((total, some) => total + some, 0)
  return { buckets: { boundaries: [...series.bounds], counts }, sum: series.sum, count }
}
