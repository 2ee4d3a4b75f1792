import { checkGateway, type ExchangeHandler } from '../core/exchange.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { withCors } from './cors.ts'
import { FetchExchange } from './fetch-exchange.ts'
import { isGatewayPath, locateGatewayPath, type MountOptions, normalizeBasePath, routePath } from './route-path.ts'

export type { CorsOptions } from './cors.ts'
export type { MountOptions } from './route-path.ts'

/** Answers a web-standard request. */
export type FetchHandler = (request: Request, context?: FetchContext) => Promise<Response>

/** Options of {@link fetchHandler} and {@link nextHandlers}. */
export interface FetchHandlerOptions extends MountOptions {
  /**
   * The gateway's path for every request, such as `/v1/chat/completions`, whatever the URL is. For a route file that serves one
   * endpoint under its own path. Cannot be combined with `basePath`.
   */
  readonly endpoint?: string | undefined
  /**
   * Keeps the process running until the promise resolves, on hosts that freeze it after an answer: `waitUntil` of Vercel, or
   * `(promise) => after(() => promise)` with `after` of Next. The promise never rejects. It resolves when the request is settled
   * and its background work is done. If omitted, the `waitUntil` of the handler's second argument is called, if there is one.
   */
  readonly waitUntil?: WaitUntil | undefined
}

/** Receives a promise. The host keeps the process running until it resolves. */
export type WaitUntil = (promise: Promise<void>) => void

/** Context of a request at Cloudflare and in Hono. Other values, such as the parameters of a Next route, are ignored. */
export interface FetchContext {
  readonly waitUntil?: unknown
}

const FETCH_HANDLER_OPTIONS = memberNames<FetchHandlerOptions>()('basePath cors endpoint waitUntil')

/**
 * Serves the gateway to web-standard hosts (Hono, Next route handlers, Bun, Deno). Without `basePath`, the gateway's path starts
 * at the first `/v1/`. The promise resolves with the response head; it rejects only if the gateway ends the answer before that.
 * `request.signal` and a cancelled body report that the caller disconnected.
 * @throws TypeError with the invalid option: bad `cors`, or an `endpoint` that is not a path of the gateway.
 */
export function fetchHandler(gateway: ExchangeHandler, options: FetchHandlerOptions = {}): FetchHandler {
  checkMembers(options, FETCH_HANDLER_OPTIONS, 'fetchHandler')
  checkGateway(gateway, 'fetchHandler')
  const mounted = withCors(gateway, options.cors)
  const pathOf = pathFinder(options)
  const { waitUntil } = options
  if (waitUntil !== undefined && typeof waitUntil !== 'function')
    throw new TypeError('fetchHandler: waitUntil must be a function')
  return (request, context) => {
    const url = new URL(request.url)
    const exchange = new FetchExchange(request, pathOf(url.pathname), url.search.slice(1))
    const settled = mounted.handle(exchange, exchange)
    if (waitUntil !== undefined) waitUntil(workOf(mounted, settled))
    else if (hasWaitUntil(context)) context.waitUntil(workOf(mounted, settled))
    return exchange.response
  }
}

async function workOf(handler: ExchangeHandler, settled: MaybePromise<void>): Promise<void> {
  await settled
  await handler.workEnded?.()
}

function hasWaitUntil(context: FetchContext | undefined): context is { readonly waitUntil: WaitUntil } {
  return typeof context === 'object' && typeof context?.waitUntil === 'function'
}

/** Handlers by method, in the form that route files export. */
export interface RouteHandlers {
  readonly GET: FetchHandler
  readonly HEAD: FetchHandler
  readonly POST: FetchHandler
  readonly DELETE: FetchHandler
  readonly OPTIONS: FetchHandler
}

/**
 * Returns the exports of a route file in Next's App Router: `export const { GET, POST, DELETE, OPTIONS } = nextHandlers(gateway)`
 * in `app/api/ai/[...path]/route.ts`. Include `OPTIONS` if `cors` is set; otherwise Next answers it itself.
 * @throws TypeError under the conditions of {@link fetchHandler}.
 */
export function nextHandlers(gateway: ExchangeHandler, options: FetchHandlerOptions = {}): RouteHandlers {
  const handler = fetchHandler(gateway, options)
  return { GET: handler, HEAD: handler, POST: handler, DELETE: handler, OPTIONS: handler }
}

function pathFinder({ basePath, endpoint }: FetchHandlerOptions): (path: string) => string {
  if (endpoint !== undefined) {
    if (basePath !== undefined) throw new TypeError('endpoint and basePath cannot be combined')
    if (!isGatewayPath(endpoint))
      throw new TypeError(`endpoint: ${JSON.stringify(endpoint)} must be a path of the gateway, such as /v1/embeddings`)
    return () => endpoint
  }
  const normalized = normalizeBasePath(basePath)
  return normalized === undefined ? locateGatewayPath : (path) => routePath(path, normalized)
}
