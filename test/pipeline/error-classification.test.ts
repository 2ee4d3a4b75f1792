import { expect, test } from 'vitest'
import { failureOfVendor } from '../../src/pipeline/error-classification.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'
import { voyage } from '../../src/vendors/voyage/voyage.ts'
import { NOW_MS, wireAnswer } from '../vendors/shared/vendor-call.ts'

const apiKey = 'operator-key-0123456789'

/** Error bodies as the vendors write them. */
const openaiBody = (code: string | null, message = 'A text.') => ({
  error: { message, type: 'error', param: null, code },
})
const nativeBody = (code: string, message = 'A text.') => ({ code, message, request_id: 'r-1' })
const googleBody = (status: string, message: string, details: unknown[] = []) => ({
  error: { code: 403, message, status, details },
})
const anthropicBody = (type: string, message: string) => ({ type: 'error', error: { type, message } })
const quota = (quotaId: string) => [
  { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId }] },
]

const NO_ACCESS = 'Project `proj_1` does not have access to model `gpt-5.4`'

test.each<readonly [string, Vendor, number, unknown, string]>([
  ['openai', openai({ apiKey }), 403, openaiBody('model_not_found', NO_ACCESS), 'model-refused'],
  ['openai', openai({ apiKey }), 403, openaiBody(null, NO_ACCESS), 'model-refused'],
  ['openai', openai({ apiKey }), 404, openaiBody('model_not_found'), 'model-refused'],
  ['openai', openai({ apiKey }), 403, openaiBody('unsupported_country_region_territory'), 'refused'],
  ['openai', openai({ apiKey }), 403, openaiBody(null), 'refused'],
  ['openai', openai({ apiKey }), 403, openaiBody(null, 'Missing scopes: model.request'), 'refused'],
  ['openai', openai({ apiKey }), 401, openaiBody('invalid_api_key'), 'refused'],
  ['openai', openai({ apiKey }), 429, openaiBody('insufficient_quota'), 'refused'],
  ['voyage', voyage({ apiKey }), 403, { detail: 'Your IP is not allowed.' }, 'refused'],
  ['voyage', voyage({ apiKey }), 403, { detail: 'Your key may not use the model voyage-4.' }, 'model-refused'],
  ['dashscope', dashscope({ apiKey }), 403, nativeBody('Model.AccessDenied'), 'model-refused'],
  ['dashscope', dashscope({ apiKey }), 403, nativeBody('AccessDenied.Unpurchased'), 'model-refused'],
  ['dashscope', dashscope({ apiKey }), 403, nativeBody('AllocationQuota.FreeTierOnly'), 'model-refused'],
  [
    'dashscope',
    dashscope({ apiKey }),
    429,
    nativeBody('insufficient_quota', 'Free allocated quota exceeded.'),
    'model-refused',
  ],
  ['dashscope', dashscope({ apiKey }), 403, nativeBody('AccessDenied'), 'refused'],
  [
    'dashscope',
    dashscope({ apiKey }),
    403,
    nativeBody('AccessDenied', 'current user api does not support synchronous calls'),
    'model-refused',
  ],
  ['dashscope', dashscope({ apiKey }), 403, nativeBody('Workspace.AccessDenied'), 'refused'],
  ['dashscope', dashscope({ apiKey }), 404, nativeBody('ModelNotFound'), 'model-refused'],
  ['dashscope', dashscope({ apiKey }), 400, nativeBody('Arrearage'), 'refused'],
  ['dashscope', dashscope({ apiKey }), 429, nativeBody('PostpaidBillOverdue'), 'refused'],
  [
    'gemini',
    gemini({ apiKey }),
    403,
    googleBody('PERMISSION_DENIED', 'The caller does not have permission'),
    'refused',
  ],
  [
    'gemini',
    gemini({ apiKey }),
    403,
    googleBody('PERMISSION_DENIED', 'No permission to access models/gemini-3-pro.'),
    'model-refused',
  ],
  [
    'gemini',
    gemini({ apiKey }),
    429,
    googleBody('RESOURCE_EXHAUSTED', 'Quota', quota('RequestsPerDayPerProject')),
    'refused',
  ],
  [
    'gemini',
    gemini({ apiKey }),
    429,
    googleBody('RESOURCE_EXHAUSTED', 'Quota', quota('RequestsPerDayPerProjectPerModel-FreeTier')),
    'model-refused',
  ],
  [
    'anthropic',
    anthropic({ apiKey }),
    403,
    anthropicBody('permission_error', 'Your key may not use the resource.'),
    'refused',
  ],
  [
    'anthropic',
    anthropic({ apiKey }),
    403,
    anthropicBody('permission_error', 'Your organization has no access to the model claude-opus-4-7.'),
    'model-refused',
  ],
  ['anthropic', anthropic({ apiKey }), 404, anthropicBody('not_found_error', 'model: claude-no-more'), 'model-refused'],
  ['anthropic', anthropic({ apiKey }), 401, anthropicBody('authentication_error', 'invalid x-api-key'), 'refused'],
])('$0: a $2 of $3 is the outcome $4', (_name, vendor, status, body, outcome) => {
  const failure = failureOfVendor(vendor.errorFrom(wireAnswer(body, status), NOW_MS))

  expect(failure).toMatchObject({ outcome, reason: 'operator' })
})

test.each([
  [403, undefined, 'refused'],
  [404, undefined, 'model-refused'],
  [400, 'key', 'refused'],
  [403, 'model', 'model-refused'],
] as const)('a status of %i that concerns %s is read as: %s', (status, concerns, verdict) => {
  const code = 'model-words-of-a-code-decide-nothing'

  expect(failureOfVendor({ kind: 'operator', status, message: 'no', code, concerns }).outcome).toBe(verdict)
})

test.each([
  [409, false],
  [503, false],
  [502, true],
])('a status of %i without a word of the vendor may mean that it is working: %s', (status, mayHaveBegun) => {
  const failed = openai({ apiKey }).errorFrom(wireAnswer({}, status), NOW_MS)

  expect(failureOfVendor(failed)).toMatchObject({ reason: 'unavailable', mayHaveBegun })
})

test.each([
  ['seconds', '90', 90],
  ['ten years in seconds', '315360000', 3_600],
  ['more seconds than a number can be written as', '9'.repeat(300), 3_600],
  ['a date in the year 9999', 'Fri, 31 Dec 9999 23:59:59 GMT', 3_600],
])('callers and circuits wait an hour at most, whatever a vendor asks for: %s', (_what, retryAfter, seconds) => {
  const vendor = openai({ apiKey })
  for (const status of [429, 503, 504]) {
    const failed = vendor.errorFrom(wireAnswer(openaiBody(null), status, { 'retry-after': retryAfter }), NOW_MS)
    const { error, retryAfterMs } = failureOfVendor(failed)

    expect([error.retryAfterSeconds, retryAfterMs]).toEqual([seconds, seconds * 1_000])
  }
})
