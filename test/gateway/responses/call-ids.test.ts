import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { messagesBody } from '../messages/messages-requests.ts'

const KIMI = 'functions.list:0'
const MODEL = 'cl-sonnet-4-6'
const TOOL = { type: 'object', properties: {} }

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ billing: 'off' })
})
afterAll(() => started.close())
beforeEach(() => started.sandbox.reset())

const use = (id: string) => ({ type: 'tool_use', id, name: 'list', input: {} })
const result = (id: string, content: string) => ({ type: 'tool_result', tool_use_id: id, content })

/** History in Messages: a call of each list in one turn, and then their results. */
const history = (...turns: readonly (readonly string[])[]): object[] => [
  { role: 'user', content: 'list' },
  ...turns.flatMap((ids, turn) => [
    { role: 'assistant', content: ids.map(use) },
    { role: 'user', content: ids.map((id, index) => result(id, `${turn}.${index}`)) },
  ]),
]

/** Ids of calls, and the ids and texts of results, as the vendor got them. */
function sentIds(): { readonly calls: string[]; readonly results: (readonly [string, unknown])[] } {
  const sent = started.sandbox.requests.at(-1)?.body as
    | { messages: { content: string | Record<string, string>[] }[] }
    | undefined
  const messages = sent?.messages ?? []
  const blocks = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  const textOf = (content: unknown): unknown => (Array.isArray(content) ? content[0].text : content)
  return {
    calls: blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [id!] : [])),
    results: blocks.flatMap((block) =>
      block['type'] === 'tool_result' ? [[block['tool_use_id']!, textOf(block['content'])] as const] : [],
    ),
  }
}

const call = { id: KIMI, type: 'function', function: { name: 'list', arguments: '{}' } }
const OPENAI_TOOL = { type: 'function', function: { name: 'list', parameters: TOOL } }
const user = { role: 'user', content: 'list' }

test.each([
  [
    '/v1/messages',
    messagesBody(MODEL, '', { messages: history([KIMI]), tools: [{ name: 'list', input_schema: TOOL }] }),
  ],
  [
    '/v1/messages/count_tokens',
    { model: MODEL, messages: history([KIMI]), tools: [{ name: 'list', input_schema: TOOL }] },
  ],
  [
    '/v1/chat/completions',
    {
      model: MODEL,
      messages: [
        user,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: KIMI, content: '0.0' },
      ],
      tools: [OPENAI_TOOL],
    },
  ],
  [
    '/v1/responses',
    {
      model: MODEL,
      store: false,
      input: [
        user,
        { type: 'function_call', call_id: KIMI, name: 'list', arguments: '{}' },
        { type: 'function_call_output', call_id: KIMI, output: '0.0' },
      ],
      tools: [{ type: 'function', name: 'list', parameters: TOOL, strict: false }],
    },
  ],
])('replaces the characters that Claude rejects in ids of calls from Kimi at %s', async (path, body) => {
  const response = await started.post(path, body)

  expect([response.status, await response.text()]).toEqual([200, expect.anything()])
  expect(response.headers.get('x-signalbox-dropped')).toBeNull()
  expect(sentIds()).toEqual({ calls: ['functions_list_0'], results: [['functions_list_0', '0.0']] })
})

test.each([
  ['two turns', [['list'], ['list']], ['list', 'list_2']],
  ['one turn', [['list', 'list']], ['list', 'list_2']],
  ['ids that become equal', [['a.b', 'a:b'], ['a_b']], ['a_b', 'a_b_2', 'a_b_3']],
])('makes ids that are repeated in %s unique in Messages, for calls and their results', async (_where, turns, ids) => {
  const messages = history(...turns)
  const response = await started.post('/v1/messages', messagesBody(MODEL, '', { messages }))

  expect([response.status, await response.text()]).toEqual([200, expect.anything()])
  const texts = turns.flatMap((list, turn) => list.map((_id, index) => `${turn}.${index}`))
  expect(sentIds()).toEqual({ calls: ids, results: ids.map((id, index) => [id, texts[index]]) })
})

test('sends ids that Claude accepts unchanged', async () => {
  const body = messagesBody('claude-sonnet-4-6', '', { messages: history(['toolu_01', 'call-2'], ['toolu_03']) })
  const response = await started.post('/v1/messages', body)

  expect(response.status).toBe(200)
  await response.text()
  expect(started.sandbox.requests.at(-1)?.body).toEqual(body)
})
