import type { InlineBatches } from '../endpoints/batches.ts'
import type { Endpoint, StoredObjects } from '../endpoints/endpoint.ts'
import type { EndpointTable } from '../pipeline/pipeline-context.ts'
import { TASK_ACTIONS, type TaskAction } from '../tasks/task-requests.ts'

export type Target =
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  | { readonly kind: 'models' }
  | { readonly kind: 'model'; readonly modelId: string }
  | { readonly kind: 'account' }
  | { readonly kind: 'estimate' }
  | { readonly kind: 'tasks'; readonly endpoint: Endpoint }
  | { readonly kind: 'task'; readonly endpoint: Endpoint; readonly taskId: string; readonly action: TaskAction }
  | { readonly kind: 'stored-answer'; readonly endpoint: Endpoint; readonly id: string; readonly action: string }
  | {
      readonly kind: 'objects'
      readonly endpoint: Endpoint
      readonly objects: StoredObjects
      readonly segments: readonly string[]
    }
  | { readonly kind: 'files' | 'batches'; readonly segments: readonly string[] }
  | {
      readonly kind: 'inline-batches'
      readonly endpoint: Endpoint
      readonly dialect: InlineBatches
      readonly segments: readonly string[]
    }
  /** `asks` selects whether this process is ready for requests, or only whether it runs. */
  | { readonly kind: 'health'; readonly asks: 'ready' | 'alive' }
  | { readonly kind: 'probe' }
  | { readonly kind: 'openapi' }

/** Result of a route look-up. */
export type Match = { readonly target: Target } | { readonly allow: readonly string[] } | undefined

const GET_ONLY: readonly string[] = ['GET', 'HEAD']
const POST_ONLY: readonly string[] = ['POST']

const readablePaths = new Map<string, Target>([
  ['/v1/models', { kind: 'models' }],
  ['/v1/account', { kind: 'account' }],
  ['/livez', { kind: 'health', asks: 'alive' }],
  ['/readyz', { kind: 'health', asks: 'ready' }],
  ['/healthz', { kind: 'health', asks: 'ready' }],
  // Coding clients send this request when they connect (Claude Code, gateway protocol reference).
  ['/api/hello', { kind: 'probe' }],
  ['/openapi.json', { kind: 'openapi' }],
])
const MODEL_PREFIX = '/v1/models/'
/** Path of cost estimates. */
export const ESTIMATE_PATH = '/v1/estimate'

/** Finds the route of a method and path. Returns `allow` if the path exists for other methods, and `undefined` if it does not exist. */
export function matchRoute(endpoints: EndpointTable, method: string, path: string, hasBatches = false): Match {
  const endpoint = endpoints.at(path)
  if (endpoint !== undefined) {
    if (method === 'POST') return { target: { kind: 'endpoint', endpoint } }
    if (endpoint.task === undefined) return { allow: POST_ONLY }
    return GET_ONLY.includes(method) ? { target: { kind: 'tasks', endpoint } } : { allow: [...GET_ONLY, ...POST_ONLY] }
  }
  const task = taskTarget(endpoints, path)
  if (task !== undefined) {
    const methods: readonly string[] = TASK_ACTIONS[task.action]
    return methods.includes(method) ? { target: task } : { allow: methods }
  }
  const stored = storedAnswerTarget(endpoints, path)
  if (stored !== undefined) {
    const methods = stored.endpoint.kept?.actions[stored.action] ?? []
    return methods.includes(method) ? { target: stored } : { allow: methods }
  }
  const objects = objectsTarget(endpoints, path)
  if (objects !== undefined) {
    const methods = objects.objects.methods(objects.segments) ?? []
    return methods.includes(method) ? { target: objects } : { allow: methods }
  }
  if (path === ESTIMATE_PATH) return method === 'POST' ? { target: { kind: 'estimate' } } : { allow: POST_ONLY }
  const batch = hasBatches ? (batchTarget(path) ?? inlineBatchTarget(endpoints, path)) : undefined
  if (batch !== undefined) return batch.methods.includes(method) ? { target: batch.target } : { allow: batch.methods }
  const target = readablePaths.get(path) ?? modelTarget(path)
  if (target === undefined) return undefined
  return GET_ONLY.includes(method) ? { target } : { allow: GET_ONLY }
}

/** Message for callers about an unknown path, with the likely mistake in its address. */
export function unknownRoute(endpoints: EndpointTable, method: string, path: string, hasBatches: boolean): string {
  const exists = (other: string): boolean => matchRoute(endpoints, method, other, hasBatches) !== undefined
  const message = `There is no route ${method} ${path}.`
  if (exists(`/v1${path}`)) return `${message} Set a base URL that ends with /v1.`
  if (path.startsWith('/v1/v1/') && exists(path.slice('/v1'.length))) return `${message} Set a base URL without /v1.`
  if (matchRoute(endpoints, method, path, true) !== undefined) return `${message} Batches are off at this gateway.`
  return message
}

