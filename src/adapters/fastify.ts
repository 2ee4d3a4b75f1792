import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ExchangeHandler } from '../core/exchange.ts'
import { NodeExchange } from './node-exchange.ts'
import { type MountOptions, normalizeBasePath, pathOfTarget, routePath } from './route-path.ts'

/** Options of {@link fastifyGateway}; `prefix` is Fastify's own and stands beside them. */
export interface FastifyGatewayOptions extends MountOptions {
  readonly gateway: ExchangeHandler
  /** Where Fastify mounts the plugin, such as `/ai`. */
  readonly prefix?: string | undefined
}

/** What of a Fastify request is read. */
export interface FastifyRequestShape {
  readonly raw: IncomingMessage
}

/** What of a Fastify reply is used. */
export interface FastifyReplyShape {
  readonly raw: ServerResponse
  hijack(): unknown
  getHeaders(): Record<string, number | string | string[] | undefined>
}

/** What of a Fastify instance is used. */
export interface FastifyShape {
  readonly prefix: string
  readonly supportedMethods: readonly string[]
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    contentType: string,
    parser: (request: FastifyRequestShape, payload: IncomingMessage, done: (error: Error | null) => void) => void,
  ): unknown
  route(options: {
    method: string[]
    url: string
    handler: (request: FastifyRequestShape, reply: FastifyReplyShape) => void
  }): unknown
}

/**
 * Serves the gateway as a Fastify plugin: `app.register(fastifyGateway, { gateway, prefix: '/ai' })`. It is
 * encapsulated: its pass-through body parser does not reach the rest of the app. Hooks up to `preHandler` run before
 * the gateway, and the headers they set are kept; `onResponse` runs after it. `onSend` does not run, since Fastify
 * skips it for answers that are written directly. `basePath` is needed only where the prefix has parameters.
 */
export function fastifyGateway(
  instance: FastifyShape,
  options: FastifyGatewayOptions,
  done: (error?: Error) => void,
): void {
  const { gateway } = options
  const basePath = normalizeBasePath(options.basePath ?? instance.prefix) ?? ''
  instance.removeAllContentTypeParsers()
  instance.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
  // At the root a CORS plugin has its own route for all preflight requests, and Fastify refuses a second one.
  const method = instance.supportedMethods.filter((name) => name !== 'OPTIONS' || instance.prefix !== '')
  const handler = (request: FastifyRequestShape, reply: FastifyReplyShape): void => {
    reply.hijack()
    keepHeaders(reply)
    const path = routePath(pathOfTarget(request.raw.url ?? '/'), basePath)
    const exchange = new NodeExchange(request.raw, reply.raw, path)
    gateway.handle(exchange, exchange)
  }
  instance.route({ method, url: '/*', handler })
  done()
}

/** Copies the headers that hooks set on the reply to the response: a hijacked reply loses them. */
function keepHeaders(reply: FastifyReplyShape): void {
  const headers = reply.getHeaders()
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
}
