import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { Reservation } from '../../../src/stores/ledger.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { realServer } from '../../support/real-servers.ts'
import { freePort } from '../../support/started-process.ts'
import { expectToldAgain } from '../support/settled-again.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const NOW_MS = 1_790_000_000_000

function reservation(holdId: string, accountId = 'account_1'): Reservation {
  return { holdId, accountId, keyId: 'key_1', amount: 100n, expiresAtMs: NOW_MS + 60_000 }
}

describe.skipIf(server.missing !== undefined)('PostgreSQL store when things go wrong', () => {
  let schemas: Schemas
  let store: GatewayStore
  let schema: string

  beforeAll(() => {
    schemas = schemasOn(server.url, 'alter')
  })
  afterAll(() => schemas.end())

  beforeEach(async () => {
    store = await schemas.create()
    schema = schemas.schemaOf(store)
    for (const accountId of ['account_1', 'account_2']) {
      await store.ledger.createAccount({ id: accountId }, NOW_MS)
      const credit = { creditId: `credit_${accountId}`, accountId, amount: 1_000n, description: 'start' }
      await store.ledger.credit(credit, NOW_MS)
    }
    return () => schemas.dispose(store)
  })

  /** Locks `account_1` in another session meanwhile. An open transaction would delay the sums of every schema of the server. */
  async function whileLocked(run: () => Promise<void>): Promise<void> {
    const locker = await schemas.pool.connect()
    try {
      await locker.query('BEGIN')
      await locker.query(`SELECT 1 FROM ${schema}.accounts WHERE id = 'account_1' FOR UPDATE`)
      await run()
    } finally {
      await locker.query('ROLLBACK')
      locker.release()
    }
  }

  test('a settlement that is made again tells what the first one charged and has passed', async () => {
    const fresh = await schemas.create()
    await expectToldAgain(fresh)
    await schemas.dispose(fresh)
  })

  test('an account that somebody keeps locked fails in time, holds nothing, and stops no other account', async () => {
    const pool = new pg.Pool({ connectionString: server.url })
    // Long enough for the first call of a new connection on a busy machine.
    const { ledger } = postgresStore({ pool, schema, statementTimeoutMs: 1_000, clock: 'caller' })
    await whileLocked(async () => {
      await expect(ledger.reserve(reservation('hold_1'), NOW_MS)).rejects.toThrow('within 1000 ms')
      expect(await ledger.reserve(reservation('hold_2', 'account_2'), NOW_MS)).toEqual({ status: 'held' })
    })

    // The server may still finish what it was asked; repeating gives that outcome, whichever came first.
    expect(await store.ledger.reserve(reservation('hold_1'), NOW_MS)).toEqual({ status: 'held' })
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 900n, held: 100n })
    await pool.end()
  })

  test('a connection that the server ends while idle harms nobody', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 })
    const { ledger } = postgresStore({ pool, schema, clock: 'caller' })
    await ledger.account('account_1')
    const { rows } = await pool.query('SELECT pg_backend_pid() AS pid')
    const lost = new Promise<void>((resolve) => pool.once('remove', () => resolve()))

    await schemas.pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid])
    await lost

    expect(await ledger.reserve(reservation('hold_1'), NOW_MS)).toEqual({ status: 'held' })
    await pool.end()
  })

  test('a connection that the server ends at work fails that call only', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 })
    const { ledger } = postgresStore({ pool, schema, clock: 'caller' })
    const { rows } = await pool.query('SELECT pg_backend_pid() AS pid')
    await whileLocked(async () => {
      const waiting = expect(ledger.reserve(reservation('hold_1'), NOW_MS)).rejects.toMatchObject({ code: '57P01' })

      await schemas.pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid])
      await waiting
    })

    expect(await ledger.account('account_1')).toMatchObject({ balance: 1_000n, held: 0n })
    await pool.end()
  })

  test('a server that is not there rejects every call, and starting too', async () => {
    const port = await freePort()
    const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'postgres' })
    const away = postgresStore({ pool, clock: 'caller' })

    const outcomes = await Promise.allSettled([
      away.start(),
      away.ledger.reserve(reservation('hold_1'), NOW_MS),
      away.ledger.settle({ holdId: 'hold_1', amount: 1n, description: 'chat' }, NOW_MS),
      away.ledger.expire(NOW_MS, 10),
      away.keys.findByHash('0'),
    ])
    await pool.end()

    const refused = { status: 'rejected', reason: expect.objectContaining({ code: 'ECONNREFUSED' }) }
    expect(outcomes).toEqual([refused, refused, refused, refused, refused])
  })

  test('a text that the database cannot keep fails its round trip and changes nothing', async () => {
    await expect(store.ledger.reserve(reservation('hold\0'), NOW_MS)).rejects.toThrow()

    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 1_000n, held: 0n })
  })

  test.each([0, -5, Number.NaN])('a time limit of %s ms is refused', (statementTimeoutMs) => {
    expect(() => postgresStore({ pool: schemas.pool, statementTimeoutMs, clock: 'caller' })).toThrow(RangeError)
  })
})
