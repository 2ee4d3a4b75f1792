import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { LedgerEntry } from '../../../src/stores/journal.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { exampleKey } from '../../../src/testing/contracts/contract-runner.ts'
import { seededNumbers } from '../../drills/support/seeded-numbers.ts'
import { type CompiledProgram, compileProgram, type Program } from '../../support/program.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { startPgBouncer } from '../../support/start-pgbouncer.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { expectExactMoney } from './support/exact-money.ts'
import { freshSchemaName } from './support/fresh-schema.ts'
import { ACCOUNTS, type HoldReport, type MoneyJob, type MoneyReport, STEPS_PER_MESSAGE } from './support/money-job.ts'

const isLong = process.env['DRILL'] === 'long'
const seed = Number(process.env['DRILL_SEED'] ?? 1)
const PROCESSES = 4
const LANES = 6
/** Steps of all processes between two faults. */
const STEPS_BETWEEN_FAULTS = isLong ? 2_000 : 100
const isLeftOut = [missingProgram('postgres'), missingProgram('pgbouncer')].some((missing) => missing !== undefined)

/** Fault of the server. The first two may lose commits that were not flushed. */
type Fault = 'kill' | 'crash' | 'halt' | 'terminate'

/** Outage that may lose commits, in Unix milliseconds. */
interface Crash {
  readonly atMs: number
  readonly backAtMs: number
}

