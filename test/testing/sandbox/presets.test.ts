import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import { readEvents } from '../../support/read-events.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const DEEPSEEK_MODELS = ['deepseek-chat', 'deepseek-reasoner', 'deepseek-v4-pro'].map((id) => ({
  id,
  kind: 'chat' as const,
  upstream: id,
}))
const ALL: readonly Preset[] = Object.values<Preset>(presets).filter(({ serves }) => serves.includes('chat'))
const sandbox = sandboxVendors()
let started: StartedGateway
let origin: string

beforeAll(async () => {
  origin = (await sandbox.listen()).origin
  started = await startGateway({
    billing: 'off',
    vendors: ALL.map((preset) =>
      openaiCompatible(preset, {
        apiKey: preset.needsKey ? 'any-key-0123' : undefined,
        baseURL: `${origin}/presets/${preset.id}/v1`,
        models: [
          { id: `chat-${preset.id}`, kind: 'chat', upstream: 'some-model' },
          ...(preset.id === 'deepseek' ? DEEPSEEK_MODELS : []),
        ],
      }),
    ),
  })
})
afterAll(async () => {
  await started.close()
  await sandbox.close()
})

const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
]

/** Requests of an agent: fields of OpenAI's that not every server supports, and a turn with a call. */
const AGENT_TURNS = [
  { role: 'developer', content: 'Be brief' },
  { role: 'user', content: 'call get_weather', name: 'anna' },
  {
    role: 'assistant',
    content: null,
    reasoning_content: 'I need it.',
    tool_calls: [{ id: 'call_0123456789abcdef', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'call_0123456789abcdef', content: 'Sunny' },
]

type Json = Record<string, unknown>

describe.each(ALL.map(({ id }) => id))('%s, by its stand-in', (id) => {
  test(`${id === 'openrouter' ? 'accepts' : 'rejects'} session_id in a chat that is sent to it directly`, async () => {
    const response = await fetch(`${origin}/presets/${id}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer any-key-0123', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], session_id: 's1' }),
    })

    expect([response.status, (await response.text()).includes('session_id')]).toEqual(
      id === 'openrouter' ? [200, false] : [400, true],
    )
  })

  test('answers an agent, and shows its reasoning as text of its own', async () => {
    const response = await started.post('/v1/chat/completions', {
      model: `chat-${id}`,
      messages: AGENT_TURNS,
      tools,
      max_tokens: 200,
      max_completion_tokens: 100,
      seed: 7,
      user: 'someone',
      session_id: 's1',
      store: false,
      verbosity: 'low',
      metadata: { team: 'a' },
      reasoning_effort: 'low',
    })
    const answer = (await response.json()) as { choices: { message: Json }[]; usage: Json; created: number }

    expect(response.status, JSON.stringify(answer)).toBe(200)
    const { message } = answer.choices[0]!
    expect(message['content']).toBe('The tools answered: Sunny')
    expect(message['reasoning_content'] ?? message['reasoning']).toMatch(/^Let me think/)
    expect(answer.usage['total_tokens']).toBe(
      Number(answer.usage['prompt_tokens']) + Number(answer.usage['completion_tokens']),
    )
    expect(Number.isInteger(answer.created)).toBe(true)
  })

  test('streams a call of a tool that clients can gather', async () => {
    const response = await started.post('/v1/chat/completions', {
      model: `chat-${id}`,
      messages: [{ role: 'user', content: 'call get_weather' }],
      tools,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = (await readEvents(response))
      .filter((data) => data !== '[DONE]')
      .map((data) => JSON.parse(data) as Json)
    const pieces = chunks
      .flatMap((chunk) => chunk['choices'] as Json[])
      .flatMap((choice) => ((choice['delta'] as Json)['tool_calls'] ?? []) as Json[])

    expect(pieces[0]).toMatchObject({ index: 0, type: 'function', function: { name: 'get_weather' } })
    expect(pieces.every(({ index }) => index === 0)).toBe(true)
    const json = pieces.map((piece) => (piece['function'] as Json)['arguments']).join('')
    expect(JSON.parse(json)).toEqual({ city: 'sample city' })
    expect(chunks.at(-1)?.['usage']).toMatchObject({ prompt_tokens: 4 })
  })

  test('answers a Messages caller with thinking and text', async () => {
    const response = await started.post('/v1/messages', {
      model: `chat-${id}`,
      max_tokens: 2000,
      messages: [{ role: 'user', content: 'Hello' }],
      thinking: { type: 'enabled', budget_tokens: 1024 },
    })
    const { content } = (await response.json()) as { content: Json[] }

    expect(content).toMatchObject([{ type: 'thinking' }, { type: 'text', text: 'You said: Hello' }])
  })
})

test.each(DEEPSEEK_MODELS.map(({ id }) => id))('%s answers an agent by its stand-in', async (model) => {
  const response = await started.post('/v1/chat/completions', { model, messages: AGENT_TURNS, tools })
  const answer = (await response.json()) as { choices: { message: Json }[] }

  expect(response.status, JSON.stringify(answer)).toBe(200)
  expect(answer.choices[0]?.message['content']).toBe('The tools answered: Sunny')
})

test('a field that a server refuses is refused by name before it is asked', async () => {
  const before = sandbox.requests.length
  const response = await started.post('/v1/chat/completions', {
    model: 'chat-groq',
    messages: [{ role: 'user', content: 'Hi' }],
    logprobs: true,
  })

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param: 'logprobs' } })
  expect(sandbox.requests).toHaveLength(before)
})
