import { serializedOrigin } from '../adapters/cors.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'

/** Host names that only this machine can use for itself. */
const LOCAL_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** Hosts and origins from which requests are accepted. */
export interface CallerRules {
  /** Host names of the server, without ports; `any` disables the check. Names of this machine are always allowed. */
  readonly allowedHosts?: readonly string[] | 'any' | undefined
  /** Origins of web pages and apps, such as `https://app.example.com`; `any` disables the check. */
  readonly allowedOrigins?: readonly string[] | 'any' | undefined
}

/**
 * Creates the check against DNS rebinding (MCP specification, "Security warning" of the streamable HTTP transport): a page whose host
 * name resolves to this server sends that name as `Host` and its own origin as `Origin`. Requests without `Origin` do not come from a
 * browser and pass, as do origins on an allowed host.
 * @returns a function that throws GatewayError `permission_denied`.
 * @throws GatewayError `invalid_request` if an allowed host has a scheme, port or path, or an allowed origin is malformed.
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
    const told = serializedOrigin(origin)
    if (told === undefined || !(origins.has(told) || hosts.has(new URL(origin).hostname)))
      throw refused('Origin', 'allowedOrigins')
  }
}

function refused(header: string, option: string): GatewayError {
  return new GatewayError('permission_denied', {
    message: `The ${header} of the request is not allowed here; the operator allows it by the option ${option}.`,
  })
}

/** Returns the name in a `Host` header, in lower case and without the port, or `undefined` if there is none. */
function hostName(header: string | undefined): string | undefined {
  if (header === undefined || /[/@?#\\\s]/.test(header) || !URL.canParse(`http://${header}`)) return undefined
  return new URL(`http://${header}`).hostname
}

function checkedHost(host: string): string {
  if (hostName(host) === undefined || /:\d+$/.test(host)) {
    throw badOption('allowedHosts', host, 'a host name without scheme, port or path')
  }
  return hostName(host)!
}

function checkedOrigin(origin: string): string {
  const written = origin.replace(/\/$/, '').toLowerCase()
  if (serializedOrigin(written) === written) return written
  throw badOption('allowedOrigins', origin, 'an origin such as https://app.example.com')
}

function badOption(param: string, value: string, wanted: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${JSON.stringify(value)} must be ${wanted}`, param })
}
