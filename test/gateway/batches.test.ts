import OpenAI, { toFile } from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../src/gateway/gateway-options.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { fakeClock, sandboxVendors } from '../../src/testing/index.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { answeringVendor, json } from './answering-vendor.ts'

const MODEL = 'chat-relayed'
const CHAT = '/v1/chat/completions'
const prices = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    { model: MODEL, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
    { model: MODEL, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
    { model: 'embedding-relayed', meter: 'input_token', amount: '0.01', per: 1_000_000, when: { batch: 'true' } },
  ],
} as const

const open: StartedGateway[] = []
afterEach(async () => {
  for (const started of open.splice(0)) await started.close()
})

async function start(options: Partial<GatewayOptions> = {}): Promise<StartedGateway & { client: OpenAI }> {
  const started = await startGateway({ prices, ...options, batches: { ...options.batches, native: false } })
  open.push(started)
  return { ...started, client: new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 }) }
}

function line(number: number, body: object = {}, members: object = {}): object {
  const messages = [{ role: 'user', content: `Say ${number}` }]
  return {
    custom_id: `request-${number}`,
    method: 'POST',
    url: CHAT,
    body: { model: MODEL, max_tokens: 50, messages, ...body },
    ...members,
  }
}

const upload = async (client: OpenAI, lines: readonly (object | string)[]) =>
  client.files.create({
    file: await toFile(
      Buffer.from(lines.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n')),
      'requests.jsonl',
    ),
    purpose: 'batch',
  })

const submit = async (client: OpenAI, lines: readonly (object | string)[], endpoint: typeof CHAT = CHAT) => {
  const file = await upload(client, lines)
  return client.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h', metadata: { job: 'one' } })
}

/** What a vendor answers to ten tokens. */
function completion(outputTokens = 1): object {
  const usage = { prompt_tokens: 10, completion_tokens: outputTokens, total_tokens: 10 + outputTokens }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'one' }, finish_reason: 'stop' }]
  return { id: 'c', object: 'chat.completion', model: 'm', choices, usage }
}

interface OutputLine {
  custom_id: string
  response: { status_code: number; body: { usage: { prompt_tokens: number; completion_tokens: number } } } | null
  error: { code: string } | null
}

async function contentOf(client: OpenAI, id: string | null | undefined): Promise<OutputLine[]> {
  const text = await (await client.files.content(id ?? 'none')).text()
  return text
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each) as OutputLine)
}

