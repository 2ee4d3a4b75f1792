import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const USER = [{ role: 'user', content: 'hello' }]
const FOUR_STOPS = ['a', 'b', 'c', 'd']

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

describe('what is in order is accepted', () => {
  const tool = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: {} } } }
  const called = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
  }
  const ACCEPTED: readonly (readonly [string, Record<string, unknown>])[] = [
    ['the role developer', { messages: [{ role: 'developer', content: 'Be brief.' }, ...USER] }],
    ['tools as objects', { tools: [tool], tool_choice: 'auto', parallel_tool_calls: false }],
    ['one stop sequence as a text', { stop: 'END' }],
    ['four stop sequences', { stop: FOUR_STOPS }],
    [
      'null content beside tool calls, and their results',
      { messages: [...USER, called, { role: 'tool', tool_call_id: 'call_1', content: 'sunny' }], tools: [tool] },
    ],
    ['max_completion_tokens', { max_completion_tokens: 50 }],
    ['null for every optional field', { temperature: null, top_p: null, max_tokens: null, stop: null, tools: null }],
    ['text parts', { messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }] }],
    [
      'a JSON schema for the answer',
      {
        response_format: {
          type: 'json_schema',
          json_schema: {
            name: 'place',
            schema: {
              type: 'object',
              properties: { city: { type: 'string' } },
              required: ['city'],
              additionalProperties: false,
            },
          },
        },
      },
    ],
    ['fields nobody knows', { metadata: { team: 'a' }, x_vendor_hint: 7 }],
  ]
  const MODELS = ['chat-relayed', 'chat-qwen', 'cl-sonnet-4-6', 'gmn-2.5-flash']

  test.each(MODELS.flatMap((model) => ACCEPTED.map((accepted) => [model, ...accepted] as const)))(
    '%s takes %s',
    async (model, _name, fields) => {
      const response = await started.post(CHAT, { model, messages: USER, ...fields })
      const body = await response.json()

      expect({ status: response.status, body }).toMatchObject({ status: 200, body: { object: 'chat.completion' } })
    },
  )

  test('the bounds themselves', async () => {
    const response = await started.post(
      CHAT,
      chatBody('gmn-2.5-flash', 'hello', {
        temperature: 2,
        top_p: 0,
        presence_penalty: -2,
        frequency_penalty: 2,
        max_tokens: 1,
        n: 1,
      }),
    )

    expect(response.status).toBe(200)
    await response.body?.cancel()
  })

  test('unknown fields pass to a vendor of the same dialect', async () => {
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello', { x_vendor_hint: { level: 7 } }))
    await response.body?.cancel()

    expect(started.sandbox.requests[0]?.body).toMatchObject({ x_vendor_hint: { level: 7 } })
    expect(response.headers.get('x-signalbox-dropped')).toBeNull()
  })

  test.each(['cl-sonnet-4-6', 'gmn-2.5-flash'])(
    '%s has no place for some fields, and the answer names them',
    async (model) => {
      const response = await started.post(CHAT, chatBody(model, 'hello', { x_vendor_hint: 7, logit_bias: { 42: 1 } }))
      await response.body?.cancel()
      const dropped = response.headers.get('x-signalbox-dropped')?.split(', ')

      expect(dropped).toEqual(expect.arrayContaining(['x_vendor_hint', 'logit_bias']))
      expect(JSON.stringify(started.sandbox.requests[0]?.body)).not.toContain('x_vendor_hint')
    },
  )

  test('reports a field name that no header can hold in another form', async () => {
    const name = `evil\r\nx-injected: 1 ${'ü'.repeat(3_000)}`

    const response = await started.post('/v1/chat/completions', chatBody('gmn-2.5-flash', 'hi', { [name]: 1 }))

    expect(response.status).toBe(200)
    expect(response.headers.get('x-injected')).toBeNull()
    expect(response.headers.get('x-signalbox-dropped')).toMatch(/^evil\?\?x-injected: 1 \?+\.\.\.$/)
  })
})
