import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ResponsesItem } from '../../../src/endpoints/responses/responses-request.ts'
import { withOwnItemIds } from '../../../src/endpoints/responses/stored-responses.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

type Item = Readonly<Record<string, unknown>>

interface Body {
  readonly input: readonly Item[]
  readonly tools?: readonly Item[]
}

let started: StartedGateway

beforeAll(async () => {
  // The client offers a web search with every request, which its own vendor charges for.
  const webSearch = { model: 'chat-relayed', meter: 'web_search', amount: '10.00', per: 1_000 } as const
  started = await startGateway({ prices: { ...testPrices, prices: [...testPrices.prices, webSearch] } })
})
afterAll(() => started.close())

/** A request as Codex 0.169 writes it, with texts of our own. */
const recorded = (name: string): Body =>
  JSON.parse(readFileSync(new URL(`fixtures/coding-client/${name}.json`, import.meta.url), 'utf8')) as Body

/** Headers that it sends, besides its credential. */
const HEADERS = {
  accept: 'text/event-stream',
  originator: 'codex_exec',
  'session-id': '01990c5e-7a41-7d30-9c1e-5d0f4a6b7c8d',
  'thread-id': '01990c5e-7a41-7d30-9c1e-5d0f4a6b7c8d',
  'x-codex-turn-metadata': '{"workspaces":{"/home/ada/project":{}}}',
}

const message = (role: string, text: string): Item => ({
  type: 'message',
  role,
  content: [{ type: 'input_text', text }],
})

/** Families of models: the request, the stand-in's name of the tool, and the returned call. */
const FAMILIES: readonly (readonly [string, { file: string; call: string; item: Item }])[] = [
  ['functions', { file: 'unknown-model', call: 'exec_command', item: { type: 'function_call', name: 'exec_command' } }],
  [
    'functions of a namespace',
    {
      file: 'unknown-model',
      call: 'multi_agent_v1__spawn_agent',
      item: { type: 'function_call', name: 'spawn_agent', namespace: 'multi_agent_v1' },
    },
  ],
  [
    'custom tools',
    { file: 'custom-tools', call: 'apply_patch', item: { type: 'custom_tool_call', name: 'apply_patch' } },
  ],
  [
    'custom tools that stand in the input',
    {
      file: 'tools-in-input',
      call: 'functions__exec',
      item: { type: 'custom_tool_call', name: 'exec', namespace: 'functions' },
    },
  ],
  [
    'functions that stand in the input',
    { file: 'tools-in-input', call: 'clock__now', item: { type: 'function_call', name: 'now', namespace: 'clock' } },
  ],
]

const MODELS = ['chat-relayed', 'cl-sonnet-4-6', 'gmn-2.5-flash', 'gmn-2.5-pro', 'chat-qwen'] as const

describe.each(MODELS)('a coding client with %s', (model) => {
  test.each(FAMILIES)('has %s called, and sends all items back', async (_name, { file, call, item }) => {
    const { input: first, ...rest } = recorded(file)
    const body = { ...rest, model }
    const input = [...first, message('user', `call ${call}`)]
    const output = await finalOutput({ ...body, input })
    const made = output.find(({ type }) => type === item['type'])
    expect(made).toMatchObject({ ...item, call_id: expect.any(String) })
    expect(typeof made?.[item['type'] === 'custom_tool_call' ? 'input' : 'arguments']).toBe('string')

    const result = { type: `${String(item['type'])}_output`, call_id: made?.['call_id'], output: 'sunny' }
    const answer = await finalOutput({ ...body, input: [...input, ...output, result] })
    expect(JSON.stringify(answer.filter(({ type }) => type === 'message'))).toContain('sunny')
  })
})

test('a request of a coding client passes at a vendor of its dialect but for unknown item ids, and nothing is kept', async () => {
  for (const [, { file }] of FAMILIES) {
    const body = { ...recorded(file), model: 'chat-relayed', input: [...recorded(file).input, message('user', 'hi')] }
    const answer = await started.post('/v1/responses', body, HEADERS)
    const { id } = checkGrammar(responseEvents(await answer.text()))
    const { body: sent, headers } = started.sandbox.requests.at(-1)!
    const stored = await fetch(`${started.url}/v1/responses/${id}`, {
      headers: { authorization: 'Bearer sk-test-0123456789' },
    })

    const input = body.input.map((item) => withOwnItemIds(item as ResponsesItem, new Set()))
    expect(sent).toEqual({ ...body, input, model: 'gpt-5.4', max_output_tokens: 2_000 })
    expect(Object.keys(headers).filter((name) => name in HEADERS && name !== 'accept')).toEqual([])
    expect(stored.status).toBe(404)
  }
})

test('all tools of a coding client reach a vendor of another dialect, wherever they stand', async () => {
  const namesAt = async (file: string): Promise<string[]> => {
    const input = [...recorded(file).input, message('user', 'hi')]
    await finalOutput({ ...recorded(file), model: 'cl-sonnet-4-6', input })
    const { tools } = started.sandbox.requests.at(-1)!.body as { tools: { name: string }[] }
    return tools.map(({ name }) => name)
  }
  const common = ['exec_command', 'write_stdin', 'update_plan']

  expect(await namesAt('unknown-model')).toEqual([
    ...common,
    'view_image',
    'multi_agent_v1__spawn_agent',
    'multi_agent_v1__wait_agent',
  ])
  expect(await namesAt('custom-tools')).toEqual([...common, 'apply_patch', 'view_image', 'tool_search'])
  expect(await namesAt('tools-in-input')).toEqual([
    'functions__exec',
    'functions__wait',
    'clock__now',
    'collaboration__ask_user',
  ])
})

test('tells a coding client that nothing searches the web, and answers its search of tools', async () => {
  const { input: first, ...rest } = recorded('custom-tools')
  const [hidden] = recorded('tools-in-input').input as readonly { readonly tools: readonly Item[] }[]
  const search = { type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: { query: 'time' } }
  const found = { type: 'tool_search_output', call_id: 'c1', execution: 'client', tools: [hidden!.tools[1]] }
  const input = [...first, message('user', 'what time is it'), search, found, message('user', 'call clock__now')]
  const answer = await started.post('/v1/responses', { ...rest, stream: false, model: 'cl-sonnet-4-6', input })
  const { output } = (await answer.json()) as { output: readonly Item[] }

  expect(answer.headers.get('x-signalbox-dropped')?.split(', ')).toContain('tools.web_search')
  expect(output).toContainEqual(expect.objectContaining({ type: 'function_call', name: 'now', namespace: 'clock' }))
})

test('a coding client that asks for a compaction item is refused, with the item named', async () => {
  const { input: first, ...rest } = recorded('custom-tools')
  const input = [...first, message('user', 'hello'), { type: 'compaction_trigger' }]
  const answer = await started.post('/v1/responses', { ...rest, model: 'cl-sonnet-4-6', input })

  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error', param: 'input[3]' } })
})

/** The items of a streamed answer, whose events follow the grammar. */
async function finalOutput(body: object): Promise<readonly Item[]> {
  const answer = await started.post('/v1/responses', body, HEADERS)
  const text = await answer.text()
  expect([answer.status, text]).toEqual([200, expect.stringContaining('event: response.completed')])
  return checkGrammar(responseEvents(text))['output'] as readonly Item[]
}
