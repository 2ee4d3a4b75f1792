import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { type StartedGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { databasePaths, OTHER_KEY, startTwoAccounts, storeOf } from '../money/two-accounts.ts'
import { type ResponsesVendor, responsesVendor, vendorEvents, vendorResponse } from './responses-vendor.ts'

const MODEL = 'cl-sonnet-4-6'

let started: StartedGateway
const database = databasePaths()

const start = async (options: Partial<GatewayOptions> = {}): Promise<void> => {
  started = await startTwoAccounts(options)
}

afterEach(() => started.close())

interface Answer {
  readonly id: string
  readonly output: readonly { readonly id: string; readonly type: string }[]
  readonly error?: { readonly code: string; readonly param: string; readonly message: string }
}

const create = async (body: object): Promise<Answer> =>
  (await (await started.post('/v1/responses', { model: MODEL, ...body })).json()) as Answer

const get = (path: string, init: RequestInit = {}, key = TEST_KEY): Promise<Response> =>
  fetch(`${started.url}/v1/responses/${path}`, { ...init, headers: { authorization: `Bearer ${key}` } })

const list = async (path: string): Promise<{ data: { id: string; content?: unknown }[]; has_more: boolean }> =>
  (await (await get(path)).json()) as { data: { id: string }[]; has_more: boolean }

function lastBody(): Record<string, unknown> {
  return started.sandbox.requests.at(-1)!.body as Record<string, unknown>
}

/** The messages that the vendor got with its last call. */
function sentMessages(): unknown {
  return lastBody()['messages']
}

describe.each(['memory', 'sqlite'])('%s store', (driver) => {
  beforeEach(() => start(storeOf(driver, database.path)))

  test.each([false, true])('a follow-up at once finds the turn before it (streamed: %s)', async (stream) => {
    let id: string
    if (stream) {
      const answer = await started.post('/v1/responses', { model: MODEL, input: 'my name is Ada', stream })
      id = String(checkGrammar(responseEvents(await answer.text()))['id'])
    } else id = (await create({ input: 'my name is Ada' })).id
    const second = await create({ input: 'what is my name', previous_response_id: id })
    expect(second).toMatchObject({ previous_response_id: id, status: 'completed' })
    expect(sentMessages()).toMatchObject([
      { role: 'user', content: [{ text: 'my name is Ada' }] },
      { role: 'assistant', content: [{ text: 'You said: my name is Ada' }] },
      { role: 'user', content: [{ text: 'what is my name' }] },
    ])
  })

  test('an answer is continued without input where the model goes on by itself', async () => {
    const first = await create({ input: 'my name is Ada' })
    for (const input of [undefined, []]) {
      const next = await create({ model: 'chat-qwen', input, previous_response_id: first.id, store: false })
      expect(next).toMatchObject({ previous_response_id: first.id, status: 'completed' })
      expect(sentMessages()).toMatchObject([{ role: 'user' }, { role: 'assistant' }])
      const refused = await create({ input, previous_response_id: first.id })
      expect(refused.error).toMatchObject({ code: 'unsupported_parameter', param: 'input' })
    }
  })

  test('a conversation keeps calls and outputs, and forgets instructions', async () => {
    const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }]
    const first = await create({ input: 'call get_weather', instructions: 'Be brief.', tools })
    const call = first.output.find(({ type }) => type === 'function_call') as unknown as { call_id: string }
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny' }
    const second = await create({ input: [output], previous_response_id: first.id, tools })
    expect(JSON.stringify(second.output)).toContain('sunny')
    expect(lastBody()['system']).toBe(undefined)
    const third = await create({ input: 'thanks', previous_response_id: second.id, tools })
    expect(third.id).toMatch(/^resp_/)
    expect(sentMessages()).toHaveLength(5)
  })

  test('the items of a chain are listed to their end in pages of any length, also where a text is said again', async () => {
    let id: string | undefined
    for (let turn = 0; turn < 4; turn++) ({ id } = await create({ input: 'go on', previous_response_id: id }))
    const whole = (await list(`${id}/input_items`)).data.map((item) => item.id)
    expect(new Set(whole).size).toBe(7)

    const paged: string[] = []
    for (let after = '', page = await list(`${id}/input_items?limit=1`); ; page = await list(after)) {
      paged.push(...page.data.map((item) => item.id))
      if (!page.has_more || paged.length > whole.length) break
      after = `${id}/input_items?limit=1&after=${paged.at(-1)}`
    }
    expect(paged).toEqual(whole)
  })

  test('items are referred to by their ids', async () => {
    const first = await create({ input: 'one' })
    const reference = { type: 'item_reference', id: first.output[0]!.id }
    await create({ input: [{ role: 'user', content: 'one' }, reference, { role: 'user', content: 'two' }] })
    expect(sentMessages()).toMatchObject([{}, { content: [{ text: 'You said: one' }] }, {}])
    const missing = await create({ input: [{ id: 'msg_unknown' }] })
    expect(missing.error).toMatchObject({ param: 'input[0]', code: 'invalid_request' })
  })

  test('an answer is read, whole and as events, with its input, until it is deleted', async () => {
    const first = await create({ input: [{ role: 'user', content: 'one' }] })
    const second = await create({ input: 'two', previous_response_id: first.id })
    expect(await (await get(second.id)).json()).toEqual(second)
    const events = responseEvents(await (await get(`${second.id}?stream=true`)).text())
    expect(checkGrammar(events)).toEqual(second)
    const rest = responseEvents(await (await get(`${second.id}?stream=true&starting_after=3`)).text())
    expect(rest[0]?.sequence_number).toBe(4)
    const end = responseEvents(await (await get(`${second.id}?stream=true&starting_after=500`)).text())
    expect(end.map((event) => [event.type, event.sequence_number])).toEqual([['response.completed', 501]])

    const items = await list(`${second.id}/input_items?order=asc`)
    expect(items.data.map(({ content }) => JSON.stringify(content)).map((text) => /one|two/.exec(text)?.[0])).toEqual([
      'one',
      'one',
      'two',
    ])
    // As OpenAI's clients read them, however they were written.
    expect(items.data.map(({ id: _id, ...item }) => item)).toMatchObject([
      { type: 'message', role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'one' }] },
      { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text' }] },
      { type: 'message', role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'two' }] },
    ])
    const page = await list(`${second.id}/input_items?limit=2`)
    expect([page.data.length, page.has_more]).toEqual([2, true])
    const last = await list(`${second.id}/input_items?limit=2&after=${page.data[1]!.id}`)
    expect([last.data.length, last.has_more]).toEqual([1, false])
    expect((await get(`${second.id}/input_items?limit=0`)).status).toBe(400)
    expect((await get(`${second.id}/cancel`, { method: 'POST' })).status).toBe(400)

    const deleted = await get(first.id, { method: 'DELETE' })
    expect(await deleted.json()).toEqual({ id: first.id, object: 'response', deleted: true })
    expect((await get(first.id)).status).toBe(404)
    const next = await create({ input: 'three', previous_response_id: second.id })
    expect(next.error).toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
  })

  test('hides everything of other accounts, by any path or field, and reveals nothing in the answer', async () => {
    const mine = await create({ input: 'secret of mine' })
    const ids = [mine.id, mine.output[0]!.id]
    const paths: [string, string][] = [
      ['', 'GET'],
      ['?stream=true', 'GET'],
      ['', 'DELETE'],
      ['/cancel', 'POST'],
      ['/input_items', 'GET'],
    ]
    for (const id of ids) {
      const unknown = id.replaceAll(/[0-9a-f]/g, '0')
      for (const [rest, method] of paths) {
        const [foreign, none] = [
          await get(`${id}${rest}`, { method }, OTHER_KEY),
          await get(`${unknown}${rest}`, { method }, OTHER_KEY),
        ]
        expect([foreign.status, await foreign.text()]).toEqual([404, await none.text()])
      }
      for (const field of ['previous_response_id', 'item_reference']) {
        const body = (named: string) => ({
          model: MODEL,
          input: field === 'item_reference' ? [{ type: field, id: named }] : 'hi',
          ...(field === 'item_reference' ? {} : { [field]: named }),
        })
        const asked = async (named: string): Promise<[number, string]> => {
          const answer = await started.post('/v1/responses', body(named), { authorization: `Bearer ${OTHER_KEY}` })
          return [answer.status, (await answer.text()).replaceAll(named, 'ID')]
        }
        const foreign = await asked(id)
        expect(foreign).toEqual(await asked(unknown))
        expect(foreign[0]).toBe(400)
      }
    }
    expect((await get(mine.id)).status).toBe(200)
  })

  test('an answer with store false is not kept', async () => {
    const first = await create({ input: 'hi', store: false })
    expect(first).toMatchObject({ store: false })
    expect((await get(first.id)).status).toBe(404)
    expect((await create({ input: 'hi', previous_response_id: first.id })).error?.code).toBe(
      'previous_response_not_found',
    )
  })

  test('the tokens of a request are counted with its history, and nothing is charged', async () => {
    const first = await create({ input: 'word '.repeat(200) })
    const before = await started.account()
    const count = async (body: object): Promise<number> => {
      const answer = await started.post('/v1/responses/input_tokens', { model: MODEL, ...body })
      const { object, input_tokens } = (await answer.json()) as { object: string; input_tokens: number }
      expect(object).toBe('response.input_tokens')
      return input_tokens
    }
    expect(await count({ input: 'hi', previous_response_id: first.id })).toBeGreaterThan(
      (await count({ input: 'hi' })) + 200,
    )
    expect(await started.account()).toEqual(before)
  })
})

