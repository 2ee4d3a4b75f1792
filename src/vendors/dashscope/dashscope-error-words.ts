import type { ErrorWords } from '../shared/openai-error.ts'

/** DashScope, error codes page: what is the operator's account, what is rate, what is a fault of the service. */
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
    [/free (?:allocated )?quota/i, 'model'],
    // A model that is called in a mode which it does not have.
    [/does not support (?:a)?synchronous calls/i, 'model'],
  ],
  messages: [
    // The same code stands for "too many tokens a minute", which passes, and for this, which does not.
    [/free (?:allocated )?quota/i, 'operator'],
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
