import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'

type Item = Readonly<Record<string, unknown>>

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

const message = (role: string, text: string): Item => ({
  type: 'message',
  role,
  content: [{ type: 'input_text', text }],
})

/** What a coding client sends with every request. */
const COMMON = {
  store: false,
  include: ['reasoning.encrypted_content'],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium', summary: 'auto' },
  text: { verbosity: 'low' },
  prompt_cache_key: '0f3c2b7e-3f52-4a53-9d0e-0c8f6a1b2c3d',
  client_metadata: { installation: 'x' },
}
const OBJECT = { type: 'object', properties: { cmd: { type: 'string' } }, required: ['cmd'] }
const EXEC = { type: 'function', name: 'exec_command', description: 'Runs.', strict: false, parameters: OBJECT }
const WEB_SEARCH = { type: 'web_search', external_web_access: false }
const PATCH = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Patches.',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
}
const SEARCH = { type: 'tool_search', execution: 'client', parameters: { type: 'object', properties: {} } }
const CLOCK = { type: 'namespace', name: 'clock', description: 'Time.', tools: [{ ...EXEC, name: 'now' }] }
const HIDDEN = {
  type: 'additional_tools',
  role: 'developer',
  tools: [
    { type: 'namespace', name: 'functions', tools: [{ type: 'custom', name: 'exec', description: 'Runs code.' }] },
    CLOCK,
  ],
}

/** Of each family of models: the tools, the name by which the stand-in calls one, and the call as it comes back. */
const FAMILIES: readonly [string, { tools?: readonly Item[]; first?: readonly Item[]; call: string; item: Item }][] = [
  [
    'functions',
    { tools: [EXEC, CLOCK, WEB_SEARCH], call: 'exec_command', item: { type: 'function_call', name: 'exec_command' } },
  ],
  [
    'functions of a namespace',
    {
      tools: [EXEC, CLOCK, WEB_SEARCH],
      call: 'clock__now',
      item: { type: 'function_call', name: 'now', namespace: 'clock' },
    },
  ],
  [
    'custom tools',
    {
      tools: [EXEC, PATCH, SEARCH, WEB_SEARCH],
      call: 'apply_patch',
      item: { type: 'custom_tool_call', name: 'apply_patch' },
    },
  ],
  [
    'tools of an item',
    {
      first: [HIDDEN],
      call: 'functions__exec',
      item: { type: 'custom_tool_call', name: 'exec', namespace: 'functions' },
    },
  ],
]

describe.each(['cl-sonnet-4-6', 'gmn-2.5-flash', 'gmn-2.5-pro', 'chat-qwen'])('a coding client with %s', (model) => {
  test.each(FAMILIES)('has %s called, and sends all items back', async (_name, { tools, first = [], call, item }) => {
    const body = { ...COMMON, model, stream: true, ...(tools === undefined ? {} : { tools }) }
    const input = [...first, message('developer', 'Be brief.'), message('user', `call ${call}`)]
    const output = await finalOutput({ ...body, input })
    const made = output.find(({ type }) => type === item['type'])
    expect(made).toMatchObject({ ...item, call_id: expect.any(String) })

    const result = { type: `${String(item['type'])}_output`, call_id: made?.['call_id'], output: 'sunny' }
    const answer = await finalOutput({ ...body, input: [...input, ...output, result] })
    expect(JSON.stringify(answer.filter(({ type }) => type === 'message'))).toContain('sunny')
  })
})

test('a coding client is told that nothing searches the web, and its search of tools is answered', async () => {
  const search = { type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: { query: 'time' } }
  const found = { type: 'tool_search_output', call_id: 'c1', execution: 'client', tools: [CLOCK] }
  const input = [message('user', 'what time is it'), search, found, message('user', 'call clock__now')]
  const body = { ...COMMON, model: 'cl-sonnet-4-6', input, tools: [SEARCH, WEB_SEARCH] }
  const answer = await started.post('/v1/responses', body)
  const { output } = (await answer.json()) as { output: readonly Item[] }

  expect(answer.headers.get('x-signalbox-dropped')?.split(', ')).toContain('tools.web_search')
  expect(output).toContainEqual(expect.objectContaining({ type: 'function_call', name: 'now', namespace: 'clock' }))
})

test('a coding client that asks for a compaction item is refused, with the item named', async () => {
  const input = [message('user', 'hello'), { type: 'compaction_trigger' }]
  const answer = await started.post('/v1/responses', { ...COMMON, model: 'cl-sonnet-4-6', input })

  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error', param: 'input[1]' } })
})

/** The items of the last event of a streamed answer. */
async function finalOutput(body: object): Promise<readonly Item[]> {
  const answer = await started.post('/v1/responses', body)
  const text = await answer.text()
  expect([answer.status, text]).toEqual([200, expect.stringContaining('event: response.completed')])
  const data =
    text
      .trimEnd()
      .split('\n')
      .at(-1)
      ?.replace(/^data: /, '') ?? ''
  return (JSON.parse(data) as { response: { output: readonly Item[] } }).response.output
}
