import { endOfTurn } from '../core/end-of-turn.ts'
import { formatDollars } from '../core/money.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import { HistogramSeries, type MetricFamily, MoneySeries, type NumberSeries } from './metric-family.ts'

/** Text format of metrics. */
export interface ExpositionFormat {
  readonly contentType: string
  readonly isOpenMetrics: boolean
}

const PLAIN_TEXT: ExpositionFormat = { contentType: 'text/plain; version=0.0.4; charset=utf-8', isOpenMetrics: false }
const OPEN_METRICS: ExpositionFormat = {
  contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  isOpenMetrics: true,
}

/** Returns the format for an `accept` header: OpenMetrics 1.0 if the header names it, else Prometheus' text format. */
export function formatFor(accept: string | undefined): ExpositionFormat {
  return accept?.includes('application/openmetrics-text') === true ? OPEN_METRICS : PLAIN_TEXT
}

/** Maximum time in milliseconds for which the event loop is blocked. */
const SLICE_MS = 2

/** Number of series between two checks of the time. */
const SERIES_AT_ONCE = 64

/** Writes all metrics as text. Yields to the event loop every 2 milliseconds, so that a scrape delays no stream. */
export async function exposition(metrics: GatewayMetrics, { isOpenMetrics }: ExpositionFormat): Promise<string> {
  metrics.refresh()
  let text = ''
  let sliceEndsMs = performance.now() + SLICE_MS
  let written = 0
  for (const family of metrics.set.families) {
    const { name, kind, help } = family.description
    const shown = isOpenMetrics && kind === 'counter' ? name.replace(/_total$/, '') : name
    text += `# HELP ${shown} ${help}\n# TYPE ${shown} ${kind}\n`
    // Series that are added in the meantime are written at the end, or with the next scrape.
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

/** OpenMetrics requires a fraction in every bound ("Considerations: Canonical Numbers"). */
function boundText(bound: number, isOpenMetrics: boolean): string {
  if (!isOpenMetrics || !Number.isInteger(bound)) return plain(bound)
  return `${bound}.0`
}

/** Avoids exponents, because tools compare bounds as text. */
function plain(value: number): string {
  const text = String(value)
  return text.includes('e') ? value.toFixed(7).replace(/0+$/, '') : text
}
