import { asObject } from '../request-fields.ts'
import { jsonReply, RefusedCall, type SandboxCall, type SandboxReply, type VendorErrors } from '../sandbox-operation.ts'

/** Headers of every answer. Gemini sends no `retry-after` and no rate-limit headers. */
export const GEMINI_HEADERS: readonly string[] = [
  'server',
  'scaffolding on HTTPServer2',
  'x-xss-protection',
  '0',
  'server-timing',
  'gfet4t7; dur=312',
  'alt-svc',
  'h3=":443"; ma=2592000',
]

const USUAL: Readonly<Record<number, readonly [status: string, message: string]>> = {
  400: ['INVALID_ARGUMENT', 'Request contains an invalid argument.'],
  401: ['UNAUTHENTICATED', 'Request had invalid authentication credentials.'],
  403: ['PERMISSION_DENIED', 'The caller does not have permission'],
  404: ['NOT_FOUND', 'The model is not found for API version v1beta, or is not supported for generateContent.'],
  409: ['ABORTED', 'The operation was aborted.'],
  429: ['RESOURCE_EXHAUSTED', 'Resource has been exhausted (e.g. check quota).'],
  499: ['CANCELLED', 'The operation was cancelled.'],
  500: ['INTERNAL', 'An internal error has occurred. Please retry.'],
  501: ['UNIMPLEMENTED', 'Operation is not implemented.'],
  503: ['UNAVAILABLE', 'The model is overloaded. Please try again later.'],
  504: ['DEADLINE_EXCEEDED', 'Deadline expired before operation could complete.'],
}

const RPC = 'type.googleapis.com/google.rpc'

/** Google's errors. A wait is in `RetryInfo`, never in a header. */
export const GEMINI_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const [name, text] =
      USUAL[status] ?? (status >= 500 ? ['UNKNOWN', 'Unknown error.'] : ['FAILED_PRECONDITION', 'Failed precondition.'])
    const wait =
      retryAfterSeconds === undefined ? [] : [{ '@type': `${RPC}.RetryInfo`, retryDelay: `${retryAfterSeconds}s` }]
    return googleError(status, name, message ?? text, wait)
  },
  quota() {
    const violation = {
      quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests',
      quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier',
      quotaValue: '0',
    }
    const details = [{ '@type': `${RPC}.QuotaFailure`, violations: [violation] }]
    const message = 'You exceeded your current quota, please check your plan and billing details.'
    return googleError(429, 'RESOURCE_EXHAUSTED', message, details)
  },
  badKey() {
    const info = { '@type': `${RPC}.ErrorInfo`, reason: 'API_KEY_INVALID', domain: 'googleapis.com' }
    return googleError(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [info])
  },
  streamEvent() {
    const error = { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' }
    return `data: ${JSON.stringify({ error })}\r\n\r\n`
  },
}

/** Rejects a request with 400 INVALID_ARGUMENT. */
export function refuseGemini(message: string): never {
  throw new RefusedCall(GEMINI_ERRORS.status(400, message))
}

/** Rejects a call without a key. Any key is accepted. */
export function checkGeminiKey(call: SandboxCall): void {
  const key = call.headers['x-goog-api-key'] ?? new URLSearchParams(call.query).get('key') ?? ''
  if (key.trim() !== '') return
  const message =
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."
  throw new RefusedCall(GEMINI_ERRORS.status(403, message))
}

function googleError(code: number, status: string, message: string, details: readonly object[]): SandboxReply {
  const error = { code, message, status, ...(details.length > 0 ? { details } : {}) }
  return jsonReply(code, GEMINI_HEADERS, { error }, 2)
}

type Json = Readonly<Record<string, unknown>>

/** Returns a member by its name in camel case. The vendor also accepts snake case. */
export function field(value: unknown, name: string): unknown {
  const object = asObject(value)
  return object[name] ?? object[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
}

/** Rejects unknown members, like the vendor's JSON reader. */
export function checkKnownFields(object: Json, known: ReadonlySet<string>, place: string): void {
  for (const name of Object.keys(object)) {
    const camelName = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    if (known.has(camelName)) continue
    const at = place === '' ? '' : ` at '${place}'`
    refuseGemini(`Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`)
  }
}

/** Returns the model and the method of a path: `/v1beta/models/{model}:{method}`. */
export function modelMethod(path: string): { model: string; method: string } | undefined {
  const match = /^\/v1(?:beta)?\/models\/([^/:]+):(\w+)$/.exec(path)
  return match === null ? undefined : { model: decodeURIComponent(match[1] ?? ''), method: match[2] ?? '' }
}

/** Ids without a generation that name models of the third one or later. */
const NEWER_IDS = /^gemini-(?:[a-z-]+-latest$|robotics-er-[2-9])/

/** Whether a model signs its function calls and gives them ids: the third generation and later. */
export function signsThoughts(model: string): boolean {
  return NEWER_IDS.test(model) || Number(/^gemini-(\d+)/.exec(model)?.[1] ?? 0) >= 3
}
