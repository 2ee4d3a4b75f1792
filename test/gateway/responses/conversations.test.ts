import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { type StartedGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { askGateway, databasePaths, OTHER_KEY, startTwoAccounts, storeOf } from '../money/two-accounts.ts'
import { type ResponsesVendor, responsesVendor } from './responses-vendor.ts'

const MODEL = 'cl-sonnet-4-6'

let started: StartedGateway
const database = databasePaths()

const start = async (options: Partial<GatewayOptions> = {}): Promise<void> => {
  started = await startTwoAccounts(options)
}

afterEach(() => started.close())

type Json = Record<string, unknown>

const ask = (method: string, path: string, body?: unknown, key = TEST_KEY): Promise<[number, Json]> =>
  askGateway(started, method, `/v1${path}`, body, key)

async function newConversation(body: object = {}): Promise<string> {
  const [status, conversation] = await ask('POST', '/conversations', body)
  expect(status).toBe(200)
  return String(conversation['id'])
}

const respond = async (body: object): Promise<Json> => (await ask('POST', '/responses', { model: MODEL, ...body }))[1]

interface Item {
  readonly id: string
  readonly role: string
  readonly content: readonly { readonly text: string }[]
}

async function itemsOf(id: string, query = '?order=asc'): Promise<readonly Item[]> {
  return (await ask('GET', `/conversations/${id}/items${query}`))[1]['data'] as Item[]
}

const textsOf = async (id: string): Promise<string[]> => (await itemsOf(id)).map(({ content }) => content[0]!.text)

/** The texts of the messages that the vendor got with its last call. */
function sentTexts(): string[] {
  const { messages } = started.sandbox.requests.at(-1)!.body as { messages: { content: { text: string }[] }[] }
  return messages.flatMap(({ content }) => content.map(({ text }) => text))
}

const user = (content: string) => ({ role: 'user', content })

describe.each(['memory', 'sqlite'])('%s store', (driver) => {
  beforeEach(() => start(storeOf(driver, database.path)))

  test('a conversation is made, read, changed and deleted', async () => {
    const [, made] = await ask('POST', '/conversations', { metadata: { topic: 'a' }, items: [user('one')] })
    const id = String(made['id'])
    expect(id).toMatch(/^conv_/)
    expect(made).toEqual({ id, object: 'conversation', created_at: made['created_at'], metadata: { topic: 'a' } })
    expect(await ask('GET', `/conversations/${id}`)).toEqual([200, made])
    const changed = { ...made, metadata: { topic: 'b' } }
    expect(await ask('POST', `/conversations/${id}`, { metadata: { topic: 'b' } })).toEqual([200, changed])
    expect(await ask('GET', `/conversations/${id}`)).toEqual([200, changed])
    expect(await ask('DELETE', `/conversations/${id}`)).toEqual([
      200,
      { id, object: 'conversation.deleted', deleted: true },
    ])
    for (const path of ['', '/items', '/items/msg_1'])
      expect((await ask('GET', `/conversations/${id}${path}`))[0]).toBe(404)
    expect((await ask('DELETE', `/conversations/${id}`))[0]).toBe(404)
  })

  test('items are added, listed in pages, read and deleted', async () => {
    const id = await newConversation()
    const [status, list] = await ask('POST', `/conversations/${id}/items`, {
      items: [user('one'), { role: 'assistant', content: 'two' }, { ...user('three'), id: 'msg_three' }],
    })
    const added = list['data'] as Item[]
    expect([status, list['object'], list['has_more'], added.length]).toEqual([200, 'list', false, 3])
    expect(added[1]).toMatchObject({
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'two', annotations: [] }],
    })
    expect(added[2]?.id).toBe('msg_three')
    const page = (await ask('GET', `/conversations/${id}/items?limit=2`))[1]
    expect([page['data'], page['has_more']]).toEqual([[added[2], added[1]], true])
    expect(await itemsOf(id, `?limit=2&after=${added[1]!.id}`)).toEqual([added[0]])
    expect((await ask('GET', `/conversations/${id}/items?after=msg_unknown`))[0]).toBe(400)
    expect((await ask('GET', `/conversations/${id}/items?limit=101`))[0]).toBe(400)
    expect(await ask('GET', `/conversations/${id}/items/msg_three`)).toEqual([200, added[2]])
    expect((await ask('DELETE', `/conversations/${id}/items/msg_three`))[1]).toMatchObject({
      id,
      object: 'conversation',
    })
    expect((await ask('GET', `/conversations/${id}/items/msg_three`))[0]).toBe(404)
    expect((await ask('DELETE', `/conversations/${id}/items/msg_three`))[0]).toBe(404)
    expect(await textsOf(id)).toEqual(['one', 'two'])
  })

  test.each([false, true])('a turn reads the conversation and is added to it (streamed: %s)', async (stream) => {
    const id = await newConversation({ items: [user('my name is Ada')] })
    for (const conversation of [id, { id }]) {
      const body = { model: MODEL, conversation, input: 'what is my name', stream }
      const answer = await started.post('/v1/responses', body)
      const response = stream ? checkGrammar(responseEvents(await answer.text())) : ((await answer.json()) as Json)
      expect(response).toMatchObject({ status: 'completed', conversation: { id }, previous_response_id: null })
      expect(sentTexts().at(0)).toBe('my name is Ada')
    }
    const texts = await textsOf(id)
    expect(texts).toEqual([
      'my name is Ada',
      'what is my name',
      expect.stringContaining('You said'),
      'what is my name',
      expect.stringContaining('You said'),
    ])
    expect(sentTexts()).toEqual(texts.slice(0, 4))
    expect(new Set((await itemsOf(id)).map((item) => item.id)).size).toBe(5)
  })

  test.each([undefined, []])('a conversation is answered without anything new (input: %j)', async (input) => {
    const id = await newConversation({ items: [user('my name is Ada')] })
    for (const model of [MODEL, 'gmn-2.5-flash', 'chat-qwen']) {
      const answer = await respond({ model, conversation: id, input, store: false })
      expect(answer).toMatchObject({ status: 'completed', conversation: { id } })
      expect(JSON.stringify(answer['output'])).toContain('my name is Ada')
      expect(JSON.stringify(started.sandbox.requests.at(-1)!.body)).toContain('my name is Ada')
    }
    const kept = await respond({ conversation: id, input })
    expect(await textsOf(id)).toEqual(['my name is Ada', expect.stringContaining('You said')])
    const inputs = (await ask('GET', `/responses/${String(kept['id'])}/input_items`))[1]['data'] as Item[]
    expect(inputs.map(({ content }) => content[0]!.text)).toEqual(['my name is Ada'])
    const counted = await ask('POST', '/responses/input_tokens', { model: MODEL, conversation: id, input })
    expect(counted).toMatchObject([200, { object: 'response.input_tokens' }])
  })

  test('an empty conversation without input is a fault of its caller', async () => {
    const conversation = await newConversation()
    expect(await respond({ conversation })).toMatchObject({ error: { param: 'input', code: 'invalid_request' } })
  })

  test('an answer of a conversation is continued by its id as it was then', async () => {
    const id = await newConversation({ items: [user('one')] })
    const first = await respond({ conversation: id, input: 'two' })
    await respond({ conversation: id, input: 'three' })
    await respond({ previous_response_id: first['id'], input: 'four' })
    expect(sentTexts()).toEqual(['one', 'two', expect.stringContaining('You said'), 'four'])
    const inputs = (await ask('GET', `/responses/${String(first['id'])}/input_items?order=asc`))[1]['data'] as Item[]
    expect(inputs.map(({ content }) => content[0]!.text)).toEqual(['one', 'two'])
    await ask('DELETE', `/conversations/${id}`)
    expect((await ask('GET', `/responses/${String(first['id'])}`))[0]).toBe(200)
    expect(await respond({ previous_response_id: first['id'], input: 'five' })).toMatchObject({
      error: { code: 'previous_response_not_found' },
    })
  })

  test('what is deleted from a conversation is read by nobody', async () => {
    const id = await newConversation({ items: [{ ...user('the secret'), id: 'msg_secret' }, user('hello')] })
    await ask('DELETE', `/conversations/${id}/items/msg_secret`)
    await respond({ conversation: id, input: 'hi' })
    expect(sentTexts()).toEqual(['hello', 'hi'])
  })

  test('references find the items of the conversation, with calls and outputs', async () => {
    const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }]
    const id = await newConversation()
    const first = await respond({ conversation: id, input: 'call get_weather', tools })
    const call = (first['output'] as Json[]).find(({ type }) => type === 'function_call')
    const output = { type: 'function_call_output', call_id: call?.['call_id'], output: 'sunny' }
    expect(JSON.stringify(await respond({ conversation: id, input: [output], tools }))).toContain('sunny')
    const [noted] = await itemsOf(id)
    const again = await respond({ conversation: id, input: [{ type: 'item_reference', id: noted!.id }], tools })
    expect(again['status']).toBe('completed')
  })

  test('hides everything of other accounts, by any path or field, and reveals nothing in the answer', async () => {
    const id = await newConversation({ items: [{ ...user('secret of mine'), id: 'msg_mine' }] })
    const unknown = `conv_${'0'.repeat(32)}`
    const calls: [string, string, object?][] = [
      ['GET', ''],
      ['POST', '', { metadata: {} }],
      ['DELETE', ''],
      ['GET', '/items'],
      ['POST', '/items', { items: [user('mine now')] }],
      ['GET', '/items/msg_mine'],
      ['DELETE', '/items/msg_mine'],
    ]
    for (const [method, rest, body] of calls) {
      const foreign = await ask(method, `/conversations/${id}${rest}`, body, OTHER_KEY)
      expect(foreign[0]).toBe(404)
      for (const none of [unknown, 'x%00', 'a'.repeat(300)])
        expect(await ask(method, `/conversations/${none}${rest}`, body, OTHER_KEY)).toEqual(foreign)
    }
    const asked = async (conversation: unknown): Promise<string> => {
      const [status, answer] = await ask('POST', '/responses', { model: MODEL, input: 'hi', conversation }, OTHER_KEY)
      expect([status, answer['error']]).toMatchObject([400, { param: 'conversation', code: 'conversation_not_found' }])
      return JSON.stringify(answer).replaceAll(JSON.stringify(conversation).replaceAll(/[{}":]|id/g, ''), 'ID')
    }
    expect(await asked(id)).toBe(await asked(unknown))
    expect(await asked({ id })).toBe(await asked({ id: unknown }))
    expect(await textsOf(id)).toEqual(['secret of mine'])
  })

  test('an answer with store false reads the conversation and adds nothing', async () => {
    const id = await newConversation({ items: [user('one')] })
    const answer = await respond({ conversation: id, input: 'two', store: false })
    expect(sentTexts()).toEqual(['one', 'two'])
    expect((await ask('GET', `/responses/${String(answer['id'])}`))[0]).toBe(404)
    expect(await textsOf(id)).toEqual(['one'])
  })

  test('a request that is repeated with its Idempotency-Key adds its items once', async () => {
    const id = await newConversation()
    const add = async (content: string, key: string): Promise<[number, string]> => {
      const body = { items: [user(content)] }
      const answer = await started.post(`/v1/conversations/${id}/items`, body, { 'idempotency-key': key })
      return [answer.status, await answer.text()]
    }
    const first = await add('one', 'k1')
    expect(first[0]).toBe(200)
    expect(await add('one', 'k1')).toEqual(first)
    expect((await add('two', 'k1'))[0]).toBe(422)
    expect(await textsOf(id)).toEqual(['one'])
    const tooMany = { items: Array.from({ length: 21 }, () => user('hi')) }
    const refused = await started.post(`/v1/conversations/${id}/items`, tooMany, { 'idempotency-key': 'k2' })
    expect(refused.status).toBe(400)
    expect((await add('two', 'k2'))[0]).toBe(200)
  })

  test('an answer that fails adds nothing', async () => {
    const id = await newConversation({ items: [user('one')] })
    started.sandbox.fault({ kind: 'status', status: 400 })
    expect((await respond({ conversation: id, input: 'two' }))['error']).toBeDefined()
    expect(await textsOf(id)).toEqual(['one'])
  })

  test('turns at once are all added, each as a whole', async () => {
    const id = await newConversation()
    await Promise.all(Array.from({ length: 6 }, (_, index) => respond({ conversation: id, input: `turn ${index}` })))
    const texts = await textsOf(id)
    expect(texts).toHaveLength(12)
    for (let index = 0; index < 12; index += 2) expect(texts[index + 1]).toContain('You said')
  })
})

test.each([
  [{ items: Array.from({ length: 21 }, () => user('hi')) }, 'items'],
  [{ items: [{ type: 'item_reference', id: 'msg_1' }] }, 'items[0]'],
  [{ items: [{ type: 'function_call', name: 'f' }] }, 'items[0].call_id'],
  [{ items: 'hi' }, 'items'],
  [{ metadata: { a: 1 } }, 'metadata.a'],
  [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])) }, 'metadata'],
])('refuses %j naming the field', async (body, param) => {
  await start()
  expect(await ask('POST', '/conversations', body)).toMatchObject([400, { error: { param } }])
})

