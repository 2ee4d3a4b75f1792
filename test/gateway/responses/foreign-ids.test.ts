import { afterEach, beforeEach, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'
import { OTHER_KEY, startTwoAccounts } from '../money/two-accounts.ts'
import { type ResponsesVendor, responsesVendor, vendorResponse } from './responses-vendor.ts'

const OF_OTHER = { authorization: `Bearer ${OTHER_KEY}` }
const user = { role: 'user', content: 'hi' }

let vendor: ResponsesVendor
let started: StartedGateway

const start = async (options: Partial<GatewayOptions> = {}): Promise<void> => {
  const connection = { apiKey: 'vendor-key', baseURL: vendor.origin }
  started = await startTwoAccounts({ vendors: [openai(connection), anthropic(connection)], billing: 'off', ...options })
}

beforeEach(async () => {
  vendor = await responsesVendor()
  await start()
})
afterEach(async () => {
  await started.close()
  await vendor.close()
})

const respond = (body: object, headers = {}): Promise<Response> =>
  started.post('/v1/responses', { model: 'chat-relayed', ...body }, headers)

test('an item id of another account never reaches the vendor, neither in an item nor by a later reference', async () => {
  await (await respond({ input: 'hi' })).text()
  for (const item of [
    { type: 'reasoning', id: 'rs_vendor1', summary: [] },
    { type: 'message', id: 'msg_vendor1', role: 'assistant', content: [{ type: 'output_text', text: 'a' }] },
    { type: 'image_generation_call', id: 'msg_vendor1', status: 'completed', result: null },
  ]) {
    const stored = await respond({ input: [item, user] }, OF_OTHER)
    expect(stored.status).toBe(200)
    const reference = { type: 'item_reference', id: item.id }
    // The vendor of this test names its items alike in each answer, so that only the reasoning is certainly foreign.
    vendor.answer.whole = JSON.stringify(vendorResponse({ id: 'resp_other', output: [] }))
    await (await respond({ input: [reference, user] }, OF_OTHER)).text()
  }
  expect(vendor.calls[1]!.body).not.toContain('rs_vendor1')
})

test('an item id of the same account reaches the vendor unchanged', async () => {
  await (await respond({ input: 'hi' })).text()
  const input = [{ type: 'reasoning', id: 'rs_vendor1', summary: [] }, user]
  expect((await respond({ input })).status).toBe(200)
  expect(JSON.parse(vendor.calls[1]!.body)).toMatchObject({ input })
})

test.each([
  ['a stored', true],
  ['an unstored', false],
])(
  'encrypted content goes to the vendor of %s request without an id that the account does not own',
  async (_which, store) => {
    await (await respond({ input: 'hi' })).text()
    const foreign = { type: 'reasoning', id: 'rs_vendor1', summary: [], encrypted_content: 'gAAAA' }
    expect((await respond({ input: [foreign, user], store }, OF_OTHER)).status).toBe(200)
    const { id: _id, ...sent } = foreign
    expect(JSON.parse(vendor.calls[1]!.body)).toMatchObject({ input: [sent, user] })
    expect(vendor.calls[1]!.body).not.toContain('rs_vendor1')
    expect((await respond({ input: [foreign, user], store })).status).toBe(200)
    expect(JSON.parse(vendor.calls[2]!.body)).toMatchObject({ input: [foreign, user] })
  },
)

test.each([
  [
    { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'file-1' } },
    'output.file_id',
  ],
  [
    {
      type: 'shell_call',
      call_id: 'c',
      action: {},
      environment: { type: 'container_reference', container_id: 'cntr_1' },
    },
    'environment.container_id',
  ],
  [{ type: 'code_interpreter_call', id: 'ci_1', code: '1', outputs: [], container_id: 'cntr_1' }, 'container_id'],
])('an object of the operator inside an item gets 400: %j', async (item, member) => {
  const answer = await respond({ input: [user, item] })
  expect(await answer.json()).toMatchObject({ error: { code: 'unsupported_parameter', param: `input[1].${member}` } })
  expect(answer.status).toBe(400)
  expect(vendor.calls).toEqual([])
})

test.each([
  [{ prompt_cache_options: { comparison_response_id: 'resp_1' } }, 'prompt_cache_options.comparison_response_id'],
  [
    {
      tools: [
        {
          type: 'shell',
          environment: { type: 'container_auto', skills: [{ type: 'skill_reference', skill_id: 's' }] },
        },
      ],
    },
    'tools[0].environment.skills[0].skill_id',
  ],
  [{ tools: [{ type: 'collections_search', collection_ids: ['c'] }] }, 'tools[0].collection_ids'],
])('an object of the operator in a field gets 400: %j', async (fields, param) => {
  const answer = await respond({ input: 'hi', ...fields })
  expect(await answer.json()).toMatchObject({ error: { param } })
  expect(vendor.calls).toEqual([])
})

test.each(['ms://file-1', 'mm_file://file-1'])('a file address of the operator gets 400: %s', async (url) => {
  const content = [{ type: 'image_url', image_url: { url } }]
  const answer = await started.post('/v1/chat/completions', {
    model: 'chat-relayed',
    messages: [{ role: 'user', content }],
  })
  expect(answer.status).toBe(400)
  expect(vendor.calls).toEqual([])
})

test('passes a type that is not a string', async () => {
  const odd = { toString: 'x', valueOf: 'y' }
  const extra = [
    { type: odd, file_id: 'file-1' },
    { kind: 'field', name: 'file_id', value: odd },
  ]
  expect((await respond({ input: 'hi', extra })).status).toBe(400)
  expect((await respond({ input: 'hi', extra: extra.slice(1) })).status).toBe(200)
})

test('an uploaded document in a system message gets 400', async () => {
  const messages = [{ role: 'system', content: 'fileid://file-fe-1' }, user]
  const answer = await started.post('/v1/chat/completions', { model: 'chat-relayed', messages })
  expect(await answer.json()).toMatchObject({ error: { param: 'messages[0].content' } })
  expect(vendor.calls).toEqual([])
})

test('ids in arguments and schemas of tools reach the vendor', async () => {
  const schema = { type: 'object', properties: { file_id: { type: 'string', default: 'file-1' } } }
  const fields = {
    tools: [{ name: 'open', input_schema: schema }],
    messages: [
      user,
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'open', input: { file_id: 'file-1' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }] },
    ],
  }
  const answer = await started.post('/v1/messages', { model: 'cl-sonnet-4-6', max_tokens: 9, ...fields })
  await answer.text()
  expect(JSON.parse(vendor.calls[0]!.body)).toMatchObject(fields)
})

test('a computer tool with a browser is accepted', async () => {
  const tool = { type: 'computer_use_preview', environment: 'browser', display_width: 1, display_height: 1 }
  expect((await respond({ input: 'hi', tools: [tool] })).status).toBe(200)
})

test.each([
  [
    { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] }] },
    'messages[0].content[0].source.file_id',
  ],
  [{ messages: [user], container: 'container_1' }, 'container'],
  [{ messages: [user], container: { skills: [{ type: 'custom', skill_id: 's' }] } }, 'container.skills[0].skill_id'],
])('Messages that name objects of the operator get 400: %j', async (fields, param) => {
  const answer = await started.post('/v1/messages', { model: 'cl-sonnet-4-6', max_tokens: 9, ...fields })
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain(`${param}: names an object that belongs to the operator`)
  expect(vendor.calls).toEqual([])
})
