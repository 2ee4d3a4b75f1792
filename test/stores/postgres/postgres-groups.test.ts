import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { MaybePromise } from '../../../src/core/maybe-promise.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { LedgerEntry } from '../../../src/stores/journal.ts'
import { type AccountChange, MAX_AMOUNT, type Reservation, type ReserveResult } from '../../../src/stores/ledger.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { spendingAt, spendingPeriod } from '../../../src/stores/spending.ts'
import { realServer } from '../../support/real-servers.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const NOW_MS = 1_790_000_000_000
const HOUR_MS = 60 * 60 * 1000
/** Rounds of the comparison with the memory store. */
const ROUNDS = 150

function reservation(overrides: Partial<Reservation> = {}): Reservation {
  const expiresAtMs = NOW_MS + 60_000
  return { holdId: 'hold_1', accountId: 'account_1', keyId: 'key_1', amount: 100n, expiresAtMs, ...overrides }
}

describe.skipIf(server.missing !== undefined)('groups of operations on PostgreSQL', () => {
  let schemas: Schemas
  let schema: string
  let pool: pg.Pool
  let store: GatewayStore
  let host: pg.Client

  beforeAll(() => {
    schemas = schemasOn(server.url, 'alter')
  })
  afterAll(() => schemas.end())

  beforeEach(async () => {
    const created = await schemas.create()
    schema = schemas.schemaOf(created)
    pool = new pg.Pool({ connectionString: server.url, max: 4 })
    store = postgresStore({ pool, schema, clock: 'caller', statementTimeoutMs: 30_000 })
    host = new pg.Client({ connectionString: server.url })
    await host.connect()
    return async () => {
      await host.end()
      await store.close()
      await pool.end()
      await schemas.dispose(created)
    }
  })

  async function fund(accountId: string, amount = 1_000_000n): Promise<void> {
    await store.ledger.createAccount({ id: accountId }, NOW_MS)
    await store.ledger.credit({ creditId: `credit_${accountId}`, accountId, amount, description: 'start' }, NOW_MS)
  }

  /** Lets a session of the host lock an account until the returned function is called. */
  async function lockAccount(accountId: string): Promise<() => Promise<void>> {
    await host.query('BEGIN')
    await host.query(`SELECT FROM ${schema}.accounts WHERE id = $1 FOR UPDATE`, [accountId])
    return async () => void (await host.query('COMMIT'))
  }

  test('calls of a locked account wait in one connection, while other accounts are answered', async () => {
    await fund('account_1')
    await fund('account_2')
    const reserve = async (holdId: string, accountId: string) =>
      store.ledger.reserve(reservation({ holdId, accountId }), NOW_MS)
    const open = Array.from({ length: 20 }, (_, index) => `open_${index}`)
    for (const holdId of open) await reserve(holdId, 'account_1')
    const unlock = await lockAccount('account_1')
    const blocked = [reserve('blocked', 'account_1')]
    await reserve('first', 'account_2')

    for (const holdId of open) {
      blocked.push(
        reserve(`after_${holdId}`, 'account_1'),
        Promise.resolve(store.ledger.settle({ holdId, amount: 1n, description: 'chat' }, NOW_MS)).then(
          () => ({ status: 'held' }) as const,
        ),
      )
      expect(await reserve(`other_${holdId}`, 'account_2')).toEqual({ status: 'held' })
    }
    const { rows } = await schemas.pool.query(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`,
      [`%${schema}%`],
    )
    await unlock()
    await Promise.all(blocked)

    expect(rows).toEqual([{ count: 1 }])
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 1_000_000n - 20n - 2_100n, held: 2_100n })
  })

  test.each(["it's", '"', '\\', 'a,b', '{}', 'NULL', '', ' ', 'é\u{1f600}', '$1', '%'])(
    'reserves and settles in groups with %j as ids',
    async (id) => {
      await fund(id)
      const [one, other] = [`${id}_1`, id]
      const reserved = [one, other].map(async (holdId) =>
        store.ledger.reserve(reservation({ holdId, accountId: id, keyId: id }), NOW_MS),
      )
      expect(await Promise.all(reserved)).toEqual([{ status: 'held' }, { status: 'held' }])
      const settled = [one, other].map(async (holdId) =>
        store.ledger.settle({ holdId, amount: 10n, description: id, details: undefined }, NOW_MS),
      )
      expect(await Promise.all(settled)).toMatchObject([{ charged: 10n }, { charged: 10n }])
      expect(await store.ledger.account(id)).toMatchObject({ balance: 999_980n, held: 0n })
    },
  )

  test('an id with U+0000 fails alone in its group', async () => {
    await fund('account_1')
    const outcomes = await Promise.allSettled([
      store.ledger.reserve(reservation({ holdId: 'hold\0' }), NOW_MS),
      store.ledger.reserve(reservation(), NOW_MS),
      store.ledger.void('hold\0', NOW_MS),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
  })

  test('a time that cannot be sent fails alone in its group', async () => {
    await fund('account_1')
    const outcomes = await Promise.allSettled([
      store.ledger.reserve(reservation({ holdId: 'hold_2', expiresAtMs: Number.NaN }), NOW_MS),
      store.ledger.reserve(reservation(), NOW_MS),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  })

  test('a metered account with a balance and the largest credit limit can reserve', async () => {
    await fund('account_1')
    await store.ledger.updateAccount('account_1', { billing: 'metered', creditLimit: MAX_AMOUNT })
    expect(await store.ledger.reserve(reservation(), NOW_MS)).toEqual({ status: 'held' })
    expect(await store.ledger.enlarge('hold_1', 5n, NOW_MS)).toEqual('held')
  })

  test('closing waits for the calls that wait for a group', async () => {
    await fund('account_1')
    const other = postgresStore({ pool, schema, clock: 'caller' })
    const reserved = Promise.all(
      Array.from({ length: 150 }, async (_, index) =>
        other.ledger.reserve(reservation({ holdId: `hold_${index}` }), NOW_MS),
      ),
    )
    await other.close()
    expect(new Set((await reserved).map(({ status }) => status))).toEqual(new Set(['held']))
    await expect(other.ledger.reserve(reservation({ holdId: 'late' }), NOW_MS)).rejects.toThrow('closed')
  })

  test('prepared groups continue after the functions were replaced', async () => {
    await fund('account_1')
    await store.ledger.reserve(reservation(), NOW_MS)
    await schemas.pool.query(
      `CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT 1::bigint'`,
    )
    const again = await schemas.create(schema)
    await again.close()
    expect(await store.ledger.reserve(reservation({ holdId: 'hold_2' }), NOW_MS)).toEqual({ status: 'held' })
  })

  test('a group has the results of the memory store, which gets its calls one after the other', async () => {
    const memory = memoryStore()
    const stores = [store, memory]
    const kinds = new Set<string>()
    let seed = 42
    /** Pseudo-random integer below `limit`, the same in each run. */
    const random = (limit: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return Math.floor((seed / 2 ** 31) * limit)
    }
    const accountIds = ['a', 'b', 'c', 'd', 'e']
    const settings: Record<string, AccountChange> = {
      b: { billing: 'metered', creditLimit: 3_000n },
      c: { spendingCap: { amount: 2_000n, period: 'day' } },
      d: { spendingCap: { amount: 9_000n, period: 'month' } },
    }
    const both = async <Value>(use: (one: GatewayStore) => MaybePromise<Value>): Promise<Value> => {
      const [real, expected] = [await use(store), await use(memory)]
      expect(real).toEqual(expected)
      return expected
    }
    for (const id of accountIds) {
      await both(({ ledger }) => ledger.createAccount({ id }, NOW_MS))
      await both(({ ledger }) => ledger.updateAccount(id, settings[id] ?? {}))
    }
    const thresholds = { caps: [25, 50, 80, 100], balance: [50, 90] }
    let nowMs = Date.UTC(2026, 10, 28, 20)
    let open: { readonly holdId: string; readonly accountId: string }[] = []
    for (let round = 0; round < ROUNDS; round++) {
      nowMs += random(3) === 0 ? random(8 * HOUR_MS) : random(HOUR_MS)
      const accountId = accountIds[random(accountIds.length)]!
      if (random(2) === 0) {
        const expiresAtMs = random(2) === 0 ? nowMs + 1 + random(12 * HOUR_MS) : undefined
        const credit = { creditId: `credit_${round}`, accountId, amount: BigInt(500 + random(3_000)), expiresAtMs }
        await both(({ ledger }) => ledger.credit({ ...credit, description: 'top-up' }, nowMs))
      }
      if (random(8) === 0) {
        const frozen = random(2) === 0 ? { reason: 'test', atMs: nowMs } : null
        await both(({ ledger }) => ledger.updateAccount(accountId, { frozen }))
      }
      if (random(6) === 0) await both(({ ledger }) => ledger.expire(nowMs, 100))
      if (random(3) === 0) await both(({ ledger }) => ledger.expireCredits(nowMs, 100))
      // Ends that a group leaves to the function for one hold follow its reservations: at most one of each account.
      const { rows } = await pool.query(
        `SELECT h.id FROM ${schema}.holds h JOIN ${schema}.accounts a ON a.id = h.account_id
        WHERE h.status <> 'held' OR a.first_expiry_ms <= $1`,
        [nowMs],
      )
      const alone = new Set(rows.map(({ id }) => id))
      const accountsWithAlone = new Set<string>()
      const ending = open
        .filter(({ holdId, accountId }) => {
          if (random(2) === 0) return false
          if (!alone.has(holdId)) return true
          return !accountsWithAlone.has(accountId) && accountsWithAlone.add(accountId)
        })
        .sort((one, other) => (`${one.accountId} ${one.holdId}` < `${other.accountId} ${other.holdId}` ? -1 : 1))
      const ends = ending.map(({ holdId }) =>
        random(4) === 0
          ? (one: GatewayStore) => one.ledger.void(holdId, nowMs)
          : (
              (settlement) => (one: GatewayStore) =>
                one.ledger.settle(settlement, nowMs)
            )({
              holdId,
              amount: BigInt(random(1_500)),
              description: 'chat',
              ...(random(2) === 0 ? { thresholds } : {}),
            }),
      )
      const wanted = Array.from({ length: random(12) }, (_, index): Reservation => {
        const amount = BigInt(random(600))
        const larger = { amount: amount + 300n, requiredFree: amount + 400n }
        const cap = { amount: 4_000n, period: random(2) === 0 ? 'day' : 'month' } as const
        return {
          holdId: `hold_${round}_${index}`,
          accountId: [...accountIds, 'unknown'][random(accountIds.length + 1)]!,
          keyId: `key_${random(3)}`,
          amount,
          expiresAtMs: nowMs + random(4 * HOUR_MS),
          ...(random(3) === 0 ? { requiredFree: amount + 50n } : {}),
          ...(random(3) === 0 ? { larger } : {}),
          ...(random(3) === 0 ? { caps: random(2) === 0 ? { account: cap } : { key: cap } } : {}),
          ...(random(4) === 0 ? { billing: 'metered' as const } : {}),
        }
      }).sort((one, other) => (one.accountId < other.accountId ? -1 : one.accountId > other.accountId ? 1 : 0))
      const reserves = wanted.map(
        (one) =>
          ({ ledger }: GatewayStore) =>
            ledger.reserve(one, nowMs),
      )
      const real = await Promise.all([...ends, ...reserves].map((call) => call(store)))
      const isAlone = (_: unknown, index: number) => alone.has(ending[index]!.holdId)
      const results = new Map<unknown, unknown>()
      for (const call of [...ends.filter((end, index) => !isAlone(end, index)), ...reserves, ...ends.filter(isAlone)])
        results.set(call, await call(memory))
      const expected = [...ends, ...reserves].map((call) => results.get(call))

      expect({ round, real }).toEqual({ round, real: expected })
      const held = wanted.filter((_, index) => (expected[ends.length + index] as ReserveResult).status === 'held')
      open = [...open.filter((hold) => !ending.includes(hold)), ...held]
      for (const id of accountIds) {
        await both(({ ledger }) => ledger.account(id))
        await both(async ({ ledger }) => {
          const { account, keys } = (await ledger.spending(id, ['key_0', 'key_1', 'key_2']))!
          return [account, ...keys].map((counts) => spendingAt(counts, spendingPeriod(nowMs)))
        })
      }
    }
    for (const id of accountIds) {
      const [real, expected] = await Promise.all(stores.map(({ ledger }) => ledger.entries(id, 10_000)))
      const withoutNumbers = (lines: readonly LedgerEntry[]) => lines.map(({ id: _number, ...line }) => line)
      expect(withoutNumbers(real!)).toEqual(withoutNumbers(expected!))
      for (const { kind } of expected!) kinds.add(kind)
    }
    expect([...kinds].sort()).toEqual(['charge', 'credit', 'expiry', 'owed', 'repayment'])
  })
})
