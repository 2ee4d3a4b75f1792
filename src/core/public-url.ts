import type { GatewayRequest } from './exchange.ts'

/**
 * Returns the URL of a path of the gateway as the caller reaches it. Host and mount come from the request, and the scheme from
 * `x-forwarded-proto` if a proxy sets it. Returns only the path if the host is not known.
 */
export function publicUrl(request: GatewayRequest, path: string): string {
  const { originalPath = request.path } = request
  const mount = originalPath.endsWith(request.path) ? originalPath.slice(0, -request.path.length) : ''
  return `${originOf(request)}${mount}${path}`
}

const SCHEME = /^\s*(https?)\s*(?:,|$)/i

function originOf(request: GatewayRequest): string {
  const { origin = '' } = request
  if (!URL.canParse(origin)) return ''
  const url = new URL(origin)
  const scheme = SCHEME.exec(request.header('x-forwarded-proto') ?? '')?.[1]
  if (scheme !== undefined) url.protocol = scheme.toLowerCase()
  return url.origin
}
