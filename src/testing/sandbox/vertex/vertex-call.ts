import { GEMINI_ERRORS, GEMINI_HEADERS, refuseGemini } from '../gemini/gemini-errors.ts'
import { asNumber, asObject, type Fields } from '../request-fields.ts'
import {
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type VendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

const PLACE = '^/v1(?:beta1)?/(?:projects/(?<project>[^/]+)/locations/(?<location>[^/]+)/)?'
const CALL = new RegExp(
  String.raw`${PLACE}(?:(?:publishers/(?<publisher>\w+)/models/|endpoints/(?=\d))(?<model>[^/:]+))?`,
)

/** Returns a pattern for a path below a location, or without a project and a location in express mode. */
export function vertexPath(rest: string): RegExp {
  return new RegExp(`${PLACE.replaceAll(/\?<\w+>/g, '?:')}${rest}$`)
}

/** Returns a pattern for methods of Google's models, tuned ones included. Its groups are the model, encoded, and the method. */
export function googleMethod(methods: string): RegExp {
  return vertexPath(String.raw`(?:publishers/google/models/|endpoints/(?=\d))([^/:]+):(${methods})`)
}

/** Locations of the stand-in in addition to the global one. Gemini's older models are in all, Claude's in these. */
const LOCATIONS = ['global', 'us', 'eu', 'us-central1', 'us-east5', 'europe-west1', 'europe-west4', 'asia-southeast1']

/** Prefix of tokens of the stand-in's token endpoint. Their expiry in Unix milliseconds follows. */
const TOKEN_PREFIX = 'ya29.sandbox-until-'

/**
 * Rejects what Google rejects before it reads the request: no credential, an expired token, a key instead of a token, a missing
 * project (`missing-…`), and a location without the model.
 */
function checkVertexCall(call: SandboxCall, nowMs: number, takesKeys: boolean): void {
  const isKey = call.headers['x-goog-api-key'] !== undefined
  const credential = credentialOf(call)
  const endMs = credential.startsWith(TOKEN_PREFIX) ? Number(credential.slice(TOKEN_PREFIX.length)) : undefined
  if (credential === '' || (isKey && !takesKeys) || (endMs !== undefined && !(endMs > nowMs)))
    refuseGemini('Request had invalid authentication credentials.', 401)
  const { project, location, publisher = 'google', model = '' } = CALL.exec(call.path)?.groups ?? {}
  if (project === undefined) {
    if (isKey) return
    refuseGemini('Express mode needs an API key.', 403)
  }
  if (project.startsWith('missing-')) {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'CONSUMER_INVALID' }]
    const message = `Permission denied on resource project ${project}.`
    const error = { code: 403, message, status: 'PERMISSION_DENIED', details }
    // Some of Google's servers wrap errors in a list.
    throw new RefusedCall(jsonReply(403, GEMINI_HEADERS, [{ error }], 2))
  }
  const name = `projects/${project}/locations/${location}/publishers/${publisher}/models/${model}`
  if (!LOCATIONS.includes(location ?? ''))
    refuseGemini(`Publisher Model \`${name}\` was not found or your project does not have access to it.`, 404)
}

/** Makes operations of Vertex AI. `takesKeys` says whether keys are accepted in addition to tokens. */
export function vertexOperations(takesKeys: boolean, errors: VendorErrors = GEMINI_ERRORS) {
  return vendorOperations({
    vendor: 'vertex',
    errors,
    headers: GEMINI_HEADERS,
    indent: 2,
    access: (call, nowMs) => checkVertexCall(call, nowMs, takesKeys),
  })
}

const LIFETIME_SECONDS = 3600
/** How far a claim may lie in the past or the future of the server. */
const TOLERANCE_SECONDS = 300

/**
 * Google's token endpoint, `POST /token`, for the claims of service accounts and for refresh tokens. Tokens last an hour. A claim
 * dated by a wrong clock, and the refresh token `revoked`, are rejected.
 */
export const GOOGLE_TOKENS = vendorOperations({ vendor: 'vertex', errors: GEMINI_ERRORS })({
  operation: 'token',
  post: '/token',
  needsJson: false,
  json({ bytes }, { nowMs }) {
    const form = new URLSearchParams(Buffer.from(bytes).toString('utf8'))
    if (form.get('grant_type') !== 'refresh_token') checkClaim(form.get('assertion') ?? '', nowMs)
    else if (form.get('refresh_token') === 'revoked') refuseGrant('Token has been expired or revoked.')
    const token = `${TOKEN_PREFIX}${nowMs + LIFETIME_SECONDS * 1000}`
    return { access_token: token, expires_in: LIFETIME_SECONDS - 1, token_type: 'Bearer' }
  },
})

function checkClaim(assertion: string, nowMs: number): void {
  const issuedAt = asNumber(claimsOf(assertion)['iat']) ?? 0
  const message =
    'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.'
  if (!(Math.abs(issuedAt - nowMs / 1000) <= TOLERANCE_SECONDS)) refuseGrant(message)
}

function refuseGrant(description: string): never {
  throw new RefusedCall(jsonReply(400, [], { error: 'invalid_grant', error_description: description }))
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