test('refuses a conversation together with a response that is continued', async () => {
  await start()
  const id = await newConversation()
  const { id: previous } = await respond({ input: 'hi' })
  expect(await respond({ conversation: id, previous_response_id: previous, input: 'hi' })).toMatchObject({
    error: { param: 'previous_response_id', code: 'invalid_request' },
  })
})

test('answers other methods, paths, bodies and keys as everywhere', async () => {
  await start({ limits: { requestsPerMinute: 1 } })
  expect((await ask('GET', '/conversations'))[0]).toBe(405)
  expect((await ask('PUT', '/conversations/conv_1', {}))[0]).toBe(405)
  expect((await ask('GET', '/conversations/conv_1/other'))[0]).toBe(404)
  expect((await ask('GET', '/conversations/conv_1', undefined, 'sk-unknown-0123456789'))[0]).toBe(401)
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  const broken = await fetch(`${started.url}/v1/conversations`, { method: 'POST', headers, body: '{' })
  expect([broken.status, ((await broken.json()) as { error: Json }).error['code']]).toEqual([400, 'invalid_json'])
  const statuses = []
  for (let count = 0; count < 12; count++) statuses.push((await ask('GET', '/conversations/conv_1'))[0])
  expect(statuses.at(-1)).toBe(429)
})

