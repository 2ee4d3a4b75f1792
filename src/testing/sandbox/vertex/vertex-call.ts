import { GEMINI_ERRORS, GEMINI_HEADERS } from '../gemini/gemini-errors.ts'
import { credentialOf, jsonReply, RefusedCall, type SandboxCall } from '../sandbox-operation.ts'

const PLACE = String.raw`\/v1(?:beta1)?\/(?:projects\/(?<project>[^/]+)\/locations\/(?<location>[^/]+)\/)?`
const MODEL = new RegExp(
  `^${PLACE}(?:publishers\\/(?<publisher>google|anthropic)\\/models\\/|(?<tuned>endpoints\\/)(?=\\d))(?<model>[^/:]+):(?<method>\\w+)$`,
)
const OPEN_CHAT = new RegExp(`^${PLACE}endpoints\\/openapi\\/chat\\/completions$`)

/** Locations of the stand-in in addition to the global one. Gemini's older models are in all, Claude's in these. */
const LOCATIONS = ['global', 'us', 'eu', 'us-central1', 'us-east5', 'europe-west1', 'europe-west4', 'asia-southeast1']

/** Parts of the path of a call. */
export interface VertexPath {
  /** Undefined in express mode. */
  readonly project: string | undefined
  readonly location: string | undefined
  readonly publisher: 'google' | 'anthropic'
  readonly model: string
  readonly method: string
}

/** Reads the path of a model's method. Returns `undefined` for other paths. */
export function vertexPath(path: string): VertexPath | undefined {
  const groups = MODEL.exec(path)?.groups
  if (groups === undefined) return undefined
  const { project, location, publisher = 'google', model = '', method = '' } = groups
  return {
    project,
    location,
    publisher: publisher === 'anthropic' ? 'anthropic' : 'google',
    model: decodeURIComponent(model),
    method,
  }
}

/** Whether a path is that of chat through the OpenAI API. */
export function isOpenChat(path: string): boolean {
  return OPEN_CHAT.test(path)
}

/** Prefix of tokens of the stand-in's token endpoint. Their expiry in Unix milliseconds follows. */
export const TOKEN_PREFIX = 'ya29.sandbox-until-'

/**
 * Rejects what Google rejects before it reads the request: no credential, an expired token, a key instead of a token, a missing
 * project (`missing-…`), and a location without the model.
 */
export function checkVertexCall(
  call: SandboxCall,
  nowMs: number,
  { takesKeys }: { readonly takesKeys: boolean },
): void {
  const isKey = call.headers['x-goog-api-key'] !== undefined
  const credential = credentialOf(call)
  if (credential === '' || (isKey && !takesKeys)) refuse(401, 'Request had invalid authentication credentials.')
  const endMs = credential.startsWith(TOKEN_PREFIX) ? Number(credential.slice(TOKEN_PREFIX.length)) : undefined
  if (endMs !== undefined && !(endMs > nowMs)) refuse(401, 'Request had invalid authentication credentials.')
  const match = MODEL.exec(call.path) ?? OPEN_CHAT.exec(call.path)
  const { project, location, publisher = 'google', model = '' } = match?.groups ?? {}
  if (project === undefined) {
    if (isKey) return
    refuse(403, 'Express mode needs an API key.')
  }
  if (project.startsWith('missing-')) {
    const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'CONSUMER_INVALID' }
    const error = {
      code: 403,
      message: `Permission denied on resource project ${project}.`,
      status: 'PERMISSION_DENIED',
    }
    // Some of Google's servers wrap errors in a list.
    throw new RefusedCall(jsonReply(403, GEMINI_HEADERS, [{ error: { ...error, details: [info] } }], 2))
  }
  if (!LOCATIONS.includes(location ?? '')) {
    const name = `projects/${project}/locations/${location}/publishers/${publisher}/models/${model}`
    refuse(404, `Publisher Model \`${name}\` was not found or your project does not have access to it.`)
  }
}

function refuse(status: number, message: string): never {
  throw new RefusedCall(GEMINI_ERRORS.status(status, message))
}
