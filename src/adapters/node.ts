import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkGateway, type ExchangeHandler } from '../core/exchange.ts'
import { checkMembers } from '../core/known-members.ts'
import { withCors } from './cors.ts'
import { NodeExchange } from './node-exchange.ts'
import {
  isGatewayPath,
  MOUNT_OPTIONS,
  type MountOptions,
  normalizeBasePath,
  pathBelow,
  pathOfTarget,
  routePath,
} from './route-path.ts'

export type { CorsOptions } from './cors.ts'
export type { MountOptions } from './route-path.ts'

/** Request listener for `http.createServer`. */
export interface NodeHandler {
  (request: IncomingMessage, response: ServerResponse): void
  /**
   * Returns whether the request is the gateway's: below `basePath`, or without one, a path of the gateway's own. For the fast
   * mount alongside a framework:
   * `http.createServer((request, response) => (ai.handles(request) ? ai(request, response) : app(request, response)))`
   */
  handles(request: Pick<IncomingMessage, 'url'>): boolean
}

/**
 * Serves the gateway on Node's own HTTP server. Without `basePath`, the path is used unchanged; with one, other paths get 404. A
 * body that a parser stored on `request.body` is used if the stream was read already.
 * @throws TypeError with the invalid member of `cors`.
 */
export function nodeHandler(gateway: ExchangeHandler, options: MountOptions = {}): NodeHandler {
  checkMembers(options, MOUNT_OPTIONS, 'nodeHandler')
  checkGateway(gateway, 'nodeHandler')
  const basePath = normalizeBasePath(options.basePath)
  const mounted = withCors(gateway, options.cors)
  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    const path = pathOfTarget(request.url ?? '/')
    const exchange = new NodeExchange(request, response, basePath === undefined ? path : routePath(path, basePath))
    mounted.handle(exchange, exchange)
  }
  const handles = (request: Pick<IncomingMessage, 'url'>): boolean => {
    const path = pathOfTarget(request.url ?? '/')
    return basePath === undefined ? isGatewayPath(path) : pathBelow(path, basePath) !== undefined
  }
  return Object.assign(handler, { handles })
}