test('names the requested service tier in an answer, and the default tier without a request', async () => {
  await start({ billing: 'off' })
  const asked = { input: 'hi', service_tier: 'flex' }

  expect(await create({ ...asked, model: 'chat-qwen' })).toMatchObject({ service_tier: 'flex' })
  expect(await create({ ...asked, model: MODEL })).toMatchObject({ service_tier: 'default' })
  expect(await create({ input: 'hi', service_tier: 'auto' })).toMatchObject({ service_tier: 'default' })
})

test('estimates an image by the piece, not by its bytes', async () => {
  await start()
  const count = async (data: string): Promise<object> => {
    const content = [{ type: 'input_image', image_url: `data:image/png;base64,${data}` }]
    const body = { model: MODEL, input: [{ role: 'user', content }] }
    return (await (await started.post('/v1/responses/input_tokens', body)).json()) as object
  }

  const small = await count('AAAA')
  expect(small).toMatchObject({ object: 'response.input_tokens', estimated: true })
  expect(await count('AAAA'.repeat(100_000))).toEqual(small)
})

test('has no route for other paths of the API', async () => {
  await start()
  const answer = await started.post('/v1/responses/compact', { model: MODEL, input: 'hi' })
  expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'route_not_found' } }])
})

test('a follow-up is held for with all of its history', async () => {
  const store = memoryStore()
  const held: bigint[] = []
  const ledger = {
    ...store.ledger,
    reserve: (...[reservation, nowMs]: Parameters<typeof store.ledger.reserve>) => {
      held.push(reservation.amount)
      return store.ledger.reserve(reservation, nowMs)
    },
  }
  await start({ store: { ...store, ledger } })
  const { id } = await create({ input: 'word '.repeat(3_000) })
  await create({ input: 'hi', previous_response_id: id })
  await create({ input: 'hi' })
  // The words were said twice: once by the caller, and once by the model, which repeats a thousand of them.
  expect(held[1]! - held[2]!).toBeGreaterThan(held[0]! - held[2]!)
})

