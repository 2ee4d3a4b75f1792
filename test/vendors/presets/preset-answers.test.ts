import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { createMessagesOperation } from '../../../src/endpoints/messages/messages-operation.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { passThrough } from '../../../src/endpoints/operation.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { callFromRequest, NOW_MS, textOf, wireAnswer } from '../shared/vendor-call.ts'

type Json = Record<string, unknown>

function vendorOf(preset: Preset) {
  return openaiCompatible(preset, { apiKey: 'k-0123456789', account: 'a' })
}

function callOf(stream: boolean): VendorCall<ChatRequest> {
  return callFromRequest<ChatRequest>({ model: 'public', messages: [{ role: 'user', content: 'Hi' }], stream })
}

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
    // Errors quote the request, so a caller can write the words of the operator's errors into it.
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
    it(`of ${preset.name}: ${status} ${JSON.stringify(body).slice(0, 70)}`, () => {
      expect(vendorOf(preset).errorFrom(wireAnswer(body, status), NOW_MS)).toMatchObject(expected)
    })
  }
})

/** The wire of a stream: chunks with these deltas, a finish reason, and further members. */
function streamOf(deltas: readonly Json[], last: Json = {}, members: Json = {}): Buffer {
  const chunks = deltas.map((delta) => ({
    id: 'c',
    created: 5,
    model: 'm',
    choices: [{ index: 0, delta }],
    ...members,
  }))
  const end = {
    id: 'c',
    created: 5,
    model: 'm',
    choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...last }],
    ...members,
  }
  return Buffer.from([...chunks, end].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''))
}

function streamed(preset: Preset, pieces: readonly Uint8Array[]) {
  const call = callOf(true)
  const { chat } = vendorOf(preset)
  const transform = passThrough(chat!.toWire(call), chat!.passThrough!, call).stream()
  const text = textOf([...pieces.map((piece) => transform.push(piece)), transform.end()])
  const chunks = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as Json)
  const deltas = chunks.flatMap((chunk) => chunk['choices'] as Json[]).map((choice) => choice['delta'] as Json)
  const joined = (member: string) => deltas.map((delta) => delta[member] ?? '').join('')
  return { transform, chunks, text: joined('content'), reasoning: joined('reasoning_content') }
}

describe('reasoning between tags', () => {
  for (const preset of [presets.minimax]) {
    for (const cut of CUTS) {
      it(`of ${preset.name} is taken out of the text, however it is cut, fed ${cut}`, () => {
        for (const contents of [
          ['<think>Hm, <b> a</think>\n\nPa', 'ris </think>'],
          [...'<think>Hm, <b> a</think>\n\nParis </think>'],
          ['<th', 'ink>Hm, <b', '> a<', '/think', '>\n', '\nParis <', '/think>'],
        ]) {
          const wire = streamOf(contents.map((content) => ({ content })))
          const { text, reasoning, transform } = streamed(preset, cutBytes(wire, cut))

          expect({ text, reasoning }).toEqual({ text: 'Paris </think>', reasoning: 'Hm, <b> a' })
          expect(transform).toMatchObject({ isComplete: true, outputBytesSeen: 14 + 9 })
        }
      })
    }

    it(`of ${preset.name} is not looked for in the middle of an answer, and held text is not lost`, () => {
      expect(streamed(preset, [streamOf([{ content: 'A <think> tag' }])])).toMatchObject({
        text: 'A <think> tag',
        reasoning: '',
      })
      expect(streamed(preset, [streamOf([{ content: '<thi' }])]).text).toBe('<thi')
    })

    it(`of ${preset.name} is taken out of whole answers, and reaches Messages callers as thinking`, () => {
      const vendor = vendorOf(preset)
      const answer = {
        model: 'm',
        choices: [{ message: { content: '<think>Hm</think>\nParis' }, finish_reason: 'stop' }],
      }
      const bytes = Buffer.from(JSON.stringify(answer))
      const whole = vendor.chat!.passThrough!.fromWire([bytes], callOf(false))
      const thinking = { type: 'enabled', budget_tokens: 1024 }
      const request = { model: 'public', max_tokens: 2000, messages: [{ role: 'user', content: 'Hi' }], thinking }
      const call = { ...callOf(false), request } as unknown as VendorCall<MessagesRequest>
      const message = createMessagesOperation(vendor, call)!.whole([{ status: 200, headers: {}, chunks: [bytes] }])

      expect(JSON.parse(textOf(whole!.chunks))).toMatchObject({
        choices: [{ message: { content: 'Paris', reasoning_content: 'Hm' } }],
      })
      expect(JSON.parse(textOf(message!.chunks))).toMatchObject({
        content: [
          { type: 'thinking', thinking: 'Hm' },
          { type: 'text', text: 'Paris' },
        ],
      })
    })
  }
})

