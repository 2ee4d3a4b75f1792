import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

describe('a hold that could expire under its call', () => {
  test.each<Partial<GatewayOptions>>([
    { holdTtlMs: 600_000 },
    { holdTtlMs: 60_000, timeouts: { totalMs: 60_000 } },
    { holdTtlMs: 90_000, timeouts: { totalMs: 60_000 }, disconnect: 'drain' },
    {
      holdTtlMs: 65_000,
      timeouts: { totalMs: 60_000 },
      disconnect: { default: 'cancel', chat: 'drain' },
      drainMs: 5_000,
    },
  ])('is refused at the start: %j', async (options) => {
    await expect(startGateway(options)).rejects.toThrow(/holdTtlMs \(\d+\) must be above timeouts\.totalMs/)
  })

  test.each<Partial<GatewayOptions>>([
    { holdTtlMs: 60_001, timeouts: { totalMs: 60_000 } },
    { timeouts: { totalMs: 20 * 60_000 } },
    { holdTtlMs: 1_000, billing: 'off' },
  ])('is what these options do not make: %j', async (options) => {
    started = await startGateway(options)
    expect((await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))).status).toBe(200)
  })
})

test('a reservation whose acknowledgement was lost is undone, and its Idempotency-Key is free again', async () => {
  const clock = fakeClock()
  const store = memoryStore()
  let isLosing = true
  const losing: GatewayStore = {
    ...store,
    ledger: {
      ...store.ledger,
      async reserve(reservation, nowMs) {
        const result = await store.ledger.reserve(reservation, nowMs)
        if (isLosing) throw new Error('the connection broke before the answer came')
        return result
      },
    },
  }
  started = await startGateway({ store: losing, clock })
  const ask = () =>
    started!.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'), { 'idempotency-key': 'order-17' })

  expect((await ask()).status).toBe(503)
  expect((await started.account()).held).toBeGreaterThan(0n)
  isLosing = false
  clock.advance(1_000)
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))

  expect((await started.account()).held).toBe(0n)
  // Before: 409 for fifteen minutes, until the hold expired.
  expect((await ask()).status).toBe(200)
  expect(started.sandbox.requests).toHaveLength(1)
})

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
])('a key of the configuration, on %s', (_name, openStore) => {
  /** The same store again, which another gateway's end does not close. */
  const kept = (store: GatewayStore): GatewayStore => ({ ...store, close: async () => undefined })

  test('charges the account that the key was moved to', async () => {
    const store = openStore()
    const first = await startGateway({ store: kept(store) })
    await first.close()
    started = await startGateway({ store: kept(store), keys: [{ key: TEST_KEY, account: 'acct_new' }] })
    await started.gateway.accounts.credit('acct_new', '5')

    expect((await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))).status).toBe(200)
    // Before: the account of the first start went on paying.
    expect((await started.gateway.accounts.ledger(TEST_ACCOUNT)).filter(({ kind }) => kind === 'charge')).toEqual([])
    expect((await started.gateway.accounts.ledger('acct_new')).map(({ kind }) => kind)).toEqual(['charge', 'credit'])
    await started.close()
    started = undefined
    await store.close()
  })

  test('fails at start if the store gave the key to another account', async () => {
    const store = openStore()
    const first = await startGateway({ store: kept(store) })
    const { key } = await first.gateway.keys.create({ accountId: TEST_ACCOUNT })
    await first.close()

    await expect(startGateway({ store: kept(store), keys: [{ key, account: 'acct_new' }] })).rejects.toThrow(
      /is the key "key_.*" of the account "acct_test" in the store/,
    )
    await store.close()
  })
})

test('the same key for two accounts is refused at the start', async () => {
  const keys = [
    { key: TEST_KEY, account: 'acct_one' },
    { key: TEST_KEY, account: 'acct_two' },
  ]
  await expect(startGateway({ keys })).rejects.toThrow('the same key is listed for the accounts acct_one and acct_two')
})
