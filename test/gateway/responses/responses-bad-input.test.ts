import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const PATH = '/v1/responses'

let started: StartedGateway
let before: { balance: bigint; held: bigint }

beforeAll(async () => {
  started = await startGateway()
})
beforeEach(async () => {
  started.sandbox.reset()
  before = await started.account()
})
afterAll(() => started.close())

const user = { role: 'user', content: 'hi' }
const call = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'call_1', output: 'sunny' }
const patch = { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: 'x' }

const reasoning = { type: 'reasoning', summary: [] }

type Bad = readonly [what: string, body: object, param: string]

/** Input that cannot be translated for any vendor. */
const EVERYWHERE: readonly Bad[] = [
  ['no input', { input: undefined }, 'input'],
  ['no input beside null for what could hold it', { input: null, previous_response_id: null, prompt: null }, 'input'],
  ['an input that is a number', { input: 5 }, 'input'],
  ['an item that is no object', { input: [user, 'hello'] }, 'input[1]'],
  ['a type that is a number', { input: [user, { type: 5 }] }, 'input[1].type'],
  ['a message of nobody', { input: [{ ...user, role: 'robot' }] }, 'input[0].role'],
  ['a message without content', { input: [{ role: 'user' }] }, 'input[0].content'],
  ['a part without a type', { input: [{ role: 'user', content: [{ text: 'hi' }] }] }, 'input[0].content'],
  ['a call without its id', { input: [user, { ...call, call_id: undefined }] }, 'input[1].call_id'],
  ['a call whose arguments are an object', { input: [user, { ...call, arguments: {} }] }, 'input[1].arguments'],
  ['an output without its id', { input: [user, call, { ...output, call_id: null }] }, 'input[2].call_id'],
  ['an output that is a number', { input: [user, call, { ...output, output: 5 }] }, 'input[2].output'],
  ['a custom call without its input', { input: [user, { ...patch, input: undefined }] }, 'input[1].input'],
  ['reasoning whose summary is a string', { input: [user, { ...reasoning, summary: 'x' }] }, 'input[1].summary'],
  ['reasoning without a summary', { input: [user, { ...reasoning, summary: undefined }] }, 'input[1].summary'],
  [
    'a summary whose text is a number',
    { input: [user, { ...reasoning, summary: [{ type: 'summary_text', text: 7 }] }] },
    'input[1].summary',
  ],
  ['reasoning whose content is a string', { input: [user, { ...reasoning, content: 'x' }] }, 'input[1].content'],
  [
    'reasoning whose encrypted content is a number',
    { input: [user, { ...reasoning, encrypted_content: 7 }] },
    'input[1].encrypted_content',
  ],
  ['a namespace that is a number', { input: [user, { ...call, namespace: 7 }] }, 'input[1].namespace'],
  [
    'a namespace of a custom call that is a number',
    { input: [user, { ...patch, namespace: 7 }] },
    'input[1].namespace',
  ],
  ['a reference to nothing', { input: [{ type: 'item_reference' }] }, 'input[0].id'],
  ['an unknown reference', { input: [user, { type: 'item_reference', id: 'msg_unknown' }] }, 'input[1]'],
  ['an unknown answer', { input: 'hi', previous_response_id: 'resp_unknown' }, 'previous_response_id'],
  [
    'a conversation beside an earlier answer',
    { input: 'hi', previous_response_id: 'resp_1', conversation: 'conv_1' },
    'previous_response_id',
  ],
  [
    'a conversation by its object beside an earlier answer',
    { input: 'hi', previous_response_id: 'resp_1', conversation: { id: 'conv_1' } },
    'previous_response_id',
  ],
  ['too small a bound', { input: 'hi', max_output_tokens: 15 }, 'max_output_tokens'],
  ['a bound that is no whole number', { input: 'hi', max_output_tokens: 99.5 }, 'max_output_tokens'],
  ['a temperature above 2', { input: 'hi', temperature: 2.1 }, 'temperature'],
  ['a tool without a type', { input: 'hi', tools: [{ name: 'look' }] }, 'tools[0].type'],
  ['an effort of another API', { input: 'hi', reasoning: { effort: 'enormous' } }, 'reasoning.effort'],
  ['too much metadata', { input: 'hi', metadata: { a: 'x'.repeat(513) } }, 'metadata.a'],
  ['a truncation of another API', { input: 'hi', truncation: 'middle' }, 'truncation'],
]

