import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { ChatLoad, LANES } from './support/chat-load.ts'

describe.skipIf(missingProgram('postgres') !== undefined)('PostgreSQL restarted under load', () => {
  let server: StartedPostgres
  let pool: pg.Pool
  let gateway: StartedGateway

  beforeAll(async () => {
    server = await startPostgres()
    // No listener for errors of idle connections: the store brings its own.
    pool = new pg.Pool({ connectionString: server.url, max: 10 })
    gateway = await startGateway({ store: postgresStore({ pool }) })
  })
  afterAll(async () => {
    await gateway.close()
    await pool.end()
    await server.stop()
  })

  test('no vendor is called without a hold, and requests succeed within 5 s after it is back', async () => {
    const load = new ChatLoad(gateway)
    await load.more(load.answered, 40)
    await server.halt()
    // Requests that held money before the server went may still end well; after as many refusals as lanes none is left.
    await load.more(load.refused, 2 * LANES)
    const callsBefore = gateway.sandbox.requests.length
    await load.more(load.refused, 40)
    const callsWhileAway = gateway.sandbox.requests.length - callsBefore
    await server.resume()
    const backAtMs = performance.now()
    await load.more(load.answered, 1)
    const firstSuccessMs = performance.now() - backAtMs
    await load.more(load.answered, 40)
    await load.end()
    await gateway.close()

    const { rows } = await pool.query("SELECT id FROM signalbox.holds WHERE status = 'settled'")
    const { rows: sums } = await pool.query(`SELECT
      (SELECT sum(balance + held) FROM signalbox.accounts) = (SELECT sum(amount) FROM signalbox.entries) AS equal,
      (SELECT sum(held) FROM signalbox.accounts)
        = (SELECT coalesce(sum(amount), 0) FROM signalbox.holds WHERE status = 'held') AS "heldEqual"`)
    const settled = new Set(rows.map((row: { id: string }) => row.id))
    expect(callsWhileAway).toBe(0)
    expect(gateway.sandbox.requests.length).toBe(load.answered.length)
    expect(load.answered.filter((requestId) => !settled.has(requestId))).toEqual([])
    expect(load.others).toEqual([])
    expect(sums).toEqual([{ equal: true, heldEqual: true }])
    expect(firstSuccessMs).toBeLessThan(5_000)
  }, 60_000)
})
