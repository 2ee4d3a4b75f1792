import { describe, expect, it } from 'vitest'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import { NOW_MS, wireAnswer } from '../shared/vendor-call.ts'
import { vendorOf } from './preset-vendor.ts'

describe('failures', () => {
  const answers: readonly (readonly [Preset, number, unknown, object])[] = [
    [
      presets.zai,
      429,
      { error: { code: '1113', message: 'Insufficient balance' } },
      { kind: 'operator', concerns: 'key' },
    ],
    [presets.zai, 429, { error: { code: '1302', message: 'Rate limit reached' } }, { kind: 'rate_limited' }],
    [presets.zai, 400, { error: { code: '1211', message: 'Unknown Model' } }, { kind: 'operator', concerns: 'model' }],
    [presets.zai, 434, { error: { code: 'x', message: 'No API permission' } }, { kind: 'operator', status: 434 }],
    [
      presets.zai,
      429,
      { error: { code: '1112', message: 'Your account has been locked' } },
      { kind: 'operator', concerns: 'key' },
    ],
    [presets.zai, 429, { error: { code: '1310', message: 'Weekly limit reached' } }, { kind: 'operator' }],
    [
      presets.zai,
      429,
      { error: { code: '1311', message: 'The plan does not include GLM-5' } },
      { kind: 'operator', concerns: 'model' },
    ],
    [
      presets.xai,
      403,
      {
        code: 'The caller does not have permission to execute the specified operation',
        error:
          'Content violates usage guidelines. Team: t, API key ID: k, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO',
      },
      { kind: 'caller', status: 400 },
    ],
    [
      presets.xai,
      400,
      { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***bc.' },
      { kind: 'operator', concerns: 'key' },
    ],
    [
      presets.xai,
      429,
      {
        code: 'Some resource has been exhausted',
        error: 'Your team t has either used all available credits or reached its monthly spending limit.',
      },
      { kind: 'operator' },
    ],
    [presets.xai, 429, { code: 'Some resource has been exhausted', error: 'Slow down' }, { kind: 'rate_limited' }],
    // Errors quote the request, so a caller can add the text of the operator's errors.
    [
      presets.xai,
      422,
      {
        error:
          'Failed to deserialize the JSON body: response_format.type: unknown variant `incorrect API key`, expected …',
      },
      { kind: 'caller' },
    ],
    [
      presets.xai,
      422,
      { error: 'Failed to deserialize the JSON body: tools[0].type: unknown variant `used all available credits`' },
      { kind: 'caller' },
    ],
    [
      presets.openrouter,
      400,
      { error: { message: '[{"received":"x is not a valid model ID","code":"invalid_enum_value"}]', code: 400 } },
      { kind: 'caller' },
    ],
    [
      presets.openrouter,
      400,
      { error: { message: '[{ "received": "no endpoints found for a/b", "code": "invalid_enum_value" }]', code: 400 } },
      { kind: 'caller' },
    ],
    [
      presets.moonshot,
      404,
      { error: { message: 'Not found the model kimi-k9 or Permission denied', type: 'resource_not_found_error' } },
      { kind: 'operator' },
    ],
    [
      presets.mistral,
      400,
      { object: 'error', message: 'Invalid model: x', type: 'invalid_model', param: null, code: '1500' },
      { kind: 'operator' },
    ],
    [
      presets.perplexity,
      400,
      { error: { message: "Invalid model 'x'.", type: 'invalid_model', code: 400 } },
      { kind: 'operator' },
    ],
    [
      presets.minimax,
      400,
      { type: 'error', error: { type: 'bad_request_error', message: "invalid params, unknown model 'a' (2013)" } },
      { kind: 'operator', concerns: 'model' },
    ],
    [
      presets.minimax,
      400,
      { type: 'error', error: { type: 'bad_request_error', message: 'invalid params, invalid chat setting (2013)' } },
      { kind: 'caller' },
    ],
    [presets.openrouter, 400, { error: { message: 'a/b is not a valid model ID', code: 400 } }, { kind: 'operator' }],
    [presets.openrouter, 404, { error: { message: 'No endpoints found for a/b.', code: 404 } }, { kind: 'operator' }],
    [
      presets.openrouter,
      404,
      { error: { message: 'No endpoints found that support tool use.', code: 404 } },
      { kind: 'caller' },
    ],
    [
      presets.fireworks,
      412,
      { error: { message: 'Account a is suspended, possibly …', code: 'PRECONDITION_FAILED', type: 'error' } },
      { kind: 'operator', concerns: 'key' },
    ],
    [
      presets.groq,
      400,
      { error: { message: 'Organization has been restricted.', code: 'organization_restricted' } },
      { kind: 'operator', concerns: 'key' },
    ],
    [presets.groq, 498, { error: { message: 'Flex tier capacity exceeded' } }, { kind: 'unavailable' }],
    [
      presets.together,
      403,
      {
        error: { message: '`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000', type: 'invalid_request' },
      },
      { kind: 'caller', concerns: 'size', status: 400 },
    ],
    [presets.together, 403, { error: { message: 'Forbidden', type: 'invalid_request' } }, { kind: 'operator' }],
    [
      presets.cloudflare,
      400,
      { errors: [{ message: 'AiError: No such model @cf/x or task', code: 5007 }], success: false, result: {} },
      { kind: 'operator' },
    ],
    [
      presets.cloudflare,
      429,
      { errors: [{ message: 'You have used up your daily free allocation', code: 3036 }], success: false },
      { kind: 'operator' },
    ],
    [
      presets.cloudflare,
      429,
      { errors: [{ message: 'No more data centers to forward the request to', code: 3040 }], success: false },
      { kind: 'rate_limited' },
    ],
    [
      presets.minimax,
      429,
      { error: { http_code: '429', message: 'insufficient balance (1008)', type: 'insufficient_balance_error' } },
      { kind: 'operator', concerns: 'key' },
    ],
    [
      presets.minimax,
      500,
      { error: { message: 'your current token plan not support model, MiniMax-M2 (2061)', type: 'api_error' } },
      { kind: 'operator', concerns: 'model' },
    ],
    [
      presets.minimax,
      200,
      { base_resp: { status_code: 2056, status_msg: 'usage limit exceeded' } },
      { kind: 'operator', concerns: 'key' },
    ],
    [
      presets.minimax,
      200,
      { base_resp: { status_code: 2045, status_msg: 'rate growth limit' } },
      { kind: 'rate_limited' },
    ],
    [presets.zai, 435, { error: { message: 'File size exceeds 100MB' } }, { kind: 'caller', status: 400 }],
    [presets.zai, 435, '', { kind: 'caller' }],
    [
      presets.mistral,
      422,
      {
        object: 'error',
        message: {
          detail: [
            {
              type: 'extra_forbidden',
              loc: ['body', 'messages', 0, 'user', 'name'],
              msg: 'Extra inputs are not permitted',
            },
            { type: 'float_type', loc: ['body', 'top_p'], msg: 'Input should be a valid number' },
          ],
        },
        type: 'invalid_request_error',
        param: null,
        code: null,
      },
      {
        kind: 'caller',
        status: 422,
        message: 'messages.0.user.name: Extra inputs are not permitted; top_p: Input should be a valid number',
        type: 'invalid_request_error',
        param: 'messages.0.user.name',
      },
    ],
    [
      presets.mistral,
      422,
      { object: 'error', message: [{ loc: ['body', 'n'], msg: 'Too large' }], type: 'invalid_request_error' },
      { kind: 'caller', message: 'n: Too large', param: 'n' },
    ],
    [
      presets.mistral,
      422,
      { object: 'error', message: { detail: 'No such tool.' }, type: 'invalid_request_error' },
      { kind: 'caller', message: 'No such tool.' },
    ],
    [
      presets.mistral,
      422,
      { error: { message: { reason: 'odd', at: 3 } } },
      { kind: 'caller', message: '{"reason":"odd","at":3}' },
    ],
    [presets.zai, 400, { error: { code: '1301', message: 'Unsafe content' } }, { kind: 'caller', status: 400 }],
    [
      presets.openrouter,
      403,
      { error: { code: 403, message: 'openai/gpt requires moderation. Your input was flagged for "violence".' } },
      { kind: 'caller' },
    ],
    [presets.openrouter, 403, { error: { code: 403, message: 'Key limit exceeded' } }, { kind: 'operator' }],
    [presets.openrouter, 402, { error: { code: 402, message: 'Insufficient credits' } }, { kind: 'operator' }],
    [presets.openrouter, 200, { error: { code: 502, message: 'Provider returned error' } }, { kind: 'unavailable' }],
    [
      presets.nvidia,
      404,
      { status: 404, title: 'Not Found', detail: "Function '9b9': Not found for account 'abc'" },
      { kind: 'operator', concerns: 'model' },
    ],
    [
      presets.nvidia,
      400,
      { error: "tool_choice: the function 'x': Not found for account 'y' is not among the tools" },
      { kind: 'caller' },
    ],
    [presets.nvidia, 422, { error: 'body -> store extra fields not permitted' }, { kind: 'caller', status: 422 }],
    [
      presets.minimax,
      200,
      { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
      { kind: 'operator', concerns: 'key', message: 'insufficient balance' },
    ],
    [presets.minimax, 200, { base_resp: { status_code: 1002, status_msg: 'rate limit' } }, { kind: 'rate_limited' }],
    [
      presets.moonshot,
      429,
      { error: { type: 'exceeded_current_quota_error', message: 'suspended' } },
      { kind: 'operator' },
    ],
    [
      presets.moonshot,
      429,
      { error: { type: 'engine_overloaded_error', message: 'overloaded' } },
      { kind: 'unavailable' },
    ],
    [presets.siliconflow, 403, { code: 30001, message: 'Balance is insufficient', data: null }, { kind: 'operator' }],
    [
      presets.deepseek,
      402,
      { error: { message: 'Insufficient Balance', code: 'invalid_request_error' } },
      { kind: 'operator' },
    ],
    [
      presets.groq,
      429,
      { error: { type: 'tokens', code: 'rate_limit_exceeded', message: 'x' } },
      { kind: 'rate_limited' },
    ],
    [presets.cerebras, 498, { error: { type: 'x', message: 'Odd' } }, { kind: 'invalid_response' }],
    [
      presets.mistral,
      422,
      { object: 'error', message: 'Extra inputs', type: 'invalid_request_error', param: null, code: null },
      { kind: 'caller', message: 'Extra inputs' },
    ],
    [presets.xai, 400, { code: 'Client specified an invalid argument', error: 'Bad field' }, { message: 'Bad field' }],
    [presets.fireworks, 429, { error: 'Too many' }, { kind: 'rate_limited', message: 'Too many' }],
    [
      presets.cerebras,
      429,
      { message: 'Tokens per day', type: 'too_many_tokens_error', param: 'quota', code: 'token_quota_exceeded' },
      { kind: 'rate_limited', message: 'Tokens per day' },
    ],
    [
      presets.cloudflare,
      400,
      { errors: [{ code: 5004, message: 'Bad data' }], success: false },
      { message: 'Bad data' },
    ],
    [presets.huggingface, 503, { error: 'Model is loading' }, { kind: 'unavailable' }],
    [presets.vllm, 400, { error: { message: 'Too long', type: 'BadRequestError', code: 400 } }, { kind: 'caller' }],
    [presets.ollama, 404, { error: { message: 'model "x" not found, try pulling it first' } }, { kind: 'operator' }],
    [presets.together, 503, { error: { message: 'Busy' } }, { kind: 'unavailable' }],
  ]
  for (const [preset, status, body, expected] of answers) {
    it(`are classified for ${preset.name}: ${status} ${JSON.stringify(body).slice(0, 70)}`, () => {
      expect(vendorOf(preset).errorFrom(wireAnswer(body, status), NOW_MS)).toMatchObject(expected)
    })
  }
})