describe('usage that stands under x_groq only', () => {
  it('is read in streams that pass, and in those that are translated', () => {
    const usage = { prompt_tokens: 23, completion_tokens: 19, total_tokens: 42 }
    const wire = streamOf([{ content: 'Hi' }], {}, { x_groq: { id: 'req_1', usage } })
    const request = { model: 'public', max_tokens: 2000, messages: [{ role: 'user', content: 'Hi' }], stream: true }
    const call = { ...callOf(true), request } as unknown as VendorCall<MessagesRequest>
    const translated = createMessagesOperation(vendorOf(presets.groq), call)!.stream()
    translated.push(wire)
    translated.end()

    expect(translated.usage).toEqual({ inputTokens: 23, outputTokens: 19 })
    expect(streamed(presets.groq, [wire]).transform.usage).toEqual({ inputTokens: 23, outputTokens: 19 })
  })
})

describe('times with a fraction', () => {
  it('are cut to seconds', () => {
    const wire = streamOf([{ role: 'assistant', content: 'Hi' }, { content: ' there' }], {}, { created: 1_731_000.75 })
    const whole = { model: 'm', created: 1_731_000.75, choices: [{ message: { content: 'x' }, finish_reason: 'stop' }] }
    const answer = vendorOf(presets.sambanova).chat!.passThrough!.fromWire(
      [Buffer.from(JSON.stringify(whole))],
      callOf(false),
    )

    expect(streamed(presets.sambanova, [wire]).chunks.map(({ created }) => created)).toEqual([
      1_731_000, 1_731_000, 1_731_000,
    ])
    expect(JSON.parse(textOf(answer!.chunks))).toMatchObject({ created: 1_731_000 })
  })
})

describe('usage', () => {
  const reports: readonly (readonly [Preset, Json, object])[] = [
    [
      presets.xai,
      {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 303,
        completion_tokens_details: { reasoning_tokens: 290 },
      },
      { inputTokens: 12, outputTokens: 291, reasoningTokens: 290 },
    ],
    [
      presets.xai,
      { prompt_tokens: 5, completion_tokens: 3, total_tokens: 28, prompt_tokens_details: { cached_tokens: 20 } },
      { inputTokens: 25, cachedInputTokens: 20, outputTokens: 3 },
    ],
    [
      presets.deepseek,
      { prompt_tokens: 13, completion_tokens: 219, total_tokens: 232, prompt_cache_hit_tokens: 8 },
      { inputTokens: 13, cachedInputTokens: 8, outputTokens: 219 },
    ],
    [
      presets.moonshot,
      { prompt_tokens: 13, completion_tokens: 2, total_tokens: 15, cached_tokens: 9 },
      { inputTokens: 13, cachedInputTokens: 9, outputTokens: 2 },
    ],
    [
      presets.mistral,
      { prompt_tokens: 13, completion_tokens: 2, total_tokens: 15, num_cached_tokens: 4 },
      { inputTokens: 13, cachedInputTokens: 4, outputTokens: 2 },
    ],
    [
      presets.mistral,
      { prompt_tokens: 13, completion_tokens: 2, total_tokens: 15, prompt_token_details: { cached_tokens: 5 } },
      { inputTokens: 13, cachedInputTokens: 5, outputTokens: 2 },
    ],
  ]
  for (const [preset, usage, expected] of reports) {
    it(`of ${preset.name} is ${JSON.stringify(expected)}, in a stream and in a whole answer`, () => {
      const { transform } = streamed(preset, [streamOf([{ content: 'x' }], {}, { usage })])
      const whole = { model: 'm', choices: [{ message: { content: 'x' }, finish_reason: 'stop' }], usage }
      const answer = vendorOf(preset).chat!.passThrough!.fromWire([Buffer.from(JSON.stringify(whole))], callOf(false))

      expect(transform.usage).toEqual(expected)
      expect(answer?.usage).toEqual(expected)
    })
  }

  it('in every chunk is not repeated to callers who did not ask', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
    const { chunks, transform } = streamed(presets.mistral, [streamOf([{ content: 'x' }], {}, { usage })])

    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
    expect(transform.usage).toEqual({ inputTokens: 3, outputTokens: 1 })
  })
})

it('an answer that stops with an empty chunk and no finish reason was cut', () => {
  const start = { id: 'c', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hal' } }] }
  const empty = { id: 'c', model: 'm', choices: [{ index: 0, delta: { content: '' }, finish_reason: null }] }
  const wire = Buffer.from([start, empty].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''))
  const { transform } = streamed(presets.ollama, [wire])

  expect(transform).toMatchObject({ isComplete: false, usage: undefined })
})
