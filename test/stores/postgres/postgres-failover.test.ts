import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { ChatLoad, LANES } from './support/chat-load.ts'
import { type Chats, expectExactChats, openAccounts, startChats } from './support/chats.ts'
import { freshSchemaName } from './support/fresh-schema.ts'
import { type LosingProxy, losingProxy } from './support/losing-proxy.ts'

describe.skipIf(missingProgram('postgres') !== undefined)('PostgreSQL that fails over under load', () => {
  let server: StartedPostgres
  let proxy: LosingProxy
  let pool: pg.Pool
  let schema: string
  let gateway: StartedGateway
  let load: ChatLoad

  beforeAll(async () => {
    server = await startPostgres({ fsync: 'off' })
    proxy = await losingProxy(server.url)
  })
  afterAll(async () => {
    await proxy.close()
    await server.stop()
  })

  beforeEach(async () => {
    pool = new pg.Pool({ connectionString: proxy.url, max: 10 })
    schema = freshSchemaName()
    gateway = await startGateway({ store: postgresStore({ pool, schema }) })
    load = new ChatLoad(gateway)
    await load.more(load.answered, 2 * LANES)
    return async () => {
      await gateway.close()
      await pool.end()
    }
  })

  /** Each call of the vendor was charged once, what callers have was charged, and no money is held any more. */
  async function expectExactMoney(): Promise<void> {
    await load.end()
    // Pending settlements are completed before it ends.
    await gateway.gateway.close({ drainMs: 20_000 })
    const { rows: charges } = await pool.query(`SELECT hold_id AS id FROM ${schema}.entries WHERE kind = 'charge'`)
    const { rows: sums } = await pool.query(`SELECT
      (SELECT sum(balance) FROM ${schema}.accounts) = (SELECT sum(amount) FROM ${schema}.entries) AS equal,
      (SELECT sum(held) FROM ${schema}.accounts)::int AS held,
      (SELECT count(*) FROM ${schema}.holds WHERE status = 'held')::int AS open`)
    const charged = new Set(charges.map(({ id }: { id: string }) => id))
    expect(charges.length).toBe(charged.size)
    expect(charges.length).toBe(gateway.sandbox.requests.length)
    expect(load.answered.filter((requestId) => !charged.has(requestId))).toEqual([])
    expect(load.others).toEqual([])
    expect(sums).toEqual([{ equal: true, held: 0, open: 0 }])
    expect(gateway.events.filter(({ type }) => type === 'settlement-given-up')).toEqual([])
  }

  test('a change whose answer was lost is made once', async () => {
    proxy.loseOneIn(6)
    await proxy.lost(20)
    proxy.loseOneIn(0)
    await load.more(load.answered, 2 * LANES)

    await expectExactMoney()
  })

  test('a server that was killed goes on with what it had acknowledged', async () => {
    await server.crash()
    await load.more(load.refused, 2 * LANES)
    await server.resume()
    await load.more(load.answered, 2 * LANES)

    await expectExactMoney()
  })

  test('a primary that takes no changes any more is not used, and no vendor is called meanwhile', async () => {
    await asOperator(server.url, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()')
    await load.more(load.refused, 2 * LANES)
    const callsBefore = gateway.sandbox.requests.length
    await load.more(load.refused, 2 * LANES)
    const callsMeanwhile = gateway.sandbox.requests.length - callsBefore
    const health = await gateway.gateway.health()
    await asOperator(server.url, 'ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()')
    await load.more(load.answered, 2 * LANES)

    expect(callsMeanwhile).toBe(0)
    expect(health).toMatchObject({ status: 'unavailable', store: { error: expect.stringContaining('read-only') } })
    await expectExactMoney()
  })
})

describe.skipIf(missingProgram('postgres') !== undefined)(
  'PostgreSQL that fails over, with calls of many accounts in flight,',
  () => {
    let server: StartedPostgres
    let proxy: LosingProxy
    let pool: pg.Pool
    let store: GatewayStore

    beforeAll(async () => {
      server = await startPostgres({ fsync: 'off' })
      proxy = await losingProxy(server.url)
      pool = new pg.Pool({ connectionString: proxy.url, max: 10 })
    })
    afterAll(async () => {
      await pool.end()
      await proxy.close()
      await server.stop()
    })

    beforeEach(async () => {
      store = postgresStore({ pool, schema: freshSchemaName() })
      await store.start()
      return () => store.close()
    })

    async function begin(): Promise<Chats> {
      const chats = startChats(store, await openAccounts(store, 24, Date.now()))
      await chats.moreSettled(24)
      return chats
    }

    test('charges each call once if answers are lost', async () => {
      const chats = await begin()
      proxy.loseOneIn(8)
      await chats.moreRepeated(24)
      proxy.loseOneIn(0)
      await chats.end()

      await expectExactChats(store, chats)
    })

    test('charges each call once if the server is killed, also calls whose reservation it has forgotten', async () => {
      const chats = await begin()
      await server.kill()
      await chats.moreRepeated(48)
      await server.resume()
      await chats.moreSettled(48)
      await chats.end()

      await expectExactChats(store, chats)
    })

    test('charges each call once if the primary takes no changes for a while', async () => {
      const chats = await begin()
      await asOperator(server.url, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()')
      await chats.moreRepeated(48)
      await asOperator(server.url, 'ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()')
      await chats.moreSettled(48)
      await chats.end()

      await expectExactChats(store, chats)
    })
  },
)

/** Runs what needs a connection of its own that changes the whole server. */
async function asOperator(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url, options: '-c default_transaction_read_only=off' })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}
