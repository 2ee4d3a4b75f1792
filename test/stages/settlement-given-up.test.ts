import { afterEach, expect, test, vi } from 'vitest'
import type { GatewayEvent } from '../../src/core/events.ts'
import { SettlementRetries } from '../../src/stages/settlement-retries.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

const CREDIT = 100_000_000_000n

let started: StartedGateway

afterEach(async () => {
  vi.restoreAllMocks()
  await started.close()
})

test('A15: a settlement beyond those that can wait is told of, and the sweep frees its hold', async () => {
  const clock = fakeClock()
  const store = memoryStore()
  const events: GatewayEvent[] = []
  let isDown = false
  const end = <Value>(act: () => Value): Value => {
    if (isDown) throw new Error('the database is down')
    return act()
  }
  const { ledger } = store
  const failing = {
    ...store,
    ledger: {
      ...ledger,
      settle: (...parameters: Parameters<typeof ledger.settle>) => end(() => ledger.settle(...parameters)),
    },
  }
  started = await startGateway({ store: failing, clock, onEvent: (event) => events.push(event) })
  const { add } = SettlementRetries.prototype
  vi.spyOn(SettlementRetries.prototype, 'add').mockImplementation(function (this: SettlementRetries, run, untilMs) {
    // Others than this one, whose ledger does not come back either, have filled every place.
    while (add.call(this, () => Promise.reject(new Error('the database is down')), untilMs));
    return add.call(this, run, untilMs)
  })
  isDown = true

  const answer = await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
  const held = await ledger.account(TEST_ACCOUNT)
  isDown = false
  clock.advance(15 * 60_000)
  await vi.waitFor(async () => {
    // The time between two sweeps.
    clock.advance(30_000)
    expect((await ledger.account(TEST_ACCOUNT))?.held).toBe(0n)
  })

  expect(answer.status).toBe(200)
  expect(held?.held).toBeGreaterThan(0n)
  expect(await ledger.account(TEST_ACCOUNT)).toMatchObject({ balance: CREDIT, held: 0n })
  const faults = events.flatMap((event) => (event.type === 'internal-error' ? [event] : []))
  expect(faults.slice(0, 2).map(({ where }) => where)).toEqual(['settle', 'settle: given up'])
  expect(faults[1]?.requestId).toBe(answer.headers.get('x-request-id'))
})
