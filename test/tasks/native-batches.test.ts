import type { ServerResponse } from 'node:http'
import OpenAI, { toFile } from 'openai'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock, type Timer } from '../../src/core/clock.ts'
import type { GatewayOptions } from '../../src/gateway/gateway-options.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { type BatchVendor, batchVendor, LINE_USAGE, type VendorBatch } from '../support/batch-vendor.ts'
import { type StartedGateway, startGateway, TEST_KEY, TEST_MODELS } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'

const MODEL = 'chat-relayed'
const CHAT = '/v1/chat/completions'
const LINE_COST = BigInt(LINE_USAGE.prompt_tokens) * 500n + BigInt(LINE_USAGE.completion_tokens) * 2_000n
const CREDIT = 100_000_000_000n
const prices = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    { model: MODEL, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
    { model: MODEL, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
  ],
} as const

let vendor: BatchVendor
const open: StartedGateway[] = []
beforeEach(async () => {
  vendor = await batchVendor()
})
afterEach(async () => {
  for (const started of open.splice(0)) await started.close()
  await vendor.close()
})

interface Started extends StartedGateway {
  readonly client: OpenAI
  readonly logged: unknown[][]
}

async function start(options: Partial<GatewayOptions> = {}): Promise<Started> {
  const logged: unknown[][] = []
  const log = (...line: unknown[]): void => void logged.push(line)
  const started = await startGateway({
    batches: {},
    prices,
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
    taskPollIntervalMs: 20,
    logger: { debug: log, info: log, warn: log, error: log },
    ...options,
  })
  open.push(started)
  const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
  return { ...started, client, logged }
}

function line(id: number, text = `Say ${id}`): object {
  const messages = [{ role: 'user', content: text }]
  return { custom_id: `mine-${id}`, method: 'POST', url: CHAT, body: { model: MODEL, max_tokens: 50, messages } }
}

async function submit(client: OpenAI, lines: readonly object[]): Promise<OpenAI.Batch> {
  const content = Buffer.from(lines.map((each) => JSON.stringify(each)).join('\n'))
  const file = await client.files.create({ file: await toFile(content, 'requests.jsonl'), purpose: 'batch' })
  return client.batches.create({ input_file_id: file.id, endpoint: CHAT, completion_window: '24h' })
}

async function atVendor(count = 1): Promise<VendorBatch> {
  await expect.poll(() => vendor.batches.size, { timeout: 10_000, interval: 5 }).toBe(count)
  return [...vendor.batches.values()].at(-1)!
}

/** The machine's clock, which a test can put ahead. */
class AdvancedClock implements Clock {
  offsetMs = 0

  now(): number {
    return Date.now() + this.offsetMs
  }

  schedule(delayMs: number, callback: () => void): Timer {
    return systemClock.schedule(delayMs, callback)
  }
}

/** One whose timers a test can stop, as those of a process that has nothing to do. */
class StoppedClock extends AdvancedClock {
  isStopped = false

  override schedule(delayMs: number, callback: () => void): Timer {
    return super.schedule(delayMs, () => {
      if (!this.isStopped) callback()
    })
  }
}

interface OutputLine {
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly body: Record<string, unknown> } | null
  readonly error: { readonly code: string } | null
}

async function contentOf(client: OpenAI, id: string | null | undefined): Promise<OutputLine[]> {
  const text = await (await client.files.content(id ?? 'none')).text()
  return text
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each) as OutputLine)
}

/** What is told of requests that nobody is charged for. */
const unbilled = ({ events }: StartedGateway): object[] =>
  events.flatMap((event) =>
    event.type === 'unbilled-usage' ? [{ ...event.usage, isEstimated: event.isEstimated }] : [],
  )

/** Of a request of which nothing is known. */
const AS_HELD = { inputTokens: expect.any(Number), outputTokens: 50, isEstimated: true }

/** What a store does not take, as long as these say so. */
interface Faults {
  /** The outcome of a request. */
  readonly outcome?: () => boolean
  /** The end of a batch. */
  readonly end?: () => boolean
}

