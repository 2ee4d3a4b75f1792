import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { newWebhookSecret, webhookHeaders } from '../../../src/tasks/webhook-payload.ts'
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
  askGateway(started, method, `/v1/responses${path}`, body, key)

async function accepted(body: Json, key = TEST_KEY): Promise<string> {
  const [status, response] = await ask('POST', '', { model: MODEL, background: true, ...body }, key)
  expect([status, response['status']]).toEqual([200, 'queued'])
  return String(response['id'])
}

const read = async (id: string): Promise<Json> => (await ask('GET', `/${id}`))[1]

async function ended(id: string): Promise<Json> {
  await started.taskEnded(id)
  return read(id)
}

describe.each(['memory', 'sqlite'])('%s store', (driver) => {
  beforeEach(() => start(storeOf(driver, database.path)))

  test('an answer is made after its request, charged as any other, and can be continued', async () => {
    const before = await started.account()
    const whole = (await ask('POST', '', { model: MODEL, input: 'hi there', max_output_tokens: 500 }))[1]
    const cost = before.balance - (await started.account()).balance
    expect(cost).toBeGreaterThan(0n)

    const id = await accepted({ input: 'hi there', max_output_tokens: 500, metadata: { a: 'b' } })
    const response = await ended(id)
    expect(id).toMatch(/^resp_/)
    expect(response).toMatchObject({ id, status: 'completed', background: true, metadata: { a: 'b' }, error: null })
    expect(response['usage']).toEqual(whole['usage'])
    expect(JSON.stringify(response['output'])).toContain('You said: hi there')
    const after = await started.account()
    expect([before.balance - after.balance, after.held]).toEqual([2n * cost, 0n])

    const inputs = (await ask('GET', `/${id}/input_items`))[1]['data'] as Json[]
    expect(inputs).toMatchObject([{ role: 'user', content: [{ type: 'input_text', text: 'hi there' }] }])
    const next = (await ask('POST', '', { model: MODEL, input: 'and now', previous_response_id: id }))[1]
    expect(next).toMatchObject({ status: 'completed', previous_response_id: id })
    const events = responseEvents(await (await follow(id)).text())
    expect(checkGrammar(events)).toEqual(response)
    expect((await ask('DELETE', `/${id}`))[1]).toMatchObject({ deleted: true })
    expect((await ask('GET', `/${id}`))[0]).toBe(404)
  })

  test('money is held until the end, and an open answer is read as it stands', async () => {
    started.sandbox.fault({ kind: 'hang' })
    const before = await started.account()
    const id = await accepted({ input: 'hi' })
    await started.sandbox.nextRequest()
    expect((await started.account()).held).toBeGreaterThan(0n)
    expect(await read(id)).toMatchObject({ id, status: 'in_progress', background: true, output: [], usage: null })
    for (const path of ['/input_items']) expect((await ask('GET', `/${id}${path}`))[0]).toBe(400)
    expect((await ask('DELETE', `/${id}`))[0]).toBe(400)
    const headers = { authorization: `Bearer ${TEST_KEY}` }
    const head = await fetch(`${started.url}/v1/responses/${id}?stream=true`, { method: 'HEAD', headers })
    expect(head.status).toBe(200)
    const next = (await ask('POST', '', { model: MODEL, input: 'hi', previous_response_id: id }))[1]
    expect(next['error']).toMatchObject({ code: 'previous_response_not_found' })

    const [status, cancelled] = await ask('POST', `/${id}/cancel`)
    expect([status, cancelled['status'], cancelled['error']]).toEqual([200, 'cancelled', null])
    await started.sandbox.nextAbort()
    expect(await ask('POST', `/${id}/cancel`)).toEqual([200, cancelled])
    expect(await read(id)).toEqual(cancelled)
    const after = await started.account()
    // A vendor was working on it.
    expect([after.held, before.balance > after.balance]).toEqual([0n, true])
    const chained = (await ask('POST', '', { model: MODEL, input: 'hi', previous_response_id: id }))[1]
    expect(chained['error']).toMatchObject({ code: 'previous_response_not_found' })
  })

  test('an answer that fails is read as failed, and costs nothing', async () => {
    const before = await started.account()
    started.sandbox.fault({ kind: 'status', status: 400 })
    const id = await accepted({ input: 'hi' })
    const response = await ended(id)
    expect(response).toMatchObject({ id, status: 'failed', output: [], error: { code: expect.any(String) } })
    expect(await started.account()).toEqual(before)
    const types = responseEvents(await (await follow(id)).text()).map(({ type }) => type)
    expect(types).toEqual(['response.created', 'response.in_progress', 'error', 'response.failed'])
  })

  test('a stream begins at once, ends with the answer, and is taken up again', async () => {
    const answer = await started.post('/v1/responses', { model: MODEL, input: 'hi', background: true, stream: true })
    const events = responseEvents(await answer.text())
    const response = checkGrammar(events)
    expect(response).toMatchObject({ status: 'completed', background: true })
    const again = responseEvents(await (await follow(String(response['id']), '&starting_after=1')).text())
    expect(again).toEqual(events.slice(2))
  })

  test('a stream that is taken up before the end begins with a number from which it can be taken up again', async () => {
    started.sandbox.fault({ kind: 'hang' })
    const id = await accepted({ input: 'hi' })
    await started.sandbox.nextRequest()
    const open = (await follow(id, '&starting_after=1')).text()
    await ask('POST', `/${id}/cancel`)
    const first = (await open).split('\n\n')[0]
    expect(first).toBe('event: keepalive\ndata: {"type":"keepalive","sequence_number":1}')
  })

  test('a conversation gets the turn when it has ended', async () => {
    const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
    const made = await fetch(`${started.url}/v1/conversations`, { method: 'POST', headers, body: '{}' })
    const { id: conversation } = (await made.json()) as { id: string }
    const id = await accepted({ input: 'one', conversation })
    expect(await ended(id)).toMatchObject({ status: 'completed', conversation: { id: conversation } })
    const items = await fetch(`${started.url}/v1/conversations/${conversation}/items`, { headers })
    expect(((await items.json()) as { data: Json[] }).data).toHaveLength(2)
  })

  test('hides all of it from other accounts', async () => {
    started.sandbox.fault({ kind: 'hang' })
    const id = await accepted({ input: 'secret' })
    await started.sandbox.nextRequest()
    const unknown = `resp_${'0'.repeat(32)}`
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '?stream=true'],
      ['DELETE', ''],
      ['POST', '/cancel'],
      ['GET', '/input_items'],
    ] as const) {
      const foreign = await ask(method, `/${id}${rest}`, undefined, OTHER_KEY)
      expect(foreign).toEqual(await ask(method, `/${unknown}${rest}`, undefined, OTHER_KEY))
      expect(foreign[0]).toBe(404)
    }
    await ask('POST', `/${id}/cancel`)
  })

  test('an Idempotency-Key gives the same answer again', async () => {
    const body = { model: MODEL, input: 'hi', background: true }
    const post = async (): Promise<Json> =>
      (await (await started.post('/v1/responses', body, { 'idempotency-key': 'k1' })).json()) as Json
    const [first, second] = [await post(), await post()]
    expect(second).toEqual(first)
    await started.taskEnded(String(first['id']))
    expect(await post()).toEqual(first)
    expect(started.events.filter(({ type }) => type === 'task-submitted')).toHaveLength(1)
  })

  test('an Idempotency-Key gives the same stream again, while it is made and afterwards', async () => {
    const body = { model: MODEL, input: 'hi', background: true, stream: true }
    const post = (): Promise<Response> => started.post('/v1/responses', body, { 'idempotency-key': 'k2' })
    const first = await post()
    const second = await post()
    const [firstText, secondText] = [await first.text(), await second.text()]
    const third = await post()

    expect(typesIn(firstText).at(-1)).toBe('response.completed')
    expect(typesIn(secondText)).toEqual(typesIn(firstText))
    expect(typesIn(await third.text())).toEqual(typesIn(firstText))
    expect([first, second, third].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([
      null,
      'true',
      'true',
    ])
    expect(started.events.filter(({ type }) => type === 'task-submitted')).toHaveLength(1)
  })
})

