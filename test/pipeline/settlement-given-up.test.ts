import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../src/core/events.ts'
import type { Logger } from '../../src/core/logger.ts'
import { formatDollars } from '../../src/core/money.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'
import { FailingStore } from '../tasks/support/failing-store.ts'
import { taskBench } from '../tasks/support/task-bench.ts'

type GivenUp = Extract<GatewayEvent, { type: 'settlement-given-up' }>

const CREDIT = 100_000_000_000n
const HOLD_TTL_MS = 15 * 60_000
const CHAT = chatBody('chat-relayed', 'hello')

/** How the ledger behaves: `forget` does what is asked and loses the answer. */
type LedgerState = 'well' | 'down' | 'forget'

let clock: FakeClock
let inner: GatewayStore
let ledgerState: LedgerState
let events: GatewayEvent[]
let lines: { readonly message: string; readonly fields: Record<string, unknown> | undefined }[]
let started: StartedGateway

function givenUp(): GivenUp[] {
  return events.flatMap((event) => (event.type === 'settlement-given-up' ? [event] : []))
}

function account() {
  return inner.ledger.account(TEST_ACCOUNT)
}

/** Lets time pass in steps, and everything that waits for it run in between. */
async function pass(durationMs: number, stepMs: number): Promise<void> {
  for (let passedMs = 0; passedMs < durationMs; passedMs += stepMs) {
    clock.advance(stepMs)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

beforeEach(async () => {
  clock = fakeClock()
  inner = memoryStore()
  ledgerState = 'well'
  events = []
  lines = []
  const end = <Value>(act: () => Value): Value => {
    if (ledgerState === 'down') throw new Error('the database is down')
    const value = act()
    if (ledgerState === 'forget') throw new Error('the answer was lost')
    return value
  }
  const { ledger } = inner
  const store: GatewayStore = {
    ...inner,
    ledger: {
      ...ledger,
      settle: (...parameters) => end(() => ledger.settle(...parameters)),
      void: (...parameters) => end(() => ledger.void(...parameters)),
      expire: (...parameters) => end(() => ledger.expire(...parameters)),
    },
  }
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: (message, fields) => lines.push({ message, fields }),
  }
  started = await startGateway({ store, clock, logger, onEvent: (event) => events.push(event) })
})

afterEach(() => started.close())

/** Cost of a chat whose settlement arrives. */
async function cost(): Promise<bigint> {
  const before = (await account())?.balance ?? 0n
  expect((await started.post('/v1/chat/completions', CHAT)).status).toBe(200)
  return before - ((await account())?.balance ?? 0n)
}

test('a settlement that comes after its hold has expired is charged against the balance, once', async () => {
  const amount = await cost()
  ledgerState = 'down'
  await started.post('/v1/chat/completions', CHAT)
  // Another process, which reaches the store sooner than this one.
  await inner.ledger.expire(clock.now() + HOLD_TTL_MS, 10)
  expect(await account()).toMatchObject({ balance: CREDIT - amount, held: 0n })
  ledgerState = 'well'
  await pass(10_000, 5_000)

  // Before: the second chat was free, $0 of what the vendor billed.
  expect(await account()).toMatchObject({ balance: CREDIT - 2n * amount, held: 0n })
  expect(givenUp()).toEqual([])
})

describe('reports a settlement that is given up with its hold, its account and its amount', () => {
  test('when the store stays away until the hold has expired', async () => {
    const amount = await cost()
    ledgerState = 'down'
    const answer = await started.post('/v1/chat/completions', CHAT)
    const requestId = answer.headers.get('x-request-id')
    await pass(HOLD_TTL_MS - 10_000, 5_000)
    const early = givenUp()

    await pass(60_000, 5_000)
    ledgerState = 'well'
    await pass(60_000, 5_000)

    expect(early).toEqual([])
    expect(amount).toBeGreaterThan(0n)
    const expected = {
      requestId,
      holdId: requestId,
      taskId: undefined,
      accountId: TEST_ACCOUNT,
      keyId: expect.stringMatching(/^key_/),
      reason: 'expired',
      error: new Error('the database is down'),
    }
    expect(givenUp()).toEqual([{ type: 'settlement-given-up', amountNanoDollars: amount, ...expected }])
    expect(lines.filter(({ message }) => message === 'a settlement is given up')).toEqual([
      { message: 'a settlement is given up', fields: { amount: formatDollars(amount), ...expected } },
    ])
    expect(await account()).toMatchObject({ balance: CREDIT - amount, held: 0n })
  })

  test('when an operator had voided the hold before the store saved it', async () => {
    const amount = await cost()
    ledgerState = 'down'
    const answer = await started.post('/v1/chat/completions', CHAT)
    await inner.ledger.void(answer.headers.get('x-request-id') ?? '', clock.now())
    ledgerState = 'well'
    await pass(10_000, 5_000)

    expect(givenUp()).toMatchObject([
      { holdId: answer.headers.get('x-request-id'), amountNanoDollars: amount, reason: 'hold-ended' },
    ])
    expect(await account()).toMatchObject({ balance: CREDIT - amount, held: 0n })
  })

  test('when the gateway closes before the store is back', async () => {
    const amount = await cost()
    ledgerState = 'down'
    const answer = await started.post('/v1/chat/completions', CHAT)

    const closing = started.gateway.close({ drainMs: 20_000 })
    await pass(30_000, 1_000)
    await closing

    expect(givenUp()).toMatchObject([
      { holdId: answer.headers.get('x-request-id'), amountNanoDollars: amount, reason: 'closing' },
    ])
    ledgerState = 'well'
    await pass(60_000, 1_000)
    expect((await account())?.held).toBeGreaterThan(0n)
  })

  test('reports 0 when nothing was to be charged', async () => {
    ledgerState = 'down'
    await started.post('/v1/chat/completions', chatBody('chat-relayed', '[[fault:status=400]]'))
    await pass(HOLD_TTL_MS + 60_000, 5_000)

    expect(givenUp()).toMatchObject([{ amountNanoDollars: 0n, reason: 'expired' }])
  })
})

test('a settlement that arrives late, or whose acknowledgement was lost, is not given up', async () => {
  const amount = await cost()
  ledgerState = 'down'
  await started.post('/v1/chat/completions', CHAT)
  ledgerState = 'forget'
  await pass(10_000, 5_000)
  ledgerState = 'well'
  await pass(10_000, 5_000)

  expect(givenUp()).toEqual([])
  expect(await account()).toMatchObject({ balance: CREDIT - 2n * amount, held: 0n })
})

describe('what is given up of the submission of a video', () => {
  test('is reported with the money that was held for it', async () => {
    const failing = new FailingStore()
    const bench = await taskBench({ store: failing.store })
    failing.failAt('note the submission', 'refuse', Number.POSITIVE_INFINITY)
    const id = await bench.submit('a boat')
    await bench.pass(25 * 60 * 60_000, 60_000)
    const given = bench.events.filter(({ type }) => type === 'settlement-given-up')
    await bench.close()

    expect(given).toMatchObject([
      { taskId: id, accountId: TEST_ACCOUNT, amountNanoDollars: 400_000_000n, reason: 'expired' },
    ])
  })

  test('is reported with 0 if it was to be undone', async () => {
    const failing = new FailingStore()
    const bench = await taskBench({ store: failing.store })
    failing.failAt('undo the submission', 'refuse', Number.POSITIVE_INFINITY)
    await bench.post('[[fault:status=400]] a boat')
    await bench.pass(25 * 60 * 60_000, 60_000)
    const given = bench.events.filter(({ type }) => type === 'settlement-given-up')
    await bench.close()

    expect(given).toMatchObject([{ accountId: TEST_ACCOUNT, amountNanoDollars: 0n, reason: 'expired' }])
  })
})