/** A store with faults. After each, the clock is put ahead to when the batch is taken again. */
function faultyStore(clock: AdvancedClock, { outcome, end }: Faults): GatewayStore {
  const store = memoryStore()
  const batches = store.batches!
  let isFailing = false
  const check = (fails: boolean | undefined): void => {
    if (fails !== true) return
    isFailing = true
    throw new Error('the disk is full')
  }
  const add: typeof batches.add = (id, given, expiresAtMs) => {
    if (!id.endsWith('_native')) check(outcome?.())
    return batches.add(id, given, expiresAtMs)
  }
  const change: typeof store.tasks.change = async (task, nowMs) => {
    if (task.resolve !== undefined) check(end?.())
    const isMade = await store.tasks.change(task, nowMs)
    if (isFailing && task.set.state === 'queued') {
      isFailing = false
      clock.offsetMs += 16_000
    }
    return isMade
  }
  return { ...store, batches: { ...batches, add }, tasks: { ...store.tasks, change } }
}

/** Ends a batch of one request with this response to it. */
function endWith(batch: VendorBatch, response: object): void {
  vendor.end(batch, 'completed')
  vendor.files.set(batch.output_file_id!, `${JSON.stringify({ custom_id: 'r0', response, error: null })}\n`)
}

const singleCalls = (): number => vendor.calls.filter((call) => call === `POST ${CHAT}`).length

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

  test('does not count against the limits of its caller, and tells no circuit', async () => {
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

  test('is asked to end when its time is over, and what it made is kept', async () => {
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

  test('that its vendor does not end is given up, and what may be billed is told', async () => {
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

  test('that is given up is told once where the store does not take its end at the first try', async () => {
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
  ])('that refuses %s gets the requests as ordinary calls', async (_, refused) => {
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
      'a vendor does not take a batch; its requests are sent as ordinary calls',
    )
  })

  test('of which the vendor makes nothing is made of ordinary calls', async () => {
    const { client, taskEnded } = await start()
    const created = await submit(client, [line(1), line(2)])
    vendor.end(await atVendor(), 'failed')
    await taskEnded(created.id)

    expect(await client.batches.retrieve(created.id)).toMatchObject({ status: 'completed' })
    expect(singleCalls()).toBe(2)
    expect(vendor.files.size).toBe(0)
  })

  test('whose creation got no answer is found by its name and not created again', async () => {
    const { client, taskEnded } = await start()
    // Others of the operator's, so that it stands on a later page.
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

  test.each([
    ['told', {}, 0n],
    ['charged where the host says so', { chargeBrokenAnswers: true }, 1n],
  ])('has an answer that cannot be read %s', async (_name, options, charged) => {
    const started = await start(options)
    const { client, taskEnded, account } = started
    const created = await submit(client, [line(1)])
    const batch = await atVendor()
    endWith(batch, { status_code: 200, body: { choices: 'none' } })
    const { costNanoDollars } = await taskEnded(created.id)

    const ended = await client.batches.retrieve(created.id)
    expect(await contentOf(client, ended.error_file_id)).toMatchObject([{ response: { status_code: 502 } }])
    expect([costNanoDollars > 0n, unbilled(started).length]).toEqual([charged > 0n, charged > 0n ? 0 : 1])
    expect(await account()).toEqual({ balance: CREDIT - costNanoDollars, held: 0n })
  })

  test.each([500, 504])(
    'has a request that its vendor could not answer neither told nor charged: %s',
    async (status) => {
      const started = await start({ chargeBrokenAnswers: true })
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

  test('has an answer that cannot be read told by the process that keeps its outcome', async () => {
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
  ])(
    'whose creation got no answer, at a vendor that %s, ends with errors and is not paid twice',
    async (_, changed) => {
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
    },
  )

  test('whose creation is lost has every request told once, also where the store fails and the vendor lists it later', async () => {
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

  test('whose creation got no answer is not created again with a key of another account', async () => {
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

  test('that is cancelled through a process that does not run it any more ends where it runs, and is charged', async () => {
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

  test('of a model that is gone when its results come is told, and costs nothing', async () => {
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

  test('whose outcomes a store did not take has each of them once', async () => {
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

  test('whose results break off is read again', async () => {
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
