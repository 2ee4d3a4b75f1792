import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { type PostgresSession, postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { realServer } from '../../support/real-servers.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const NOW_MS = 1_790_000_000_000
/** Enough that reading them all costs the planner more than reading the few that are wanted. */
const ROWS = 20_000

describe.skipIf(server.missing !== undefined)('what PostgreSQL reads', () => {
  let schemas: Schemas
  let made: GatewayStore
  let schema: string

  beforeAll(() => {
    schemas = schemasOn(server.url, 'alter')
  })
  afterAll(() => schemas.end())

  beforeEach(async () => {
    made = await schemas.create()
    schema = schemas.schemaOf(made)
    return () => schemas.dispose(made)
  })

  async function fill(table: string, columns: string, values: string): Promise<void> {
    await schemas.pool.query(`INSERT INTO ${schema}.${table} (${columns}) SELECT ${values}
      FROM generate_series(1, ${ROWS}) n`)
    await schemas.pool.query(`ANALYZE ${schema}.${table}`)
  }

  /** How often a table was read as a whole by what a store does, which is undone. */
  async function wholeReads(table: string, use: (store: GatewayStore) => Promise<unknown>): Promise<number> {
    const client = await schemas.pool.connect()
    // Counts from before that the server has not added to its own yet are in it too.
    const counted = async (): Promise<number> => {
      const { rows } = await client.query(
        'SELECT seq_scan::int AS count FROM pg_stat_xact_user_tables WHERE schemaname = $1 AND relname = $2',
        [schema, table],
      )
      return rows[0].count
    }
    try {
      await client.query('BEGIN')
      const before = await counted()
      await use(storeInside(client))
      return (await counted()) - before
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
  }

  function storeInside(client: pg.PoolClient): GatewayStore {
    const session: PostgresSession = { query: (text, values) => client.query(text, values) }
    const pool = {
      ...session,
      transaction: async <Value>(run: (inner: PostgresSession) => Promise<Value>) => run(session),
    }
    return postgresStore({ pool, schema, clock: 'caller' })
  }

  test.each([
    [
      'holds that ended long ago',
      'holds',
      'id, account_id, key_id, amount, status, expires_at_ms, is_metered, period, created_at_ms',
      `'hold_' || n, 'account_1', 'key_1', 1, 'settled', ${NOW_MS} - n * 100000::bigint, false, 0, 0`,
    ],
    [
      'Idempotency-Keys that have expired',
      'claims',
      'account_id, key, fingerprint, expires_at_ms',
      `'account_1', n, 'f', ${NOW_MS} - n`,
    ],
  ])('deletes %s by their index', async (_title, table, columns, values) => {
    await fill(table, columns, values)

    expect(await wholeReads(table, async ({ ledger }) => ledger.expire(NOW_MS, 500))).toBe(0)
  })

  test('takes what has expired of an account that holds nothing without reading the holds of others', async () => {
    const columns = 'id, account_id, key_id, amount, status, expires_at_ms, is_metered, period, created_at_ms'
    await made.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    const credit = { creditId: 'credit_1', accountId: 'account_1', amount: 10n, description: 'start' }
    await made.ledger.credit({ ...credit, expiresAtMs: NOW_MS + 1 }, NOW_MS)
    await fill('holds', columns, `'hold_' || n, 'account_2', 'key_1', 1, 'held', ${NOW_MS} + n, false, 0, ${NOW_MS}`)

    expect(
      await wholeReads('holds', async ({ ledger }) => {
        expect(await ledger.expireCredits(NOW_MS + 2, 10)).toBe(1)
        expect(await ledger.account('account_1')).toMatchObject({ balance: 0n })
      }),
    ).toBe(0)
  })

  test('keeps an answer without reading the others', async () => {
    const columns = 'account_id, id, vendor, vendor_key, model, created_at_ms, expires_at_ms, input, response'
    await fill('responses', columns, `'account_1', 'r_' || n, 'v', 'k', 'm', 0, ${NOW_MS} + n, '[]', '{}'`)
    const turn = {
      ...{
        accountId: 'account_1',
        id: 'r_5',
        previousId: undefined,
        vendor: 'v',
        credentialId: 'c',
        upstreamId: undefined,
      },
      ...{ model: 'm', createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 9, input: [], response: {} },
    }

    expect(await wholeReads('responses', async ({ responses }) => responses?.save(turn))).toBe(0)
  })

  test('deletes one large content in a statement, which has only so much time', async () => {
    const deleted: number[] = []
    const query: PostgresSession['query'] = async (text, values) => {
      const result = await schemas.pool.query(text, values)
      if (text.startsWith('DELETE')) deleted.push(result.rows.length)
      return result
    }
    const transaction = () => Promise.reject(new Error('none is needed'))
    const { blobs } = postgresStore({ pool: { query, transaction }, schema, clock: 'caller' })
    await fill('blobs', 'id, is_whole, expires_at_ms', `'blob_' || n, true, ${NOW_MS} + n`)

    const count = await blobs?.purge(NOW_MS + 3, 10)
    const others = await blobs?.purge(NOW_MS + 9, 2)

    expect([count, others]).toEqual([3, 2])
    expect(deleted).toEqual([1, 1, 1, 0, 1, 1])
  })

  test('makes a conversation without reading the others', async () => {
    const columns = 'account_id, id, metadata, last_position, item_count, byte_length, created_at_ms, expires_at_ms'
    await fill('conversations', columns, `'account_1', 'c_' || n, '{}', 0, 0, 0, 0, ${NOW_MS} + n`)
    const conversation = {
      accountId: 'account_1',
      id: 'c_0',
      metadata: {},
      createdAtMs: NOW_MS,
      expiresAtMs: NOW_MS + 9,
    }

    expect(
      await wholeReads('conversations', async ({ conversations }) => conversations?.create(conversation, [])),
    ).toBe(0)
  })

  test('verifies a day without reading the journal of other days', async () => {
    await made.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    const columns =
      'account_id, kind, amount, hold_id, description, created_at_ms, due, balance_after, owed_after, key_id, period'
    const line = `'account_1', 'charge', -1, 'hold_' || n, 'chat', ${NOW_MS} + n * 100000::bigint, 1, 0, 0, 'key_1', 0`
    await fill('entries', columns, line)

    expect(
      await wholeReads('entries', async ({ usage }) => {
        const [mismatch] = (await usage?.verify({ fromMs: NOW_MS, untilMs: NOW_MS + 86_400_000 })) ?? []
        expect(mismatch).toMatchObject({ accountId: 'account_1', journal: 863n })
      }),
    ).toBe(0)
  })
})