/** Input that only the dialect's own vendor may judge, because its API grows. It gets such a request unchanged. */
const TRANSLATED: readonly Bad[] = [
  ['an item of an unknown type', { input: [user, { type: 'of_the_future' }] }, 'input[1]'],
  ['an output without its call', { input: [user, output] }, 'input[1].call_id'],
  ['an output before its call', { input: [user, output, call] }, 'input[1].call_id'],
  [
    'an output of a custom tool without its call',
    { input: [user, { ...output, type: 'custom_tool_call_output' }] },
    'input[1].call_id',
  ],
  [
    'a search for tools that was not made',
    { input: [user, { type: 'tool_search_output', call_id: 'c', tools: [] }] },
    'input[1].call_id',
  ],
  ['an item that only the other vendor runs', { input: [user, { type: 'computer_call', call_id: 'c' }] }, 'input[1]'],
  [
    'a part of an unknown type',
    { input: [{ role: 'user', content: [{ type: 'input_video' }] }] },
    'input[0].content[0].type',
  ],
  [
    'a part of an assistant that has an unknown type',
    { input: [user, { role: 'assistant', content: [{ type: 'banana', text: 'x' }] }] },
    'input[1].content[0].type',
  ],
  [
    'a text of an assistant that is a number',
    { input: [user, { role: 'assistant', content: [{ type: 'output_text', text: 7 }] }] },
    'input[1].content[0]',
  ],
  [
    'a stored picture',
    { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
    'input[0].content[0].file_id',
  ],
  ['a format of an unknown type', { input: 'hi', text: { format: { type: 'xml' } } }, 'text.format'],
  [
    'a choice of a tool that is not there',
    { input: 'hi', tool_choice: { type: 'function', name: 'look' } },
    'tool_choice',
  ],
  [
    'a grammar that is no text',
    {
      input: 'hi',
      tools: [{ type: 'custom', name: 'p', format: { type: 'grammar', syntax: 'lark', definition: {} } }],
    },
    'tools[0].format.definition',
  ],
  [
    'a kind of grammar that no text can be made of',
    { input: 'hi', tools: [{ type: 'custom', name: 'p', format: { type: 'grammar', syntax: { toString: 1 } } }] },
    'tools[0].format.syntax',
  ],
  ['no item at all', { input: [] }, 'input'],
]

async function expectRefused(model: string, body: object, param: string): Promise<void> {
  for (const stream of [false, true]) {
    const answer = await started.post(PATH, { model, stream, ...body })
    const read = (await answer.json()) as { error: Record<string, unknown> }
    expect([answer.status, Object.keys(read.error)]).toEqual([400, ['message', 'type', 'param', 'code']])
    expect(read.error).toMatchObject({ type: 'invalid_request_error', message: expect.any(String), param })
  }
  expect(started.sandbox.requests).toEqual([])
  expect(await started.account()).toEqual(before)
}

describe.each(['chat-relayed', 'cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-qwen'])('%s', (model) => {
  test.each(EVERYWHERE)('refuses %s by its field, before anything is sent or charged', async (_what, body, param) => {
    await expectRefused(model, body, param)
  })
})

describe.each(['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-qwen'])('%s, by translation,', (model) => {
  test.each(TRANSLATED)('refuses %s by its field, before anything is sent or charged', async (_what, body, param) => {
    await expectRefused(model, body, param)
  })
})

test("the dialect's own vendor judges what it may know", async () => {
  for (const [, body] of TRANSLATED.filter(([what]) => /unknown type|without its call|before its call/.test(what))) {
    await (await started.post(PATH, { model: 'chat-relayed', ...body })).text()
    expect(started.sandbox.requests.at(-1)?.body).toEqual({ model: 'gpt-5.4', ...body, max_output_tokens: 2_000 })
  }
})
