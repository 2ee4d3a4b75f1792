import { Buffer } from 'node:buffer'
import { afterEach, expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'

const ABOVE_ALL_STORES = { amount: 2n ** 63n, period: 'day' } as const

const refusals: [call: string, param: string, message: string, run: (gateway: Gateway) => Promise<unknown>][] = [
  [
    'accounts.create',
    'spendingCap',
    'above 2^63',
    ({ accounts }) => accounts.create({ spendingCap: ABOVE_ALL_STORES }),
  ],
  [
    'accounts.create',
    'spendingCap',
    'period must be day or month',
    ({ accounts }) => accounts.create({ spendingCap: { amount: 1n, period: 'week' as 'day' } }),
  ],
  ['accounts.create', 'tier', 'must be free or paid', ({ accounts }) => accounts.create({ tier: 'gold' as 'paid' })],
  [
    'accounts.update',
    'billing',
    'must be prepaid or metered',
    ({ accounts }) => accounts.update('a', { billing: 'postpaid' as 'metered' }),
  ],
  [
    'accounts.update',
    'spendingCap',
    'above 2^63',
    ({ accounts }) => accounts.update('a', { spendingCap: ABOVE_ALL_STORES }),
  ],
  [
    'accounts.credit',
    'amount',
    'expected a decimal number of 0 or more, such as "2.50"',
    ({ accounts }) => accounts.credit('a', '1,50'),
  ],
  ['accounts.credit', 'amount', 'dollars as text', ({ accounts }) => accounts.credit('a', 5n as unknown as string)],
  [
    'accounts.adjust',
    'amount',
    'dollars as text',
    ({ accounts }) => accounts.adjust('a', { amount: 5n as unknown as string, reason: 'x' }),
  ],
  ['accounts.credit', 'amount', 'above zero', ({ accounts }) => accounts.credit('a', '0')],
  ['accounts.credit', 'amount', 'finer than a nano-dollar', ({ accounts }) => accounts.credit('a', '0.0000000001')],
  ['accounts.credit', 'amount', 'above 2^63', ({ accounts }) => accounts.credit('a', '9999999999999')],
  ['accounts.credit', 'amount', 'cannot hold more', ({ accounts }) => accounts.credit('a', '9223372036')],
  ['accounts.credit', 'accountId', 'there is no account "b"', ({ accounts }) => accounts.credit('b', '1')],
  [
    'accounts.credit',
    'expiresAtMs',
    'in the future',
    ({ accounts }) => accounts.credit('a', '1', { expiresAtMs: Date.now() - 1 }),
  ],
  // A second payment under it would be taken for the first one again.
  ['accounts.credit', 'creditId', 'printable', ({ accounts }) => accounts.credit('a', '1', { creditId: '' })],
  ['accounts.adjust', 'amount', 'not be zero', ({ accounts }) => accounts.adjust('a', { amount: '-0', reason: 'x' })],
  [
    'accounts.adjust',
    'amount',
    'expected a decimal number',
    ({ accounts }) => accounts.adjust('a', { amount: '--1', reason: 'x' }),
  ],
  ['accounts.adjust', 'reason', 'one line', ({ accounts }) => accounts.adjust('a', { amount: '1', reason: 'x\ny' })],
  ['accounts.adjust', 'reason', 'one line', ({ accounts }) => accounts.adjust('a', { amount: '1', reason: '' })],
  [
    'accounts.adjust',
    'adjustmentId',
    'printable',
    ({ accounts }) => accounts.adjust('a', { amount: '1', reason: 'x', adjustmentId: '\u0000' }),
  ],
  [
    'accounts.adjust',
    'accountId',
    'there is no account "b"',
    ({ accounts }) => accounts.adjust('b', { amount: '1', reason: 'x' }),
  ],
  ['accounts.refund', 'chargeId', 'there is no charge "e"', ({ accounts }) => accounts.refund('e', { reason: 'x' })],
  ['accounts.refund', 'amount', 'above zero', ({ accounts }) => accounts.refund('e', { amount: '0', reason: 'x' })],
  ['accounts.refund', 'reason', 'one line', ({ accounts }) => accounts.refund('e', { reason: 'x'.repeat(501) })],
  ['accounts.refund', 'reason', 'one line', ({ accounts }) => accounts.refund('e', {} as { reason: string })],
  [
    'accounts.adjust',
    'reason',
    'one line',
    ({ accounts }) => accounts.adjust('a', { amount: '1' } as { amount: string; reason: string }),
  ],
  ['accounts.freeze', 'reason', 'one line', ({ accounts }) => accounts.freeze('a', {} as { reason: string })],
  ['accounts.create', 'id', 'non-empty', ({ accounts }) => accounts.create({ id: '' })],
  ['accounts.create', 'id', 'non-empty', ({ accounts }) => accounts.create({ id: 5 as unknown as string })],
  ['accounts.list', 'limit', 'from 1 to 1000', ({ accounts }) => accounts.list({ limit: 1_001 })],
  ['accounts.list', 'cursor', 'not one that was given', ({ accounts }) => accounts.list({ cursor: 'WzFd' })],
  ['accounts.journal', 'limit', 'from 1 to 1000', ({ accounts }) => accounts.journal('a', { limit: 0 })],
  ['accounts.journal', 'cursor', 'not one that', ({ accounts }) => accounts.journal('a', { cursor: 'WyJ4IiwiNSJd' })],
  ['accounts.journal', 'fromMs', 'Unix milliseconds', ({ accounts }) => accounts.journal('a', { fromMs: Number.NaN })],
  ['accounts.journal', 'accountId', 'there is no account "b"', ({ accounts }) => accounts.journal('b')],
  ['accounts.statement', 'month', 'not a month', ({ accounts }) => accounts.statement('a', '2026-13')],
  ['accounts.statement', 'accountId', 'there is no account "b"', ({ accounts }) => accounts.statement('b', '2026-11')],
  ['holds.list', 'limit', 'from 1 to 1000', ({ holds }) => holds.list({ limit: 1.5 })],
  ['holds.settle', 'holdId', 'there is no hold "h"', ({ holds }) => holds.settle('h', '1')],
  [
    'holds.settle',
    'amount',
    'expected a decimal number of 0 or more, such as "2.50"',
    ({ holds }) => holds.settle('h', '-1'),
  ],
  ['holds.void', 'holdId', 'there is no hold "h"', ({ holds }) => holds.void('h')],
  // Its letters would be tags.
  ['keys.create', 'tags', 'at most 8', ({ keys }) => keys.create({ accountId: 'a', tags: 'shop' as unknown as [] })],
  ['keys.create', 'accountId', 'there is no account "b"', ({ keys }) => keys.create({ accountId: 'b' })],
  [
    'keys.create',
    'spendingCap',
    'above 2^63',
    ({ keys }) => keys.create({ accountId: 'a', spendingCap: ABOVE_ALL_STORES }),
  ],
  [
    'keys.create',
    'endpoints',
    'there is no endpoint "chatt"; did you mean chat?',
    ({ keys }) => keys.create({ accountId: 'a', scopes: { endpoints: ['chatt'] } }),
  ],
  [
    'keys.create',
    'endpoints',
    'must be a list of strings',
    ({ keys }) => keys.create({ accountId: 'a', scopes: { endpoints: 'chat' as unknown as string[] } }),
  ],
  [
    'keys.create',
    'models',
    'must be a list of strings',
    ({ keys }) => keys.create({ accountId: 'a', scopes: { models: 'cl-opus-4-7' as unknown as string[] } }),
  ],
  ...(['requestsPerMinute', 'tokensPerMinute', 'concurrency'] as const).flatMap((member) =>
    [Number.NaN, -1, 0, Number.POSITIVE_INFINITY, '5', null].map((value): (typeof refusals)[number] => [
      'keys.create',
      'limits',
      `limits.${member} must be a positive number`,
      ({ keys }) => keys.create({ accountId: 'a', limits: { [member]: value as number } }),
    ]),
  ),
  [
    'keys.update',
    'limits',
    'limits.concurrency must be a positive number',
    ({ keys }) => keys.update('key_1', { limits: { concurrency: Number.NaN } }),
  ],
  ...[Number.NaN, Infinity, '2027-01-01', new Date(2 ** 42), Math.floor(Date.now() / 1000)].map(
    (value): (typeof refusals)[number] => [
      'keys.create',
      'expiresAtMs',
      'must be Unix milliseconds',
      ({ keys }) => keys.create({ accountId: 'a', expiresAtMs: value as number }),
    ],
  ),
  ['keys.page', 'limit', 'from 1 to 1000', ({ keys }) => keys.page({ limit: 1_001 })],
  ['keys.page', 'cursor', 'not one that was given', ({ keys }) => keys.page({ cursor: 'x' })],
  ...[
    ['1e300', 'a'],
    ['1.5', 'a'],
    ['1', 'a\0'],
  ].flatMap((parts): (typeof refusals)[number][] => {
    const cursor = Buffer.from(JSON.stringify(parts)).toString('base64url')
    return [
      ['keys.page', 'cursor', 'not one that was given', ({ keys }) => keys.page({ cursor })],
      ['holds.list', 'cursor', 'not one that was given', ({ holds }) => holds.list({ cursor })],
      ['tasks.listAll', 'cursor', 'not one that was given', ({ tasks }) => tasks.listAll({ cursor })],
      ['accounts.journal', 'cursor', 'not one that was given', ({ accounts }) => accounts.journal('a', { cursor })],
    ]
  }),
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

test('a debit above the balance is insufficient_balance, and an id that was used before is named', async () => {
  await start(memoryStore())
  const adjust = (amount: string, adjustmentId: string) =>
    gateway.accounts.adjust('a', { amount, reason: 'x', adjustmentId })

  await expect(adjust('-1.000000001', 'a1')).rejects.toMatchObject({ code: 'insufficient_balance', param: 'amount' })
  expect(await adjust('-1', 'a1')).toBe(true)
  await expect(adjust('-2', 'a1')).rejects.toMatchObject({ code: 'invalid_request', param: 'adjustmentId' })
})

test('what a store throws is store_unavailable, with the error as its cause', async () => {
  const store = memoryStore()
  const down = new TypeError('connection lost')
  const fail = (): never => {
    throw down
  }
  await start({ ...store, keys: { ...store.keys, page: () => Promise.reject(down), find: fail, revoke: fail } })

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
