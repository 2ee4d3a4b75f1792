import { createHmac } from 'node:crypto'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import {
  AdvancedClock,
  AS_HELD,
  atVendor,
  CHAT,
  CREDIT,
  contentOf,
  FastClock,
  faultyStore,
  LINE_COST,
  line,
  MODEL,
  singleCalls,
  start,
  submit,
  unbilled,
  vendor,
  withBatchVendor,
} from './support/native-batch-gateway.ts'

withBatchVendor()

/** A line without a bound of its answer. */
function boundless(written: object): object {
  const { body, ...rest } = written as { readonly body: Readonly<Record<string, unknown>> }
  const { max_tokens: _bound, ...unbounded } = body
  return { ...rest, body: unbounded }
}

describe('a batch at the vendor', () => {
  test('is one batch there, is charged by the usage of each answer, and leaves nothing behind', async () => {
    const { client, taskEnded, account, gateway } = await start()
    const created = await submit(
      client,
      [1, 2, 3].map((id) => line(id)),
    )
    const batch = await atVendor()
    expect(batch.endpoint).toBe(CHAT)
    expect(vendor.linesOf(batch)).toEqual(
      [1, 2, 3].map((id, index) => ({
        custom_id: `r${index}`,
        method: 'POST',
        url: CHAT,
        body: expect.objectContaining({ model: 'gpt-5.4', messages: [{ role: 'user', content: `Say ${id}` }] }),
      })),
    )
    expect((await account()).held).toBeGreaterThan(0n)
    expect(await client.batches.retrieve(created.id)).toMatchObject({ status: 'in_progress' })
    vendor.end(batch, 'completed')

    const end = await taskEnded(created.id)

    expect(end).toMatchObject({ vendor: 'openai', costNanoDollars: 3n * LINE_COST })
    expect(await account()).toEqual({ balance: CREDIT - 3n * LINE_COST, held: 0n })
    const ended = await client.batches.retrieve(created.id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3, failed: 0 } })
    const lines = await contentOf(client, ended.output_file_id)
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(['mine-1', 'mine-2', 'mine-3'])
    expect(lines[0]?.response?.body).toMatchObject({
      model: MODEL,
      choices: [{ message: { content: 'You said: Say 1' } }],
    })
    // Neither ids of the vendor nor its files.
    expect(JSON.stringify([ended, lines])).not.toMatch(/vendor|file-\d/)
    expect(vendor.files.size).toBe(0)
    expect(singleCalls()).toBe(0)
    const [entry] = await gateway.accounts.ledger('acct_test', { limit: 1 })
    expect(entry).toMatchObject({ kind: 'charge', description: `batches ${MODEL}` })
  })

  test('bounds the answers of requests that set no bound', async () => {
    const { client } = await start()
    await submit(client, [boundless(line(1)), line(2)])
    const bounds = vendor.linesOf(await atVendor()).map(({ body }) => body)

    expect(bounds).toMatchObject([{ max_completion_tokens: 2_000 }, { max_completion_tokens: 50 }])
  })

  test('has the error of a request that the vendor refused, uncharged', async () => {
    const { client, taskEnded, account } = await start()
    vendor.isInstant = true
    const created = await submit(client, [line(1), line(2, 'fail'), line(3)])
    await taskEnded(created.id)

    const ended = await client.batches.retrieve(created.id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } })
    const [failed] = await contentOf(client, ended.error_file_id)
    expect(failed).toMatchObject({
      custom_id: 'mine-2',
      response: { status_code: 400, body: { error: { code: 'bad_prompt' } } },
    })
    expect(await account()).toEqual({ balance: CREDIT - 2n * LINE_COST, held: 0n })
  })

  test('does not count against the limits of its caller, and affects no circuit', async () => {
    const { client, taskEnded, events } = await start({ limits: { requestsPerMinute: 20, tokensPerMinute: 200 } })
    vendor.isInstant = true
    const created = await submit(
      client,
      Array.from({ length: 40 }, (_, id) => line(id)),
    )
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({ request_counts: { completed: 40 } })
    expect(events.filter(({ type }) => type === 'attempt-failed' || type === 'circuit-opened')).toEqual([])
  })

  test('is cancelled there, and what was made by then is charged', async () => {
    const { client, taskEnded, account } = await start()
    const created = await submit(
      client,
      [1, 2, 3, 4].map((id) => line(id)),
    )
    const batch = await atVendor()
    await client.batches.cancel(created.id)
    await expect.poll(() => batch.status, { timeout: 10_000, interval: 5 }).toBe('cancelling')
    vendor.end(batch, 'cancelled', 1)
    await taskEnded(created.id)

    const ended = await client.batches.retrieve(created.id)
    expect(ended).toMatchObject({ status: 'cancelled', request_counts: { total: 4, completed: 1, failed: 3 } })
    const errors = await contentOf(client, ended.error_file_id)
    expect(errors.map(({ error }) => error?.code)).toEqual(Array(3).fill('batch_cancelled'))
    expect(await account()).toEqual({ balance: CREDIT - LINE_COST, held: 0n })
    expect(singleCalls()).toBe(0)
  })

  test('is cancelled there when the key that submitted it is revoked', async () => {
    const clock = new FastClock()
    const store = memoryStore()
    const { gateway, taskEnded, account, client } = await start({ clock, store, taskPollIntervalMs: 600_000 })
    const { key, record } = await gateway.keys.create({ accountId: 'acct_test' })
    const submitter = new OpenAI({ apiKey: key, baseURL: client.baseURL, maxRetries: 0 })
    const created = await submit(
      submitter,
      [1, 2, 3, 4].map((id) => line(id)),
    )
    const batch = await atVendor()
    await gateway.keys.revoke(record.id)
    await expect.poll(() => batch.status, { timeout: 10_000, interval: 5 }).toBe('cancelling')
    // The time of the next poll is set after the answer to the cancellation.
    const stateOf = async () => (await store.tasks.find('acct_test', created.id))?.state
    await expect.poll(stateOf, { timeout: 10_000, interval: 5 }).toBe('queued')
    const ending = taskEnded(created.id)
    vendor.end(batch, 'cancelled', 1)
    clock.offsetMs = 600_000
    await ending

    const ended = await client.batches.retrieve(created.id)
    expect(ended).toMatchObject({ status: 'cancelled', request_counts: { total: 4, completed: 1, failed: 3 } })
    expect(await account()).toEqual({ balance: CREDIT - LINE_COST, held: 0n })
    expect(singleCalls()).toBe(0)
  })

  test('expires with what the vendor has made', async () => {
    const { client, taskEnded, account } = await start()
    const created = await submit(
      client,
      [1, 2, 3].map((id) => line(id)),
    )
    vendor.end(await atVendor(), 'expired', 2)
    await taskEnded(created.id)

    const ended = await client.batches.retrieve(created.id)
    expect(ended).toMatchObject({ status: 'expired', request_counts: { total: 3, completed: 2, failed: 1 } })
    expect((await contentOf(client, ended.error_file_id)).map(({ error }) => error?.code)).toEqual(['batch_expired'])
    expect(await account()).toEqual({ balance: CREDIT - 2n * LINE_COST, held: 0n })
  })

  test('is cancelled at the vendor when it has expired, and its results are kept', async () => {
    const clock = new AdvancedClock()
    const { client, taskEnded } = await start({ clock })
    const created = await submit(client, [line(1), line(2)])
    const batch = await atVendor()
    clock.offsetMs = 24 * 60 * 60_000 + 1_000
    await expect.poll(() => batch.status, { timeout: 10_000, interval: 5 }).toBe('cancelling')
    vendor.end(batch, 'cancelled', 1)
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({
      status: 'expired',
      request_counts: { total: 2, completed: 1, failed: 1 },
    })
  })

  test('is given up if its vendor does not end it, and what may be billed is reported', async () => {
    const clock = new AdvancedClock()
    const started = await start({ clock })
    const { client, taskEnded, account } = started
    const created = await submit(client, [line(1), line(2)])
    const batch = await atVendor()
    clock.offsetMs = 25 * 60 * 60_000
    await expect.poll(() => batch.status, { timeout: 10_000, interval: 5 }).toBe('cancelling')
    expect(unbilled(started)).toEqual([])
    clock.offsetMs = 26 * 60 * 60_000
    await taskEnded(created.id)

    const ended = await client.batches.retrieve(created.id)
    expect(ended).toMatchObject({ status: 'expired', request_counts: { total: 2, completed: 0, failed: 2 } })
    expect((await contentOf(client, ended.error_file_id)).map(({ error }) => error?.code)).toEqual([
      'batch_expired',
      'batch_expired',
    ])
    expect(await account()).toEqual({ balance: CREDIT, held: 0n })
    expect(unbilled(started)).toEqual([{ ...AS_HELD, outputTokens: 2 * AS_HELD.outputTokens }])
  })

  test('reports a given-up batch once if the store does not save its end at the first try', async () => {
    const clock = new AdvancedClock()
    let ends = 0
    const store = faultyStore(clock, { end: () => ends++ === 0 })
    const started = await start({ store, clock })
    const created = await submit(started.client, [line(1)])
    await atVendor()
    clock.offsetMs = 26 * 60 * 60_000
    await started.taskEnded(created.id)

    expect([ends, unbilled(started)]).toEqual([2, [AS_HELD]])
  })

  test.each([
    ['the upload', 'POST /v1/files'],
    ['the creation', 'POST /v1/batches'],
  ])('sends the requests as ordinary calls if the vendor refuses %s', async (_, refused) => {
    const { client, taskEnded, account, logged } = await start()
    vendor.intercept = (call, response) => {
      if (call !== refused) return false
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message: 'Batches are not available', type: 'invalid_request_error' } }))
      return true
    }
    const created = await submit(client, [line(1), line(2)])
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({
      status: 'completed',
      request_counts: { completed: 2 },
    })
    expect(singleCalls()).toBe(2)
    expect(vendor.files.size).toBe(0)
    expect(await account()).toEqual({ balance: CREDIT - 2n * LINE_COST, held: 0n })
    expect(logged.map(([text]) => text)).toContain(
      'a vendor does not accept a batch; its requests are sent as ordinary calls',
    )
  })

  test('sends ordinary calls if the vendor fails the batch', async () => {
    const { client, taskEnded } = await start()
    const created = await submit(client, [line(1), line(2)])
    vendor.end(await atVendor(), 'failed')
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({ status: 'completed' })
    expect(singleCalls()).toBe(2)
    expect(vendor.files.size).toBe(0)
  })

  test('is found by its name and not created again if its creation got no answer', async () => {
    const { client, taskEnded } = await start()
    // Other batches of the operator, so that this one is on a later page.
    for (let other = 0; other < 5; other++)
      vendor.batches.set(`batch_other${other}`, {
        id: `batch_other${other}`,
        input_file_id: 'none',
        endpoint: CHAT,
        metadata: { job: 'other' },
        created_at: Math.floor(Date.now() / 1_000),
        status: 'completed',
        output_file_id: null,
        error_file_id: null,
        errors: null,
      })
    let creations = 0
    vendor.intercept = (call, response) => {
      if (call !== 'POST /v1/batches') return false
      creations++
      vendor.intercept = undefined
      // It is created, and the answer is lost.
      const [fileId] = [...vendor.files.keys()]
      vendor.batches.set('batch_lost', {
        id: 'batch_lost',
        input_file_id: fileId!,
        endpoint: CHAT,
        metadata: { signalbox_batch: created.id.replaceAll('-', '_') },
        created_at: Math.floor(Date.now() / 1_000),
        status: 'in_progress',
        output_file_id: null,
        error_file_id: null,
        errors: null,
      })
      vendor.end(vendor.batches.get('batch_lost')!, 'completed')
      for (let other = 5; other < 9; other++)
        vendor.batches.set(`batch_other${other}`, { ...vendor.batches.get('batch_other0')!, id: `batch_other${other}` })
      response.destroy()
      return true
    }
    const created = await submit(client, [line(1)])
    await taskEnded(created.id)

    expect(creations).toBe(1)
    expect(await client.batches.retrieve(created.id)).toMatchObject({ status: 'completed' })
    expect(singleCalls()).toBe(0)
  })

  test('names end users by a keyed hash in each line', async () => {
    const safetyIdentifierKey = 'a-secret-of-the-operator'
    const vendors = [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin, safetyIdentifierKey })]
    const { client, taskEnded } = await start({ vendors })
    const posing = { user: 'someone else', safety_identifier: 'someone else' }
    const { body, ...rest } = line(1) as { readonly body: object }
    const created = await submit(client, [{ ...rest, body: { ...body, ...posing } }, line(2)])
    const batch = await atVendor()
    const bodies = vendor.linesOf(batch).map((each) => each.body as Record<string, unknown>)
    vendor.end(batch, 'completed')
    await taskEnded(created.id)

    const identifier = createHmac('sha256', safetyIdentifierKey)
      .update(JSON.stringify([TEST_ACCOUNT, null]))
      .digest('hex')
    expect(bodies.map((body) => body['safety_identifier'])).toEqual([identifier, identifier])
    expect(JSON.stringify(bodies)).not.toContain('someone else')
  })

  test('is made of ordinary calls with native: false, and where hooks may change requests', async () => {
    vendor.isInstant = true
    const off = await start({ batches: { native: false } })
    await off.taskEnded((await submit(off.client, [line(1)])).id)
    const hooked = await start({ hooks: [{ name: 'seen', request: () => undefined }] })
    await hooked.taskEnded((await submit(hooked.client, [line(1)])).id)

    expect(vendor.batches.size).toBe(0)
    expect(singleCalls()).toBe(2)
  })
})