describe('a batch', () => {
  test('answers each request, at the price of batches and charged once', async () => {
    const { client, gateway, taskEnded, account, sandbox } = await start()
    const created = await submit(
      client,
      [1, 2, 3, 4, 5].map((number) => line(number)),
    )
    expect(created).toMatchObject({ object: 'batch', endpoint: CHAT, metadata: { job: 'one' } })
    expect((await account()).held).toBeGreaterThan(0n)

    const end = await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 5, completed: 5, failed: 0 },
      error_file_id: null,
      errors: null,
    })
    const lines = await contentOf(client, batch.output_file_id)
    expect(lines.map(({ custom_id }) => custom_id)).toEqual([1, 2, 3, 4, 5].map((number) => `request-${number}`))
    const usages = lines.map(({ response }) => response!.body.usage)
    const due = usages.reduce(
      (sum, usage) => sum + BigInt(usage.prompt_tokens) * 500n + BigInt(usage.completion_tokens) * 2_000n,
      0n,
    )
    expect(end.costNanoDollars).toBe(due)
    expect(await account()).toEqual({ balance: 100_000_000_000n - due, held: 0n })
    expect(batch.usage).toMatchObject({
      input_tokens: usages.reduce((sum, usage) => sum + usage.prompt_tokens, 0),
      output_tokens: usages.reduce((sum, usage) => sum + usage.completion_tokens, 0),
    })
    expect(sandbox.requests.length).toBe(5)
    const [entry] = await gateway.accounts.ledger('acct_test', { limit: 1 })
    expect(entry).toMatchObject({ kind: 'charge', description: `batches ${MODEL}` })
  })

  test('is told by line what is wrong with it, and then nothing of it is sent or held', async () => {
    const { client, account, sandbox } = await start()

    const batch = await submit(client, [
      line(1),
      '{"custom_id": ',
      line(3, { model: 'nobody-knows' }),
      '',
      line(5, { messages: 'none' }),
      line(1),
      line(7, { stream: true }),
      line(8, {}, { url: '/v1/embeddings' }),
    ])

    expect(batch.status).toBe('failed')
    expect(batch.errors?.data?.map(({ code, line: at, param }) => [at, code, param])).toEqual([
      [2, 'invalid_json_line', null],
      [3, 'model_not_found', 'model'],
      [5, 'invalid_request', 'messages'],
      [6, 'duplicate_custom_id', 'custom_id'],
      [7, 'unsupported_parameter', 'stream'],
      [8, 'invalid_url', 'url'],
    ])
    expect(await client.batches.retrieve(batch.id)).toEqual(batch)
    expect(await account()).toEqual({ balance: 100_000_000_000n, held: 0n })
    expect(sandbox.requests.length).toBe(0)
  })

  test('needs a price of its own, and the money for all of its requests', async () => {
    const { client, gateway, account } = await start({ prices: testPrices })
    await expect(submit(client, [line(1)])).rejects.toMatchObject({
      status: 503,
      code: 'model_not_priced',
      message: expect.stringContaining('no price for batches of the model'),
    })

    const poor = await start()
    await poor.gateway.accounts.adjust('acct_test', { adjustmentId: 'less', amount: '-99.9999', reason: 'test' })
    const lines = Array.from({ length: 20 }, (_, number) => line(number, { max_tokens: 1_000 }))
    await expect(submit(poor.client, lines)).rejects.toMatchObject({ status: 402 })
    expect((await poor.account()).held).toBe(0n)
    expect((await account()).held).toBe(0n)
    expect(gateway.warnings().filter(({ code }) => code === 'price-unused')).toEqual([])
  })

  test('has an error file for requests that fail, which cost nothing', async () => {
    const { client, taskEnded } = await start({
      hooks: [
        {
          name: 'no-threes',
          request: ({ body }) =>
            JSON.stringify(body).includes('Say 3') ? { deny: { message: 'No threes.' } } : undefined,
        },
      ],
    })
    const created = await submit(client, [line(2), line(3)])

    await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } })
    const [failed] = await contentOf(client, batch.error_file_id)
    expect(failed).toMatchObject({ custom_id: 'request-3', response: { status_code: 400 }, error: null })
    expect((await contentOf(client, batch.output_file_id)).length).toBe(1)
  })

  test('holds what a hook answers its requests with, and what hooks charge is charged once', async () => {
    const unit = { model: MODEL, meter: 'hook_unit', amount: '0.01' } as const
    const { client, taskEnded, gateway, account, sandbox } = await start({
      prices: { ...prices, prices: [...prices.prices, unit, { ...unit, when: { batch: 'true' } }] },
      hooks: [
        {
          name: 'canned',
          request(call) {
            const said = JSON.stringify(call.body)
            if (said.includes('Say 1')) call.charge('hook_unit', 1)
            if (said.includes('Say 1')) return { answer: { text: 'One.' } }
            if (said.includes('Say 2')) return { answer: { body: 'two\nlines' } }
            return said.includes('Say 3') ? { answer: { status: 451, body: { error: { message: 'no' } } } } : undefined
          },
        },
      ],
    })
    const created = await submit(client, [line(1), line(2), line(3)])

    const end = await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } })
    const answers = await contentOf(client, batch.output_file_id)
    expect(answers).toMatchObject([
      { custom_id: 'request-1', response: { status_code: 200, body: { choices: [{ message: { content: 'One.' } }] } } },
      { custom_id: 'request-2', response: { status_code: 200, body: 'two\nlines' } },
    ])
    const [refused] = await contentOf(client, batch.error_file_id)
    expect(refused).toMatchObject({ custom_id: 'request-3', response: { status_code: 451 }, error: null })
    expect([end.costNanoDollars, sandbox.requests.length]).toEqual([0n, 0])
    const journal = await gateway.accounts.ledger('acct_test', { limit: 20 })
    const charges = journal.filter(({ kind, amount }) => kind === 'charge' && amount !== 0n)
    expect(charges.map(({ amount }) => amount)).toEqual([-10_000_000n])
    expect(await account()).toEqual({ balance: 100_000_000_000n - 10_000_000n, held: 0n })
  })

  test('waits for the limits of its caller', async () => {
    const { client, taskEnded, sandbox } = await start({
      limits: { concurrency: 1 },
      batches: { requestsAtOnce: 2, native: false },
    })
    const created = await submit(client, [line(1), line(2)])

    await taskEnded(created.id)

    expect((await client.batches.retrieve(created.id)).request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect(sandbox.requests.length).toBe(2)
  })

  test('is cancelled before its requests are sent, and costs nothing then', async () => {
    const { client, account, taskEnded } = await start({ limits: { requestsPerMinute: 1 } })
    const created = await submit(client, [line(1), line(2), line(3)])

    const cancelled = await client.batches.cancel(created.id)
    const end = await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(['cancelling', 'cancelled']).toContain(cancelled.status)
    expect(batch.status).toBe('cancelled')
    expect(batch.request_counts!.completed).toBeLessThan(3)
    const lines = await contentOf(client, batch.error_file_id)
    expect(lines.at(-1)).toMatchObject({ custom_id: 'request-3', response: null, error: { code: 'batch_cancelled' } })
    expect(await account()).toEqual({ balance: 100_000_000_000n - end.costNanoDollars, held: 0n })
    await expect(client.batches.cancel(created.id)).rejects.toMatchObject({ status: 409 })
  })

  test('can be of embeddings', async () => {
    const { client, taskEnded } = await start()
    const file = await upload(client, [
      line(1, {}, { url: '/v1/embeddings', body: { model: 'embedding-relayed', input: 'one' } }),
    ])
    const created = await client.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/embeddings',
      completion_window: '24h',
    })

    await taskEnded(created.id)

    const batch = await client.batches.retrieve(created.id)
    expect((await contentOf(client, batch.output_file_id))[0]).toMatchObject({ response: { status_code: 200 } })
  })

  test.each([
    [
      '/v1/messages',
      { model: MODEL, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] },
      { type: 'message' },
    ],
    [
      '/v1/responses',
      { model: MODEL, max_output_tokens: 50, input: 'hi' },
      { object: 'response', status: 'completed' },
    ],
  ])('can be of %s', async (url, body, answer) => {
    const { client, taskEnded } = await start()
    const file = await upload(client, [line(1, {}, { url, body })])
    const created = await client.batches.create({
      input_file_id: file.id,
      endpoint: url as typeof CHAT,
      completion_window: '24h',
    })

    const { costNanoDollars } = await taskEnded(created.id)

    const batch = await client.batches.retrieve(created.id)
    const [first] = await contentOf(client, batch.output_file_id)
    expect(first).toMatchObject({ response: { status_code: 200, body: answer } })
    // Also where the vendor gets a translation of the request, which drops other conditions of prices.
    const { input_tokens: input = 0, output_tokens: output = 0 } = batch.usage ?? {}
    expect([costNanoDollars, input > 0]).toEqual([BigInt(input) * 500n + BigInt(output) * 2_000n, true])
  })

  test('tells its end by a webhook', async () => {
    const { client, url } = await start()
    const receiver = sandboxVendors()
    const { origin } = await receiver.listen()
    const file = await upload(client, [line(1)])
    const answer = await fetch(`${url}/v1/batches`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        input_file_id: file.id,
        endpoint: CHAT,
        completion_window: '24h',
        webhook_url: `${origin}/webhooks`,
      }),
    })
    const { id } = (await answer.json()) as { id: string }

    await expect.poll(() => receiver.webhooks.length).toBe(1)

    expect(receiver.webhooks[0]?.body).toMatchObject({ type: 'batch.completed', data: { id } })
    expect(await client.batches.retrieve(id)).toMatchObject({ status: 'completed' })
    await receiver.close()
  })

  test('is submitted once under one Idempotency-Key', async () => {
    const { client, sandbox, taskEnded } = await start()
    const file = await upload(client, [line(1)])
    const body = { input_file_id: file.id, endpoint: CHAT, completion_window: '24h' } as const
    const headers = { 'idempotency-key': 'one' }

    const first = await client.batches.create(body, { headers })
    const second = await client.batches.create(body, { headers })
    await taskEnded(first.id)

    expect(second.id).toBe(first.id)
    expect(sandbox.requests.length).toBe(1)
    expect((await client.batches.list()).data.map(({ id }) => id)).toEqual([first.id])
  })
})