test('an answer is gone after its days', async () => {
  const clock = fakeClock()
  await start({ clock, responses: { retentionDays: 2 } })
  const { id } = await create({ input: 'hi' })
  clock.advance(2 * 24 * 60 * 60_000 - 1)
  expect((await get(id)).status).toBe(200)
  clock.advance(1)
  expect((await get(id)).status).toBe(404)
})

test('a host that keeps nothing refuses references, and says so', async () => {
  await start({ responses: { store: 'never' } })
  const first = await create({ input: 'hi' })
  expect(first).toMatchObject({ store: false, status: 'completed' })
  for (const [body, param] of [
    [{ input: 'hi', previous_response_id: first.id }, 'previous_response_id'],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input'],
  ] as const)
    expect((await create(body)).error).toMatchObject({ param, code: 'unsupported_parameter' })
  expect((await get(first.id)).status).toBe(404)
})

test('a store that is down withholds no answer, and answers no follow-up', async () => {
  const store = memoryStore()
  const fail = (): never => {
    throw new Error('the store is down')
  }
  await start({ store: { ...store, responses: { ...store.responses, save: fail, conversation: fail } } })
  for (const stream of [false, true]) {
    const answer = await started.post('/v1/responses', { model: MODEL, input: 'hi', stream })
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('You said: hi')
  }
  expect(started.events.filter(({ type }) => type === 'internal-error')).toMatchObject([
    { where: 'responses' },
    { where: 'responses' },
  ])
  const next = await started.post('/v1/responses', { model: MODEL, input: 'hi', previous_response_id: 'resp_1' })
  expect(next.status).toBe(503)
  expect((await started.account()).held).toBe(0n)
})

