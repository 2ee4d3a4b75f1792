import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { adminHandler } from '../../../src/admin/admin-handler.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { listen } from '../../support/listen.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { ChatLoad, LANES } from './support/chat-load.ts'

describe.skipIf(missingProgram('postgres') !== undefined)('PostgreSQL restarted under load', () => {
  let server: StartedPostgres
  let pool: pg.Pool
  let gateway: StartedGateway
  const lines: string[] = []
  const add = (text: string): void => void lines.push(text)
  const logger = { debug: () => undefined, info: add, warn: add, error: add }

  beforeAll(async () => {
    server = await startPostgres()
    // No listener for errors of idle connections: the store brings its own.
    pool = new pg.Pool({ connectionString: server.url, max: 10 })
    gateway = await startGateway({ store: postgresStore({ pool }), logger })
  })
  afterAll(async () => {
    await gateway.close()
    await pool.end()
    await server.stop()
  })

  test('calls no vendor without a hold, logs two lines for all failures, and answers within 5 s after the server is back', async () => {
    const operatorKey = 'operator-key-0123456789abcdef'
    const admin = await listen(
      nodeHandler(adminHandler(gateway.gateway, { operatorKeys: [{ name: 'ops', key: operatorKey }], logger })),
    )
    const load = new ChatLoad(gateway)
    const reads = new RepeatedReads(`${admin.origin}/v1/accounts/${TEST_ACCOUNT}`, operatorKey)
    await load.more(load.answered, 40)
    lines.length = 0
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
    await reads.end()
    await admin.close()
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
    expect(Math.max(load.slowestMs, reads.slowestMs)).toBeLessThan(5_000)
    expect([...new Set(reads.statuses)]).toEqual([200, 503])
    expect(reads.statuses.at(-1)).toBe(200)
    expect(lines).toEqual(['the store does not answer', 'the store answers again'])
  }, 60_000)
})

/** Reads of an operator's console: one after the other, with what they got. */
class RepeatedReads {
  readonly statuses: number[] = []
  slowestMs = 0
  #isOver = false
  readonly #lane: Promise<void>

  constructor(url: string, operatorKey: string) {
    this.#lane = this.#read(url, { authorization: `Bearer ${operatorKey}` })
  }

  async #read(url: string, headers: Record<string, string>): Promise<void> {
    while (!this.#isOver) {
      const startedMs = performance.now()
      const response = await fetch(url, { headers })
      await response.arrayBuffer()
      this.statuses.push(response.status)
      this.slowestMs = Math.max(this.slowestMs, performance.now() - startedMs)
    }
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#lane
  }
}
