import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic0'
import { describe, expect, test } from 'vitest'
import { eventData, runningSandbox } from './support/running-sandbox.ts'

const vendor = runningSandbox()
const client = (): Anthropic => new Anthropic({ apiKey: 'sk-ant-test', baseURL: vendor.origin, maxRetries: 0 })
const user = (content: unknown) => ({ role: 'user', content })
const weather = {
  name: 'get_weather',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
}

describe('the Anthropic SDK against the Anthropic stand-in', () => {
  test('gets an echo and counts, whole and streamed alike', async () => {
    const request = {
      model: 'claude-sonnet-4-6',
      max_tokens: 100,
      messages: [{ role: 'user' as const, content: 'Hello dear world' }],
    }

    const whole = await client().messages.create(request)
    const streamed = await client().messages.stream(request).finalMessage()

    expect(whole.content).toEqual([{ type: 'text', text: 'You said: Hello dear world' }])
    expect(whole.stop_reason).toBe('end_turn')
    expect(whole.usage).toMatchObject({ input_tokens: 4, output_tokens: 5, cache_read_input_tokens: 0 })
    expect(streamed.content).toEqual(whole.content)
    expect(streamed.usage).toMatchObject({ input_tokens: 4, output_tokens: 5 })
  })

  test('0.x with x-api-key is answered too', async () => {
    const older = new Anthropic0({ apiKey: 'sk-ant-test', baseURL: vendor.origin, maxRetries: 0 })

    const answer = await older.messages.create({
      model: 'claude-haiku-4-5',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hi' }],
    })

    expect(answer.model).toBe('claude-haiku-4-5-20251001')
    expect(vendor.sandbox.requests[0]?.headers).toMatchObject({ 'x-api-key': 'sk-ant-test' })
  })

  test('loops through a tool call with thinking, streamed', async () => {
    const base = {
      model: 'claude-sonnet-4-6',
      max_tokens: 4000,
      tools: [weather],
      thinking: { type: 'enabled' as const, budget_tokens: 2000 },
    }
    const question = { role: 'user' as const, content: 'Please call get_weather' }

    const first = await client()
      .messages.stream({ ...base, messages: [question] })
      .finalMessage()
    const call = first.content[1] as Anthropic.ToolUseBlock
    const second = await client().messages.create({
      ...base,
      messages: [
        question,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: '18 C' }] },
      ],
    })

    expect(first.content.map((block) => block.type)).toEqual(['thinking', 'tool_use'])
    expect(first.stop_reason).toBe('tool_use')
    expect(call.input).toEqual({ city: 'sample city' })
    expect(second.content.at(-1)).toEqual({ type: 'text', text: 'The tools answered: 18 C' })
  })

  test('counts tokens and raises typed errors', async () => {
    const counted = await client().messages.countTokens({
      model: 'claude-sonnet-4-6',
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'Hello' }],
    })
    const failing = client().messages.create({
      model: 'claude-sonnet-4-6',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'x [[fault:status=529]]' }],
    })

    expect(counted.input_tokens).toBe(Math.ceil(14 / 4))
    await expect(failing).rejects.toMatchObject({ status: 529, type: 'overloaded_error' })
  })
})

test('an event has its name twice, a ping comes early, and message_stop is last', async () => {
  const answer = await vendor.post('/v1/messages', {
    model: 'claude-opus-4-7',
    max_tokens: 50,
    stream: true,
    thinking: { type: 'adaptive' },
    messages: [user('hi')],
  })

  const data = eventData(answer.events)
  expect(answer.events.map((event) => event.event)).toEqual(data.map((event) => event.type))
  expect(data.map((event) => event.type).slice(0, 3)).toEqual(['message_start', 'content_block_start', 'ping'])
  expect(data.at(-1)).toEqual({ type: 'message_stop' })
  const thinking = data.filter((event) => event.index === 0 && event.delta !== undefined)
  expect(thinking.map((event) => event.delta.type)).toEqual(['signature_delta'])
})

test('cache reads and writes are not part of input_tokens', async () => {
  const text = 'a cached prompt and a cache-write of it'
  const answer = await vendor.post('/v1/messages', {
    model: 'claude-sonnet-4-6',
    max_tokens: 50,
    messages: [user(text)],
  })

  const { usage } = answer.json
  const total = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
  expect(total).toBe(Math.ceil(text.length / 4))
  expect([usage.cache_read_input_tokens, usage.cache_creation_input_tokens]).toEqual([5, 2])
})

test('an older model goes on from a prefilled answer', async () => {
  const answer = await vendor.post('/v1/messages', {
    model: 'claude-sonnet-4-5',
    max_tokens: 50,
    messages: [user('hi'), { role: 'assistant', content: 'Well,' }],
  })

  expect(answer.json.content).toEqual([{ type: 'text', text: ' You said: hi' }])
})