/** Any text between the slashes is the id; the look-up decides whether it exists, with the same answer for all. */
function taskTarget(endpoints: EndpointTable, path: string): Extract<Target, { kind: 'task' }> | undefined {
  for (const endpoint of endpoints.withTasks) {
    if (!path.startsWith(`${endpoint.path}/`)) continue
    const rest = path.slice(endpoint.path.length + 1)
    const slash = rest.indexOf('/')
    const taskId = slash === -1 ? rest : rest.slice(0, slash)
    const action = slash === -1 ? 'read' : rest.slice(slash + 1)
    if (taskId !== '' && Object.hasOwn(TASK_ACTIONS, action))
      return { kind: 'task', endpoint, taskId, action: action as TaskAction }
  }
  return undefined
}

/** Any text between the slashes is the id, as in paths of tasks. */
function storedAnswerTarget(
  endpoints: EndpointTable,
  path: string,
): Extract<Target, { kind: 'stored-answer' }> | undefined {
  for (const endpoint of endpoints.keepingAnswers) {
    if (endpoint.kept === undefined || !path.startsWith(`${endpoint.path}/`)) continue
    const rest = path.slice(endpoint.path.length + 1)
    const slash = rest.indexOf('/')
    const id = slash === -1 ? rest : rest.slice(0, slash)
    const action = slash === -1 ? '' : rest.slice(slash + 1)
    if (endpoint.kept.reserved?.has(id) === true) continue
    if (id !== '' && Object.hasOwn(endpoint.kept.actions, action) && (slash === -1 || action !== ''))
      return { kind: 'stored-answer', endpoint, id, action }
  }
  return undefined
}

function objectsTarget(endpoints: EndpointTable, path: string): Extract<Target, { kind: 'objects' }> | undefined {
  for (const endpoint of endpoints.keepingAnswers) {
    const objects = endpoint.kept?.objects
    if (objects === undefined || (path !== objects.path && !path.startsWith(`${objects.path}/`))) continue
    const segments = path === objects.path ? [] : path.slice(objects.path.length + 1).split('/')
    if (segments[0] !== '' && objects.methods(segments) !== undefined)
      return { kind: 'objects', endpoint, objects, segments }
  }
  return undefined
}

interface BatchTarget {
  readonly target: Target
  readonly methods: readonly string[]
}

/** Finds files, batches, and the paths below them. */
function batchTarget(path: string): BatchTarget | undefined {
  for (const [kind, prefix, methodsOf] of BATCH_PATHS) {
    const segments = segmentsBelow(prefix, path)
    if (segments === undefined) continue
    const methods = methodsOf(segments)
    return methods && { target: { kind, segments }, methods }
  }
  return undefined
}

/** Finds batches in the APIs of endpoints. */
function inlineBatchTarget({ withInlineBatches }: EndpointTable, path: string): BatchTarget | undefined {
  for (const endpoint of withInlineBatches) {
    const { inlineBatches: dialect } = endpoint
    const segments = dialect && segmentsBelow(dialect.path, path)
    if (dialect === undefined || segments === undefined) continue
    const methods = inlineBatchMethods(segments)
    if (methods !== undefined) return { target: { kind: 'inline-batches', endpoint, dialect, segments }, methods }
  }
  return undefined
}

/** Returns the segments below a path, or `undefined` for another path. */
function segmentsBelow(prefix: string, path: string): readonly string[] | undefined {
  if (path === prefix) return []
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length + 1).split('/') : undefined
}

const BATCH_PATHS = [
  ['files', '/v1/files', fileMethods],
  ['batches', '/v1/batches', batchMethods],
] as const

/** Model ids may contain slashes (`models/x`), so everything after the prefix is the id. */
function modelTarget(path: string): Target | undefined {
  if (!path.startsWith(MODEL_PREFIX) || path.length === MODEL_PREFIX.length) return undefined
  try {
    return { kind: 'model', modelId: decodeURIComponent(path.slice(MODEL_PREFIX.length)) }
  } catch {
    return undefined
  }
}

/** Returns the methods of a path below `/v1/files`, or `undefined` if there is no such path. */
function fileMethods(segments: readonly string[]): readonly string[] | undefined {
  if (segments.length === 0) return ['GET', 'HEAD', 'POST']
  if (segments[0] === '') return undefined
  if (segments.length === 1) return ['GET', 'HEAD', 'DELETE']
  return segments.length === 2 && segments[1] === 'content' ? ['GET'] : undefined
}

/** Returns the methods of a path below `/v1/batches`, or `undefined` if there is no such path. */
function batchMethods(segments: readonly string[]): readonly string[] | undefined {
  if (segments.length === 0) return ['GET', 'HEAD', 'POST']
  if (segments[0] === '') return undefined
  if (segments.length === 1) return ['GET', 'HEAD']
  return segments.length === 2 && segments[1] === 'cancel' ? ['POST'] : undefined
}

/** Returns the methods of a path below the batches of an endpoint, or `undefined` if there is no such path. */
function inlineBatchMethods(segments: readonly string[]): readonly string[] | undefined {
  const [id, action] = segments
  if (id === undefined) return ['GET', 'HEAD', 'POST']
  if (id === '' || segments.length > 2) return undefined
  if (action === undefined) return ['GET', 'HEAD', 'DELETE']
  if (action === 'cancel') return ['POST']
  return action === 'results' ? ['GET'] : undefined
}
