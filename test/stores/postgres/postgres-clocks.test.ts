import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { realServer } from '../../support/real-servers.ts'
import { expectExactChats, openAccounts, startChats } from './support/chats.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const MINUTE_MS = 60_000
const NOON_MS = Date.UTC(2026, 10, 22, 12)
/** How far the clocks of the two processes are from the right time. */
const [FAST_MS, SLOW_MS] = [5 * MINUTE_MS, -7 * MINUTE_MS]

describe.skipIf(server.missing !== undefined)('two processes on one PostgreSQL whose clocks differ by minutes', () => {
  let schemas: Schemas
  let created: GatewayStore

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  beforeEach(async () => {
    created = await schemas.create()
    return () => schemas.dispose(created)
  })

  function storeOf(clock: 'database' | 'caller'): GatewayStore {
    return postgresStore({ pool: schemas.pool, schema: schemas.schemaOf(created), clock })
  }

  test.each([
    ['database', Date.now],
    ['caller', () => NOON_MS],
  ] as const)('charge each call once and keep the journal in order, by the clock of the %s', async (clock, now) => {
    const accountIds = await openAccounts(created, 8, now())
    const fast = startChats(storeOf(clock), accountIds, { now: () => now() + FAST_MS, name: 'fast' })
    const slow = startChats(storeOf(clock), accountIds, { now: () => now() + SLOW_MS, name: 'slow' })
    await Promise.all([fast.moreSettled(200), slow.moreSettled(200)])
    await Promise.all([fast.end(), slow.end()])

    await expectExactChats(created, fast, slow)
  })

  test('end no hold of the other before its time, and each hold after it, by the clock of the database', async () => {
    const [accountId] = await openAccounts(created, 1, Date.now())
    const [fast, slow] = [storeOf('database'), storeOf('database')]
    const fastMs = (): number => Date.now() + FAST_MS
    const slowMs = (): number => Date.now() + SLOW_MS
    const hold = { accountId: accountId!, keyId: 'key_1', amount: 100n }
    const calls = [
      fast.ledger.reserve({ ...hold, holdId: 'fast_long', expiresAtMs: fastMs() + MINUTE_MS }, fastMs()),
      slow.ledger.reserve({ ...hold, holdId: 'slow_long', expiresAtMs: slowMs() + MINUTE_MS }, slowMs()),
      fast.ledger.reserve({ ...hold, holdId: 'fast_short', expiresAtMs: fastMs() + 1 }, fastMs()),
      slow.ledger.reserve({ ...hold, holdId: 'slow_short', expiresAtMs: slowMs() + 1 }, slowMs()),
    ]
    expect(await Promise.all(calls)).toEqual(calls.map(() => ({ status: 'held' })))

    const sweep = async () => {
      await fast.ledger.expire(fastMs(), 100)
      await slow.ledger.expire(slowMs(), 100)
      const open = await created.ledger.openHolds({ accountId, after: undefined, limit: 10 })
      return open.map(({ id }) => id).sort()
    }
    await expect.poll(sweep, { timeout: 5_000, interval: 5 }).toEqual(['fast_long', 'slow_long'])

    expect(await slow.ledger.settle({ holdId: 'fast_long', amount: 60n, description: 'chat' }, slowMs())).toMatchObject(
      {
        resolved: true,
        charged: 60n,
      },
    )
    expect(await fast.ledger.void('slow_long', fastMs())).toMatchObject({ resolved: true })
    const late = await fast.ledger.settle({ holdId: 'slow_short', amount: 40n, description: 'chat' }, fastMs())
    expect(late).toMatchObject({ resolved: true, charged: 40n })
    expect(await created.ledger.account(accountId!)).toMatchObject({ balance: 1_000_000_000n - 100n, held: 0n })
  })

  test.each(['database', 'caller'] as const)(
    'share one claim of an Idempotency-Key, by the clock of the %s',
    async (clock) => {
      const [accountId] = await openAccounts(created, 1, NOON_MS)
      const reservations = [FAST_MS, SLOW_MS].flatMap((offsetMs, process) => {
        const nowMs = NOON_MS + offsetMs
        const { ledger } = storeOf(clock)
        return [1, 2, 3].map((number) => {
          const claim = {
            accountId: accountId!,
            key: 'order-17',
            fingerprint: 'a',
            expiresAtMs: nowMs + 60 * MINUTE_MS,
          }
          const holdId = `hold_${process}_${number}`
          const hold = {
            holdId,
            accountId: accountId!,
            keyId: 'key_1',
            amount: 100n,
            expiresAtMs: nowMs + MINUTE_MS,
            claim,
          }
          return ledger.reserve(hold, nowMs)
        })
      })

      const statuses = (await Promise.all(reservations)).map(({ status }) => status)

      expect(statuses.sort()).toEqual(['held', ...Array.from({ length: 5 }, () => 'in_flight')])
    },
  )

  test('count a day for a cap once the first clock has reached it, by the clock of the caller', async () => {
    const [accountId] = await openAccounts(created, 1, NOON_MS)
    const midnightMs = NOON_MS + 12 * 60 * MINUTE_MS
    const caps = { account: { amount: 150n, period: 'day' } } as const
    const hold = { accountId: accountId!, keyId: 'key_1', amount: 100n, expiresAtMs: midnightMs * 2, caps }
    const [fast, slow] = [storeOf('caller').ledger, storeOf('caller').ledger]

    const beforeMidnight = await slow.reserve({ ...hold, holdId: 'yesterday' }, midnightMs - 2)
    const afterMidnight = await fast.reserve({ ...hold, holdId: 'today' }, midnightMs)
    const behind = await slow.reserve({ ...hold, holdId: 'behind' }, midnightMs - 1)

    expect([beforeMidnight, afterMidnight]).toEqual([{ status: 'held' }, { status: 'held' }])
    expect(behind).toEqual({ status: 'spending_limit', counter: `account:${accountId}:2026-11-23` })
  })
})
