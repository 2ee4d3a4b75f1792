import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'

const LANES = 8

/** Callers that send one request after the other, and what they got. */
class Load {
  readonly answered: string[] = []
  readonly refused: string[] = []
  readonly others: number[] = []
  #isOver = false
  #wake = (): void => {}
  readonly #lanes: Promise<unknown>

  constructor(gateway: StartedGateway) {
    this.#lanes = Promise.all(Array.from({ length: LANES }, () => this.#lane(gateway)))
  }

  async #lane(gateway: StartedGateway): Promise<void> {
    while (!this.#isOver) {
      const response = await gateway.post('/v1/chat/completions', chatBody('chat-relayed', 'Hello'))
      await response.arrayBuffer()
      const requestId = response.headers.get('x-request-id')!
      if (response.status === 200) this.answered.push(requestId)
      else if (response.status === 503) this.refused.push(requestId)
      else this.others.push(response.status)
      this.#wake()
    }
  }

  /** Resolves when so many more requests have ended in that list. */
  async more(list: readonly unknown[], count: number): Promise<void> {
    const enough = list.length + count
    while (list.length < enough) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#lanes
  }
}

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
    const load = new Load(gateway)
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