const typesIn = (events: string): string[] => [...events.matchAll(/^event: (.*)$/gm)].map(([, type]) => type!)

const follow = (id: string, rest = ''): Promise<Response> =>
  fetch(`${started.url}/v1/responses/${id}?stream=true${rest}`, { headers: { authorization: `Bearer ${TEST_KEY}` } })

test.each([
  [{ store: false }, 'store'],
  [{ webhook_url: 'ftp://a.example' }, 'webhook_url'],
  [{ background: false, webhook_url: 'https://a.example' }, 'webhook_url'],
])('refuses %j naming the field', async (body, param) => {
  await start()
  const [status, answer] = await ask('POST', '', { model: MODEL, input: 'hi', background: true, ...body })
  expect([status, answer['error']]).toMatchObject([400, { param }])
})

test('a host that keeps nothing makes no answer in the background', async () => {
  await start({ responses: { store: 'never' } })
  const [status, answer] = await ask('POST', '', { model: MODEL, input: 'hi', background: true })
  expect([status, answer['error']]).toMatchObject([400, { param: 'background' }])
})

test('one answer at a time is made for a key with one place, and polling takes none', async () => {
  await start({ limits: { concurrency: 1, requestsPerMinute: 100 } })
  started.sandbox.fault({ kind: 'hang' })
  const first = await accepted({ input: 'one' })
  await started.sandbox.nextRequest()
  expect((await read(first))['status']).toBe('in_progress')
  const refused = await ask('POST', '', { model: MODEL, input: 'two' })
  expect(refused[0]).toBe(429)
  // It waits, and is run when there is a place.
  const second = await accepted({ input: 'three' })
  expect((await read(second))['status']).not.toBe('failed')
  await ask('POST', `/${first}/cancel`)
  await started.sandbox.nextAbort()
  expect(await ended(second)).toMatchObject({ status: 'completed' })
  expect(started.sandbox.requests).toHaveLength(2)
})