test('a batch that expires is charged for exactly the requests that were answered', async () => {
  const vendor = await answeringVendor((response, { messages }) => {
    const number = Number(JSON.stringify(messages).replaceAll(/\D/g, ''))
    if (number > 4) return json(response, { error: { message: 'busy' } }, 503)
    return json(response, completion(number))
  })
  const clock = fakeClock()
  const { client, account, taskEnded, events } = await start({
    vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
    clock,
    batches: { requestsAtOnce: 4, native: false },
  })
  const created = await submit(
    client,
    Array.from({ length: 10 }, (_, index) => line(index + 1)),
  )
  await expect.poll(async () => (await client.batches.retrieve(created.id)).request_counts?.completed).toBe(4)

  clock.advance(24 * 60 * 60_000)
  const end = await taskEnded(created.id)
  const batch = await client.batches.retrieve(created.id)

  expect(batch).toMatchObject({ status: 'expired', request_counts: { total: 10, completed: 4, failed: 6 } })
  const due = 4n * 10n * 500n + (1n + 2n + 3n + 4n) * 2_000n
  expect(end.costNanoDollars).toBe(due)
  expect(await account()).toEqual({ balance: 100_000_000_000n - due, held: 0n })
  const errors = await contentOf(client, batch.error_file_id)
  expect(errors.map(({ custom_id }) => custom_id)).toEqual([5, 6, 7, 8, 9, 10].map((number) => `request-${number}`))
  expect(errors.at(-1)).toMatchObject({ response: null, error: { code: 'batch_expired' } })
  expect(events.filter(({ type }) => type === 'internal-error' || type === 'settlement-given-up')).toEqual([])
  await vendor.close()
})

