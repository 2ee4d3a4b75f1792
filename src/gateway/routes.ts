import { chatEndpoint } from '../endpoints/chat/chat-endpoint.ts'
import { embeddingsEndpoint } from '../endpoints/embeddings/embeddings-endpoint.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'

/** What a path leads to. */
export type Target =
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  | { readonly kind: 'models' }
  | { readonly kind: 'model'; readonly modelId: string }
  | { readonly kind: 'account' }
  | { readonly kind: 'health' }

/** Every endpoint of the gateway; one line each. */
export const ENDPOINTS: readonly Endpoint[] = [chatEndpoint as Endpoint, embeddingsEndpoint as Endpoint]

/** Outcome of looking a path up. */
export type Match = { readonly target: Target } | { readonly allow: readonly string[] } | undefined

const endpointsByPath = new Map(ENDPOINTS.map((endpoint) => [endpoint.path, { kind: 'endpoint', endpoint } as const]))
const readablePaths = new Map<string, Target>([
  ['/v1/models', { kind: 'models' }],
  ['/v1/account', { kind: 'account' }],
  ['/healthz', { kind: 'health' }],
])
const POST_ONLY = ['POST']
const GET_ONLY = ['GET', 'HEAD']
const MODEL_PREFIX = '/v1/models/'

/** Finds what a method and path lead to; `allow` when the path exists for other methods, undefined when it does not exist. */
export function matchRoute(method: string, path: string): Match {
  const posted = endpointsByPath.get(path)
  if (posted !== undefined) return method === 'POST' ? { target: posted } : { allow: POST_ONLY }
  const target = readablePaths.get(path) ?? modelTarget(path)
  if (target === undefined) return undefined
  return GET_ONLY.includes(method) ? { target } : { allow: GET_ONLY }
}

/** Model ids may hold slashes (`models/x`), so everything behind the prefix is the id. */
function modelTarget(path: string): Target | undefined {
  if (!path.startsWith(MODEL_PREFIX) || path.length === MODEL_PREFIX.length) return undefined
  try {
    return { kind: 'model', modelId: decodeURIComponent(path.slice(MODEL_PREFIX.length)) }
  } catch {
    return undefined
  }
}
