import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { MaybePromise } from '../../../src/core/maybe-promise.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { exampleDraft } from '../../../src/testing/contracts/contract-runner.ts'
import { realServer } from '../../support/real-servers.ts'
import { openAccounts } from './support/chats.ts'
import { expectExactMoney } from './support/exact-money.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'
import { untilAnswered } from './support/until-answered.ts'

const server = await realServer('postgres')
const NOW_MS = 1_790_000_000_000
const NUMBERS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

describe.skipIf(server.missing !== undefined)('PostgreSQL store while a session of the host locks its rows', () => {
  let schemas: Schemas
  let schema: string
  let pool: pg.Pool
  let store: GatewayStore
  let host: pg.Client
  let hostPid: number
  let repeated: number

  beforeAll(() => {
    schemas = schemasOn(server.url, 'alter')
  })
  afterAll(() => schemas.end())

  beforeEach(async () => {
    const created = await schemas.create()
    schema = schemas.schemaOf(created)
    pool = new pg.Pool({ connectionString: server.url })
    store = postgresStore({ pool, schema, clock: 'caller' })
    await openAccounts(store, NUMBERS.length, NOW_MS)
    await reserveAll('old')
    repeated = 0
    host = new pg.Client({ connectionString: server.url })
    await host.connect()
    const { rows } = await host.query('SELECT pg_backend_pid() AS pid')
    hostPid = (rows[0] as { pid: number }).pid
    await host.query('BEGIN')
    return async () => {
      await host.end()
      await store.close()
      await pool.end()
      await schemas.dispose(created)
    }
  })

  async function lockByHost(table: string, column: string, id: string): Promise<void> {
    await host.query(`SELECT 1 FROM ${schema}.${table} WHERE ${column} = $1 FOR UPDATE`, [id])
  }

  async function untilLocked(kind: 'by' | 'of'): Promise<void> {
    const condition = { by: '$1 = ANY (pg_blocking_pids(pid))', of: 'pid = $1 AND pg_blocking_pids(pid) <> $2' }[kind]
    const values = kind === 'by' ? [hostPid] : [hostPid, []]
    const waiting = async () =>
      (await schemas.pool.query(`SELECT 1 FROM pg_stat_activity WHERE ${condition}`, values)).rows.length
    await expect.poll(waiting, { timeout: 5_000, interval: 5 }).toBeGreaterThan(0)
  }

  /** Repeats the call until the server answers. */
  const answered = <Value>(call: () => MaybePromise<Value>): Promise<Value> => untilAnswered(call, () => repeated++)

  async function reserveAll(name: string): Promise<void> {
    const expiresAtMs = NOW_MS + 1
    const outcomes = NUMBERS.map((number) => {
      const reservation = { holdId: `${name}_${number}`, accountId: `account_${number}`, keyId: `key_${number}` }
      return answered(() => store.ledger.reserve({ ...reservation, amount: 100n, expiresAtMs }, NOW_MS))
    })
    expect(await Promise.all(outcomes)).toEqual(NUMBERS.map(() => ({ status: 'held' })))
  }

  async function settle(name: string, number: number): Promise<void> {
    const [holdId, accountId, keyId] = [`${name}_${number}`, `account_${number}`, `key_${number}`]
    const details = { keyId, endpoint: 'chat', model: 'm', vendor: 'v', usage: {} }
    const record = exampleDraft({ id: holdId, accountId, keyId })
    const settlement = { holdId, amount: 70n, description: 'chat m', details, record }
    const end = await answered(() => store.ledger.settle(settlement, NOW_MS))
    expect(end.resolved || end.endedBy === 'settled').toBe(true)
  }

  async function settleAll(name: string, numbers = NUMBERS): Promise<void> {
    await Promise.all(numbers.map((number) => settle(name, number)))
  }

  async function expectCharges(names: readonly string[]): Promise<void> {
    const lines = await expectExactMoney(store)
    const charged = lines.filter(({ kind }) => kind === 'charge').map(({ holdId }) => holdId!)
    expect(charged.sort()).toEqual(names.flatMap((name) => NUMBERS.map((number) => `${name}_${number}`)).sort())
  }

  test('repeats a sweep that loses a deadlock with the host, and applies concurrent calls once', async () => {
    await host.query("SET LOCAL deadlock_timeout = '30s'")
    await lockByHost('accounts', 'id', 'account_1')
    const sweep = store.ledger.expire(NOW_MS + 1, 100)
    await untilLocked('by')
    const others = [reserveAll('new'), settleAll('old')]
    const hostLock = lockByHost('accounts', 'id', 'account_0')
    await untilLocked('of')

    await hostLock
    await host.query('COMMIT')
    await Promise.all([sweep, ...others])

    await settleAll('new')
    await expectCharges(['old', 'new'])
  })

  test('completes a sweep whose deadlock with the host ends the transaction of the host', async () => {
    await host.query("SET LOCAL deadlock_timeout = '10ms'")
    await lockByHost('accounts', 'id', 'account_1')
    const sweep = store.ledger.expire(NOW_MS + 1, 100)
    await untilLocked('by')

    await expect(lockByHost('accounts', 'id', 'account_0')).rejects.toMatchObject({ code: '40P01' })
    await host.query('ROLLBACK')

    expect(await sweep).toBe(NUMBERS.length)
    await settleAll('old')
    await expectCharges(['old'])
  })

  test('completes concurrent calls of accounts that the host locks in the opposite order', async () => {
    await host.query("SET LOCAL deadlock_timeout = '30s'")
    await lockByHost('accounts', 'id', 'account_9')
    const calls = [settleAll('old'), reserveAll('new')]
    await untilLocked('by')

    for (const number of [8, 7, 1, 0]) await lockByHost('accounts', 'id', `account_${number}`)
    await host.query('COMMIT')
    await Promise.all(calls)

    await settleAll('new')
    await expectCharges(['old', 'new'])
  })

  test.each([
    ['an account', 'accounts', 'id', 'account_4'],
    ['a hold', 'holds', 'id', 'old_4'],
    ['the spending of a key', 'key_spending', 'key_id', 'key_4'],
  ])('answers calls of other accounts while the host locks %s, and that account afterwards', async (_, ...row) => {
    const impatient = postgresStore({ pool, schema, clock: 'caller', statementTimeoutMs: 400 })
    store = impatient
    await lockByHost(...row)
    const blocked = settle('old', 4)

    await settleAll(
      'old',
      NUMBERS.filter((number) => number !== 4),
    )
    await expect.poll(() => repeated, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0)
    await host.query('COMMIT')
    await blocked

    await expectCharges(['old'])
  })
})