describe('a store that does not keep an outcome as it was given', () => {
  type AddOutcome = NonNullable<GatewayStore['batches']>['add']

  /** Runs a batch of one request to its end. The vendor's answers have 1, 2, 3 … output tokens. */
  async function run(adding: (add: AddOutcome) => AddOutcome) {
    const store = memoryStore()
    const batches = store.batches!
    let calls = 0
    const vendor = await answeringVendor((response) => {
      calls++
      json(response, completion(calls))
    })
    const clock = fakeClock()
    const { client, taskEnded, events } = await start({
      vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
      clock,
      store: { ...store, batches: { ...batches, add: adding(batches.add) } },
    })
    let costNanoDollars: bigint | undefined
    const ended = taskEnded((await submit(client, [line(1)])).id).then((end) => {
      costNanoDollars = end.costNanoDollars
    })
    const costLater = (): bigint | undefined => {
      clock.advance(2_000)
      return costNanoDollars
    }
    await expect.poll(costLater).toBeDefined()
    await ended
    await vendor.close()
    return { costNanoDollars, calls, unbilled: events.filter(({ type }) => type === 'unbilled-usage') }
  }

  test('an answer that it does not take is told, and its request is sent again', async () => {
    let faults = 5
    const { costNanoDollars, calls, unbilled } = await run((add) => (id, outcome, expiresAtMs) => {
      if (faults-- <= 0) return add(id, outcome, expiresAtMs)
      throw new Error('the disk is full')
    })

    expect([costNanoDollars, calls]).toEqual([10n * 500n + 2n * 2_000n, 2])
    expect(unbilled).toEqual([
      expect.objectContaining({ isEstimated: false, usage: expect.objectContaining({ outputTokens: 1 }) }),
    ])
  })

  test('an answer that it has taken without saying so is charged and not told', async () => {
    let adds = 0
    const { costNanoDollars, unbilled } = await run((add) => async (...given) => {
      const isKept = await add(...given)
      if (adds++ === 0) throw new Error('the connection broke')
      return isKept
    })

    expect([costNanoDollars, adds]).toEqual([10n * 500n + 2_000n, 2])
    expect(unbilled).toEqual([])
  })

  test('an answer that another process had before is told, and the first one is charged', async () => {
    const { costNanoDollars, unbilled } = await run((add) => async (id, outcome, expiresAtMs) => {
      const { usage, amount } = outcome
      await add(id, { ...outcome, usage: { ...usage, outputTokens: 2 }, amount: amount + 2_000n }, expiresAtMs)
      return await add(id, outcome, expiresAtMs)
    })

    expect(costNanoDollars).toBe(10n * 500n + 2n * 2_000n)
    expect(unbilled).toEqual([
      expect.objectContaining({ isEstimated: false, usage: { inputTokens: 10, outputTokens: 1 } }),
    ])
  })
})

