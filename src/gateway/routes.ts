import { chatEndpoint } from '../endpoints/chat/chat-endpoint.ts'
import { countTokensEndpoint } from '../endpoints/count-tokens/count-tokens-endpoint.ts'
import { embeddingsEndpoint } from '../endpoints/embeddings/embeddings-endpoint.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { ErrorDialect } from '../endpoints/error-body.ts'
import { imageEditEndpoint } from '../endpoints/image-edits/image-edit-endpoint.ts'
import { imagesEndpoint } from '../endpoints/images/images-endpoint.ts'
import { messagesEndpoint } from '../endpoints/messages/messages-endpoint.ts'
import { speechEndpoint } from '../endpoints/speech/speech-endpoint.ts'
import { videoEndpoint } from '../endpoints/videos/video-endpoint.ts'

/** What a path leads to. */
export type Target =
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  | { readonly kind: 'models' }
  | { readonly kind: 'model'; readonly modelId: string }
  | { readonly kind: 'account' }
  | { readonly kind: 'tasks' }
  | { readonly kind: 'task'; readonly taskId: string; readonly action: TaskAction }
  | { readonly kind: 'health' }
  | { readonly kind: 'hello' }

/** The scope that a key needs to see tasks: that of the endpoint which makes them. */
export const videosScope = videoEndpoint.id

/** Every endpoint of the gateway; one line each. */
export const ENDPOINTS: readonly Endpoint[] = [
  chatEndpoint as Endpoint,
  messagesEndpoint as Endpoint,
  countTokensEndpoint as Endpoint,
  embeddingsEndpoint as Endpoint,
  imagesEndpoint,
  imageEditEndpoint as Endpoint,
  videoEndpoint as Endpoint,
  speechEndpoint as Endpoint,
]

/** What can be done with one task, and by which method. */
export type TaskAction = keyof typeof TASK_METHODS

const GET_ONLY = ['GET', 'HEAD']
const POST_ONLY = ['POST']
const TASK_METHODS = {
  read: GET_ONLY,
  cancel: POST_ONLY,
  content: ['GET'],
  webhooks: GET_ONLY,
  'webhooks/resend': POST_ONLY,
} as const

/** Outcome of looking a path up. */
export type Match = { readonly target: Target } | { readonly allow: readonly string[] } | undefined

const endpointsByPath = new Map(ENDPOINTS.map((endpoint) => [endpoint.path, { kind: 'endpoint', endpoint } as const]))
const readablePaths = new Map<string, Target>([
  ['/v1/models', { kind: 'models' }],
  ['/v1/account', { kind: 'account' }],
  ['/healthz', { kind: 'health' }],
  // Coding clients open their connection with it (Claude Code, gateway protocol reference).
  ['/api/hello', { kind: 'hello' }],
])
const MODEL_PREFIX = '/v1/models/'

/** Finds what a method and path lead to; `allow` when the path exists for other methods, undefined when it does not exist. */
export function matchRoute(method: string, path: string): Match {
  const posted = endpointsByPath.get(path)
  if (posted !== undefined) {
    if (method === 'POST') return { target: posted }
    if (posted.endpoint.isTask !== true) return { allow: POST_ONLY }
    return GET_ONLY.includes(method) ? { target: { kind: 'tasks' } } : { allow: [...GET_ONLY, ...POST_ONLY] }
  }
  const task = taskTarget(path)
  if (task !== undefined) {
    const methods: readonly string[] = TASK_METHODS[task.action]
    return methods.includes(method) ? { target: task } : { allow: methods }
  }
  const target = readablePaths.get(path) ?? modelTarget(path)
  if (target === undefined) return undefined
  return GET_ONLY.includes(method) ? { target } : { allow: GET_ONLY }
}

/** How errors read on a path where no endpoint was found: everything below an endpoint speaks as it does. */
export function dialectOfPath(path: string): ErrorDialect {
  const found = endpointsByPath.get(path)
  if (found !== undefined) return found.endpoint.dialect
  const nearest = path.startsWith(`${messagesEndpoint.path}/`) ? messagesEndpoint : chatEndpoint
  return nearest.dialect
}

const TASK_PREFIX = `${videoEndpoint.path}/`

/** The id is whatever stands between the slashes; whether it is one is found out later, with the same answer for all. */
function taskTarget(path: string): Extract<Target, { kind: 'task' }> | undefined {
  if (!path.startsWith(TASK_PREFIX)) return undefined
  const rest = path.slice(TASK_PREFIX.length)
  const slash = rest.indexOf('/')
  const taskId = slash === -1 ? rest : rest.slice(0, slash)
  const action = slash === -1 ? 'read' : rest.slice(slash + 1)
  return taskId !== '' && Object.hasOwn(TASK_METHODS, action)
    ? { kind: 'task', taskId, action: action as TaskAction }
    : undefined
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
