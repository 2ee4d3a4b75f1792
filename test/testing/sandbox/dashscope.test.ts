import { describe, expect, test } from 'vitest'
import { eventData, runningSandbox, WEATHER_TOOL } from './support/running-sandbox.ts'

const vendor = runningSandbox()
const PATH = '/compatible-mode/v1/chat/completions'
const user = (content: string) => ({ role: 'user', content })

test('thinks on request, and shows it before the answer', async () => {
  const body = { model: 'qwen-plus', messages: [user('hi')], enable_thinking: true }

  const whole = await vendor.post(PATH, body)
  const streamed = await vendor.post(PATH, { ...body, stream: true, stream_options: { include_usage: true } })

  const { message } = whole.json.choices[0]
  const chunks = eventData(streamed.events)
  const joined = (field: string) => chunks.map((chunk) => chunk.choices[0]?.delta[field] ?? '').join('')
  expect(message).toEqual({
    role: 'assistant',
    content: 'You said: hi',
    reasoning_content: 'Let me think about this: hi',
  })
  expect([joined('reasoning_content'), joined('content')]).toEqual([message.reasoning_content, message.content])
  expect(whole.json.model).toBe('qwen-plus')
  expect(chunks.at(-1).usage).toEqual(whole.json.usage)
  expect(whole.json.usage.completion_tokens_details.reasoning_tokens).toBe(6)
})

test('later pieces of a streamed tool call have an empty id', async () => {
  const answer = await vendor.post(PATH, {
    model: 'qwen-plus',
    messages: [user('call get_weather')],
    tools: [WEATHER_TOOL],
    stream: true,
  })

  const calls = eventData(answer.events).flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? [])
  expect(calls[0]).toMatchObject({ index: 0, type: 'function', function: { name: 'get_weather', arguments: '' } })
  expect(calls[0].id).toMatch(/^call_/)
  expect(calls.slice(1).map((call) => call.id)).toEqual(['', ''])
  expect(calls.map((call) => call.function.arguments).join('')).toBe('{"city":"sample city"}')
})

describe('what DashScope refuses', () => {
  const chat = { model: 'qwen-plus', messages: [user('hi')] }
  test.each<[string, object]>([
    ['temperature 2', { ...chat, temperature: 2 }],
    ['top_p 0', { ...chat, top_p: 0 }],
    ['a frequency penalty', { ...chat, frequency_penalty: 0.5 }],
    ['five choices', { ...chat, n: 5 }],
    ['an empty tool list', { ...chat, tools: [] }],
    ['a tool named search', { ...chat, tools: [{ type: 'function', function: { name: 'search' } }] }],
    ['the role developer', { ...chat, messages: [{ role: 'developer', content: 'x' }, user('hi')] }],
    ['JSON mode without the word', { ...chat, response_format: { type: 'json_object' } }],
    ['an open-weight model that thinks and does not stream', { ...chat, model: 'qwen3-32b' }],
    ['a stream-only model that does not stream', { ...chat, model: 'qwq-plus' }],
    ['content that the filter dislikes', { ...chat, messages: [user('x [[fault:blocked]]')] }],
  ])('%s', async (_, body) => {
    const answer = await vendor.post(PATH, body)

    expect(answer.status).toBe(400)
    expect(answer.json).toMatchObject({
      error: { message: expect.any(String), code: expect.any(String) },
      request_id: expect.any(String),
    })
  })

  test('arrears come as 400, a missing key as 401', async () => {
    const arrears = await vendor.post(PATH, { ...chat, messages: [user('x [[fault:quota]]')] })
    const withoutKey = await vendor.post(PATH, chat, {})

    expect([arrears.status, arrears.json.error.code]).toEqual([400, 'Arrearage'])
    expect([withoutKey.status, withoutKey.json.error.code]).toEqual([401, 'invalid_api_key'])
  })
})

describe('DashScope embeddings', () => {
  const embed = (body: object) => vendor.post('/compatible-mode/v1/embeddings', { model: 'text-embedding-v4', ...body })

  test('are floats, of the dimensions asked for', async () => {
    const answer = await embed({ input: ['red', 'blue'], dimensions: 256 })

    expect(
      answer.json.data.map((entry: { index: number; embedding: number[] }) => [entry.index, entry.embedding.length]),
    ).toEqual([
      [0, 256],
      [1, 256],
    ])
    expect(answer.json.usage).toEqual({ prompt_tokens: 2, total_tokens: 2 })
  })

  test.each<[string, object, RegExp]>([
    ['eleven inputs', { input: Array(11).fill('x') }, /should not be larger than 10.: input.contents/],
    ['base64', { input: 'x', encoding_format: 'base64' }, /encoding_format/],
    ['dimensions it does not have', { input: 'x', dimensions: 100 }, /dimension/],
    ['token ids', { input: [1, 2] }, /neither str nor list of str/],
  ])('refuse %s', async (_, body, message) => {
    const answer = await embed(body)

    expect(answer.json.error).toMatchObject({ code: 'InvalidParameter' })
    expect(answer.json.error.message).toMatch(message)
  })
})