describe('a batch of which nobody runs the rest for a long time', () => {
  /** Has one of two requests answered, then closes the gateway and starts another one after some days. */
  async function leave(days: number, options: Partial<GatewayOptions>) {
    const store = memoryStore()
    let calls = 0
    const vendor = await answeringVendor((response) => {
      if (++calls > 1) return
      json(response, completion())
    })
    const vendors = [openai({ apiKey: 'k', baseURL: vendor.origin })]
    const { client, gateway } = await start({ store, vendors })
    const created = await submit(client, [line(1), line(2)])
    await expect.poll(async () => [calls, (await store.batches?.tally(created.id))?.answered]).toEqual([2, 1])
    await gateway.close({ drainMs: 0 })
    const clock = fakeClock({ startMs: Date.now() + days * 24 * 60 * 60_000 })
    const next = await startGateway({ prices, store, vendors, clock, ...options })
    open.push(next)
    const ending = next.taskEnded(created.id)
    const endLater = async (): Promise<string | undefined> => {
      clock.advance(1_000)
      return (await store.tasks.find('acct_test', created.id))?.state
    }
    await expect.poll(endLater).toMatch(/completed|failed/)
    await vendor.close()
    return { end: await ending, calls, account: await next.account(), events: next.events }
  }
  const due = 10n * 500n + 2_000n

  test('is charged for what was answered before, and sends nothing', async () => {
    const { end, calls, account } = await leave(300, { batches: { native: false } })

    expect([end.state, end.costNanoDollars, calls]).toEqual(['completed', due, 2])
    expect(account).toEqual({ balance: 200_000_000_000n - due, held: 0n })
  })

  test('has its charge given up after a year, which is told', async () => {
    const { end, account, events } = await leave(367, {})

    expect([end.state, account]).toEqual(['failed', { balance: 200_000_000_000n, held: 0n }])
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'settlement-given-up', taskId: end.taskId, amountNanoDollars: due }),
    )
  })
})