describe.skipIf(isLeftOut)('4 processes on 50 accounts while PostgreSQL is killed and restarted', () => {
  let server: StartedPostgres
  let startWorker: CompiledProgram
  let pool: pg.Pool
  let schema: string
  let store: GatewayStore

  beforeAll(async () => {
    // With flushed commits, unlike the other tests: what a crash may lose is the subject.
    server = await startPostgres()
    startWorker = await compileProgram(join(import.meta.dirname, 'support/money-worker.ts'))
  })
  afterAll(async () => {
    startWorker.remove()
    await server.stop()
  })

  beforeEach(async () => {
    pool = new pg.Pool({ connectionString: server.url })
    schema = freshSchemaName()
    store = postgresStore({ pool, schema })
    await store.start()
    await openAccounts(store)
    return async () => {
      await store.close()
      await pool.end()
    }
  })

  async function strike(fault: Fault): Promise<void> {
    if (fault === 'terminate') {
      await pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < 0.5`)
      return
    }
    await server[fault]()
    await server.resume()
  }

  /** Lets the processes work through the faults, and returns what each of them knows at the end. */
  async function drill(url: string, faults: readonly Fault[]): Promise<{ reports: MoneyReport[]; crashes: Crash[] }> {
    const programs = Array.from({ length: PROCESSES }, (_, worker) => {
      const job: MoneyJob = { url, schema, worker, seed, lanes: LANES }
      return startWorker(job)
    })
    for (const program of programs) expect(await program.message()).toBe('ready')
    const progress = new Progress(programs)
    const crashes: Crash[] = []
    for (const fault of faults) {
      await progress.more(STEPS_BETWEEN_FAULTS)
      const atMs = Date.now()
      await strike(fault)
      if (fault === 'kill' || fault === 'crash') crashes.push({ atMs, backAtMs: Date.now() })
    }
    await progress.more(STEPS_BETWEEN_FAULTS)
    for (const program of programs) program.send('stop')
    return { reports: await progress.reports, crashes }
  }

  async function expectNothingLost(reports: readonly MoneyReport[], crashes: readonly Crash[]): Promise<void> {
    expect(reports.flatMap(({ faults }) => faults)).toEqual([])
    const heldAndOpen = async () => {
      await store.ledger.expire(Date.now(), 1_000)
      await store.ledger.expireCredits(Date.now(), 1_000)
      return store.ledger.openHolds({ accountId: undefined, after: undefined, limit: 10 })
    }
    await expect.poll(heldAndOpen, { timeout: 20_000 }).toEqual([])
    const lines = await expectExactMoney(store)
    expectChargesOf(reports, lines)
    expectOperationsOf(reports, lines)
    await expectAnswersOf(reports, store)
    const holds = reports.flatMap((report) => report.holds)
    const wereInFlight = holds.filter((hold) => crashes.some((crash) => isOpenAt(hold, crash)))
    // A void of a hold that a crash has forgotten, and nothing else, has no end.
    const unknown = holds.filter(({ end }) => end === 'unpaid')
    expect(unknown.filter(({ amount, endedBy }) => amount > 0n || endedBy !== undefined)).toEqual([])
    expect(unknown.filter((hold) => !wereInFlight.includes(hold))).toEqual([])
  }

  test(
    'keeps every confirmed charge and credit once, and loses no charge',
    async () => {
      const faults = shuffled(['terminate', 'kill', 'halt', 'crash'], isLong ? 10 : 1)

      const { reports, crashes } = await drill(server.url, faults)

      await expectNothingLost(reports, crashes)
      const outcomes = new Set(reports.flatMap((report) => [...report.outcomes.keys()]))
      expect([...outcomes]).toEqual(expect.arrayContaining(['held', 'larger', 'settled', 'late', 'voided', 'left']))
      expect([...outcomes]).toEqual(expect.arrayContaining(['insufficient_balance', 'in_arrears', 'enlarged held']))
      expect([...outcomes]).toEqual(expect.arrayContaining(['refunded', 'adjusted']))
      expect(reports.reduce((sum, { repeated }) => sum + repeated, 0)).toBeGreaterThan(0)
    },
    isLong ? 1_800_000 : 60_000,
  )

  test(
    'keeps every confirmed charge and credit once through PgBouncer in transaction mode',
    async () => {
      const settings = { default_pool_size: '6', server_login_retry: '1' }
      const pooler = await startPgBouncer(server.url, 'transaction', settings)
      const faults = shuffled(['terminate', 'kill'], isLong ? 10 : 1)

      const { reports, crashes } = await drill(pooler.url, faults)

      await pooler.stop()
      await expectNothingLost(reports, crashes)
      expect(reports.reduce((sum, { repeated }) => sum + repeated, 0)).toBeGreaterThan(0)
    },
    isLong ? 1_800_000 : 60_000,
  )
})

/** Prepaid and metered accounts, rich and poor ones, with caps of accounts and of keys. */
async function openAccounts({ ledger, keys }: GatewayStore): Promise<void> {
  const nowMs = Date.now()
  for (let number = 0; number < ACCOUNTS; number++) {
    const id = `account_${number}`
    const isMetered = number % 5 === 2
    const spendingCap = number % 5 === 3 ? ({ amount: 60_000n, period: 'month' } as const) : undefined
    const metered = isMetered ? ({ billing: 'metered', creditLimit: 50_000n } as const) : {}
    await ledger.createAccount({ id, spendingCap, ...metered }, nowMs)
    const amount = number % 3 === 0 ? 3_000n : 10_000_000n
    await ledger.credit({ creditId: `start_${number}`, accountId: id, amount, description: 'start' }, nowMs)
    if (number % 7 !== 0) continue
    const keyCap = { amount: 20_000n, period: 'day' } as const
    const key = { id: `key_${id}_0`, accountId: id, hash: `hash_${number}`, spendingCap: keyCap }
    await keys.insert(exampleKey(key))
  }
}

/** Counts the steps of the processes while they work. */
class Progress {
  readonly reports: Promise<MoneyReport[]>
  #steps = 0
  #wake = (): void => {}

  constructor(programs: readonly Program[]) {
    this.reports = Promise.all(programs.map((program) => this.#reportOf(program)))
  }

  async #reportOf(program: Program): Promise<MoneyReport> {
    program.send('begin')
    for (;;) {
      const message = await program.message<'steps' | MoneyReport>()
      if (message !== 'steps') return message
      this.#steps += STEPS_PER_MESSAGE
      this.#wake()
    }
  }

  /** Resolves after so many more steps, and rejects if a process ends before. */
  async more(count: number): Promise<void> {
    const enough = this.#steps + count
    while (this.#steps < enough) {
      const step = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      await Promise.race([step, this.reports])
    }
  }
}

function shuffled(faults: readonly Fault[], times: number): Fault[] {
  const random = seededNumbers(seed)
  const all = Array.from({ length: times }, () => faults).flat()
  return all
    .map((fault) => ({ fault, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ fault }) => fault)
}

function isOpenAt(hold: HoldReport, crash: Crash): boolean {
  return hold.sentAtMs <= crash.backAtMs && hold.endedAtMs >= crash.atMs
}

/** Each charge was sent by a process, with that amount, and each confirmed one is there. */
function expectChargesOf(reports: readonly MoneyReport[], lines: readonly LedgerEntry[]): void {
  const charges = lines.filter(({ kind }) => kind === 'charge')
  const charged = new Map(charges.map(({ holdId, due }) => [holdId!, due]))
  expect(charged.size).toBe(charges.length)
  const asked = new Map(reports.flatMap((report) => [...report.asked]))
  expect(charges.filter(({ holdId, due }) => asked.get(holdId!) !== due)).toEqual([])
  const holds = reports.flatMap((report) => report.holds)
  const paid = holds.filter(({ end }) => end === 'settled' || end === 'late')
  expect(paid.filter(({ holdId, amount }) => charged.get(holdId) !== amount)).toEqual([])
  const free = holds.filter(({ end }) => end === 'voided' || end === 'left')
  expect(free.filter(({ holdId }) => charged.has(holdId))).toEqual([])
}

/** Each confirmed credit, adjustment and refund is in the journal once. */
function expectOperationsOf(reports: readonly MoneyReport[], lines: readonly LedgerEntry[]): void {
  const made = new Map<string, bigint[]>()
  for (const { kind, operationId, amount, owed } of lines) {
    if (kind === 'expiry' || operationId === undefined) continue
    const name = `${kind} ${operationId}`
    made.set(name, [...(made.get(name) ?? []), amount - owed])
  }
  const confirmed = reports.flatMap((report) => [...report.operations])
  expect(confirmed.filter(([name, amount]) => made.get(name)?.join() !== `${amount}`)).toEqual([])
  expect([...made].filter(([, amounts]) => amounts.length !== 1)).toEqual([])
}

/** Each confirmed answer is replayed, and no key has two. */
async function expectAnswersOf(reports: readonly MoneyReport[], { idempotency }: GatewayStore): Promise<void> {
  const answers = reports.flatMap(({ holds }) => holds).filter(({ answered }) => answered !== undefined)
  const wrong: unknown[] = []
  for (const { holdId, answered } of answers) {
    const claim = { ...answered!, expiresAtMs: Date.now() + 60_000 }
    const result = await idempotency.claim(claim, Date.now())
    const body = result.status === 'replay' ? new TextDecoder().decode(result.answer.body) : result.status
    if (body !== holdId) wrong.push({ holdId, body })
  }
  expect(wrong).toEqual([])
  expect(answers.length).toBeGreaterThan(0)
}
