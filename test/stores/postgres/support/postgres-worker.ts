import { once } from 'node:events'
import pg from 'pg'
import { postgresStore } from '../../../../src/stores/postgres/postgres-store.ts'
import { exampleDraft } from '../../../../src/testing/contracts/contract-runner.ts'

/** Job for this process. */
export interface WorkerJob {
  readonly task:
    | 'migrate'
    | 'reserve-many'
    | 'expire-all'
    | 'take-tasks'
    | 'ensure-secrets'
    | 'reserve-for-ever'
    | 'settle-for-ever'
  readonly url: string
  readonly schema: string
  readonly worker: number
  readonly nowMs: number
}

const job = JSON.parse(process.argv[2]!) as WorkerJob
const pool = new pg.Pool({ connectionString: job.url, max: 4 })
const store = postgresStore({ pool, schema: job.schema, statementTimeoutMs: 60_000, clock: 'caller' })
const report = (message: unknown): void => void process.send!(message)

function reserve(holdId: string, amount: bigint) {
  const hold = { holdId, accountId: 'account_1', keyId: 'key_1', amount, expiresAtMs: job.nowMs + 60_000 }
  return store.ledger.reserve(hold, job.nowMs)
}

/** All processes begin at the same moment: when the test says so. */
async function untilTold(): Promise<void> {
  const word = once(process, 'message')
  report('ready')
  await word
}

async function reserveMany(): Promise<void> {
  const wanted = Array.from({ length: 500 }, (_, index) => `hold_${job.worker}_${index}`)
  const outcomes = await Promise.all(wanted.map(async (holdId) => reserve(holdId, 50n)))
  report(outcomes.filter((outcome) => outcome.status === 'held').length)
}

async function expireAll(): Promise<void> {
  let total = 0
  for (let count = -1; count !== 0; total += count) count = await store.ledger.expire(job.nowMs, 20)
  report(total)
}

/** Takes tasks, by fours and several at once, until there is nothing more to take. */
async function takeTasks(): Promise<void> {
  const budget = { takes: 250, windowMs: 60_000 }
  const query = { credentialId: 'dashscope:1', nowMs: job.nowMs, leaseUntilMs: job.nowMs + 60_000, limit: 4, budget }
  const ids: string[] = []
  for (let count = -1; count !== ids.length; ) {
    count = ids.length
    const taken = await Promise.all([1, 2, 3].map(async () => store.tasks.leaseDue(query)))
    ids.push(...taken.flat().map(({ id }) => id))
  }
  report(ids)
}

/** Gives accounts their first webhook secret, and tells which they have. */
async function ensureSecrets(): Promise<void> {
  const accounts = Array.from({ length: 50 }, (_, index) => `account_${index}`)
  const secret = `whsec_${job.worker}`
  report(
    await Promise.all(
      accounts.map(async (account) => `${account} ${await store.webhooks.ensureSecret(account, secret)}`),
    ),
  )
}

/** Ends only by a signal. */
async function reserveForEver(lane: number): Promise<void> {
  for (let index = 0; ; index++) {
    const holdId = `hold_${job.worker}_${lane}_${index}`
    const outcome = await reserve(holdId, 1n)
    if (outcome.status === 'held') report(holdId)
  }
}

/** Charges with a record, and adds records up meanwhile. Ends only by a signal. */
async function settleForEver(lane: number): Promise<void> {
  for (let index = 0; ; index++) {
    const id = `hold_${job.worker}_${lane}_${index}`
    await reserve(id, 10n)
    const record = exampleDraft({ id, accountId: 'account_1' })
    const settlement = { holdId: id, amount: BigInt(index % 20), description: 'chat m', record }
    await store.ledger.settle(settlement, job.nowMs)
    report(id)
    if (index % 5 === 0) await store.usage!.rollUp(7, job.nowMs)
  }
}

if (job.task !== 'migrate') await store.start()
await untilTold()
if (job.task === 'migrate') report(await store.start().then(() => 'started', String))
if (job.task === 'reserve-many') await reserveMany()
if (job.task === 'expire-all') await expireAll()
if (job.task === 'ensure-secrets') await ensureSecrets()
if (job.task === 'take-tasks') await takeTasks()
if (job.task === 'reserve-for-ever') await Promise.all([0, 1, 2, 3].map(reserveForEver))
if (job.task === 'settle-for-ever') await Promise.all([0, 1, 2, 3].map(settleForEver))
await store.close()
await pool.end()
process.disconnect()
