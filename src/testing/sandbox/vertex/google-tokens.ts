import { GEMINI_ERRORS } from '../gemini/gemini-errors.ts'
import { asNumber, asObject, type Fields } from '../request-fields.ts'
import { jsonReply, type SandboxOperation, type SandboxReply } from '../sandbox-operation.ts'
import { TOKEN_PREFIX } from './vertex-call.ts'

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
