import { GEMINI_ERRORS, GEMINI_HEADERS } from '../gemini/gemini-errors.ts'
import { asNumber, asObject, type Fields } from '../request-fields.ts'
import {
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
} from '../sandbox-operation.ts'

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
const TOKEN_PREFIX = 'ya29.sandbox-until-'

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

const LIFETIME_SECONDS = 3600
/** How far a claim may lie in the past or the future of the server. */
const TOLERANCE_SECONDS = 300

/**
 * Google's token endpoint, `POST /token`, for the claims of service accounts and for refresh tokens. Tokens last an hour. A claim
 * dated by a wrong clock, and the refresh token `revoked`, are rejected.
 */
export const GOOGLE_TOKENS: SandboxOperation = {
  vendor: 'vertex',
  operation: 'token',
  errors: GEMINI_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'POST' && path === '/token',
  promptText: () => '',
  answer(call, { nowMs }) {
    const form = new URLSearchParams(Buffer.from(call.bytes).toString('utf8'))
    const refusal = refusalOf(form, nowMs)
    if (refusal !== undefined) return refusal
    const token = `${TOKEN_PREFIX}${nowMs + LIFETIME_SECONDS * 1000}`
    return jsonReply(200, [], { access_token: token, expires_in: LIFETIME_SECONDS - 1, token_type: 'Bearer' })
  },
}

function refusalOf(form: URLSearchParams, nowMs: number): SandboxReply | undefined {
  if (form.get('grant_type') === 'refresh_token')
    return form.get('refresh_token') === 'revoked' ? refused('Token has been expired or revoked.') : undefined
  const claims = claimsOf(form.get('assertion') ?? '')
  const issuedAt = asNumber(claims['iat']) ?? 0
  if (Math.abs(issuedAt - nowMs / 1000) <= TOLERANCE_SECONDS) return undefined
  return refused(
    'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.',
  )
}

function refused(description: string): SandboxReply {
  return jsonReply(400, [], { error: 'invalid_grant', error_description: description })
}

/** The claims of a signed text, unverified. */
function claimsOf(assertion: string): Fields {
  const [, payload = ''] = assertion.split('.')
  try {
    return asObject(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')))
  } catch {
    // Missing claims are rejected like those of a wrong time.
    return {}
  }
}
