import type { ErrorWords } from '../shared/openai-error.ts'

/** DashScope, error codes page: what is the operator's account, what is rate, what is a fault of the service. */
export const DASHSCOPE_ERROR_WORDS: ErrorWords = {
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