describe('what Anthropic refuses', () => {
  const base = { model: 'claude-sonnet-4-6', max_tokens: 100, messages: [user('hi')] }
  const use = { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: {} }] }
  const result = { type: 'tool_result', tool_use_id: 't1', content: 'x' }
  test.each<[string, object, RegExp]>([
    ['no max_tokens', { ...base, max_tokens: undefined }, /max_tokens: Field required/],
    ['a field of another dialect', { ...base, n: 1 }, /n: Extra inputs/],
    ['a temperature above 1', { ...base, temperature: 2 }, /temperature/],
    ['temperature with top_p', { ...base, temperature: 1, top_p: 0.5 }, /cannot both/],
    ['sampling on Opus 4.7', { ...base, model: 'claude-opus-4-7', temperature: 0.5 }, /temperature/],
    ['adaptive thinking on 4.5', { ...base, model: 'claude-opus-4-5', thinking: { type: 'adaptive' } }, /adaptive/],
    ['a budget above max_tokens', { ...base, thinking: { type: 'enabled', budget_tokens: 1024 } }, /max_tokens/],
    [
      'a forced tool on Opus 5.5',
      { ...base, model: 'claude-opus-5-5', tools: [weather], tool_choice: { type: 'any' } },
      /tool_choice/,
    ],
    ['a tool without a schema type', { ...base, tools: [{ name: 'f', input_schema: {} }] }, /input_schema.type/],
    ['a blank stop sequence', { ...base, stop_sequences: ['\n'] }, /stop_sequences/],
    ['an empty text block', { ...base, messages: [user([{ type: 'text', text: '' }])] }, /non-empty/],
    ['a system message at first', { ...base, messages: [{ role: 'system', content: 'x' }, user('hi')] }, /top-level/],
    [
      'a prefilled answer on 4.6',
      { ...base, messages: [user('hi'), { role: 'assistant', content: 'Well' }] },
      /prefill/,
    ],
    ['a call without its result', { ...base, messages: [user('hi'), use, user('and?')] }, /without `tool_result`/],
    [
      'text in front of a result',
      { ...base, messages: [user('hi'), use, user([{ type: 'text', text: 'so' }, result])] },
      /without `tool_result`/,
    ],
    ['a result without its call', { ...base, messages: [user([result])] }, /unexpected `tool_use_id`/],
    ['two results for one call', { ...base, messages: [user('hi'), use, user([result, result])] }, /single result/],
    [
      'a picture of another type',
      {
        ...base,
        messages: [user([{ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AA==' } }])],
      },
      /media_type/,
    ],
    [
      'a block of another dialect',
      { ...base, messages: [user([{ type: 'image_url', image_url: { url: 'x' } }])] },
      /image_url/,
    ],
    [
      'thinking with a foreign signature',
      {
        ...base,
        messages: [
          user('hi'),
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'x', signature: 'QUJD' },
              { type: 'text', text: 'y' },
            ],
          },
          user('and?'),
        ],
      },
      /signature/,
    ],
    [
      'an open schema for the answer',
      { ...base, output_config: { format: { type: 'json_schema', schema: { type: 'object', properties: {} } } } },
      /additionalProperties/,
    ],
    [
      'five cache breakpoints',
      { ...base, system: Array(5).fill({ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }) },
      /maximum of 4/,
    ],
  ])('%s', async (_, body, message) => {
    const answer = await vendor.post('/v1/messages', body)

    expect(answer.json).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
    expect(answer.json.error.message).toMatch(message)
    expect(answer.status).toBe(400)
  })

  test('a call without a key or a version, and sampling under the newest version', async () => {
    const withoutKey = await vendor.post('/v1/messages', base, { 'anthropic-version': '2023-06-01' })
    const withoutVersion = await vendor.post('/v1/messages', base, { 'x-api-key': 'k' })
    const newest = { 'x-api-key': 'k', 'anthropic-version': '2026-10-21' }
    const sampling = await vendor.post('/v1/messages', { ...base, temperature: 1 }, newest)

    expect([withoutKey.status, withoutKey.json.error.type]).toEqual([401, 'authentication_error'])
    expect([withoutVersion.status, sampling.status]).toEqual([400, 400])
  })

  test('thinking that does not come back within a tool loop', async () => {
    const answer = await vendor.post('/v1/messages', {
      ...base,
      max_tokens: 4000,
      thinking: { type: 'enabled', budget_tokens: 1024 },
      messages: [user('hi'), use, user([result])],
    })

    expect(answer.json.error.message).toMatch(/Expected `thinking` or `redacted_thinking`, but found `tool_use`/)
  })
})
