import { checkMembers } from '../core/known-members.ts'
import { type EgressRoute, TLS_MEMBERS, type TlsMaterial } from './transport.ts'

/** How the operator wants connections to be made. */
export interface EgressOptions {
  /** Certificates: an authority of your own, a client certificate. */
  readonly tls?: TlsMaterial | undefined
  /** URL of an HTTP proxy that tunnels by CONNECT: `http://user:password@proxy.example:3128`. Empty: none. */
  readonly proxy?: string | undefined
}

/**
 * Reads such options; undefined: connections are made as any other.
 * @throws TypeError that names the option: a certificate without its key, a proxy that is no http(s) URL.
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

/** A proxy by its URL, whose user and password are sent as `proxy-authorization`. */
function proxyAt(text: string): NonNullable<EgressRoute['proxy']> {
  // A URL that cannot be read may hold a password, so it is not repeated.
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