describe('a vendor that also stores answers', () => {
  let vendor: ResponsesVendor

  beforeEach(async () => {
    vendor = await responsesVendor()
    const connection = { apiKey: ['vendor-key-a', 'vendor-key-b', 'vendor-key-c'], baseURL: vendor.origin }
    await start({ vendors: [openai(connection)] })
  })
  afterEach(() => vendor.close())

  const openaiModel = { model: 'chat-relayed' }

  test.each([false, true])('a follow-up goes unchanged to the key that answered (streamed: %s)', async (stream) => {
    const first = await started.post('/v1/responses', { ...openaiModel, input: 'hi', stream })
    await first.text()
    const body = { ...openaiModel, input: 'and now', previous_response_id: 'resp_vendor1' }
    for (let count = 0; count < 5; count++) await (await started.post('/v1/responses', body)).text()
    const [begun, ...others] = vendor.calls
    for (const call of others) {
      expect(call.key).toBe(begun?.key)
      expect(JSON.parse(call.body)).toEqual({ ...body, model: 'gpt-5.4' })
    }
    const reference = { ...openaiModel, input: [{ type: 'item_reference', id: 'msg_vendor1' }] }
    await (await started.post('/v1/responses', reference)).text()
    expect(vendor.calls.at(-1)).toMatchObject({ key: begun?.key })
    expect(JSON.parse(vendor.calls.at(-1)!.body)).toMatchObject({ input: reference.input })
  })

  test('a follow-up without input goes unchanged too', async () => {
    await (await started.post('/v1/responses', { ...openaiModel, input: 'hi' })).text()
    const body = { ...openaiModel, previous_response_id: 'resp_vendor1', store: false }
    expect((await started.post('/v1/responses', body)).status).toBe(200)
    expect(JSON.parse(vendor.calls.at(-1)!.body)).toEqual({ ...body, model: 'gpt-5.4' })
  })

  test('an id of another account is refused without a call', async () => {
    await (await started.post('/v1/responses', { ...openaiModel, input: 'hi' })).text()
    const authorization = `Bearer ${OTHER_KEY}`
    for (const body of [
      { input: 'hi', previous_response_id: 'resp_vendor1' },
      { input: [{ type: 'item_reference', id: 'msg_vendor1' }] },
      { input: [{ id: 'rs_vendor1' }] },
    ])
      expect((await started.post('/v1/responses', { ...openaiModel, ...body }, { authorization })).status).toBe(400)
    expect(vendor.calls).toHaveLength(1)
  })

  test.each([
    ['an answer', { previous_response_id: 'resp_vendor1', input: 'and now' }],
    ['an item', { input: [{ id: 'msg_vendor1' }, { role: 'user', content: 'and now' }] }],
  ])('once its key is no longer configured, %s is continued with what is kept here', async (_what, followUp) => {
    await started.close()
    const store = memoryStore()
    await start({ store, vendors: [openai({ apiKey: 'key-of-before', baseURL: vendor.origin })] })
    await create({ ...openaiModel, input: 'hi' })
    await started.close()
    await start({ store, vendors: [openai({ apiKey: 'key-of-today', baseURL: vendor.origin })] })

    expect(await create({ ...openaiModel, ...followUp })).toMatchObject({ status: 'completed' })
    const { key, body } = vendor.calls.at(-1)!
    expect(key).toBe('Bearer key-of-today')
    const texts = (JSON.parse(body) as { input: { content?: unknown }[] }).input.map(({ content }) => content)
    expect(texts).toContainEqual((vendorResponse()['output'] as { content?: unknown }[])[1]?.content)
    expect(texts.at(-1)).toBe('and now')
    expect(body).not.toContain('previous_response_id')
    expect(body).not.toContain('item_reference')
  })

  test('an answer is deleted there with the key that made it, before it is forgotten here', async () => {
    await (await started.post('/v1/responses', { ...openaiModel, input: 'hi' })).text()
    expect((await get('resp_vendor1', { method: 'DELETE' })).status).toBe(200)
    expect(vendor.calls[1]).toMatchObject({ path: 'DELETE /v1/responses/resp_vendor1', key: vendor.calls[0]!.key })
    expect((await get('resp_vendor1')).status).toBe(404)
  })

  test('the sources of an answer are events of its stream, too', async () => {
    const annotation = { type: 'url_citation', start_index: 0, end_index: 2, url: 'https://a.example', title: 'A' }
    const content = [{ type: 'output_text', text: 'hi', annotations: [annotation], logprobs: [] }]
    const output = [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }]
    vendor.answer.whole = JSON.stringify(vendorResponse({ output }))
    await create({ ...openaiModel, input: 'hi' })

    const events = responseEvents(await (await get('resp_vendor1?stream=true')).text())
    expect(checkGrammar(events)['output']).toEqual(output)
    expect(events.filter(({ type }) => type === 'response.output_text.annotation.added')).toMatchObject([
      { item_id: 'msg_1', output_index: 0, content_index: 0, annotation_index: 0, annotation },
    ])
    const added = events.find(({ type }) => type === 'response.content_part.added')
    expect(added).toMatchObject({ part: { text: '', annotations: [] } })
  })

  test('each vendor of a conversation gets the encrypted reasoning that it made, and none of another', async () => {
    await started.close()
    const other = await responsesVendor()
    const row = { id: 'second', kind: 'chat', upstream: 'its-model' } as const
    await start({
      billing: 'off',
      models: [{ id: 'first', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', fallbacks: ['second'] }],
      vendors: [
        openai({ apiKey: 'vendor-key', baseURL: vendor.origin }),
        openaiCompatible({ id: 'other', baseURL: other.origin, apiKey: 'k', responses: true, models: [row] }),
      ],
    })
    const [reasoning, message] = vendorResponse()['output'] as object[]
    const output = [{ ...reasoning, id: 'rs_other', encrypted_content: 'of-the-other' }, message]
    other.answer.whole = JSON.stringify(vendorResponse({ id: 'resp_other', output }))
    const sentState = (calls: ResponsesVendor['calls']): string[] =>
      calls.at(-1)!.body.match(/"encrypted_content":"[^"]*"/g) ?? []

    await create({ model: 'first', input: 'hi' })
    vendor.refuses = () => true
    const next = { model: 'first', input: 'and now', previous_response_id: 'resp_vendor1' }
    const answer = await started.post('/v1/responses', next)
    expect(answer.headers.get('x-signalbox-dropped')).toBe('input.encrypted_content')
    expect(await answer.json()).toMatchObject({ id: 'resp_other', previous_response_id: 'resp_vendor1' })
    expect(sentState(other.calls)).toEqual([])

    vendor.refuses = () => false
    await create({ model: 'first', input: 'and then', previous_response_id: 'resp_other' })
    expect(sentState(vendor.calls)).toEqual(['"encrypted_content":"gAAAA"'])
    await other.close()
  })

  test('an answer with store false is kept by nobody', async () => {
    vendor.answer = { ...vendor.answer, whole: JSON.stringify(vendorResponse()), events: vendorEvents() }
    await (await started.post('/v1/responses', { ...openaiModel, input: 'hi', store: false })).text()
    expect((await get('resp_vendor1')).status).toBe(404)
  })
})
