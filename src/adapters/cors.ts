// See docs/decisions/0028-serving.md.

import type { ByteSink, ExchangeHandler, GatewayRequest } from '../core/exchange.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'

/** Web pages of other origins that may call the gateway from a browser, and their rights. */
export interface CorsOptions {
  /** Origins of these pages, such as `['https://app.example.com']`: scheme, host and port, no path. `'*'` allows every page. */
  readonly origins: '*' | readonly string[]
  /** Request headers that pages may send. Default: the headers that the browser requests. */
  readonly headers?: readonly string[] | undefined
  /** Seconds for which browsers keep the answer to a preflight request, 0 to 86,400. Default 7,200, Chromium's longest. */
  readonly maxAgeSeconds?: number | undefined
  /** Whether pages may send cookies. Requires a list of origins. Default false, because API keys need no cookies. */
  readonly credentials?: boolean | undefined
}

const CORS_OPTIONS = memberNames<CorsOptions>()('origins headers maxAgeSeconds credentials')

const DEFAULT_MAX_AGE_SECONDS = 7_200
const MAX_AGE_LIMIT_SECONDS = 86_400

/** Methods of all routes of the gateway and its MCP server. */
const METHODS = 'GET, HEAD, POST, DELETE'

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/
const TOKEN_LIST = /^[\w!#$%&'*+.^`|~, -]+$/

// Headers that are always readable (Fetch standard, "CORS-safelisted response-header name"), or useless for pages.
const NOT_EXPOSED = new Set([
  ...['cache-control', 'content-language', 'content-length', 'content-type', 'expires', 'last-modified', 'pragma'],
  ...['connection', 'set-cookie', 'vary', 'x-accel-buffering'],
])

/**
 * Adds the headers of the Fetch standard's CORS protocol to a handler's answers, and answers preflight requests itself, because
 * they have no credentials. Pages can read every header that the handler sets. Returns the handler itself without `cors`.
 * @throws TypeError with the invalid member of `cors`.
 */
export function withCors(handler: ExchangeHandler, cors: CorsOptions | undefined): ExchangeHandler {
  if (cors === undefined) return handler
  const rules = new CorsRules(cors)
  return {
    ...(handler.workEnded && { workEnded: () => handler.workEnded!() }),
    handle(request, sink) {
      const origin = request.header('origin')
      if (isPreflight(request, origin)) {
        sink.head(204, rules.preflight(origin, request.header('access-control-request-headers')))
        sink.end()
        return
      }
      return handler.handle(request, new CorsSink(sink, rules.shared(origin)))
    },
  }
}

/**
 * Checks options of a mount before they are used.
 * @throws TypeError under the conditions of {@link withCors}.
 */
export function checkCors(cors: CorsOptions): CorsOptions {
  new CorsRules(cors)
  return cors
}

function isPreflight(request: GatewayRequest, origin: string | undefined): boolean {
  return (
    request.method === 'OPTIONS' &&
    origin !== undefined &&
    request.header('access-control-request-method') !== undefined
  )
}

class CorsRules {
  /** Allowed origins, or `undefined` if every origin is allowed. */
  readonly #origins: ReadonlySet<string> | undefined
  readonly #allowedHeaders: string | undefined
  readonly #maxAge: string
  readonly #credentials: boolean

  constructor(options: CorsOptions) {
    checkMembers(options, CORS_OPTIONS, 'cors')
    const { origins, headers, maxAgeSeconds = DEFAULT_MAX_AGE_SECONDS, credentials = false } = options
    this.#origins = checkedOrigins(origins)
    if (this.#origins === undefined && credentials === true)
      throw new TypeError('cors: credentials: browsers refuse it for all origins; list the origins')
    for (const name of headers ?? [])
      if (typeof name !== 'string' || !TOKEN.test(name))
        throw new TypeError(`cors: headers: ${JSON.stringify(name)} is not the name of a header`)
    if (!Number.isInteger(maxAgeSeconds) || maxAgeSeconds < 0 || maxAgeSeconds > MAX_AGE_LIMIT_SECONDS)
      throw new TypeError(`cors: maxAgeSeconds: must be a whole number from 0 to ${MAX_AGE_LIMIT_SECONDS}`)
    this.#allowedHeaders = headers?.join(', ')
    this.#maxAge = String(maxAgeSeconds)
    this.#credentials = credentials === true
  }

  /** Returns the headers of the answer to a preflight request. A page of another origin gets none, so its browser stops. */
  preflight(origin: string | undefined, asked: string | undefined): string[] {
    const head = this.shared(origin)
    // Caches on the way must keep one answer per origin and list of headers.
    const varies = this.#allowedHeaders === undefined ? 'access-control-request-headers' : undefined
    if (varies !== undefined) head.push('vary', varies)
    if (!head.includes('access-control-allow-origin')) return head
    const headers = this.#allowedHeaders ?? (asked !== undefined && TOKEN_LIST.test(asked) ? asked : '')
    head.push('access-control-allow-methods', METHODS)
    if (headers !== '') head.push('access-control-allow-headers', headers)
    head.push('access-control-max-age', this.#maxAge)
    return head
  }

  /** Returns the headers that every answer has. */
  shared(origin: string | undefined): string[] {
    if (this.#origins === undefined) return ['access-control-allow-origin', '*']
    const head = ['vary', 'origin']
    if (origin === undefined || !this.#origins.has(origin)) return head
    head.push('access-control-allow-origin', origin)
    if (this.#credentials) head.push('access-control-allow-credentials', 'true')
    return head
  }
}

/** Adds headers to an answer. */
class CorsSink implements ByteSink {
  readonly #sink: ByteSink
  readonly #added: readonly string[]

  constructor(sink: ByteSink, added: readonly string[]) {
    this.#sink = sink
    this.#added = added
  }

  get closed(): boolean {
    return this.#sink.closed
  }

  head(status: number, headers: readonly string[]): void {
    const isReadable = this.#added.includes('access-control-allow-origin')
    const exposed = isReadable ? exposedNames(headers) : []
    const expose = exposed.length === 0 ? [] : ['access-control-expose-headers', exposed.join(', ')]
    this.#sink.head(status, [...headers, ...this.#added, ...expose])
  }

  write(bytes: Uint8Array | string, mayFree?: boolean): boolean {
    return this.#sink.write(bytes, mayFree)
  }

  end(bytes?: Uint8Array | string, mayFree?: boolean): void {
    this.#sink.end(bytes, mayFree)
  }

  destroy(): void {
    this.#sink.destroy()
  }

  endConnection(): void {
    this.#sink.endConnection?.()
  }

  onDrain(listener: () => void): void {
    this.#sink.onDrain(listener)
  }

  onClose(listener: () => void): void {
    this.#sink.onClose(listener)
  }
}

function exposedNames(headers: readonly string[]): string[] {
  const names = new Set<string>()
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!
    if (!NOT_EXPOSED.has(name)) names.add(name)
  }
  return [...names]
}

function checkedOrigins(origins: unknown): ReadonlySet<string> | undefined {
  if (origins === '*' || (Array.isArray(origins) && origins.length === 1 && origins[0] === '*')) return undefined
  if (!Array.isArray(origins) || origins.length === 0)
    throw new TypeError("cors: origins: must be '*' or a list such as ['https://app.example.com']")
  for (const origin of origins) {
    const told = typeof origin === 'string' ? serializedOrigin(origin) : undefined
    if (told === origin) continue
    const advice = told === undefined ? 'such as https://app.example.com' : `here ${JSON.stringify(told)}`
    throw new TypeError(`cors: origins: ${JSON.stringify(origin)} must be an origin as browsers send it, ${advice}`)
  }
  return new Set<string>(origins)
}

/** Returns the origin of a URL as browsers send it. Schemes of apps, such as `capacitor://localhost`, have only that form. */
export function serializedOrigin(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return undefined
  if (url.origin !== 'null') return url.origin
  return /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@]+$/.test(text) ? text : undefined
}
