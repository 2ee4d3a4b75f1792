import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { firstHeader } from '../../wire/headers.ts'
import { asBuffer } from '../shared/json-bytes.ts'
import type { ErrorReader } from '../shared/openai-error.ts'
import type { Vendor } from '../vendor.ts'

// Their ids are UUIDs; anything else is not shown to callers.
const REQUEST_ID = /^[\w-]{1,100}$/

/**
 * Reads DashScope's errors of both APIs with the vendor's own id of the request, which its support asks for: `request_id` at
 * the top of the body (native and compatible mode alike), else the header `x-request-id`.
 */
export function dashscopeFailure(errors: ErrorReader): Vendor['errorFrom'] {
  return (answer, nowMs) => {
    const body = parseVendorJson(asBuffer(answer.body).toString('utf8'))
    const named = isJsonObject(body) ? body['request_id'] : undefined
    const requestId = named ?? firstHeader(answer.headers, 'x-request-id')
    const failure = errors.fromAnswer(answer, nowMs)
    return typeof requestId === 'string' && REQUEST_ID.test(requestId) ? { ...failure, requestId } : failure
  }
}
