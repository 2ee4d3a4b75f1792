import { GatewayError } from '../core/errors.ts'
import type { AdminRoute } from './admin-route.ts'

/** Route, and the values of its path parameters. */
export interface MatchedRoute {
  readonly route: AdminRoute
  readonly params: Readonly<Record<string, string>>
}

/** Finds the route of a method and path. */
export class AdminRouteTable {
  readonly #routes: readonly { readonly route: AdminRoute; readonly steps: readonly string[] }[]

  constructor(routes: readonly AdminRoute[]) {
    this.#routes = routes.map((route) => ({ route, steps: route.path.split('/') }))
  }

  /**
   * @param path Path below `/v1`, still percent-encoded.
   * @throws GatewayError `route_not_found`, or `method_not_allowed`.
   */
  match(method: string, path: string): MatchedRoute {
    const steps = stepsOf(path)
    const allowed: string[] = []
    for (const { route, steps: pattern } of this.#routes) {
      const params = steps === undefined ? undefined : paramsOf(pattern, steps)
      if (params === undefined) continue
      if (route.method === method || (method === 'HEAD' && route.method === 'GET')) return { route, params }
      allowed.push(route.method)
    }
    if (allowed.length === 0)
      throw new GatewayError('route_not_found', { message: `There is no route ${method} ${path}.` })
    throw new GatewayError('method_not_allowed', {
      message: `${path} takes ${allowed.join(', ')}, not ${method}.`,
    })
  }
}

/** Returns `undefined` for a path with malformed encoding. */
function stepsOf(path: string): readonly string[] | undefined {
  try {
    return path.split('/').map((step) => decodeURIComponent(step))
  } catch {
    return undefined
  }
}

function paramsOf(pattern: readonly string[], steps: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== steps.length) return undefined
  const params = new Map<string, string>()
  for (const [index, part] of pattern.entries()) {
    const step = steps[index]!
    if (part.startsWith('{') && step !== '') params.set(part.slice(1, -1), step)
    else if (part !== step) return undefined
  }
  return Object.fromEntries(params)
}
