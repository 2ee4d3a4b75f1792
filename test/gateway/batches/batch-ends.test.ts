import { describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { startGateway } from '../../support/start-gateway.ts'
import { answeringVendor, json } from '../streams/answering-vendor.ts'
import {
  BATCH_MODEL,
  batchCompletion,
  batchGateways,
  batchLine,
  batchPrices,
  linesOfFile,
  submitBatch,
} from './batch-gateway.ts'

const start = batchGateways()

test('a batch that expires is charged for exactly the requests that were answered', async () => {
  const vendor = await answeringVendor((response, { messages }) => {
    const number = Number(JSON.stringify(messages).replaceAll(/\D/g, ''))
    if (number > 4) return json(response, { error: { message: 'busy' } }, 503)
    return json(response, batchCompletion(number))
  })
  const clock = fakeClock()
  const { client, account, taskEnded, events } = await start({
    vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
    clock,
    batches: { requestsAtOnce: 4, native: false },
  })
  const created = await submitBatch(
    client,
    Array.from({ length: 10 }, (_, index) => batchLine(index + 1)),
  )
  await expect.poll(async () => (await client.batches.retrieve(created.id)).request_counts?.completed).toBe(4)

  clock.advance(24 * 60 * 60_000)
  const end = await taskEnded(created.id)
  const batch = await client.batches.retrieve(created.id)

  expect(batch).toMatchObject({ status: 'expired', request_counts: { total: 10, completed: 4, failed: 6 } })
  const due = 4n * 10n * 500n + (1n + 2n + 3n + 4n) * 2_000n
  expect(end.costNanoDollars).toBe(due)
  expect(await account()).toEqual({ balance: 100_000_000_000n - due, held: 0n })
  const errors = await linesOfFile(client, batch.error_file_id)
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
      json(response, batchCompletion(calls))
    })
    const clock = fakeClock()
    const { client, taskEnded, events } = await start({
      vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
      clock,
      store: { ...store, batches: { ...batches, add: adding(batches.add) } },
    })
    let costNanoDollars: bigint | undefined
    const ended = taskEnded((await submitBatch(client, [batchLine(1)])).id).then((end) => {
      costNanoDollars = end.costNanoDollars
    })
    const costLater = (): bigint | undefined => {
      clock.advance(2_000)
      return costNanoDollars
    }
    await expect.poll(costLater, { timeout: 10_000 }).toBeDefined()
    await ended
    await vendor.close()
    return { costNanoDollars, calls, unbilled: events.filter(({ type }) => type === 'unbilled-usage') }
  }

  test('reports an answer that it does not save, and sends its request again', async () => {
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

  test('charges an answer that it has saved without confirmation, and emits no event', async () => {
    let adds = 0
    const { costNanoDollars, unbilled } = await run((add) => async (...given) => {
      const isKept = await add(...given)
      if (adds++ === 0) throw new Error('the connection broke')
      return isKept
    })

    expect([costNanoDollars, adds]).toEqual([10n * 500n + 2_000n, 2])
    expect(unbilled).toEqual([])
  })

  test('reports an answer that another process had before, and charges the first one', async () => {
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
      json(response, batchCompletion())
    })
    const vendors = [openai({ apiKey: 'k', baseURL: vendor.origin })]
    const { client, gateway } = await start({ store, vendors })
    const created = await submitBatch(client, [batchLine(1), batchLine(2)])
    await expect.poll(async () => [calls, (await store.batches?.tally(created.id))?.answered]).toEqual([2, 1])
    await gateway.close({ drainMs: 0 })
    const clock = fakeClock({ startMs: Date.now() + days * 24 * 60 * 60_000 })
    const next = await startGateway({ prices: batchPrices, store, vendors, clock, ...options })
    const ending = next.taskEnded(created.id)
    const endLater = async (): Promise<string | undefined> => {
      clock.advance(1_000)
      return (await store.tasks.find('acct_test', created.id))?.state
    }
    await expect.poll(endLater).toMatch(/completed|failed/)
    await vendor.close()
    const outcome = { end: await ending, calls, account: await next.account(), events: next.events }
    await next.close()
    return outcome
  }
  const due = 10n * 500n + 2_000n

  test('is charged for what was answered before, and sends nothing', async () => {
    const { end, calls, account } = await leave(300, { batches: { native: false } })

    expect([end.state, end.costNanoDollars, calls]).toEqual(['completed', due, 2])
    expect(account).toEqual({ balance: 200_000_000_000n - due, held: 0n })
  })

  test('gives up the charge after a year, and reports that', async () => {
    const { end, account, events } = await leave(367, {})

    expect([end.state, account]).toEqual(['failed', { balance: 200_000_000_000n, held: 0n }])
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'settlement-given-up', taskId: end.taskId, amountNanoDollars: due }),
    )
  })
})

test('sends nothing for a batch that has expired when its gateway starts', async () => {
  const store = memoryStore()
  let calls = 0
  const vendor = await answeringVendor(() => void calls++)
  const vendors = [openai({ apiKey: 'k', baseURL: vendor.origin })]
  const { client, gateway } = await start({ store, vendors })
  const created = await submitBatch(client, [batchLine(1)])
  await expect.poll(() => calls).toBe(1)
  await gateway.close({ drainMs: 0 })
  const clock = fakeClock({ startMs: Date.now() + 25 * 60 * 60_000 })
  const next = await start({ store, vendors, clock })
  const end = await next.taskEnded(created.id)

  expect([end.costNanoDollars, calls]).toEqual([0n, 1])
  expect(await next.client.batches.retrieve(created.id)).toMatchObject({ status: 'expired' })
  await vendor.close()
})

test('reports a request that is stopped when its gateway closes, sends it again and does not charge it', async () => {
  const store = memoryStore()
  let calls = 0
  const vendor = await answeringVendor((response) => {
    calls++
    if (calls === 1) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 4_200 })
      return void response.write('{"id":"c",')
    }
    json(response, batchCompletion())
  })
  const vendors = [openai({ apiKey: 'k', baseURL: vendor.origin })]
  const { client, gateway, events } = await start({ store, vendors })
  const created = await submitBatch(client, [batchLine(1)])
  await expect.poll(() => calls).toBe(1)
  await gateway.close({ drainMs: 0 })
  const told = events.filter(({ type }) => type === 'unbilled-usage')
  const next = await start({ store, vendors })
  const end = await next.taskEnded(created.id)

  expect(told).toEqual([expect.objectContaining({ model: BATCH_MODEL, isEstimated: true })])
  expect([end.state, end.costNanoDollars, calls]).toEqual(['completed', 10n * 500n + 2_000n, 2])
  expect(next.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
  await vendor.close()
})
