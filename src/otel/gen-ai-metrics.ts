import type { Attributes } from '@opentelemetry/api'
import type { GatewayMetrics } from '../metrics/gateway-metrics.ts'
import type { HistogramSeries } from '../metrics/metric-family.ts'
import * as names from './names.ts'
import { HISTOGRAM, histogramOf, type OtelHistogram, type OtelMetric, SUM, type Times } from './otel-metric.ts'

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
export function genAiMetrics(metrics: GatewayMetrics, times: Times): OtelMetric[] {
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
