import { afterAll, beforeAll, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

type Json = Readonly<Record<string, unknown>>

const GRAMMAR = { syntax: 'lark', definition: 'start: "a"' }
const TOOLS = [
  { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } },
  {
    type: 'custom',
    custom: { name: 'patch', description: 'Applies a patch.', format: { type: 'grammar', grammar: GRAMMAR } },
  },
]
const MODEL = 'gpt-5.4'
const user = { role: 'user', content: 'call patch' }

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ billing: 'off' })
})
afterAll(() => started.close())

const post = (body: object): Promise<Response> =>
  started.post('/v1/chat/completions', { model: MODEL, reasoning_effort: 'low', tools: TOOLS, ...body })
const sent = (): Json => started.sandbox.requests.at(-1)?.body as Json

test('carries a custom tool next to functions, its call and its result at gpt-5.4', async () => {
  const response = await post({ messages: [user], tool_choice: { type: 'custom', custom: { name: 'patch' } } })
  const answer = (await response.json()) as { choices: { message: { tool_calls: Json[] }; finish_reason: string }[] }

  expect([response.status, answer]).toMatchObject([200, { choices: [{ finish_reason: 'tool_calls' }] }])
  expect(sent()).toMatchObject({
    tools: [
      { type: 'function', name: 'look' },
      { type: 'custom', name: 'patch', description: 'Applies a patch.', format: { type: 'grammar', ...GRAMMAR } },
    ],
    tool_choice: { type: 'custom', name: 'patch' },
  })
  const message = answer.choices[0]!.message
  const [call] = message.tool_calls
  expect(message.tool_calls).toMatchObject([
    { id: expect.any(String), type: 'custom', custom: { name: 'patch', input: expect.stringMatching(/./) } },
  ])

  const result = { role: 'tool', tool_call_id: call?.['id'], content: 'applied' }
  const next = await post({ messages: [user, message, result] })
  expect([next.status, await next.text()]).toEqual([200, expect.stringContaining('The tools answered: applied')])
  const items = sent()['input'] as Json[]
  const { name, input } = (call?.['custom'] ?? {}) as Json
  expect(items.slice(-2)).toEqual([
    { type: 'custom_tool_call', call_id: call?.['id'], name, input },
    { type: 'custom_tool_call_output', call_id: call?.['id'], output: 'applied' },
  ])
})

test('streams the input of a custom tool in pieces of type custom', async () => {
  const whole = (await (await post({ messages: [user] })).json()) as {
    choices: { message: { tool_calls: { custom: Json }[] } }[]
  }
  const text = await (await post({ messages: [user], stream: true })).text()

  const pieces = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .flatMap((line) => (JSON.parse(line.slice('data: '.length)) as { choices: { delta: Json }[] }).choices)
    .flatMap(({ delta }) => (delta['tool_calls'] as Json[] | undefined) ?? [])
  expect(pieces[0]).toMatchObject({ index: 0, type: 'custom', custom: { name: 'patch', input: '' } })
  const input = pieces.map(({ custom }) => String((custom as Json)['input'])).join('')
  expect(input).toBe(whole.choices[0]!.message.tool_calls[0]!.custom['input'])
})
