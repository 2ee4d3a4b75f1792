import type { Clock } from '../core/clock.ts'

/** Options of `createClient`. */
export interface ClientOptions {
  /**
   * Address of the gateway, http or https, with or without its `/v1`: `http://127.0.0.1:8787/v1`, `https://example.com/ai`. In a
   * browser it may be a path of the page's own origin: `/ai`.
   */
  readonly baseURL: string
  /** API key, sent as bearer token. Not needed in process, where the host authenticates the caller. */
  readonly apiKey?: string | undefined
  /** Replaces the global `fetch`. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined
  /** Timeout of one attempt in milliseconds, until an answer is complete or a stream has begun. Default 600,000. */
  readonly timeoutMs?: number | undefined
  /**
   * Maximum number of retries of a call that failed before its answer began: 408, 429, 5xx, or no connection. Images, edits and
   * speech are retried only if that cannot order them twice. Every POST then carries an Idempotency-Key, so that a retry of an
   * answered call returns its answer. Default 2; with 0 no key is generated.
   */
  readonly maxRetries?: number | undefined
  /** Replaces the system clock in tests. */
  readonly clock?: Clock | undefined
}

const CLIENT_OPTIONS = {
  baseURL: true,
  apiKey: true,
  fetch: true,
  timeoutMs: true,
  maxRetries: true,
  clock: true,
} satisfies Readonly<Record<keyof ClientOptions, true>>

/** Options of one call. */
export interface CallOptions {
  /** Aborts the call and its stream; the vendor is stopped too. */
  readonly signal?: AbortSignal | undefined
  /** Replaces the generated key. A repeated key returns the first answer again, for 24 hours. */
  readonly idempotencyKey?: string | undefined
  /** Replaces the client's timeout. */
  readonly timeoutMs?: number | undefined
  /** Replaces the client's number of retries. */
  readonly maxRetries?: number | undefined
  /** Additional headers. They take precedence over the client's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Additional fields of the body, sent unchanged. */
  readonly extraBody?: Readonly<Record<string, unknown>> | undefined
  /** Called with the response headers, before the body is read. */
  readonly onResponse?: ((facts: ResponseFacts) => void) | undefined
}

/** Content of the response headers. Browsers can read only headers that the gateway's CORS headers expose. */
export interface ResponseFacts {
  /** HTTP status. */
  readonly status: number
  /** Value of `x-request-id`. Quote it when you contact the operator. */
  readonly requestId: string | undefined
  /** Cost in decimal dollars; `undefined` without billing, and for streams and tasks, whose cost is not known yet. */
  readonly cost: string | undefined
  /** Full cost in decimal dollars if less was charged: the rest is owed. `undefined` if the full cost was charged. */
  readonly costDue: string | undefined
  /** Dropped fields of the request, which the model's vendor does not support. */
  readonly dropped: readonly string[]
  /** All headers of the answer. */
  readonly headers: Headers
}

/**
 * Returns the address of the gateway with its `/v1`, without a slash at the end.
 * @throws TypeError if it is not http or https.
 */
export function gatewayURL(baseURL: string): string {
  const origin = baseURL?.[0] === '/' ? globalThis.location?.origin : undefined
  if (!URL.canParse(baseURL, origin) || !/^https?:$/.test(new URL(baseURL, origin).protocol))
    throw new TypeError(`baseURL: expected the address of a gateway, such as http://127.0.0.1:8787/v1; got ${baseURL}`)
  return new URL(baseURL, origin).href.replace(/\/+$/, '').replace(/(\/v1)?$/, '/v1')
}

/**
 * Checks options early that would fail later with a less clear error.
 * @throws TypeError for an unknown option, and if the base URL is not http or https, or the key is not a valid header value.
 */
export function checkClientOptions(options: ClientOptions): void {
  if (typeof options !== 'object' || options === null) throw new TypeError('createClient: options must be an object')
  // Omits the nearest known name, for which browsers would load half a kilobyte more.
  for (const name of Object.keys(options))
    if (!Object.hasOwn(CLIENT_OPTIONS, name))
      throw new TypeError(`createClient: ${name} is unknown; known: ${Object.keys(CLIENT_OPTIONS).join(', ')}`)
  gatewayURL(options.baseURL)
  const { apiKey } = options
  if (apiKey === undefined) return
  if (typeof apiKey !== 'string') throw new TypeError('apiKey: expected a string')
  // `Headers` would reject the key too, but would show it in its error.
  if (!/^[\x20-\x7e]*$/.test(apiKey.trim())) {
    throw new TypeError('apiKey: holds a line break, or a character that is not ASCII')
  }
}