test('a conversation is gone after its days without use', async () => {
  const clock = fakeClock()
  await start({ clock, responses: { retentionDays: 2 } })
  const dayMs = 24 * 60 * 60_000
  const id = await newConversation({ items: [user('one')] })
  clock.advance(2 * dayMs - 1)
  expect((await respond({ conversation: id, input: 'two' }))['status']).toBe('completed')
  clock.advance(2 * dayMs - 1)
  expect(await textsOf(id)).toHaveLength(3)
  clock.advance(1)
  expect((await ask('GET', `/conversations/${id}`))[0]).toBe(404)
  expect((await respond({ conversation: id, input: 'three' }))['error']).toMatchObject({ param: 'conversation' })
})

test('a host that keeps nothing has no conversations, and says so', async () => {
  await start({ responses: { store: 'never' } })
  expect((await ask('POST', '/conversations', {}))[0]).toBe(400)
  expect(await respond({ conversation: 'conv_1', input: 'hi' })).toMatchObject({
    error: { param: 'conversation', code: 'unsupported_parameter' },
  })
})

describe('vendor of the dialect', () => {
  let vendor: ResponsesVendor

  beforeEach(async () => {
    vendor = await responsesVendor()
    const connection = { apiKey: ['vendor-key-a', 'vendor-key-b', 'vendor-key-c'], baseURL: vendor.origin }
    await start({ vendors: [openai(connection)] })
  })
  afterEach(() => vendor.close())

  test.each([false, true])(
    'the items are sent along to the key that answered before (streamed: %s)',
    async (stream) => {
      const id = await newConversation({
        items: [user('one'), { type: 'function_call_output', call_id: 'call_1', output: 'sunny' }],
      })
      for (let count = 0; count < 5; count++) {
        const answer = await started.post('/v1/responses', {
          model: 'chat-relayed',
          conversation: id,
          input: 'hi',
          stream,
        })
        const text = await answer.text()
        const response = stream ? checkGrammar(responseEvents(text)) : (JSON.parse(text) as Json)
        expect(response).toMatchObject({ id: 'resp_vendor1', model: 'chat-relayed', conversation: { id } })
      }
      const bodies = vendor.calls.map(({ body }) => JSON.parse(body) as { input: Json[] })
      expect(new Set(vendor.calls.map(({ key }) => key)).size).toBe(1)
      for (const body of bodies) expect(body).not.toHaveProperty('conversation')
      expect(bodies[1]?.input).toMatchObject([
        { role: 'user', content: [{ text: 'one' }] },
        { type: 'function_call_output', output: 'sunny' },
        { role: 'user', content: [{ text: 'hi' }] },
        { type: 'reasoning', id: 'rs_vendor1', encrypted_content: 'gAAAA' },
        { type: 'message', id: 'msg_vendor1' },
        { role: 'user', content: 'hi' },
      ])
      expect(bodies[1]?.input[1]).not.toHaveProperty('id')
    },
  )
})