test('a batch whose time is over when its gateway starts sends nothing', async () => {
  const store = memoryStore()
  let calls = 0
  const vendor = await answeringVendor(() => void calls++)
  const vendors = [openai({ apiKey: 'k', baseURL: vendor.origin })]
  const { client, gateway } = await start({ store, vendors })
  const created = await submit(client, [line(1)])
  await expect.poll(() => calls).toBe(1)
  await gateway.close({ drainMs: 0 })
  const clock = fakeClock({ startMs: Date.now() + 25 * 60 * 60_000 })
  const next = await start({ store, vendors, clock })
  const end = await next.taskEnded(created.id)

  expect([end.costNanoDollars, calls]).toEqual([0n, 1])
  expect(await next.client.batches.retrieve(created.id)).toMatchObject({ status: 'expired' })
  await vendor.close()
})

test.each([{}, { chargeBrokenAnswers: true }])(
  'a request that is stopped when its gateway closes is told and not charged, and sent again (%j)',
  async (options) => {
    const store = memoryStore()
    let calls = 0
    const vendor = await answeringVendor((response) => {
      calls++
      if (calls === 1) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 4_200 })
        return void response.write('{"id":"c",')
      }
      json(response, completion())
    })
    const vendors = [openai({ apiKey: 'k', baseURL: vendor.origin })]
    const { client, gateway, events } = await start({ store, vendors, ...options })
    const created = await submit(client, [line(1)])
    await expect.poll(() => calls).toBe(1)
    await gateway.close({ drainMs: 0 })
    const told = events.filter(({ type }) => type === 'unbilled-usage')
    const next = await start({ store, vendors, ...options })
    const end = await next.taskEnded(created.id)

    expect(told).toEqual([expect.objectContaining({ model: MODEL, isEstimated: true })])
    expect([end.state, end.costNanoDollars, calls]).toEqual(['completed', 10n * 500n + 2_000n, 2])
    expect(next.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
    await vendor.close()
  },
)

