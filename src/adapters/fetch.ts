import type { ExchangeHandler } from '../core/exchange.ts'
import { FetchExchange } from './fetch-exchange.ts'
import { locateGatewayPath, type MountOptions, normalizeBasePath, routePath } from './route-path.ts'

export type { MountOptions } from './route-path.ts'

/**
 * Serves the gateway to web-standard hosts (Hono, Next route handlers, Bun, Deno). Without `basePath` the gateway's path
 * starts at the first `/v1/`. The promise resolves with the response head; it rejects only if the gateway cuts the answer
 * before that. `request.signal` and a cancelled body report that the caller disconnected.
 */
export function fetchHandler(
  gateway: ExchangeHandler,
  options: MountOptions = {},
): (request: Request) => Promise<Response> {
  const basePath = normalizeBasePath(options.basePath)
  return (request) => {
    const url = new URL(request.url)
    const path = basePath === undefined ? locateGatewayPath(url.pathname) : routePath(url.pathname, basePath)
    const exchange = new FetchExchange(request, path, url.search.slice(1))
    gateway.handle(exchange, exchange)
    return exchange.response
  }
}
