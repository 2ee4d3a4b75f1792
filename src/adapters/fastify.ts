import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { checkGateway, type ExchangeHandler } from '../core/exchange.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { withCors } from './cors.ts'
import { FastifyExchange, type FastifyReplyShape } from './fastify-exchange.ts'
import { type MountOptions, normalizeBasePath, pathOfTarget, routePath } from './route-path.ts'

export type { CorsOptions } from './cors.ts'
export type { FastifyReplyShape } from './fastify-exchange.ts'

/** Options of {@link fastifyGateway}, in addition to Fastify's own `prefix`. */
export interface FastifyGatewayOptions extends MountOptions {
  /** Gateway from `createGateway`. */
  readonly gateway: ExchangeHandler
  /** Prefix at which Fastify mounts the plugin, such as `/ai`. */
  readonly prefix?: string | undefined
}

const FASTIFY_GATEWAY_OPTIONS = memberNames<FastifyGatewayOptions>()('gateway prefix basePath cors')

/** Options of the same object that Fastify itself reads, in addition to `prefix`. */
const FASTIFY_REGISTER_OPTIONS = { logLevel: true, logSerializers: true } as const

/** Part of a Fastify request that is read. */
export interface FastifyRequestShape {
  readonly raw: IncomingMessage
}

/** Part of a Fastify instance that is used. */
export interface FastifyShape {
  readonly prefix: string
  readonly supportedMethods: readonly string[]
  /** Absent in early versions of Fastify 4. */
  hasRoute?(options: { url: string; method: string }): boolean
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    contentType: string,
    parser: (request: FastifyRequestShape, payload: Readable, done: (error: Error | null) => void) => void,
  ): unknown
  route(options: {
    method: string[]
    url: string
    handler: (request: FastifyRequestShape, reply: FastifyReplyShape) => void
  }): unknown
}

/**
 * Serves the gateway as a Fastify plugin: `app.register(fastifyGateway, { gateway, prefix: '/ai' })`. It is encapsulated: its
 * pass-through body parser does not affect the rest of the app. Hooks up to `preHandler` run before the gateway, and the headers
 * they set are kept. A stream that a `preParsing` hook returns replaces the request's body. `onSend` runs once before the first
 * byte: with a Buffer for complete answers (with nothing for HEAD), otherwise with a stream. `onResponse` runs last. `basePath`
 * is needed only if the prefix has parameters.
 * @throws TypeError with the invalid member of `cors`.
 */
export function fastifyGateway(
  instance: FastifyShape,
  options: FastifyGatewayOptions,
  done: (error?: Error) => void,
): void {
  try {
    checkMembers(options, { ...FASTIFY_GATEWAY_OPTIONS, ...FASTIFY_REGISTER_OPTIONS }, 'fastifyGateway')
    checkGateway(options.gateway, 'fastifyGateway')
  } catch (error) {
    // Fastify does not catch exceptions of such a plugin.
    done(error as TypeError)
    return
  }
  const gateway = withCors(options.gateway, options.cors)
  const basePath = normalizeBasePath(options.basePath ?? instance.prefix) ?? ''
  instance.removeAllContentTypeParsers()
  /** Streams with which `preParsing` hooks replaced the request's. */
  const payloads = new WeakMap<FastifyRequestShape, Readable>()
  instance.addContentTypeParser('*', (request, payload, parsed) => {
    if (payload !== request.raw) payloads.set(request, payload)
    parsed(null)
  })
  // At the root, a CORS plugin has its own route for all preflight requests, and Fastify rejects a second one.
  const takesOptions = instance.prefix !== '' || options.cors !== undefined
  const method = instance.supportedMethods.filter((name) => name !== 'OPTIONS' || takesOptions)
  const handler = (request: FastifyRequestShape, reply: FastifyReplyShape): void => {
    const path = routePath(pathOfTarget(request.raw.url ?? '/'), basePath)
    const exchange = new FastifyExchange(request.raw, reply, path, request, payloads.get(request))
    gateway.handle(exchange, exchange)
  }
  instance.route({ method, url: '/*', handler })
  const free = options.gateway.answersAtMount === true ? freeAtMount(instance, method) : []
  if (free.length > 0) instance.route({ method: free, url: '', handler })
  done()
}

/**
 * Returns the methods for which the app has no route of its own at the path of the mount, because Fastify rejects a second one.
 * Empty if Fastify cannot report routes, so that the app still starts.
 */
function freeAtMount(instance: FastifyShape, methods: readonly string[]): string[] {
  const { prefix } = instance
  // With the slash, `/*` also matches the mount itself.
  if (prefix === '' || prefix.endsWith('/')) return []
  return methods.filter((method) => instance.hasRoute?.({ url: prefix, method }) === false)
}
