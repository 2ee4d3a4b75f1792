import { endOfTurn } from '../core/end-of-turn.ts'
import { formatDollars } from '../core/money.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import { HistogramSeries, type MetricFamily, MoneySeries, type NumberSeries } from './metric-family.ts'

/** A format in which metrics are written. */
export interface ExpositionFormat {
  readonly contentType: string
  readonly isOpenMetrics: boolean
}

const PLAIN_TEXT: ExpositionFormat = { contentType: 'text/plain; version=0.0.4; charset=utf-8', isOpenMetrics: false }
const OPEN_METRICS: ExpositionFormat = {
  contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  isOpenMetrics: true,
}

/** The format for an `accept` header: OpenMetrics 1.0 where it is named, else Prometheus' text format. */
export function formatFor(accept: string | undefined): ExpositionFormat {
  return accept?.includes('application/openmetrics-text') === true ? OPEN_METRICS : PLAIN_TEXT
}

/** Longest time for which the event loop is kept, in milliseconds. */
const SLICE_MS = 2

/** Series between two looks at the time. */
const SERIES_AT_ONCE = 64

/** All metrics as text. Gives the event loop free every 2 milliseconds, so that a scrape delays no stream. */
export async function exposition(metrics: GatewayMetrics, { isOpenMetrics }: ExpositionFormat): Promise<string> {
  metrics.refresh()
  let text = ''
  let sliceEndsMs = performance.now() + SLICE_MS
  let written = 0
  for (const family of metrics.set.families) {
    const { name, kind, help } = family.description
    const shown = isOpenMetrics && kind === 'counter' ? name.replace(/_total$/, '') : name
    text += `# HELP ${shown} ${help}\n# TYPE ${shown} ${kind}\n`
    // Series that are added meanwhile are written at its end, or with the next scrape.
    for (const series of family.series) {
      text += linesOf(family, series, isOpenMetrics)
      written += 1
      if (written % SERIES_AT_ONCE !== 0 || performance.now() < sliceEndsMs) continue
      await endOfTurn()
      sliceEndsMs = performance.now() + SLICE_MS
    }
  }
  return isOpenMetrics ? `${text}# EOF\n` : text
}

type AnySeries = NumberSeries | MoneySeries | HistogramSeries

function linesOf(
  { description: { name } }: MetricFamily<AnySeries>,
  series: AnySeries,
  isOpenMetrics: boolean,
): string {
  const { labelText } = series
  if (series instanceof HistogramSeries) return histogramLines(name, series, isOpenMetrics)
  const value = series instanceof MoneySeries ? formatDollars(series.nanoDollars) : String(series.value)
  return labelText === '' ? `${name} ${value}\n` : `${name}{${labelText}} ${value}\n`
}

function histogramLines(name: string, { labelText, bounds, counts, sum }: HistogramSeries, isOpenMetrics: boolean) {
  const before = labelText === '' ? '' : `${labelText},`
  let cumulative = 0
  let text = ''
  for (const [index, bound] of bounds.entries()) {
    cumulative += counts[index]!
    text += `${name}_bucket{${before}le="${boundText(bound, isOpenMetrics)}"} ${cumulative}\n`
  }
  cumulative += counts[bounds.length]!
  const own = labelText === '' ? '' : `{${labelText}}`
  return `${text}${name}_bucket{${before}le="+Inf"} ${cumulative}\n${name}_sum${own} ${sum}\n${name}_count${own} ${cumulative}\n`
}

/** OpenMetrics wants a fraction in every bound ("Considerations: Canonical Numbers"). */
function boundText(bound: number, isOpenMetrics: boolean): string {
  if (!isOpenMetrics || !Number.isInteger(bound)) return plain(bound)
  return `${bound}.0`
}

/** Never with an exponent where it can be avoided: tools compare bounds as text. */
function plain(value: number): string {
  const text = String(value)
  return text.includes('e') ? value.toFixed(7).replace(/0+$/, '') : text
}