test('an answer in the background counts as one request, and its tokens when it is made', async () => {
  await start({ limits: { requestsPerMinute: 2, tokensPerMinute: 100_000 } })
  const ids = [await accepted({ input: 'one' }), await accepted({ input: 'two' })]
  expect((await ask('POST', '', { model: MODEL, input: 'three', background: true }))[0]).toBe(429)
  for (const id of ids) expect(await ended(id)).toMatchObject({ status: 'completed' })
})

test('the price of the submission counts, whatever comes after', async () => {
  await start()
  const { balance } = await started.account()
  const id = await accepted({ input: 'hi' })
  const event = await started.taskEnded(id)
  expect(balance - (await started.account()).balance).toBe(event.costNanoDollars)
  expect(event).toMatchObject({ state: 'completed', model: MODEL, usage: { outputTokens: expect.any(Number) } })
  const started_ = started.events.filter(({ type }) => type === 'request-started' || type === 'request-ended')
  expect(started_).toEqual([])
})

test('closing puts a run back, and the next gateway on the store makes the answer', async () => {
  const store = memoryStore()
  await start({ store })
  started.sandbox.fault({ kind: 'hang' })
  const id = await accepted({ input: 'hi' })
  await started.sandbox.nextRequest()
  await started.gateway.close({ drainMs: 0 })
  const task = await store.tasks.find('acct_test', id)
  expect([task?.state, task?.upstreamId]).toEqual(['queued', undefined])
  await started.close()
  await start({ store })
  await started.gateway.start()
  expect(await ended(id)).toMatchObject({ id, status: 'completed' })
  expect((await started.account()).held).toBe(0n)
})

