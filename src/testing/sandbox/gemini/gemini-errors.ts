import { asObject, type Fields } from '../request-fields.ts'
import {
  jsonReply,
  type Refuse,
  refusals,
  type SandboxReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

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

const RPC = 'type.googleapis.com/google.rpc'
const OVERLOADED = 'The model is overloaded. Please try again later.'

/** Google's errors. A wait is in `RetryInfo`, never in a header. */
export const GEMINI_ERRORS = vendorErrors(
  {
    400: ['Request contains an invalid argument.', 'INVALID_ARGUMENT'],
    401: ['Request had invalid authentication credentials.', 'UNAUTHENTICATED'],
    403: ['The caller does not have permission', 'PERMISSION_DENIED'],
    404: ['The model is not found for API version v1beta, or is not supported for generateContent.', 'NOT_FOUND'],
    409: ['The operation was aborted.', 'ABORTED'],
    429: ['Resource has been exhausted (e.g. check quota).', 'RESOURCE_EXHAUSTED'],
    499: ['The operation was cancelled.', 'CANCELLED'],
    500: ['An internal error has occurred. Please retry.', 'INTERNAL'],
    501: ['Operation is not implemented.', 'UNIMPLEMENTED'],
    503: [OVERLOADED, 'UNAVAILABLE'],
    504: ['Deadline expired before operation could complete.', 'DEADLINE_EXCEEDED'],
    '4xx': ['Failed precondition.', 'FAILED_PRECONDITION'],
    '5xx': ['Unknown error.', 'UNKNOWN'],
  },
  (status, message, [name], waitSeconds) => {
    const wait = { '@type': `${RPC}.RetryInfo`, retryDelay: `${waitSeconds}s` }
    return googleError(status, name ?? '', message, waitSeconds === undefined ? [] : [wait])
  },
  {
    waitsInBody: true,
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
    streamEvent: () => googleEvent({ error: { code: 503, message: OVERLOADED, status: 'UNAVAILABLE' } }),
  },
)

/** Returns an error of any code and status. */
export function googleError(code: number, status: string, message: string, details: readonly object[]): SandboxReply {
  const error = { code, message, status, ...(details.length > 0 ? { details } : {}) }
  return jsonReply(code, GEMINI_HEADERS, { error }, 2)
}

/** Returns an event of a stream. Google's lines end with CR LF. */
export function googleEvent(value: unknown): string {
  return `data: ${JSON.stringify(value)}\r\n\r\n`
}

/** Rejects a request with INVALID_ARGUMENT, unless another status is given. */
export const refuseGemini: Refuse = refusals(GEMINI_ERRORS)

/** Makes operations of Gemini's API. Any key is accepted. */
export const geminiOperation = vendorOperations({
  vendor: 'gemini',
  errors: GEMINI_ERRORS,
  headers: GEMINI_HEADERS,
  indent: 2,
  access(call) {
    const key = call.headers['x-goog-api-key'] ?? new URLSearchParams(call.query).get('key') ?? ''
    const message =
      "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."
    if (key.trim() === '') refuseGemini(message, 403)
  },
})

/** Returns a member by its name in camel case. The vendor also accepts snake case. */
export function field(value: unknown, name: string): unknown {
  const object = asObject(value)
  return object[name] ?? object[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
}

/** Rejects unknown members, like the vendor's JSON reader. */
export function checkKnownFields(object: Fields, known: ReadonlySet<string>, place: string): void {
  for (const name of Object.keys(object)) {
    const camelName = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    if (known.has(camelName)) continue
    const at = place === '' ? '' : ` at '${place}'`
    refuseGemini(`Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`)
  }
}

/** Returns a pattern for the paths of methods: `/v1beta/models/{model}:{method}`. Its groups are the model, encoded, and the method. */
export function methodPath(methods: string): RegExp {
  return new RegExp(`^/v1(?:beta)?/models/([^/:]+):(${methods})$`)
}

/** Ids without a generation that name models of the third one or later. */
const NEWER_IDS = /^gemini-(?:[a-z-]+-latest$|robotics-er-[2-9])/

/** Whether a model signs its function calls and gives them ids: the third generation and later. */
export function signsThoughts(model: string): boolean {
  return NEWER_IDS.test(model) || Number(/^gemini-(\d+)/.exec(model)?.[1] ?? 0) >= 3
}
