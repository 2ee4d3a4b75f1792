import { memberNames } from '../core/known-members.ts'
import type { CorsOptions } from './cors.ts'

/** Paths of the gateway outside `/v1`. */
const ROOT_PATHS: readonly string[] = ['/livez', '/readyz', '/healthz', '/api/hello', '/openapi.json', '/mcp']

/** Options of every handler. */
export interface MountOptions {
  /** Path at which the handler is mounted, such as `/ai`. Removed exactly from the path, without decoding percent-encoding. */
  readonly basePath?: string | undefined
  /** Allows web pages of other origins to call the gateway from a browser. Default: none may. */
  readonly cors?: CorsOptions | undefined
}

export const MOUNT_OPTIONS = memberNames<MountOptions>()('basePath cors')

/** Returns a base path with one leading slash and no trailing one; undefined if there is none, empty for `/`. */
export function normalizeBasePath(basePath: string | undefined): string | undefined {
  if (basePath === undefined) return undefined
  let end = basePath.length
  while (end > 0 && basePath[end - 1] === '/') end--
  const trimmed = basePath.slice(0, end)
  return trimmed === '' || trimmed.startsWith('/') ? trimmed : `/${trimmed}`
}

/** Returns the path of a request target (RFC 9112, section 3.2), without the query and, in absolute form, without the origin. */
export function pathOfTarget(target: string): string {
  const question = target.indexOf('?')
  const beforeQuery = question === -1 ? target : target.slice(0, question)
  if (beforeQuery.startsWith('/')) return beforeQuery
  const scheme = beforeQuery.indexOf('://')
  if (scheme === -1) return `/${beforeQuery}`
  const slash = beforeQuery.indexOf('/', scheme + 3)
  return slash === -1 ? '/' : beforeQuery.slice(slash)
}

/** Returns the query of a request target without the question mark; empty if there is none. */
export function queryOfTarget(target: string): string {
  const question = target.indexOf('?')
  return question === -1 ? '' : target.slice(question + 1)
}

/** Returns the path below `basePath`, beginning with `/`, or undefined if the path is not below it. */
export function pathBelow(path: string, basePath: string): string | undefined {
  if (!path.startsWith(basePath)) return undefined
  if (path.length === basePath.length) return '/'
  return path[basePath.length] === '/' ? path.slice(basePath.length) : undefined
}

/** Returns whether the gateway answers a path when nothing is mounted in front of it. */
export function isGatewayPath(path: string): boolean {
  return path.startsWith('/v1/') || path === '/v1' || ROOT_PATHS.includes(path)
}

/** Returns the gateway's part of a path below an unknown mount: from its first `/v1/`, or a root path at its end. */
export function locateGatewayPath(path: string): string {
  const version = path.indexOf('/v1/')
  if (version !== -1) return path.slice(version)
  if (path.endsWith('/v1')) return '/v1'
  for (const rootPath of ROOT_PATHS) if (path.endsWith(rootPath)) return rootPath
  return path
}

/**
 * Returns the path that the gateway sees for a path outside the base path. It must answer 404, so a path that equals one of its
 * own is replaced by `/`, where it has no route.
 */
export function pathOutsideMount(path: string): string {
  return isGatewayPath(path) ? '/' : path
}

/** Returns the path for a handler that receives whole paths and knows its mount. `basePath` is normalized. */
export function routePath(path: string, basePath: string): string {
  return pathBelow(path, basePath) ?? pathOutsideMount(path)
}