test('a submission that its process left behind is run later, and one without an end fails without a charge', async () => {
  const store = memoryStore()
  const change = (): never => {
    throw new Error('the store is down')
  }
  await start({ store: { ...store, tasks: { ...store.tasks, change } } })
  const [id, late] = [await accepted({ input: 'hi' }), await accepted({ input: '[[fault:hang]] late' })]
  await started.close()
  expect((await store.tasks.find('acct_test', id))?.state).toBe('submitting')

  const clock = fakeClock({ startMs: Date.now() + 120_000 })
  await start({ store, clock })
  await started.gateway.start()
  const stateOf = async (task: string): Promise<string | undefined> =>
    (await store.tasks.find('acct_test', task))?.state
  const until = (task: string, state: string, stepMs: number): Promise<void> =>
    expect
      .poll(
        () => {
          clock.advance(stepMs)
          return stateOf(task)
        },
        { timeout: 15_000, interval: 20 },
      )
      .toBe(state)
  await until(id, 'completed', 1_000)
  await until(late, 'failed', 60 * 60_000)
  expect(await read(late)).toMatchObject({ status: 'failed', error: { code: expect.any(String) } })
  expect((await started.account()).held).toBe(0n)
})

test('the end is told to the webhook, signed', async () => {
  const secret = newWebhookSecret()
  const received: { headers: Record<string, unknown>; body: string }[] = []
  let arrived!: () => void
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const receiver = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    received.push({ headers: request.headers, body })
    response.end()
    arrived()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  try {
    await start({ webhookSecret: secret })
    const { port } = receiver.address() as AddressInfo
    const id = await accepted({ input: 'hi', webhook_url: `http://127.0.0.1:${port}/hook` })
    await arrival
    const [{ headers, body }] = received as [(typeof received)[0]]
    expect(JSON.parse(body)).toMatchObject({ type: 'response.completed', data: { id } })
    const signed = webhookHeaders({
      secrets: [secret],
      id: String(headers['webhook-id']),
      timestampSeconds: Number(headers['webhook-timestamp']),
      body,
    })
    expect(signed.at(-1)).toBe(headers['webhook-signature'])
    expect((await read(id))['status']).toBe('completed')
  } finally {
    receiver.closeAllConnections()
    await new Promise((resolve) => receiver.close(resolve))
  }
})

test('a limit of requests at once per account keeps one account from filling every place of the process', async () => {
  await start({ limits: { perAccount: { concurrency: 2 } } })
  started.sandbox.fault({ kind: 'hang', times: 100 })
  for (let count = 0; count < 40; count++) await accepted({ input: 'first', max_output_tokens: 16 })
  await accepted({ input: 'of another account', max_output_tokens: 16 }, OTHER_KEY)

  const asked: string[] = []
  while (!asked.at(-1)?.includes('of another account')) {
    const { body } = await started.sandbox.nextRequest()
    asked.push(JSON.stringify(body))
  }
  expect(asked).toHaveLength(3)
})

test('the next free place of a process is for the account that runs less there, however many another has waiting', async () => {
  const clock = fakeClock()
  await start({ clock })
  started.sandbox.fault({ kind: 'hang', times: 100 })
  const open: (readonly [key: string, id: string])[] = []
  for (const key of [...Array<string>(40).fill(TEST_KEY), OTHER_KEY, OTHER_KEY, OTHER_KEY])
    open.push([key, await accepted({ input: key, max_output_tokens: 16 }, key)])
  const nextKey = async () => {
    const input = JSON.stringify((await started.sandbox.nextRequest()).body)
    return [TEST_KEY, OTHER_KEY].find((key) => input.includes(key))
  }
  const cancel = ([key, id]: (typeof open)[number]) => ask('POST', `/${id}/cancel`, undefined, key)
  for (let count = 0; count < 32; count++) expect(await nextKey()).toBe(TEST_KEY)

  const next: unknown[] = []
  for (const one of open.splice(0, 4)) {
    // Others were looked for a moment ago, when there were none.
    clock.advance(1_000)
    await cancel(one)
    next.push(await nextKey())
  }
  await Promise.all(open.map(cancel))

  expect(next).toEqual([OTHER_KEY, OTHER_KEY, OTHER_KEY, TEST_KEY])
})

