import { type EgressOptions, egressRoute } from './egress.ts'
import type { EgressRoute } from './transport.ts'

/** Common options of all vendor factories, for all calls and connections of the vendor. */
export interface ConnectionOptions extends EgressOptions {
  /** Headers of every call. They replace headers of the gateway with the same name. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Query parameters of every call, such as an `api-version`. */
  readonly query?: Readonly<Record<string, string>> | undefined
}

/** Parsed {@link ConnectionOptions}. Each member is present only if it is set. */
export interface VendorConnection {
  /** Flat list of headers, names in lower case. */
  readonly headers?: readonly string[]
  /** Encoded, without a question mark. */
  readonly query?: string
  readonly egress?: EgressRoute
}

const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Headers that the connection or the body determines, not the operator. */
const REFUSED = new Set([
  'host',
  'content-length',
  'connection',
  'transfer-encoding',
  'upgrade',
  'expect',
  'keep-alive',
])

/**
 * Reads the operator's options for all calls and connections of a vendor.
 * @throws TypeError that names the option: a header or query that cannot be sent, TLS material without its other half, a proxy
 *   that is not an http(s) URL.
 */
export function vendorConnection(options: ConnectionOptions): VendorConnection {
  const headers = Object.entries(options.headers ?? {}).flatMap(([name, value]) => [
    checkedName(name),
    checkedValue(name, value),
  ])
  const query = new URLSearchParams(options.query).toString()
  const egress = egressRoute(options)
  return {
    ...(headers.length === 0 ? {} : { headers }),
    ...(query === '' ? {} : { query }),
    ...(egress === undefined ? {} : { egress }),
  }
}

function checkedName(name: string): string {
  const lower = name.toLowerCase()
  if (!HEADER_NAME.test(lower)) throw new TypeError(`headers: ${JSON.stringify(name)} is not a header name`)
  if (REFUSED.has(lower)) throw new TypeError(`headers: ${JSON.stringify(name)} is set by the connection itself`)
  return lower
}

function checkedValue(name: string, value: string): string {
  if (typeof value !== 'string' || !HEADER_VALUE.test(value))
    throw new TypeError(`headers: the value of ${JSON.stringify(name)} contains characters that headers must not have`)
  return value
}
