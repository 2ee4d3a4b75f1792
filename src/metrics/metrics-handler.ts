import { endOfTurn } from '../core/calls-in-flight.ts'
import { systemClock } from '../core/clock.ts'
import type { ByteSink, ClientAddress, ExchangeHandler, GatewayRequest } from '../core/exchange.ts'
import { checkGivenMembers, memberNames } from '../core/known-members.ts'
import { type Logger, silentLogger } from '../core/logger.ts'
import { formatDollars } from '../core/money.ts'
import { bearsOperatorKey, MIN_OPERATOR_KEY, operatorRefusal } from '../gateway/authenticate.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import { type AnySeries, HistogramSeries, type MetricFamily, MoneySeries } from './metric-family.ts'

/** Access to the metrics. One of `operatorKey` and `authorize` is required: the numbers show what an operator spends, and on what. */
export interface MetricsHandlerOptions {
  /** Grants access to requests with this bearer token; at least 24 characters. */
  readonly operatorKey?: string | undefined
  /** Check by the host. If it rejects, the request gets 503. */
  readonly authorize?: ((request: GatewayRequest) => boolean | Promise<boolean>) | undefined
  /**
   * Returns the address of the client, for the limit of wrong keys, which all handlers for operators share. By default the peer of
   * the connection.
   */
  readonly clientAddress?: ClientAddress | undefined
  /** Logger. Silent by default. */
  readonly logger?: Logger
}

const METRICS_HANDLER_OPTIONS = memberNames<MetricsHandlerOptions>()('operatorKey authorize clientAddress logger')

/**
 * Serves the metrics at `GET /metrics` below its mount, and at the mount itself: in Prometheus' text format, or in OpenMetrics 1.0 if
 * the request accepts it.
 * @throws TypeError without `operatorKey` and `authorize`, or if a key is too short.
 */
export function metricsHandler(metrics: GatewayMetrics, options: MetricsHandlerOptions): ExchangeHandler {
  checkGivenMembers(options, METRICS_HANDLER_OPTIONS, 'metricsHandler')
  const { operatorKey, authorize, clientAddress, logger = silentLogger } = options
  if (operatorKey === undefined && authorize === undefined)
    throw new TypeError('metricsHandler: give an operatorKey, or authorize, which decides who may read the metrics')
  if (operatorKey !== undefined && operatorKey.length < MIN_OPERATOR_KEY)
    throw new TypeError(`metricsHandler: operatorKey must have at least ${MIN_OPERATOR_KEY} characters`)
  const isAllowed = async (request: GatewayRequest): Promise<boolean> =>
    bearsOperatorKey(request, operatorKey) || (await authorize?.(request)) === true
  const answer = async (request: GatewayRequest, sink: ByteSink): Promise<void> => {
    if (!PATH.test(request.path)) return respond(sink, request, { status: 404, text: 'There is nothing here.\n' })
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return respond(sink, request, { status: 405, text: 'Only GET.\n', headers: ['allow', 'GET, HEAD'] })
    let mayRead: boolean
    try {
      mayRead = await isAllowed(request)
    } catch (error) {
      logger.error('the authorization of a scrape failed', { error })
      return respond(sink, request, { status: 503, text: 'The authorization failed.\n' })
    }
    if (!mayRead) {
      const { retryAfterSeconds } = operatorRefusal(request, systemClock, clientAddress)
      if (retryAfterSeconds !== undefined) {
        const text = 'Too many wrong operator keys. Try again later.\n'
        const headers = ['retry-after', String(Math.ceil(retryAfterSeconds))]
        return respond(sink, request, { status: 429, text, headers })
      }
      const text = 'The operator key is missing or invalid. Send it as: Authorization: Bearer <OPERATOR_KEY>.\n'
      return respond(sink, request, { status: 401, text, headers: ['www-authenticate', 'Bearer'] })
    }
    const format = formatFor(request.header('accept'))
    const text = await exposition(metrics, format)
    respond(sink, request, { status: 200, text, contentType: format.contentType })
  }
  return {
    answersAtMount: true,
    handle(request, sink) {
      answer(request, sink).catch((error: unknown) => {
        logger.error('a scrape failed', { error })
        sink.destroy()
      })
    },
  }
}

/** The mount, or `/metrics` below it. Some hosts pass the whole path, without the mount removed. */
const PATH = /^\/?$|\/metrics\/?$/

interface Answer {
  readonly status: number
  readonly text: string
  readonly contentType?: string
  readonly headers?: readonly string[]
}

function respond(sink: ByteSink, request: GatewayRequest, { status, text, contentType, headers = [] }: Answer): void {
  if (sink.closed) return
  const body = Buffer.from(text)
  const type = contentType ?? 'text/plain; charset=utf-8'
  const length = String(body.byteLength)
  sink.head(status, ['content-type', type, 'content-length', length, 'cache-control', 'no-store', ...headers])
  if (request.method === 'HEAD') sink.end()
  else sink.end(body)
}

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
const SERIES_BATCH_SIZE = 64

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
      if (written % SERIES_BATCH_SIZE !== 0 || performance.now() < sliceEndsMs) continue
      await endOfTurn()
      sliceEndsMs = performance.now() + SLICE_MS
    }
  }
  return isOpenMetrics ? `${text}# EOF\n` : text
}

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
