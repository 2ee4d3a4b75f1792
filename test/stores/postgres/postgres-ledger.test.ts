import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { Reservation } from '../../../src/stores/ledger.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { realServer } from '../../support/real-servers.ts'
import { dropSchema, freshSchemaName, type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const NOW_MS = 1_790_000_000_000
const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

function reservation(overrides: Partial<Reservation> = {}): Reservation {
  return {
    holdId: 'hold_1',
    accountId: 'account_1',
    keyId: 'key_1',
    amount: 100n,
    expiresAtMs: NOW_MS + 60_000,
    ...overrides,
  }
}

async function fund({ ledger }: GatewayStore, amount: bigint, accountId = 'account_1'): Promise<void> {
  await ledger.createAccount({ id: accountId }, NOW_MS)
  await ledger.credit({ creditId: `credit_${accountId}`, accountId, amount, description: 'start' }, NOW_MS)
}

describe.skipIf(server.missing !== undefined)('ledger on PostgreSQL', () => {
  let schemas: Schemas
  let store: GatewayStore
  let schema: string

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  beforeEach(async () => {
    store = await schemas.create()
    schema = schemas.schemaOf(store)
    return () => schemas.dispose(store)
  })

  const count = async (table: string): Promise<number> =>
    Number((await schemas.pool.query(`SELECT count(*) FROM ${schema}.${table}`)).rows[0].count)

  test('the database itself refuses a balance or held money below zero', async () => {
    await fund(store, 1_000n)

    await expect(schemas.pool.query(`UPDATE ${schema}.accounts SET balance = -1`)).rejects.toThrow('check constraint')
    await expect(schemas.pool.query(`UPDATE ${schema}.accounts SET held = -1`)).rejects.toThrow('check constraint')
  })

  test.each(['UPDATE $.entries SET amount = 5', 'DELETE FROM $.entries', 'TRUNCATE $.entries'])(
    'the journal refuses %s',
    async (statement) => {
      await fund(store, 1_000n)

      await expect(schemas.pool.query(statement.replace('$', schema))).rejects.toThrow('the journal is append-only')

      expect(await store.ledger.entries('account_1', 10)).toHaveLength(1)
    },
  )

  test('the database itself refuses a second charge for one hold', async () => {
    await fund(store, 1_000n)
    await store.ledger.reserve(reservation(), NOW_MS)
    await store.ledger.settle({ holdId: 'hold_1', amount: 10n, description: 'chat' }, NOW_MS)

    const again = `INSERT INTO ${schema}.entries (account_id, kind, amount, hold_id, description, created_at_ms, balance_after, owed_after)
      VALUES ('account_1', 'charge', -10, 'hold_1', 'chat', 1, 980, 0)`

    await expect(schemas.pool.query(again)).rejects.toThrow('entries_charged_once')
  })

  test('lets one of 100 racers end a hold; the sweep may be followed by one late settlement', async () => {
    await fund(store, 1_000n)
    await store.ledger.reserve(reservation({ amount: 400n, expiresAtMs: NOW_MS - 1 }), NOW_MS - 60_000)
    const race = [
      async () => (await store.ledger.settle({ holdId: 'hold_1', amount: 150n, description: 'chat' }, NOW_MS)).resolved,
      async () => (await store.ledger.void('hold_1', NOW_MS)).resolved,
      async () => (await store.ledger.expire(NOW_MS, 10)) === 1,
    ]

    const wins = await Promise.all(Array.from({ length: 100 }, (_, index) => race[index % race.length]!()))

    const { balance, held } = (await store.ledger.account('account_1'))!
    const sum = (await store.ledger.entries('account_1', 10)).reduce((total, { amount }) => total + amount, 0n)
    const won = race.map((_, racer) => wins.filter((isWon, index) => isWon && index % race.length === racer).length)
    // Settled, voided, swept, or swept and then still charged.
    const ends = [
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
      [1, 0, 1],
    ]
    expect(ends).toContainEqual(won)
    expect(held).toBe(0n)
    expect(balance).toBe(sum)
  })

  test('waiting reservations of one account share round trips, and are judged in order', async () => {
    await fund(store, 250n)
    const statements: string[] = []
    const counting = {
      query: (text: string, values?: unknown[]) => {
        statements.push(text)
        return schemas.pool.query(text, values)
      },
      transaction: () => Promise.reject(new Error('not used')),
    }
    const { ledger } = postgresStore({ pool: counting, schema, clock: 'caller' })
    const wanted = Array.from({ length: 500 }, (_, index) => reservation({ holdId: `hold_${index}`, amount: 25n }))

    const outcomes = await Promise.all(wanted.map(async (one) => ledger.reserve(one, NOW_MS)))

    expect(outcomes.slice(0, 10).every(({ status }) => status === 'held')).toBe(true)
    expect(outcomes.slice(10).every(({ status }) => status === 'insufficient_balance')).toBe(true)
    expect(statements).toHaveLength(5)
  })

  test('a wrong amount harms nobody who shares its round trip', async () => {
    await fund(store, 1_000n)

    const [wrong, right] = await Promise.allSettled([
      store.ledger.reserve(reservation({ amount: -1n }), NOW_MS),
      store.ledger.reserve(reservation({ holdId: 'hold_2' }), NOW_MS),
    ])

    expect(wrong).toMatchObject({ status: 'rejected', reason: expect.any(RangeError) })
    expect(right).toEqual({ status: 'fulfilled', value: { status: 'held' } })
  })

  test('reservations, settlements and sweeps with keys in common all end, and count exactly', async () => {
    await Promise.all(['account_1', 'account_2', 'account_3'].map((id) => fund(store, 100_000n, id)))
    const life = async (index: number): Promise<void> => {
      const holdId = `hold_${index}`
      const accountId = `account_${(index % 3) + 1}`
      await store.ledger.reserve(reservation({ holdId, accountId, keyId: `key_${index % 2}` }), NOW_MS)
      if (index % 5 === 0) await store.ledger.expire(NOW_MS + 90_000, 3)
      else await store.ledger.settle({ holdId, amount: 40n, description: 'chat' }, NOW_MS)
    }

    await Promise.all(Array.from({ length: 200 }, (_, index) => life(index)))
    await store.ledger.expire(NOW_MS + 90_000, 1_000)

    const spent = `sum((s.spending).charged_month)::text AS charged, sum((s.spending).held_month)::text AS held`
    const byKeys = await schemas.pool.query(`SELECT ${spent} FROM ${schema}.key_spending s`)
    const byAccounts = await schemas.pool.query(`SELECT ${spent} FROM ${schema}.accounts s`)
    const charged = await schemas.pool.query(
      `SELECT (-sum(amount))::text AS sum FROM ${schema}.entries WHERE amount < 0`,
    )
    expect(byKeys.rows).toEqual([{ charged: charged.rows[0].sum, held: '0' }])
    expect(byAccounts.rows).toEqual(byKeys.rows)
  })

  test('money stays exact for a host that reads 64-bit integers as floats', async () => {
    await fund(store, 9_007_199_254_740_993n)
    const types = {
      getTypeParser: (oid: number, format?: 'text') => (oid === 20 ? Number : pg.types.getTypeParser(oid, format)),
    }
    const pool = new pg.Pool({ connectionString: server.url, types: types as pg.CustomTypesConfig })
    const { ledger } = postgresStore({ pool, schema, clock: 'caller' })

    const account = await ledger.account('account_1')
    const [entry] = await ledger.entries('account_1', 1)
    await pool.end()

    expect([account?.balance, entry?.amount]).toEqual([9_007_199_254_740_993n, 9_007_199_254_740_993n])
  })

  test('a search path of the session leads nobody to the tables of another schema', async () => {
    await fund(store, 1_000n)
    const decoy = freshSchemaName()
    await schemas.pool.query(`CREATE SCHEMA ${decoy}`)
    await schemas.pool.query(`CREATE TABLE ${decoy}.accounts AS SELECT * FROM ${schema}.accounts WHERE false`)
    const pool = new pg.Pool({ connectionString: server.url, options: `-c search_path=${decoy}` })
    const { ledger } = postgresStore({ pool, schema, clock: 'caller' })

    const outcome = await ledger.reserve(reservation(), NOW_MS)
    await pool.end()
    await dropSchema(schemas.pool, decoy)

    expect(outcome).toEqual({ status: 'held' })
  })

  test('sweeping forgets refusals after an hour, holds that ended after a day, expired keys, and what keys spent in months that are over', async () => {
    const claim = { accountId: 'account_1', key: 'order-17', fingerprint: 'f', expiresAtMs: NOW_MS + DAY_MS }
    await fund(store, 1_000n)
    await store.ledger.reserve(reservation({ claim }), NOW_MS)
    await store.ledger.settle({ holdId: 'hold_1', amount: 10n, description: 'chat' }, NOW_MS)
    await store.ledger.reserve(reservation({ holdId: 'hold_2', amount: 5_000n }), NOW_MS)
    await store.ledger.reserve(reservation({ holdId: 'hold_3', expiresAtMs: NOW_MS + 90 * DAY_MS }), NOW_MS)
    await store.idempotency.claim(claim, NOW_MS)

    await store.ledger.expire(NOW_MS + HOUR_MS + 61_000, 10)
    expect([await count('holds'), await count('claims'), await count('key_spending')]).toEqual([2, 1, 1])
    await store.ledger.expire(NOW_MS + DAY_MS + 61_000, 10)
    expect([await count('holds'), await count('claims'), await count('key_spending')]).toEqual([1, 0, 1])
    await store.ledger.expire(NOW_MS + 62 * DAY_MS, 10)
    expect(await count('key_spending')).toBe(0)
    expect((await store.ledger.account('account_1'))?.held).toBe(100n)
  })

  test('one sweep deletes the holds and keys that 4,000 calls a second leave behind in 30 seconds', async () => {
    const endedMs = NOW_MS - DAY_MS - HOUR_MS
    await schemas.pool.query(`INSERT INTO ${schema}.holds
        (id, account_id, key_id, amount, status, expires_at_ms, is_metered, period, created_at_ms)
      SELECT 'hold_' || n, 'account_1', 'key_1', 1, 'settled', ${endedMs}, false, 0, 0 FROM generate_series(1, 120000) n`)
    await schemas.pool.query(`INSERT INTO ${schema}.claims (account_id, key, fingerprint, expires_at_ms)
      SELECT 'account_1', n, 'f', ${NOW_MS} FROM generate_series(1, 120000) n`)

    await store.ledger.expire(NOW_MS, 500)

    expect([await count('holds'), await count('claims')]).toEqual([0, 0])
  })

  test('a sweep that finds more expired holds than its limit deletes nothing yet', async () => {
    await fund(store, 1_000n)
    for (const holdId of ['hold_1', 'hold_2', 'hold_3']) await store.ledger.reserve(reservation({ holdId }), NOW_MS)
    await store.ledger.reserve(reservation({ holdId: 'hold_4', amount: 5_000n }), NOW_MS)
    const laterMs = NOW_MS + 2 * HOUR_MS

    const first = [await store.ledger.expire(laterMs, 2), await count('holds')]
    const second = [await store.ledger.expire(laterMs, 2), await count('holds')]

    expect([first, second]).toEqual([
      [2, 4],
      [1, 3],
    ])
  })

  test('a settlement repeated after 50,000 further charges gets its outcome, and no thresholds', async () => {
    await fund(store, 1_000n)
    const thresholds = { caps: [0.5], balance: [0.95] }
    const settlement = { holdId: 'hold_1', amount: 100n, description: 'chat', thresholds }
    await store.ledger.reserve(reservation(), NOW_MS)
    await store.ledger.settle(settlement, NOW_MS)
    const addCharges = (first: number, last: number) =>
      schemas.pool.query(`INSERT INTO ${schema}.entries
          (account_id, kind, amount, hold_id, description, created_at_ms, due, balance_after, owed_after, key_id, period)
        SELECT 'account_1', 'charge', 0, 'hold_' || n, 'chat', ${NOW_MS + 1}, 0, 900, 0, 'key_1', 0
        FROM generate_series(${first}, ${last}) n`)

    await addCharges(2, 50_001)
    const within = await store.ledger.settle(settlement, NOW_MS + 2)
    await addCharges(50_002, 50_002)
    const beyond = await store.ledger.settle(settlement, NOW_MS + 2)

    expect(within.earlier).toMatchObject({ charged: 100n })
    expect(beyond).toEqual({ resolved: false, charged: 0n, shortfall: 0n, endedBy: 'settled' })
  })
})
