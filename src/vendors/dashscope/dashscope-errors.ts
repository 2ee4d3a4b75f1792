import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { firstHeader } from '../../wire/headers.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import type { ErrorReader, ErrorWords } from '../shared/openai-error.ts'
import type { Vendor } from '../vendor.ts'

/** "Free allocated quota exceeded.", "The free quota has been exhausted. To continue …". From its beginning: errors quote requests. */
const FREE_QUOTA_USED_UP = /^(?:the )?free (?:allocated )?quota\b/i

/** Errors of the operator's account, rate limits and faults of the service (DashScope, error codes page). */
export const DASHSCOPE_ERROR_WORDS: ErrorWords = {
  concerns: {
    Arrearage: 'key',
    'Model.AccessDenied': 'model',
    // "Access to model denied": a model is bought, and its free quota used up, by itself.
    'AccessDenied.Unpurchased': 'model',
    'AllocationQuota.FreeTierOnly': 'model',
    'Workspace.AccessDenied': 'key',
    'App.AccessDenied': 'key',
  },
  concernMessages: [
    [FREE_QUOTA_USED_UP, 'model'],
    // A model called in a mode that it does not have.
    [/^current user api does not support (?:a)?synchronous calls/i, 'model'],
  ],
  messages: [
    // The same code means "too many tokens a minute", which is temporary, and this, which is permanent.
    [FREE_QUOTA_USED_UP, 'operator'],
    // A model that this API does not serve; callers choose neither.
    [/^url error, (?:please )?check url/i, 'operator'],
  ],
  codes: {
    Arrearage: 'operator',
    AccessDenied: 'operator',
    access_denied: 'operator',
    'Model.AccessDenied': 'operator',
    'Workspace.AccessDenied': 'operator',
    'App.AccessDenied': 'operator',
    'AllocationQuota.FreeTierOnly': 'operator',
    CommodityNotPurchased: 'operator',
    PrepaidBillOverdue: 'operator',
    PostpaidBillOverdue: 'operator',
    InvalidApiKey: 'operator',
    ModelNotFound: 'operator',
    WorkSpaceNotFound: 'operator',
    Throttling: 'rate_limited',
    insufficient_quota: 'rate_limited',
    limit_requests: 'rate_limited',
    limit_burst_rate: 'rate_limited',
    LimitRequests: 'rate_limited',
    'InternalError.Algo.InvalidParameter': 'caller',
    DataInspectionFailed: 'caller',
    data_inspection_failed: 'caller',
    IPInfringementSuspect: 'caller',
    CustomRoleBlocked: 'caller',
    FaqRuleBlocked: 'caller',
    UnsupportedOperation: 'caller',
    'InternalError.Timeout': 'timeout',
    RequestTimeOut: 'timeout',
    ModelServingError: 'unavailable',
    ModelUnavailable: 'unavailable',
  },
}

// Their ids are UUIDs; anything else is not shown to callers.
const REQUEST_ID = /^[\w-]{1,100}$/

/**
 * Reads DashScope's errors of both APIs with the vendor's own request id, which its support needs: `request_id` at the top of the
 * body (native and compatible mode), else the header `x-request-id`.
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
