import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { toFile } from 'openai'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { LINE_USAGE, type VendorBatch } from '../support/batch-vendor.ts'
import { TEST_MODELS } from '../support/start-gateway.ts'
import {
  AdvancedClock,
  AS_HELD,
  atVendor,
  CHAT,
  CREDIT,
  contentOf,
  endWith,
  faultyStore,
  LINE_COST,
  line,
  MODEL,
  type OutputLine,
  StoppedClock,
  singleCalls,
  start,
  submit,
  unbilled,
  vendor,
  withBatchVendor,
} from './support/native-batch-gateway.ts'

withBatchVendor()

describe('a batch at the vendor', () => {
  test('ends a request of which its vendor says nothing with an error, tells it, and never sends it again', async () => {
    const started = await start()
    const { client, taskEnded, account } = started
    const created = await submit(client, [line(1), line(2)])
    const batch = await atVendor()
    vendor.end(batch, 'completed')
    const output = vendor.files.get(batch.output_file_id!)!
    vendor.files.set(batch.output_file_id!, `not json\n{"custom_id":"r7"}\n${output.split('\n')[0]}\n`)
    await taskEnded(created.id)

    const ended = await client.batches.retrieve(created.id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { completed: 1, failed: 1 } })
    expect(await contentOf(client, ended.error_file_id)).toMatchObject([{ response: { status_code: 504 } }])
    expect(await account()).toEqual({ balance: CREDIT - LINE_COST, held: 0n })
    expect(unbilled(started)).toEqual([AS_HELD])
    expect(singleCalls()).toBe(0)
  })

  test('does the same where its caller cancelled it after its vendor had ended it', async () => {
    const clock = new AdvancedClock()
    const started = await start({ clock, taskPollIntervalMs: 60_000 })
    const { client, taskEnded } = started
    const created = await submit(client, [line(1), line(2)])
    const batch = await atVendor()
    vendor.end(batch, 'completed')
    const output = vendor.files.get(batch.output_file_id!)!
    vendor.files.set(batch.output_file_id!, `${output.split('\n')[0]}\n`)
    await client.batches.cancel(created.id)
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({
      status: 'cancelled',
      request_counts: { completed: 1, failed: 1 },
    })
    expect(unbilled(started)).toEqual([AS_HELD])
  })

  test('reports an answer that cannot be read, without a charge', async () => {
    const started = await start()
    const { client, taskEnded, account } = started
    const created = await submit(client, [line(1)])
    const batch = await atVendor()
    endWith(batch, { status_code: 200, body: { choices: 'none' } })
    const { costNanoDollars } = await taskEnded(created.id)

    const ended = await client.batches.retrieve(created.id)
    expect(await contentOf(client, ended.error_file_id)).toMatchObject([{ response: { status_code: 502 } }])
    expect([costNanoDollars, unbilled(started).length]).toEqual([0n, 1])
    expect(await account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('keeps quoted prompts and secrets of headers and query out of events and logs, whatever the vendor fails', async () => {
    const prompt = 'Tell nobody about the merger of Alder and Birch.'
    const [headerSecret, querySecret] = ['header-canary-4d1c9a', 'query-canary-8b2e7f']
    const quote = `You sent "${prompt}" with ${headerSecret}, ${querySecret} and vendor-key-canary-7f3a`
    const failure = { error: { message: quote, type: 'invalid_request_error', code: 'bad_prompt', param: quote } }
    const connection = {
      apiKey: 'vendor-key-canary-7f3a',
      baseURL: vendor.origin,
      headers: { 'x-team': headerSecret },
      query: { token: querySecret },
    }
    const started = await start({ vendors: [openai(connection)] })
    const run = async (end: (batch: VendorBatch) => void): Promise<OutputLine[]> => {
      const before = vendor.batches.size
      const { id } = await submit(started.client, [line(1, prompt)])
      end(await atVendor(before + 1))
      await started.taskEnded(id)
      const { error_file_id: file } = await started.client.batches.retrieve(id)
      return file == null ? [] : contentOf(started.client, file)
    }

    const [failed] = await run((batch) => endWith(batch, { status_code: 400, body: failure }))
    await run((batch) => endWith(batch, { status_code: 401, body: failure }))
    await run((batch) => endWith(batch, { status_code: 200, body: { choices: quote } }))
    await run((batch) => {
      batch.status = 'failed'
      batch.errors = { data: [{ code: 'invalid_json_line', message: quote }] }
    })
    vendor.intercept = (call, response) => {
      if (!call.startsWith('POST ') || !call.includes('/batches')) return false
      response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify(failure))
      return true
    }
    await submit(started.client, [line(1, prompt)])
    await expect
      .poll(() => started.events.filter(({ type }) => type === 'vendor-account-problem').length, { timeout: 20_000 })
      .toBeGreaterThan(0)

    expect(failed).toMatchObject({ response: { status_code: 400, body: { error: { code: 'bad_prompt' } } } })
    expect(JSON.stringify(failed)).not.toMatch(/canary/)
    const reported = inspect([started.events, started.logged], { depth: 20, maxStringLength: null })
    expect(reported).toContain("The vendor's text is left out")
    expect(reported).not.toMatch(/merger|Alder|canary/)
  })

  test.each([500, 504])(
    'has a request that its vendor could not answer neither told nor charged: %s',
    async (status) => {
      const started = await start()
      const created = await submit(started.client, [line(1)])
      const batch = await atVendor()
      endWith(batch, { status_code: status, body: { error: { message: 'It took too long.' } } })
      const { costNanoDollars } = await started.taskEnded(created.id)

      expect([costNanoDollars, unbilled(started)]).toEqual([0n, []])
      expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    },
  )

  test('has an answer that cannot be read told once where its outcome is kept at the second try', async () => {
    const clock = new AdvancedClock()
    let faults = 1
    const store = faultyStore(clock, { outcome: () => faults-- > 0 })
    const started = await start({ store, clock })
    const created = await submit(started.client, [line(1)])
    const batch = await atVendor()
    endWith(batch, { status_code: 200, body: { choices: 'none' } })
    await started.taskEnded(created.id)

    expect(faults).toBe(-1)
    expect(unbilled(started).length).toBe(1)
  })

  test('reports an unreadable answer from the process that stores its outcome', async () => {
    const memory = memoryStore()
    const batches = memory.batches!
    const add: typeof batches.add = async (id, outcome, expiresAtMs) => {
      // Another process was faster.
      if (!id.endsWith('_native')) await batches.add(id, outcome, expiresAtMs)
      return await batches.add(id, outcome, expiresAtMs)
    }
    const started = await start({ store: { ...memory, batches: { ...batches, add } } })
    const created = await submit(started.client, [line(1)])
    const batch = await atVendor()
    endWith(batch, { status_code: 200, body: { choices: 'none' } })
    await started.taskEnded(created.id)

    expect(unbilled(started)).toEqual([])
  })

  test('is made by ordinary calls where it was cancelled at the vendor by others than its caller', async () => {
    const { client, taskEnded, account } = await start()
    const created = await submit(
      client,
      [1, 2, 3].map((id) => line(id)),
    )
    vendor.end(await atVendor(), 'cancelled', 1)
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({
      status: 'completed',
      request_counts: { completed: 3 },
    })
    expect(singleCalls()).toBe(2)
    expect(await account()).toEqual({ balance: CREDIT - 3n * LINE_COST, held: 0n })
  })

  test.each([
    ['cannot be searched', undefined],
    ['lists more than is read', { read: () => ({ after: 'batch_of_another' }) }],
  ])('ends with errors and is not paid twice if its creation got no answer at a vendor that %s', async (_, changed) => {
    const own = openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })
    const { search, ...others } = own.batches!
    const batches = changed === undefined ? others : { ...others, search: { ...search!, ...changed } }
    const clock = new AdvancedClock()
    const started = await start({ clock, vendors: [{ ...own, batches }] })
    const { client, taskEnded, account } = started
    vendor.intercept = (call, response) => {
      if (call !== 'POST /v1/batches') return false
      clock.offsetMs = 70_000
      response.destroy()
      return true
    }
    const created = await submit(client, [line(1), line(2)])
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({ request_counts: { completed: 0, failed: 2 } })
    expect(vendor.calls.filter((call) => call === 'POST /v1/batches').length).toBe(1)
    expect(singleCalls()).toBe(0)
    expect(await account()).toEqual({ balance: CREDIT, held: 0n })
    expect(unbilled(started)).toEqual([AS_HELD, AS_HELD])
  })

  test('reports every request once if its creation is lost, also if the store fails and the vendor lists it later', async () => {
    const own = openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })
    const clock = new AdvancedClock()
    let kept = 0
    let hasFailed = false
    const outcome = (): boolean => {
      if (kept++ !== 1) return false
      hasFailed = true
      return true
    }
    const store = faultyStore(clock, { outcome })
    const read = (): object => (hasFailed ? { batchId: 'batch_late' } : { after: 'batch_of_another' })
    const batches = { ...own.batches!, search: { ...own.batches!.search!, read } }
    const started = await start({ store, clock, vendors: [{ ...own, batches }] })
    vendor.intercept = (call, response) => {
      if (call !== 'POST /v1/batches') return false
      clock.offsetMs += 70_000
      response.destroy()
      return true
    }
    const created = await submit(started.client, [line(1), line(2), line(3)])
    await started.taskEnded(created.id)

    expect(await started.client.batches.retrieve(created.id)).toMatchObject({
      status: 'completed',
      request_counts: { completed: 0, failed: 3 },
    })
    expect(unbilled(started)).toEqual([AS_HELD, AS_HELD, AS_HELD])
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('is not created again with a key of another account if its creation got no answer', async () => {
    const store = memoryStore()
    const clock = new AdvancedClock()
    const first = await start({ store, clock })
    let creations = 0
    vendor.intercept = (call, response) => {
      if (call === 'POST /v1/batches') creations++
      if (call === 'POST /v1/batches') response.destroy()
      return call === 'POST /v1/batches'
    }
    const created = await submit(first.client, [line(1)])
    await expect.poll(() => creations, { timeout: 10_000, interval: 5 }).toBe(1)
    await first.gateway.close()
    clock.offsetMs = 70_000
    const next = await start({ store, clock, vendors: [openai({ apiKey: 'another-key', baseURL: vendor.origin })] })
    await next.taskEnded(created.id)

    expect([creations, singleCalls()]).toEqual([1, 0])
    expect(unbilled(next)).toEqual([AS_HELD])
  })

  test('ends where it runs, and is charged, if another process cancels it', async () => {
    const store = memoryStore()
    const clock = new StoppedClock()
    const first = await start({ store, clock })
    const created = await submit(first.client, [line(1), line(2)])
    const batch = await atVendor()
    await expect.poll(() => vendor.calls, { timeout: 10_000 }).toContain(`GET /v1/batches/${batch.id}`)
    clock.isStopped = true
    const held: ServerResponse[] = []
    vendor.intercept = (call, response) => call === `POST ${CHAT}` && held.push(response) > 0
    vendor.end(batch, 'failed')
    const next = await start({ store })
    await expect.poll(() => held.length, { timeout: 10_000, interval: 5 }).toBe(2)
    await first.client.batches.cancel(created.id)
    await new Promise((resolve) => setImmediate(resolve))
    const usage = LINE_USAGE
    const choices = [{ index: 0, message: { role: 'assistant', content: 'one' }, finish_reason: 'stop' }]
    for (const response of held)
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ id: 'c', object: 'chat.completion', model: 'm', choices, usage }))
    await expect
      .poll(async () => (await next.client.batches.retrieve(created.id)).status, { timeout: 10_000 })
      .toMatch(/cancelled|completed/)

    expect(await next.account()).toEqual({ balance: 2n * CREDIT - 2n * LINE_COST, held: 0n })
    expect([...unbilled(first), ...unbilled(next)]).toEqual([])
  })

  test('answers its Idempotency-Key once, however often it is looked at, and not when the key is over', async () => {
    const memory = memoryStore()
    let answers = 0
    const change: typeof memory.tasks.change = (task, nowMs) => {
      if (task.answered !== undefined) answers++
      return memory.tasks.change(task, nowMs)
    }
    const store = { ...memory, tasks: { ...memory.tasks, change } }
    const clock = new AdvancedClock()
    const first = await start({ store, clock })
    const content = Buffer.from(JSON.stringify(line(1)))
    const file = await first.client.files.create({ file: await toFile(content, 'requests.jsonl'), purpose: 'batch' })
    const asked = { input_file_id: file.id, endpoint: CHAT, completion_window: '24h' } as const
    const created = await first.client.batches.create(asked, { headers: { 'idempotency-key': 'k' } })
    const batch = await atVendor()
    const looks = (): number => vendor.calls.filter((call) => call === `GET /v1/batches/${batch.id}`).length
    await expect.poll(looks, { timeout: 10_000, interval: 5 }).toBeGreaterThan(2)
    await first.gateway.close()
    // Its submission has answered it, and the process that began it.
    expect(answers).toBe(2)

    clock.offsetMs = 25 * 60 * 60_000
    vendor.end(batch, 'completed')
    const next = await start({ store, clock })
    await next.taskEnded(created.id)
    expect(answers).toBe(2)
  })

  test('is reported and costs nothing if its model is gone when its results arrive', async () => {
    const store = memoryStore()
    const first = await start({ store })
    const created = await submit(first.client, [line(1), line(2, 'fail')])
    const batch = await atVendor()
    await first.gateway.close()
    vendor.end(batch, 'completed')
    const models = TEST_MODELS.filter(({ id }) => id !== MODEL)
    const next = await start({ store, models })
    await next.taskEnded(created.id)

    expect(await next.client.batches.retrieve(created.id)).toMatchObject({
      request_counts: { completed: 0, failed: 2 },
    })
    expect(await next.account()).toEqual({ balance: 2n * CREDIT, held: 0n })
    // The vendor bills no request that it refused.
    expect(unbilled(next)).toEqual([AS_HELD])
  })

  test('stores each outcome once if a store did not save some', async () => {
    const clock = new AdvancedClock()
    let faults = 3
    const store = faultyStore(clock, { outcome: () => faults-- > 0 })
    const { client, taskEnded, account } = await start({ store, clock })
    vendor.isInstant = true
    const created = await submit(
      client,
      [1, 2, 3, 4, 5].map((id) => line(id)),
    )
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({ request_counts: { completed: 5, failed: 0 } })
    expect(vendor.batches.size).toBe(1)
    expect(singleCalls()).toBe(0)
    expect(await account()).toEqual({ balance: CREDIT - 5n * LINE_COST, held: 0n })
  })

  test('reads results again if they break off', async () => {
    const { client, taskEnded, account } = await start()
    let downloads = 0
    vendor.intercept = (call, response) => {
      if (!call.endsWith('/content')) return false
      if (++downloads > 1) return false
      const content = vendor.files.get(call.split('/')[3]!)!
      response.writeHead(200, { 'content-length': String(content.length) })
      response.write(content.slice(0, content.length / 2), () => response.destroy())
      return true
    }
    vendor.isInstant = true
    const created = await submit(
      client,
      [1, 2, 3, 4].map((id) => line(id)),
    )
    await taskEnded(created.id)

    expect(downloads).toBe(2)
    expect(await client.batches.retrieve(created.id)).toMatchObject({ request_counts: { completed: 4, failed: 0 } })
    expect(await account()).toEqual({ balance: CREDIT - 4n * LINE_COST, held: 0n })
  })
})
