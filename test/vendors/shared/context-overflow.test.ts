import { expect, test } from 'vitest'
import { failureOfVendor } from '../../../src/pipeline/error-classification.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import { NOW_MS, wireAnswer } from './vendor-call.ts'

const apiKey = 'operator-key-0123456789'
const VENDORS: Readonly<Record<string, Vendor>> = {
  openai: openai({ apiKey }),
  azure: azureOpenai({ apiKey, resource: 'res' }),
  compatible: openaiCompatible({ id: 'own', baseURL: 'https://own.example/v1', apiKey, models: [] }),
  anthropic: anthropic({ apiKey }),
  gemini: gemini({ apiKey }),
  dashscope: dashscope({ apiKey }),
  bedrock: amazonBedrock({ apiKey, region: 'us-east-1' }),
}

const dialect = (message: string, code: string | null = null, type = 'invalid_request_error') => ({
  error: { message, type, param: 'messages', code },
})
const claude = (message: string, type = 'invalid_request_error') => ({ type: 'error', error: { type, message } })
const google = (message: string) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } })
const aws = (message: string) => ({ __type: 'ValidationException', message })

const OPENAI_TEXT =
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages."

test.each<readonly [vendor: string, body: unknown]>([
  ['openai', dialect(OPENAI_TEXT, 'context_length_exceeded')],
  [
    'openai',
    dialect(
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
      'context_length_exceeded',
    ),
  ],
  ['azure', dialect(OPENAI_TEXT, 'context_length_exceeded')],
  ['compatible', dialect('Please reduce the length of the messages or completion.', 'context_length_exceeded')],
  [
    'compatible',
    {
      object: 'error',
      message: `${OPENAI_TEXT.slice(0, 60)} However, you requested 9000 tokens.`,
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
  ],
  [
    'compatible',
    {
      error:
        'Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.',
    },
  ],
  [
    'compatible',
    {
      errors: [
        {
          code: 5021,
          message:
            'AiError: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192).',
        },
      ],
      success: false,
    },
  ],
  ['compatible', dialect('The decoder prompt (length 9000) is longer than the maximum model length of 4096.')],
  ['compatible', dialect("The input (9000 tokens) is longer than the model's context length (8192 tokens).")],
  ['compatible', dialect("You passed 5001 input tokens. However, the model's context length is only 4096 tokens.")],
  ['compatible', dialect("This model's maximum prompt length is 131072 but the request contains 200000 tokens.")],
  [
    'compatible',
    dialect('Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length'),
  ],
  ['compatible', dialect('The prompt is too long: 9000, model maximum context length: 8192')],
  ['compatible', dialect('Invalid request: Your request exceeded model token limit: 8192')],
  ['compatible', dialect('Prompt exceeds max length', '1261')],
  [
    'compatible',
    dialect('the request exceeds the available context size, try increasing it', null, 'exceed_context_size_error'),
  ],
  [
    'compatible',
    dialect('Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 tokens'),
  ],
  ['anthropic', claude('prompt is too long: 210000 tokens > 200000 maximum')],
  [
    'anthropic',
    claude(
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    ),
  ],
  ['gemini', google('The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).')],
  [
    'gemini',
    google(
      'Unable to submit request because the input token count is 1050000 but model only supports up to 1048576. Reduce the input token count and try again.',
    ),
  ],
  ['dashscope', dialect('Range of input length should be [1, 129024]', 'invalid_parameter_error')],
  [
    'dashscope',
    dialect(
      '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]',
      'invalid_parameter_error',
    ),
  ],
  ['dashscope', { code: 'InvalidParameter', message: 'Range of input length should be [1, 30720]', request_id: 'r-1' }],
  ['bedrock', aws('Input is too long for requested model.')],
  ['bedrock', aws('The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum')],
  [
    'bedrock',
    aws(
      'The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.',
    ),
  ],
  ['bedrock', aws("This model's maximum context length is 8192 tokens. Please reduce the length of the prompt")],
  ['bedrock', aws('400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9000')],
])('%s: a 400 about the context window may go to a larger model: %j', (vendor, body) => {
  const failure = VENDORS[vendor]!.errorFrom(wireAnswer(body, 400), NOW_MS)

  expect(failure).toMatchObject({ kind: 'caller', concerns: 'size', status: 400 })
  expect(failureOfVendor(failure)).toMatchObject({
    reason: 'context_length_exceeded',
    mayFallBack: true,
    isOversized: true,
    mayRetry: false,
    outcome: 'caller-error',
    error: { code: 'upstream_rejected', status: 400 },
  })
})

test.each<readonly [vendor: string, status: number, body: unknown]>([
  ['openai', 400, dialect("Invalid 'messages[0].content': string too long.", 'string_above_max_length')],
  ['openai', 400, dialect('max_tokens is too large: 200000. This model supports at most 16384 completion tokens.')],
  ['openai', 429, dialect('Request too large for gpt-5.4: Limit 30000, Requested 40000.', 'rate_limit_exceeded')],
  ['anthropic', 413, claude('Request exceeds the maximum size', 'request_too_large')],
  ['anthropic', 400, claude('max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens')],
  ['anthropic', 400, claude('messages: at least one message is required')],
  ['gemini', 400, google('Request payload size exceeds the limit: 20971520 bytes.')],
  ['dashscope', 400, dialect('Range of max_tokens should be [1, 8192]', 'invalid_parameter_error')],
  ['bedrock', 429, { __type: 'ThrottlingException', message: 'Too many tokens, please wait before trying again.' }],
  ['bedrock', 400, aws('The maximum tokens you requested exceeds the model limit of 4096.')],
])('%s: %d is not about the context window: %j', (vendor, status, body) => {
  const failure = VENDORS[vendor]!.errorFrom(wireAnswer(body, status), NOW_MS)

  expect(failure.concerns).not.toBe('size')
  expect(failureOfVendor(failure).isOversized).toBe(undefined)
  expect(failureOfVendor(failure).mayFallBack).toBe(failure.kind !== 'caller')
})
