import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'

/** Names by which only this machine reaches itself. */
const LOCAL_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** From where requests are taken. */
export interface CallerRules {
  /** Host names of the server, without ports; `any` turns the check off. Names of this machine always pass. */
  readonly allowedHosts?: readonly string[] | 'any' | undefined
  /** Origins of web pages, such as `https://app.example.com`; `any` turns the check off. */
  readonly allowedOrigins?: readonly string[] | 'any' | undefined
}

/**
 * Makes the check against DNS rebinding (MCP specification, "Security warning" of the streamable HTTP transport): a page on
 * a stranger's name that points to this server sends that name as `Host`, and its own as `Origin`. Requests without `Origin`
 * come from no browser and pass; one whose host is an allowed host passes too.
 * @returns a function that throws GatewayError `permission_denied`.
 * @throws TypeError for an allowed host with a scheme, port or path, and for an allowed origin that is none.
 */
export function callerCheck({
  allowedHosts = [],
  allowedOrigins = [],
}: CallerRules): (request: GatewayRequest) => void {
  const hosts = new Set([...LOCAL_NAMES, ...(allowedHosts === 'any' ? [] : allowedHosts.map(checkedHost))])
  const origins = new Set(allowedOrigins === 'any' ? [] : allowedOrigins.map(checkedOrigin))
  return (request) => {
    const host = hostName(request.header('host'))
    if (allowedHosts !== 'any' && (host === undefined || !hosts.has(host))) throw refused('Host', 'allowedHosts')
    const origin = request.header('origin')
    if (origin === undefined || allowedOrigins === 'any') return
    const url = URL.canParse(origin) ? new URL(origin) : undefined
    if (url === undefined || !(origins.has(url.origin) || hosts.has(url.hostname))) {
      throw refused('Origin', 'allowedOrigins')
    }
  }
}

function refused(header: string, option: string): GatewayError {
  return new GatewayError('permission_denied', {
    message: `The ${header} of the request is not allowed here; the operator allows it by the option ${option}.`,
  })
}

/** The name in a `Host` header, in lower case and without the port; undefined when there is none. */
function hostName(header: string | undefined): string | undefined {
  if (header === undefined || /[/@?#\\\s]/.test(header) || !URL.canParse(`http://${header}`)) return undefined
  return new URL(`http://${header}`).hostname
}

function checkedHost(host: string): string {
  if (hostName(host) === undefined || /:\d+$/.test(host)) {
    throw new TypeError(`allowedHosts: ${JSON.stringify(host)} must be a host name without scheme, port or path`)
  }
  return hostName(host)!
}

function checkedOrigin(origin: string): string {
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  if (url === undefined || url.origin === 'null' || origin.replace(/\/$/, '').toLowerCase() !== url.origin) {
    throw new TypeError(`allowedOrigins: ${JSON.stringify(origin)} must be an origin such as https://app.example.com`)
  }
  return url.origin
}
