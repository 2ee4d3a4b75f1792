import { afterEach, expect, test } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const ABOVE_ALL_STORES = { amount: 2n ** 63n, period: 'day' } as const

const refusals: [call: string, param: string, message: string, run: (gateway: Gateway) => Promise<unknown>][] = [
  [
    'accounts.create',
    'spendingCap',
    'above 2^63',
    ({ accounts }) => accounts.create({ spendingCap: ABOVE_ALL_STORES }),
  ],
  [
    'accounts.update',
    'spendingCap',
    'above 2^63',
    ({ accounts }) => accounts.update('a', { spendingCap: ABOVE_ALL_STORES }),
  ],
  ['accounts.credit', 'amount', 'not a non-negative decimal', ({ accounts }) => accounts.credit('a', '1,50')],
  ['accounts.credit', 'amount', 'above zero', ({ accounts }) => accounts.credit('a', '0')],
  ['accounts.credit', 'amount', 'finer than a nano-dollar', ({ accounts }) => accounts.credit('a', '0.0000000001')],
  ['accounts.credit', 'amount', 'above 2^63', ({ accounts }) => accounts.credit('a', '9999999999999')],
  ['accounts.credit', 'amount', 'cannot hold more', ({ accounts }) => accounts.credit('a', '9223372036')],
  ['accounts.credit', 'accountId', 'there is no account "b"', ({ accounts }) => accounts.credit('b', '1')],
  ['keys.create', 'accountId', 'there is no account "b"', ({ keys }) => keys.create({ accountId: 'b' })],
  [
    'keys.create',
    'spendingCap',
    'above 2^63',
    ({ keys }) => keys.create({ accountId: 'a', spendingCap: ABOVE_ALL_STORES }),
  ],
  ['keys.rotate', 'keyId', 'there is no valid key "key_1"', ({ keys }) => keys.rotate('key_1')],
  ['keys.rotate', 'overlapMs', 'at least 0', ({ keys }) => keys.rotate('key_1', { overlapMs: -1 })],
  ['webhooks.rotateSecret', 'overlapMs', 'at least 0', ({ webhooks }) => webhooks.rotateSecret('a', { overlapMs: -1 })],
]

let gateway: Gateway

async function start(store: GatewayStore): Promise<void> {
  gateway = createGateway({ vendors: [], billing: 'off', store })
  await gateway.accounts.create({ id: 'a' })
  await gateway.accounts.credit('a', '1')
}

afterEach(() => gateway.close())

for (const [name, open] of [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
] as const) {
  test.each(refusals)(`${name}: %s refuses a bad %s as a GatewayError: %s`, async (_call, param, message, run) => {
    await start(open())

    const error: unknown = await run(gateway).catch((cause) => cause)

    expect(GatewayError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ code: 'invalid_request', param, message: expect.stringContaining(message) })
    expect(await gateway.accounts.get('a')).toMatchObject({ balance: 1_000_000_000n })
  })
}

test('what a store throws is store_unavailable, with the error as its cause', async () => {
  const store = memoryStore()
  const down = new TypeError('connection lost')
  const fail = (): never => {
    throw down
  }
  await start({ ...store, keys: { ...store.keys, list: () => Promise.reject(down), revoke: fail } })

  for (const call of [gateway.keys.list(), gateway.keys.revoke('key_1'), gateway.keys.rotate('key_1')]) {
    await expect(call).rejects.toMatchObject({ code: 'store_unavailable', retryable: true, cause: down })
  }
})

test('a RangeError of a driver is a refused argument', async () => {
  const store = memoryStore()
  const refusal = new RangeError('limit must be at most 1000')
  await start({ ...store, ledger: { ...store.ledger, entries: () => Promise.reject(refusal) } })

  await expect(gateway.accounts.ledger('a', { limit: 5000 })).rejects.toMatchObject({
    code: 'invalid_request',
    message: refusal.message,
  })
})
