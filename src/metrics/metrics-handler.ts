import { systemClock } from '../core/clock.ts'
import type { ByteSink, ExchangeHandler, GatewayRequest } from '../core/exchange.ts'
import type { ClientAddress } from '../core/forwarded-address.ts'
import { checkGivenMembers, type MemberNames } from '../core/known-members.ts'
import { type Logger, silentLogger } from '../core/logger.ts'
import { bearsOperatorKey, operatorRefusal, SHORTEST_OPERATOR_KEY } from '../gateway/operator-key.ts'
import { exposition, formatFor } from './exposition.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'

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

const METRICS_HANDLER_OPTIONS = {
  operatorKey: true,
  authorize: true,
  clientAddress: true,
  logger: true,
} satisfies MemberNames<MetricsHandlerOptions>

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
  if (operatorKey !== undefined && operatorKey.length < SHORTEST_OPERATOR_KEY)
    throw new TypeError(`metricsHandler: operatorKey must have at least ${SHORTEST_OPERATOR_KEY} characters`)
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
        const headers = ['retry-after', String(Math.ceil(retryAfterSeconds))]
        return respond(sink, request, {
          status: 429,
          text: 'Too many wrong operator keys. Try again later.\n',
          headers,
        })
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