test('what is stored of a task that has ended holds nothing of the prompt', async () => {
  const store = memoryStore()
  await start({ store })
  const id = await accepted({ input: 'a very secret prompt', instructions: 'secret too' })
  await ended(id)
  expect(
    JSON.stringify(await store.tasks.find('acct_test', id), (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    ),
  ).not.toContain('secret')
})

describe('vendor of the dialect', () => {
  let vendor: ResponsesVendor

  beforeEach(async () => {
    vendor = await responsesVendor()
    await start({ vendors: [openai({ apiKey: 'vendor-key-a', baseURL: vendor.origin })] })
  })
  afterEach(() => vendor.close())

  test('the answer has an id of the gateway, and is continued and deleted by that of the vendor', async () => {
    const openaiModel = { model: 'chat-relayed' }
    const id = await accepted({ ...openaiModel, input: 'hi', background_options: { completion_window: '2h' } })
    expect(await ended(id)).toMatchObject({ id, status: 'completed', background: true, of_the_future: { a: [1] } })
    expect(JSON.parse(vendor.calls[0]!.body)).toEqual({ model: 'gpt-5.4', input: 'hi', max_output_tokens: 2_000 })
    const [, next] = await ask('POST', '', { ...openaiModel, input: 'more', previous_response_id: id })
    expect(next).toMatchObject({ id: 'resp_vendor1', previous_response_id: id })
    expect(JSON.parse(vendor.calls[1]!.body)).toMatchObject({ input: 'more', previous_response_id: 'resp_vendor1' })
    await ask('DELETE', `/${id}`)
    expect(vendor.calls[2]?.path).toBe('DELETE /v1/responses/resp_vendor1')
  })

  test.each([
    ['8h', false, 'background_options.completion_window'],
    ['2h', true, 'background_options.completion_window'],
    ['soonest', false, null],
  ])('reports a completion window of %s that has no effect (stream: %s)', async (window, stream, dropped) => {
    const body = { model: 'chat-relayed', input: 'hi', background: true, stream }
    const answer = await started.post('/v1/responses', { ...body, background_options: { completion_window: window } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-signalbox-dropped')).toBe(dropped)
    await answer.text()
  })

  test.each([
    [{ completion_window: '8h' }, 'background_options.completion_window'],
    [{ completion_window: 'soonest' }, null],
    [{}, null],
    ['8h', null],
    [null, null],
  ])(
    'charges the ordinary price with the background options %j, also at a translated model',
    async (given, dropped) => {
      await started.close()
      await start()
      for (const model of ['chat-relayed', MODEL]) {
        const before = await started.account()
        await ask('POST', '', { model, input: 'hi', max_output_tokens: 500 })
        const ordinary = before.balance - (await started.account()).balance
        const body = { model, input: 'hi', max_output_tokens: 500, background: true, background_options: given }
        const answer = await started.post('/v1/responses', body)
        const { id } = (await answer.json()) as { id: string }
        await ended(id)
        const after = await started.account()

        expect([answer.status, answer.headers.get('x-signalbox-dropped')]).toEqual([200, dropped])
        expect([before.balance - after.balance, after.held]).toEqual([2n * ordinary, 0n])
      }
    },
  )

  test('rejects the image tool in the background, because its price is not kept with the task', async () => {
    await started.close()
    const token = { per: 1_000_000, amount: '1' } as const
    const prices = ['chat-relayed', 'gp-image-2'].flatMap((model) => [
      { model, meter: 'input_token' as const, ...token },
      { model, meter: 'output_token' as const, ...token },
    ])
    await start({ prices: { currency: 'USD', prices } })
    const tools = [{ type: 'image_generation', model: 'gpt-image-2' }]
    const answer = await started.post('/v1/responses', { model: 'chat-relayed', input: 'hi', background: true, tools })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: { code: 'unsupported_parameter', param: 'tools' } })
    expect((await started.account()).held).toBe(0n)
  })
})
