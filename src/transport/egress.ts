import { BlockList, isIP } from 'node:net'
import { checkMembers } from '../core/known-members.ts'
import { type EgressRoute, TLS_MEMBERS, type TlsMaterial } from './transport.ts'

/**
 * Addresses that callers must not reach through the gateway: private, loopback, link-local, multicast, metadata and other
 * special-purpose ranges (IANA special-purpose address registries).
 */
const refused = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // A public address, but inside Azure it belongs to the virtual host's own service (Microsoft, "What is IP address 168.63.129.16").
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  refused.addSubnet(network, prefix, 'ipv4')
}
// IPv6: global unicast only, without its ranges that embed or tunnel IPv4 or are for documentation.
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  refused.addSubnet(network, prefix, 'ipv6')
}

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** Returns whether the gateway may connect to an address on a caller's behalf. */
export function isPublicAddress(address: string): boolean {
  const mapped = MAPPED_IPV4.exec(address)?.[1]
  const text = mapped ?? address
  const family = isIP(text)
  if (family === 4) return !refused.check(text, 'ipv4')
  return family === 6 && globalUnicast.check(text, 'ipv6') && !refused.check(text, 'ipv6')
}

/** Names of private networks: names without a dot, such as services of Compose, and domains that no registry assigns. */
const PRIVATE_NAME = /^[^.]+\.?$|\.(?:localhost|local|internal|lan|svc|home\.arpa)\.?$/i

/** Outcome of {@link checkPublicUrl}. */
export type UrlCheck = { readonly url: URL } | { readonly reason: string }

/**
 * Checks the text of a URL: http or https, no credentials, no literal private address. Accepts host names; `NameResolver` checks
 * their addresses before a connection is opened.
 */
export function checkPublicUrl(text: string, options: { readonly allowPrivate?: boolean } = {}): UrlCheck {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return { reason: 'is not a URL' }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return { reason: 'must be an http or https URL' }
  if (url.username !== '' || url.password !== '') return { reason: 'must not contain credentials' }
  if (options.allowPrivate === true) return { url }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) === 0 ? PRIVATE_NAME.test(host) : !isPublicAddress(host)) {
    return { reason: 'must not point to a private address' }
  }
  return { url }
}

/** Options for connections of the operator's choice. */
export interface EgressOptions {
  /** Certificates: your own authority, a client certificate. */
  readonly tls?: TlsMaterial | undefined
  /** URL of an HTTP proxy that tunnels by CONNECT: `http://user:password@proxy.example:3128`. If empty, no proxy is used. */
  readonly proxy?: string | undefined
}

/**
 * Reads the options. Returns `undefined` if they contain nothing, so that default connections are used.
 * @throws TypeError that names the option: a certificate without its key, a proxy that is not an http(s) URL.
 */
export function egressRoute({ tls, proxy }: EgressOptions): EgressRoute | undefined {
  const isDirect = proxy === undefined || proxy === ''
  if (tls === undefined && isDirect) return undefined
  return {
    ...(tls === undefined ? {} : { tls: checkedTls(tls) }),
    ...(isDirect ? {} : { proxy: proxyAt(proxy) }),
  }
}

function checkedTls(tls: TlsMaterial): TlsMaterial {
  checkMembers(tls, TLS_MEMBERS, '', 'tls')
  if ((tls.cert === undefined) !== (tls.key === undefined))
    throw new TypeError('tls: a client certificate needs both cert and key')
  return tls
}

/** Reads the URL of a proxy. Its user and password are sent as `proxy-authorization`. */
function proxyAt(text: string): NonNullable<EgressRoute['proxy']> {
  // An invalid URL may contain a password, so the error does not repeat it.
  if (!URL.canParse(text)) throw new TypeError('proxy: is not a URL such as http://proxy.example:3128')
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`proxy: must be an http or https URL, not ${url.protocol}`)
  if ((url.pathname !== '/' && url.pathname !== '') || url.search !== '' || url.hash !== '')
    throw new TypeError('proxy: must have no path, query or fragment')
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  return {
    url: url.origin,
    ...(user === ':' ? {} : { authorization: `Basic ${Buffer.from(user).toString('base64')}` }),
  }
}
