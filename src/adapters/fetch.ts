import { checkGateway, type ExchangeHandler } from '../core/exchange.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import { withCors } from './cors.ts'
import { FetchExchange } from './fetch-exchange.ts'
import {
  isGatewayPath,
  locateGatewayPath,
  MOUNT_OPTIONS,
  type MountOptions,
  normalizeBasePath,
  routePath,
} from './route-path.ts'

export type { CorsOptions } from './cors.ts'
export type { MountOptions } from './route-path.ts'

/** Options of {@link fetchHandler} and {@link nextHandlers}. */
export interface FetchHandlerOptions extends MountOptions {
  /**
   * The gateway's path for every request, such as `/v1/chat/completions`, whatever the URL is: for a route file that serves
   * one endpoint under a path of its own. Not together with `basePath`.
   */
  readonly endpoint?: string | undefined
}

const FETCH_HANDLER_OPTIONS = {
  ...MOUNT_OPTIONS,
  endpoint: true,
} satisfies MemberNames<FetchHandlerOptions>

/**
 * Serves the gateway to web-standard hosts (Hono, Next route handlers, Bun, Deno). Without `basePath` the gateway's path
 * starts at the first `/v1/`. The promise resolves with the response head; it rejects only if the gateway cuts the answer
 * before that. `request.signal` and a cancelled body report that the caller disconnected.
 * @throws TypeError naming the option for bad `cors`, and for an `endpoint` that is no path of the gateway.
 */
export function fetchHandler(
  gateway: ExchangeHandler,
  options: FetchHandlerOptions = {},
): (request: Request) => Promise<Response> {
  checkMembers(options, FETCH_HANDLER_OPTIONS, 'fetchHandler')
  checkGateway(gateway, 'fetchHandler')
  const mounted = withCors(gateway, options.cors)
  const pathOf = pathFinder(options)
  return (request) => {
    const url = new URL(request.url)
    const exchange = new FetchExchange(request, pathOf(url.pathname), url.search.slice(1))
    mounted.handle(exchange, exchange)
    return exchange.response
  }
}

/** A handler for each method, as route files export them. */
export interface RouteHandlers {
  GET(request: Request): Promise<Response>
  HEAD(request: Request): Promise<Response>
  POST(request: Request): Promise<Response>
  DELETE(request: Request): Promise<Response>
  OPTIONS(request: Request): Promise<Response>
}

/**
 * The exports of a route file in Next's App Router: `export const { GET, POST, DELETE, OPTIONS } = nextHandlers(gateway)` in
 * `app/api/ai/[...path]/route.ts`. `OPTIONS` must be among them when `cors` is set: Next answers it itself otherwise.
 * @throws TypeError as {@link fetchHandler} does.
 */
export function nextHandlers(gateway: ExchangeHandler, options: FetchHandlerOptions = {}): RouteHandlers {
  const handler = fetchHandler(gateway, options)
  return { GET: handler, HEAD: handler, POST: handler, DELETE: handler, OPTIONS: handler }
}

function pathFinder({ basePath, endpoint }: FetchHandlerOptions): (path: string) => string {
  if (endpoint !== undefined) {
    if (basePath !== undefined) throw new TypeError('endpoint: not together with basePath')
    if (!isGatewayPath(endpoint))
      throw new TypeError(`endpoint: ${JSON.stringify(endpoint)} must be a path of the gateway, such as /v1/embeddings`)
    return () => endpoint
  }
  const normalized = normalizeBasePath(basePath)
  return normalized === undefined ? locateGatewayPath : (path) => routePath(path, normalized)
}