test('files and batches of another account read as unknown ones, byte for byte', async () => {
  const { client, url, gateway, taskEnded } = await start()
  const created = await submit(client, [line(1)])
  await taskEnded(created.id)
  const batch = await client.batches.retrieve(created.id)
  await gateway.accounts.create({ id: 'acct_other' })
  const { key } = await gateway.keys.create({ accountId: 'acct_other' })
  const ask = async (method: string, path: string): Promise<readonly [number, string]> => {
    const response = await fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${key}` } })
    return [response.status, await response.text()]
  }
  const places = [
    ['GET', '/v1/files/{}', batch.input_file_id],
    ['GET', '/v1/files/{}/content', batch.input_file_id],
    ['GET', '/v1/files/{}', batch.output_file_id],
    ['GET', '/v1/files/{}/content', batch.output_file_id],
    ['DELETE', '/v1/files/{}', batch.output_file_id],
    ['GET', '/v1/batches/{}', batch.id],
    ['POST', '/v1/batches/{}/cancel', batch.id],
  ] as const
  for (const [method, path, id] of places) {
    const [status, body] = await ask(method, path.replace('{}', id!))
    expect([method, path, status]).toEqual([method, path, 404])
    expect(body).toBe((await ask(method, path.replace('{}', `${id!.slice(0, -4)}0000`)))[1])
    expect(body).toBe((await ask(method, path.replace('{}', '%00')))[1])
  }
  expect(JSON.parse((await ask('GET', '/v1/files'))[1])).toMatchObject({ data: [] })
  expect(JSON.parse((await ask('GET', '/v1/batches'))[1])).toMatchObject({ data: [] })
  expect((await client.files.retrieve(batch.output_file_id!)).purpose).toBe('batch_output')
})

test('large requests of a batch are checked in turns of their own', async () => {
  const { client, gateway } = await start()
  const lines = Array.from({ length: 15 }, (_, index) => line(index, { metadata: { note: 'x'.repeat(70_000) } }))
  const { id } = await upload(client, lines)
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ input_file_id: id, endpoint: CHAT, completion_window: '24h' })
  const submission = gateway.fetch(new Request('http://gateway.test/v1/batches', { method: 'POST', headers, body }))
  setImmediate(count)
  const answer = await submission
  isOver = true

  expect([answer.status, turns >= 2 * lines.length], await answer.text()).toEqual([200, true])
})

describe('of more batches than a process runs', () => {
  /** A gateway whose vendor answers when it is told to, and which sends one request of a batch after the other. */
  async function startHeld() {
    const clock = fakeClock()
    const held = new Map<string, () => void>()
    const heard: string[] = []
    let arrived = (): void => {}
    const vendor = await answeringVendor((response, { messages }) => {
      const said = (messages as { content: string }[])[0]!.content
      heard.push(said)
      held.set(said, () => json(response, completion()))
      arrived()
    })
    const started = await start({
      clock,
      vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
      batches: { requestsAtOnce: 1 },
      timeouts: { firstByteMs: 3_600_000, totalMs: 3_600_000 },
      holdTtlMs: 7_200_000,
    })
    return {
      clock,
      heard,
      ...started,
      /** Lets the vendor answer what was said, or all that it was asked. */
      release(...said: string[]) {
        for (const each of said.length > 0 ? said : [...held.keys()]) {
          held.get(each)?.()
          held.delete(each)
        }
      },
      /** Submits a batch that begins at once, and waits for its first call. */
      async begin(lines: readonly object[]): Promise<string> {
        const call = new Promise<void>((resolve) => {
          arrived = resolve
        })
        const { id } = await submit(started.client, lines)
        await call
        return id
      },
      async untilHeard(count: number, stepMs: number) {
        for (let turns = 0; turns < 10_000 && heard.length < count; turns++) {
          clock.advance(stepMs)
          await new Promise(setImmediate)
        }
      },
      close: () => vendor.close(),
    }
  }

  test('one that has run for long makes room for one that waits', async () => {
    const { clock, heard, client, taskEnded, begin, release, untilHeard, close } = await startHeld()
    const ids: string[] = []
    for (const first of [10, 20, 30, 40]) {
      ids.push(await begin([line(first), line(first + 1)]))
      clock.advance(1_000)
    }
    const last = await submit(client, [line(50)])
    clock.advance(60_000)
    expect(heard).toEqual(['Say 10', 'Say 20', 'Say 30', 'Say 40'])

    await untilHeard(5, 1_000)
    expect(heard.at(-1)).toBe('Say 50')

    // The batch that was put back goes on with what it has not sent yet, and sends nothing twice.
    const ended = taskEnded(last.id)
    release()
    await ended
    for (let turns = 0; turns < 10_000 && heard.length < 9; turns++) {
      release()
      clock.advance(100)
      await new Promise(setImmediate)
    }
    release()
    await Promise.all(ids.map((id) => taskEnded(id)))
    await close()

    expect(heard.toSorted()).toEqual([10, 11, 20, 21, 30, 31, 40, 41, 50].map((number) => `Say ${number}`))
  })

  test('one that made room at its last request ends with it, and waits for no other', async () => {
    const { clock, heard, client, taskEnded, begin, release, untilHeard, close } = await startHeld()
    const first = await begin([line(10)])
    clock.advance(200_000)
    for (const number of [20, 30, 40]) await begin([line(number)])
    await submit(client, [line(50)])
    await untilHeard(5, 1_000)
    expect(heard.at(-1)).toBe('Say 50')

    const ended = taskEnded(first)
    release('Say 10')
    await ended

    expect(await client.batches.retrieve(first)).toMatchObject({
      status: 'completed',
      request_counts: { completed: 1 },
    })
    release()
    await close()
  })
})
