import { describe, expect, it } from 'vitest'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { NOW_MS, wireAnswer } from '../shared/vendor-call.ts'

const vendor = dashscope({ apiKey: 'sk-test-0123456789abcdef' })

/** The two layouts: native, and of the compatible mode. */
function layouts(code: string, message: string): object[] {
  return [
    { code, message, request_id: 'r-1' },
    { error: { message, type: code, param: null, code }, id: 'chatcmpl-1', request_id: 'r-1' },
  ]
}

describe('dashscope failures', () => {
  for (const [status, code, kind, message = 'A text.'] of [
    [400, 'InvalidParameter', 'caller'],
    [400, 'invalid_parameter_error', 'caller'],
    [400, 'DataInspectionFailed', 'caller'],
    [400, 'InvalidParameter.DataInspection', 'caller'],
    [400, 'InvalidURL.Timeout', 'caller'],
    [400, 'Arrearage', 'operator'],
    [401, 'InvalidApiKey', 'operator'],
    [401, 'invalid_api_key', 'operator'],
    [403, 'AccessDenied', 'operator'],
    [403, 'AccessDenied.Unpurchased', 'operator'],
    [400, 'AccessDenied.Unpurchased', 'operator'],
    [403, 'Model.AccessDenied', 'operator'],
    [403, 'AllocationQuota.FreeTierOnly', 'operator'],
    [404, 'ModelNotFound', 'operator'],
    [404, 'model_not_found', 'operator'],
    [404, 'model_not_supported', 'operator'],
    [404, 'WorkSpaceNotFound', 'operator'],
    [404, 'NotFound', 'caller'],
    [429, 'Throttling', 'rate_limited'],
    [429, 'Throttling.RateQuota', 'rate_limited'],
    [429, 'Throttling.BurstRate', 'rate_limited'],
    [429, 'limit_requests', 'rate_limited'],
    [429, 'Throttling.AllocationQuota', 'rate_limited'],
    [429, 'Throttling.AllocationQuota', 'operator', 'Free allocated quota exceeded.'],
    [429, 'insufficient_quota', 'rate_limited', 'You exceeded your current quota.'],
    [429, 'insufficient_quota', 'operator', 'Free allocated quota exceeded.'],
    [429, 'CommodityNotPurchased', 'operator'],
    [429, 'PrepaidBillOverdue', 'operator'],
    [429, 'PostpaidBillOverdue', 'operator'],
    [500, 'InternalError', 'unavailable'],
    [500, 'InternalError.Algo', 'unavailable'],
    [500, 'SystemError', 'unavailable'],
    [500, 'RequestTimeOut', 'timeout'],
    [500, 'InternalError.Timeout', 'timeout'],
    [500, 'ModelServingError', 'unavailable'],
    [503, 'ModelUnavailable', 'unavailable'],
    [429, 'insufficient_quota', 'operator', 'The free quota has been exhausted. To continue accessing the model, …'],
    [400, 'InvalidParameter', 'caller', "Value error, unknown field 'free quota'"],
    [400, 'InvalidParameter', 'caller', "Unexpected tool: 'url error, check url!'"],
    [200, 'InvalidParameter', 'caller'],
    [200, 'InternalError', 'unavailable'],
    [200, 'Arrearage', 'operator'],
    [200, 'Throttling.RateQuota', 'rate_limited'],
  ] as const) {
    it(`${status} ${code} (${message}) is a matter of: ${kind}`, () => {
      for (const body of layouts(code, message)) {
        expect(vendor.errorFrom(wireAnswer(body, status), NOW_MS)).toMatchObject({ kind, code, message })
      }
    })
  }

  it('believes the status in front of the text more than the one of the answer', () => {
    const batch =
      '<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not be larger than 10.: input.contents'
    for (const body of layouts('InternalError', batch)) {
      expect(vendor.errorFrom(wireAnswer(body, 500), NOW_MS)).toMatchObject({
        kind: 'caller',
        status: 400,
        message: batch,
      })
    }
    for (const body of layouts('InvalidParameter', '<503> InternalError.Algo: busy')) {
      expect(vendor.errorFrom(wireAnswer(body, 400), NOW_MS)).toMatchObject({ kind: 'unavailable', status: 400 })
    }
  })
})
