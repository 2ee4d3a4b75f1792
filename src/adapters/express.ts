import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkGateway, type ExchangeHandler } from '../core/exchange.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { withCors } from './cors.ts'
import { NodeExchange } from './node-exchange.ts'
import {
  isGatewayPath,
  locateGatewayPath,
  type MountOptions,
  normalizeBasePath,
  pathBelow,
  pathOfTarget,
  pathOutsideMount,
} from './route-path.ts'

export type { CorsOptions } from './cors.ts'

/** Options of {@link expressHandler}. */
export interface ExpressHandlerOptions extends MountOptions {
  /**
   * Whether to pass requests for other paths to the next middleware instead of answering 404: paths outside `basePath`, or
   * without one, paths that do not begin like the gateway's. Default false.
   */
  readonly passUnknown?: boolean | undefined
}

const EXPRESS_HANDLER_OPTIONS = memberNames<ExpressHandlerOptions>()('passUnknown basePath cors')

/** Part of an Express request that is read, in versions 4 and 5. */
export type ExpressRequest = IncomingMessage & { readonly baseUrl?: string; readonly body?: unknown }

/** Middleware with Express's signature. */
export type ExpressHandler = (
  request: ExpressRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/**
 * Serves the gateway as an Express middleware: `app.use('/ai', expressHandler(gateway))`, or under `app.all` and in nested
 * routers. Without `basePath`, the gateway's path starts at the first `/v1/`. Set `basePath` if the mount itself contains a
 * `/v1/` segment and `app.all` is used. Works before and after body parsers; before them is faster.
 * @throws TypeError with the invalid member of `cors`.
 */
export function expressHandler(gateway: ExchangeHandler, options: ExpressHandlerOptions = {}): ExpressHandler {
  checkMembers(options, EXPRESS_HANDLER_OPTIONS, 'expressHandler')
  checkGateway(gateway, 'expressHandler')
  const basePath = normalizeBasePath(options.basePath)
  const mounted = withCors(gateway, options.cors)
  const passUnknown = options.passUnknown === true
  return (request, response, next) => {
    const path = pathOfTarget(request.url ?? '/')
    const below = basePath === undefined ? undefined : pathBelowMount(path, request.baseUrl ?? '', basePath)
    if (passUnknown && (basePath === undefined ? !isGatewayPath(path) : below === undefined)) {
      next()
      return
    }
    const routed = below ?? (basePath === undefined ? locateGatewayPath(path) : pathOutsideMount(path))
    const exchange = new NodeExchange(request, response, routed)
    mounted.handle(exchange, exchange)
  }
}

/** The base path may be the whole mount, or the part that an enclosing router did not remove. */
function pathBelowMount(path: string, baseUrl: string, basePath: string): string | undefined {
  return pathBelow(baseUrl + path, basePath) ?? (baseUrl === '' ? undefined : pathBelow(path, basePath))
}
