import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { MIGRATIONS } from '../../../src/stores/postgres/migrations/migrate.ts'
import { exampleTask } from '../../../src/testing/contracts/contract-runner.ts'
import { expectBooksAgree } from '../../support/books-agree.ts'
import { type CompiledProgram, compileProgram, type Program } from '../../support/program.ts'
import { realServer } from '../../support/real-servers.ts'
import { dropSchema, freshSchemaName, type Schemas, schemasOn } from './support/fresh-schema.ts'
import type { WorkerJob } from './support/postgres-worker.ts'

const server = await realServer('postgres')
const NOW_MS = 1_790_000_000_000
const KILLS = process.env['DRILL'] === 'long' ? 10 : 2
const ACKNOWLEDGED_BEFORE_KILL = 400
const TAKES_IN_WINDOW = 250

describe.skipIf(server.missing !== undefined)('several processes on one PostgreSQL', () => {
  let schemas: Schemas
  let startWorker: CompiledProgram
  let store: GatewayStore

  beforeAll(async () => {
    schemas = schemasOn(server.url, 'alter')
    startWorker = await compileProgram(join(import.meta.dirname, 'support/postgres-worker.ts'))
  })
  afterAll(async () => {
    startWorker.remove()
    await schemas.end()
  })

  beforeEach(async () => {
    store = await schemas.create()
    await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    return () => schemas.dispose(store)
  })

  const credit = (amount: bigint) =>
    store.ledger.credit({ creditId: 'credit_1', accountId: 'account_1', amount, description: 'start' }, NOW_MS)

  /** Processes that have connected and wait for the word to begin. */
  async function workers(count: number, job: Pick<WorkerJob, 'task'> & Partial<WorkerJob>): Promise<Program[]> {
    const schema = schemas.schemaOf(store)
    const programs = Array.from({ length: count }, (_, number) => {
      const wanted: WorkerJob = { url: server.url, schema, worker: number, nowMs: NOW_MS, ...job }
      return startWorker(wanted)
    })
    for (const program of programs) expect(await program.message()).toBe('ready')
    return programs
  }

  async function answers<Answer>(programs: readonly Program[]): Promise<Answer[]> {
    for (const program of programs) program.send('begin')
    const all = await Promise.all(programs.map((program) => program.message<Answer>()))
    await Promise.all(programs.map((program) => program.ended))
    return all
  }

  test('4 processes admit exactly 137 of 2,000 parallel reservations with money for 137', async () => {
    await credit(137n * 50n + 49n)
    const programs = await workers(4, { task: 'reserve-many' })

    const held = await answers<number>(programs)

    expect(held.reduce((sum, count) => sum + count, 0)).toBe(137)
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 49n, held: 137n * 50n })
  })

  test('4 processes give each of 50 accounts one first webhook secret', async () => {
    const programs = await workers(4, { task: 'ensure-secrets' })

    const secrets = await answers<string[]>(programs)

    expect(new Set(secrets.flat()).size).toBe(50)
  })

  test('4 processes that sweep at the same time expire each hold once', async () => {
    await credit(1_000_000n)
    const holds = Array.from({ length: 300 }, (_, index) => `hold_${index}`)
    const hold = { accountId: 'account_1', keyId: 'key_1', amount: 100n, expiresAtMs: NOW_MS - 1 }
    await Promise.all(holds.map(async (holdId) => store.ledger.reserve({ ...hold, holdId }, NOW_MS - 60_000)))
    const programs = await workers(4, { task: 'expire-all' })

    const expired = await answers<number>(programs)

    // A sweeper that finds nothing but what others are at stops early; the rest is for the next sweep.
    const left = await store.ledger.expire(NOW_MS, 1_000)
    expect(expired.reduce((sum, count) => sum + count, left)).toBe(300)
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 1_000_000n, held: 0n })
  })

  test('4 processes take each of 300 due tasks once, and no more than their common budget', async () => {
    for (let index = 0; index < 300; index++) {
      await store.tasks.insert(exampleTask({ id: `task_${index}`, nextPollAtMs: NOW_MS }))
    }
    const programs = await workers(4, { task: 'take-tasks' })

    const taken = (await answers<string[]>(programs)).flat()

    expect(taken).toHaveLength(TAKES_IN_WINDOW)
    expect(new Set(taken).size).toBe(TAKES_IN_WINDOW)
  })

  test('8 processes that start at once bring one schema up to date', async () => {
    const schema = freshSchemaName()
    const programs = await workers(8, { task: 'migrate', schema })

    const outcomes = await answers<string>(programs)

    const { rows } = await schemas.pool.query(`SELECT version FROM ${schema}.migrations`)
    await dropSchema(schemas.pool, schema)
    expect(outcomes).toEqual(Array.from({ length: 8 }, () => 'started'))
    expect(rows).toEqual(MIGRATIONS.map((_, index) => ({ version: index + 1 })))
  })

  test('kill -9 loses none of the reservations that were acknowledged', async () => {
    await credit(1_000_000n)
    const acknowledged: string[] = []

    for (let round = 0; round < KILLS; round++) {
      const [program] = await workers(1, { task: 'reserve-for-ever', worker: round })
      program!.send('begin')
      for (let count = 0; count < ACKNOWLEDGED_BEFORE_KILL; count++) acknowledged.push(await program!.message())
      program!.child.kill('SIGKILL')
      await program!.ended
      acknowledged.push(...(program!.unread as string[]))
    }

    const { rows } = await schemas.pool.query(`SELECT id FROM ${schemas.schemaOf(store)}.holds WHERE status = 'held'`)
    const kept = new Set(rows.map((row: { id: string }) => row.id))
    expect(acknowledged.filter((holdId) => !kept.has(holdId))).toEqual([])
    expect(acknowledged.length).toBeGreaterThanOrEqual(KILLS * ACKNOWLEDGED_BEFORE_KILL)
    expect((await store.ledger.account('account_1'))?.held).toBe(BigInt(kept.size))
  })

  test('kill -9 leaves the record of each charge, counted once by all processes together', async () => {
    await credit(1_000_000n)
    const acknowledged: string[] = []

    for (let round = 0; round < KILLS; round++) {
      const started = [0, 1].map((worker) => workers(1, { task: 'settle-for-ever', worker: round * 2 + worker }))
      const programs = (await Promise.all(started)).flat()
      for (const program of programs) program.send('begin')
      for (let count = 0; count < ACKNOWLEDGED_BEFORE_KILL; count++)
        for (const program of programs) acknowledged.push(await program.message())
      for (const program of programs) program.child.kill('SIGKILL')
      await Promise.all(programs.map((program) => program.ended))
      acknowledged.push(...programs.flatMap((program) => program.unread as string[]))
    }
    const { usage } = store
    if (usage === undefined) throw new TypeError('the store keeps no usage')
    // A killed process's transaction ends at the server some time later, and holds the mark back until then.
    await expect.poll(async () => (await usage.rollUp(10_000, NOW_MS)).asOfMs, { timeout: 20_000 }).toBe(NOW_MS)

    const range = { fromMs: 0, untilMs: NOW_MS * 2 }
    const page = { ...range, accountId: 'account_1', after: undefined, limit: 100_000 }
    const { records } = await usage.records(page)
    const ids = new Set(records.map(({ id }) => id))
    const entries = await store.ledger.entries('account_1', 100_000)
    const charged = entries.filter(({ kind }) => kind === 'charge').map(({ holdId }) => holdId)
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([])
    expect([...ids].sort()).toEqual(charged.sort())
    expect(records).toHaveLength(ids.size)
    // A server process may still end the statement that its client was killed in, and its record is summed up after that.
    const differences = async () => {
      while ((await usage.rollUp(10_000, NOW_MS)).added > 0);
      return usage.verify(range)
    }
    await expect.poll(differences, { timeout: 20_000 }).toEqual([])
    await expectBooksAgree(store, 'account_1')
  })
})
