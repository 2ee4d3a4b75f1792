import { describe, expect, test } from 'vitest'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import {
  BATCH_MODEL,
  batchGateways,
  batchLine,
  batchPrices,
  CHAT_PATH,
  linesOfFile,
  submitBatch,
  uploadLines,
} from './batch-gateway.ts'

const start = batchGateways()

describe('a batch', () => {
  test('answers each request, at the price of batches and charged once', async () => {
    const { client, gateway, taskEnded, account, sandbox } = await start()
    const created = await submitBatch(
      client,
      [1, 2, 3, 4, 5].map((number) => batchLine(number)),
    )
    expect(created).toMatchObject({ object: 'batch', endpoint: CHAT_PATH, metadata: { job: 'one' } })
    expect((await account()).held).toBeGreaterThan(0n)

    const end = await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 5, completed: 5, failed: 0 },
      error_file_id: null,
      errors: null,
    })
    const lines = await linesOfFile(client, batch.output_file_id)
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
    expect(entry).toMatchObject({ kind: 'charge', description: `batches ${BATCH_MODEL}` })
  })

  test('lists faults by line, and then sends and holds nothing', async () => {
    const { client, account, sandbox } = await start()

    const batch = await submitBatch(client, [
      batchLine(1),
      '{"custom_id": ',
      batchLine(3, { model: 'nobody-knows' }),
      '',
      batchLine(5, { messages: 'none' }),
      batchLine(1),
      batchLine(7, { stream: true }),
      batchLine(8, {}, { url: '/v1/embeddings' }),
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
    await expect(submitBatch(client, [batchLine(1)])).rejects.toMatchObject({
      status: 400,
      code: 'model_not_priced',
      message: expect.stringContaining('no price for batches of the model'),
    })

    const poor = await start()
    await poor.gateway.accounts.adjust('acct_test', { adjustmentId: 'less', amount: '-99.9999', reason: 'test' })
    const lines = Array.from({ length: 20 }, (_, number) => batchLine(number, { max_tokens: 1_000 }))
    await expect(submitBatch(poor.client, lines)).rejects.toMatchObject({ status: 402 })
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
    const created = await submitBatch(client, [batchLine(2), batchLine(3)])

    await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } })
    const [failed] = await linesOfFile(client, batch.error_file_id)
    expect(failed).toMatchObject({ custom_id: 'request-3', response: { status_code: 400 }, error: null })
    expect((await linesOfFile(client, batch.output_file_id)).length).toBe(1)
  })

  test('holds what a hook answers its requests with, and what hooks charge is charged once', async () => {
    const unit = { model: BATCH_MODEL, meter: 'hook_unit', amount: '0.01' } as const
    const { client, taskEnded, gateway, account, sandbox } = await start({
      prices: { ...batchPrices, prices: [...batchPrices.prices, unit, { ...unit, when: { batch: 'true' } }] },
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
    const created = await submitBatch(client, [batchLine(1), batchLine(2), batchLine(3)])

    const end = await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } })
    const answers = await linesOfFile(client, batch.output_file_id)
    expect(answers).toMatchObject([
      { custom_id: 'request-1', response: { status_code: 200, body: { choices: [{ message: { content: 'One.' } }] } } },
      { custom_id: 'request-2', response: { status_code: 200, body: 'two\nlines' } },
    ])
    const [refused] = await linesOfFile(client, batch.error_file_id)
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
    const created = await submitBatch(client, [batchLine(1), batchLine(2)])

    await taskEnded(created.id)

    expect((await client.batches.retrieve(created.id)).request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect(sandbox.requests.length).toBe(2)
  })

  test('is cancelled before its requests are sent, and costs nothing then', async () => {
    const { client, account, taskEnded } = await start({ limits: { requestsPerMinute: 1 } })
    const created = await submitBatch(client, [batchLine(1), batchLine(2), batchLine(3)])

    const cancelled = await client.batches.cancel(created.id)
    const end = await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)

    expect(['cancelling', 'cancelled']).toContain(cancelled.status)
    expect(batch.status).toBe('cancelled')
    expect(batch.request_counts!.completed).toBeLessThan(3)
    const lines = await linesOfFile(client, batch.error_file_id)
    expect(lines.at(-1)).toMatchObject({ custom_id: 'request-3', response: null, error: { code: 'batch_cancelled' } })
    expect(await account()).toEqual({ balance: 100_000_000_000n - end.costNanoDollars, held: 0n })
    await expect(client.batches.cancel(created.id)).rejects.toMatchObject({ status: 409 })
  })

  test('can be of embeddings', async () => {
    const { client, taskEnded } = await start()
    const file = await uploadLines(client, [
      batchLine(1, {}, { url: '/v1/embeddings', body: { model: 'embedding-relayed', input: 'one' } }),
    ])
    const created = await client.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/embeddings',
      completion_window: '24h',
    })

    await taskEnded(created.id)

    const batch = await client.batches.retrieve(created.id)
    expect((await linesOfFile(client, batch.output_file_id))[0]).toMatchObject({ response: { status_code: 200 } })
  })

  test.each([
    [
      '/v1/messages',
      { model: BATCH_MODEL, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] },
      { type: 'message' },
    ],
    [
      '/v1/responses',
      { model: BATCH_MODEL, max_output_tokens: 50, input: 'hi' },
      { object: 'response', status: 'completed' },
    ],
  ])('can be of %s', async (url, body, answer) => {
    const { client, taskEnded } = await start()
    const file = await uploadLines(client, [batchLine(1, {}, { url, body })])
    const created = await client.batches.create({
      input_file_id: file.id,
      endpoint: url as typeof CHAT_PATH,
      completion_window: '24h',
    })

    const { costNanoDollars } = await taskEnded(created.id)

    const batch = await client.batches.retrieve(created.id)
    const [first] = await linesOfFile(client, batch.output_file_id)
    expect(first).toMatchObject({ response: { status_code: 200, body: answer } })
    // Also where the vendor gets a translation of the request, which drops other conditions of prices.
    const { input_tokens: input = 0, output_tokens: output = 0 } = batch.usage ?? {}
    expect([costNanoDollars, input > 0]).toEqual([BigInt(input) * 500n + BigInt(output) * 2_000n, true])
  })

  test('tells its end by a webhook', async () => {
    const { client, url } = await start()
    const receiver = sandboxVendors()
    const { origin } = await receiver.listen()
    const file = await uploadLines(client, [batchLine(1)])
    const answer = await fetch(`${url}/v1/batches`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        input_file_id: file.id,
        endpoint: CHAT_PATH,
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
    const file = await uploadLines(client, [batchLine(1)])
    const body = { input_file_id: file.id, endpoint: CHAT_PATH, completion_window: '24h' } as const
    const headers = { 'idempotency-key': 'one' }

    const first = await client.batches.create(body, { headers })
    const second = await client.batches.create(body, { headers })
    await taskEnded(first.id)

    expect(second.id).toBe(first.id)
    expect(sandbox.requests.length).toBe(1)
    expect((await client.batches.list()).data.map(({ id }) => id)).toEqual([first.id])
  })

  test('is answered again under its Idempotency-Key when no more may be open and its file is gone', async () => {
    const { client } = await start({ batches: { maxOpenBatches: 1 } })
    const messages = [{ role: 'user', content: '[[fault:hang]]' }]
    const file = await uploadLines(client, [batchLine(1, { messages })])
    const body = { input_file_id: file.id, endpoint: CHAT_PATH, completion_window: '24h' } as const
    const first = await client.batches.create(body, { headers: { 'idempotency-key': 'one' } })
    await client.files.delete(file.id)

    const second = await client.batches.create(body, { headers: { 'idempotency-key': 'one' } })

    expect(second.id).toBe(first.id)
    await expect(client.batches.create(body, { headers: { 'idempotency-key': 'two' } })).rejects.toThrow(
      'There is no such file',
    )
    await expect(
      client.batches.create({ ...body, metadata: { job: 'two' } }, { headers: { 'idempotency-key': 'one' } }),
    ).rejects.toMatchObject({ status: 422, code: 'idempotency_mismatch' })
  })

  test('fails once for all requests with one Idempotency-Key', async () => {
    const { client } = await start()
    const file = await uploadLines(client, ['{'])
    const body = { input_file_id: file.id, endpoint: CHAT_PATH, completion_window: '24h' } as const
    const headers = { 'idempotency-key': 'one' }

    const first = await client.batches.create(body, { headers })
    const second = await client.batches.create(body, { headers })

    expect(first.status).toBe('failed')
    expect(second).toEqual(first)
    expect((await client.batches.list()).data.map(({ id }) => id)).toEqual([first.id])
  })
})

test('files and batches of another account read as unknown ones, byte for byte', async () => {
  const { client, url, gateway, taskEnded } = await start()
  const created = await submitBatch(client, [batchLine(1)])
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
  const lines = Array.from({ length: 15 }, (_, index) => batchLine(index, { metadata: { note: 'x'.repeat(70_000) } }))
  const { id } = await uploadLines(client, lines)
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ input_file_id: id, endpoint: CHAT_PATH, completion_window: '24h' })
  const submission = gateway.fetch(new Request('http://gateway.test/v1/batches', { method: 'POST', headers, body }))
  setImmediate(count)
  const answer = await submission
  isOver = true

  expect([answer.status, turns >= 2 * lines.length], await answer.text()).toEqual([200, true])
})
