import { checkMembers } from '../core/known-members.ts'
import { type EgressRoute, TLS_MEMBERS, type TlsMaterial } from './transport.ts'

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
