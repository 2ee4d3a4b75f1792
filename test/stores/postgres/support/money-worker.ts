import { once } from 'node:events'
import pg from 'pg'
import type { MaybePromise } from '../../../../src/core/maybe-promise.ts'
import type { Reservation, Settlement } from '../../../../src/stores/ledger.ts'
import { postgresStore } from '../../../../src/stores/postgres/postgres-store.ts'
import type { TaskChange } from '../../../../src/stores/task-store.ts'
import { exampleDraft, exampleTask } from '../../../../src/testing/contracts/contract-runner.ts'
import { seededNumbers } from '../../../drills/support/seeded-numbers.ts'
import { ACCOUNTS, type HoldReport, type MoneyJob, type MoneyReport, STEPS_PER_MESSAGE } from './money-job.ts'
import { untilAnswered } from './until-answered.ts'

const HOUR_MS = 3_600_000
const job = JSON.parse(process.argv[2]!) as MoneyJob
const pool = new pg.Pool({ connectionString: job.url, max: 4 })
const store = postgresStore({ pool, schema: job.schema })
const { ledger, tasks } = store
const holds: HoldReport[] = []
const asked = new Map<string, bigint>()
const operations = new Map<string, bigint>()
const outcomes = new Map<string, number>()
const faults: string[] = []
let steps = 0
let repeated = 0
let isOver = false

process.on('unhandledRejection', (error) => void faults.push(`unhandled rejection: ${textOf(error)}`))
process.on('uncaughtException', (error) => void faults.push(`uncaught exception: ${textOf(error)}`))

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.stack} ${JSON.stringify(error)}` : String(error)
}

function answered<Value>(call: () => MaybePromise<Value>): Promise<Value> {
  return untilAnswered(call, () => repeated++)
}

function count(outcome: string): void {
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
}

/** One caller after the other, with random numbers of its own. */
async function lane(number: number): Promise<void> {
  const random = seededNumbers(job.seed * 1_000 + job.worker * 100 + number)
  const below = (limit: number): number => Math.floor(random() * limit)
  const amountBelow = (limit: number): bigint => BigInt(below(limit))
  for (let step = 0; !isOver; step++) {
    const id = `${job.worker}_${number}_${step}`
    // Half of the calls share five accounts.
    const account = below(2) === 0 ? below(5) : below(ACCOUNTS)
    try {
      await oneStep(id, account)
    } catch (error) {
      faults.push(textOf(error))
    }
    if (++steps % STEPS_PER_MESSAGE === 0) process.send!('steps')
  }

  async function oneStep(id: string, account: number): Promise<void> {
    const accountId = `account_${account}`
    const kind = below(20)
    if (kind < 11) return chat(id, accountId, account)
    if (kind === 11) return sharedChat(below(200))
    if (kind === 12) return lateChat(id, accountId)
    if (kind === 13) return claimedChat(id, accountId)
    if (kind === 14) return video(id, accountId)
    if (kind === 15) return credit(id, accountId)
    if (kind === 16) return adjust(id, accountId)
    if (kind === 17) return refund(id, accountId)
    if (kind === 18) return leave(id, accountId)
    const nowMs = Date.now()
    await answered(() => ledger.expireCredits(nowMs, 10))
    await answered(() => store.usage!.rollUp(100, nowMs))
  }

  function reservation(holdId: string, accountId: string, more: Partial<Reservation> = {}): Reservation {
    const keyId = below(5) === 0 ? 'key_shared' : `key_${accountId}_${below(2)}`
    return { holdId, accountId, keyId, amount: amountBelow(900), expiresAtMs: Date.now() + HOUR_MS, ...more }
  }

  /** Reserves until the store answers, and sometimes once more. Returns whether the hold was placed. */
  async function reserve(wanted: Reservation): Promise<boolean> {
    const outcome = await answered(() => ledger.reserve(wanted, Date.now()))
    count(outcome.status)
    if (outcome.status === 'held' && outcome.isLarger === true) count('larger')
    return outcome.status === 'held'
  }

  /** Settles until the store answers, sometimes twice at the same time. */
  async function settle(
    sentAtMs: number,
    wanted: Reservation,
    { paidEnd = 'settled', ...more }: Partial<Settlement> & { readonly paidEnd?: 'settled' | 'late' } = {},
  ): Promise<void> {
    const { holdId, accountId, keyId } = wanted
    // Settlements of one hold have one amount, whoever sends them.
    const amount = asked.get(holdId) ?? amountBelow(1_400)
    asked.set(holdId, amount)
    const settlement: Settlement = {
      ...{ holdId, amount, description: 'chat m' },
      details: { keyId, endpoint: 'chat', model: 'm', vendor: 'v', usage: { inputTokens: 1 } },
      record: exampleDraft({ id: holdId, accountId, keyId }),
      owner: { accountId, keyId },
      ...(below(4) === 0 ? { thresholds: { caps: [50, 80, 100], balance: [80] } } : {}),
      ...more,
    }
    const repeatedBefore = repeated
    const times = below(5) === 0 ? 2 : 1
    const sent = Array.from({ length: times }, () => answered(() => ledger.settle(settlement, Date.now())))
    const ends = await Promise.all(sent)
    if (ends.filter(({ resolved }) => resolved).length > 1) faults.push(`${holdId} was charged twice`)
    const paid = ends.find(({ resolved }) => resolved)
    if (paid !== undefined && paid.charged + paid.shortfall !== amount) faults.push(`${holdId} was charged in part`)
    const endedBy = ends.find((end) => end.endedBy !== undefined)?.endedBy
    const isPaid = paid !== undefined || endedBy === 'settled'
    if (paid === undefined && endedBy === 'settled' && repeated > repeatedBefore) count('charged, answer lost')
    const claim = settlement.answer && wanted.claim
    report(wanted, sentAtMs, {
      ...{ end: isPaid ? paidEnd : 'unpaid', endedBy, amount },
      ...(claim === undefined || !isPaid ? {} : { answered: claim }),
    })
  }

  function report(
    { holdId }: Reservation,
    sentAtMs: number,
    end: Omit<HoldReport, 'holdId' | 'sentAtMs' | 'endedAtMs'>,
  ) {
    holds.push({ holdId, sentAtMs, endedAtMs: Date.now(), ...end })
    count(end.end)
  }

  async function chat(id: string, accountId: string, account: number): Promise<void> {
    const sentAtMs = Date.now()
    const amount = amountBelow(900)
    const wanted = reservation(`chat_${id}`, accountId, {
      amount,
      ...(below(3) === 0 ? { larger: { amount: amount * 2n + 1n, requiredFree: amount * 4n + 1n } } : {}),
      ...(account % 4 === 0 ? { caps: { account: { amount: 400_000n, period: 'day' } } } : {}),
      ...(account % 4 === 1 ? { caps: { key: { amount: 90_000n, period: 'month' } } } : {}),
    })
    if (!(await reserve(wanted))) return
    if (below(10) === 0) await reserve(wanted)
    if (below(10) === 0)
      count(`enlarged ${await answered(() => ledger.enlarge(wanted.holdId, amountBelow(300), Date.now()))}`)
    if (below(4) > 0) return settle(sentAtMs, wanted)
    const end = await answered(() => ledger.void(wanted.holdId, Date.now()))
    const isVoided = end.resolved || end.endedBy === 'voided'
    report(wanted, sentAtMs, { end: isVoided ? 'voided' : 'unpaid', endedBy: end.endedBy, amount: 0n })
  }

  /** Several processes reserve and settle the same hold. */
  async function sharedChat(number: number): Promise<void> {
    const sentAtMs = Date.now()
    const holdId = `shared_${number}`
    const wanted = reservation(holdId, `account_${number % ACCOUNTS}`, { keyId: 'key_shared', amount: BigInt(number) })
    asked.set(holdId, BigInt(number * 2))
    if (await reserve(wanted)) await settle(sentAtMs, wanted)
  }

  /** The hold expires before its settlement. */
  async function lateChat(id: string, accountId: string): Promise<void> {
    const sentAtMs = Date.now()
    const wanted = reservation(`late_${id}`, accountId, { expiresAtMs: sentAtMs + 1 })
    if (!(await reserve(wanted))) return
    await answered(() => ledger.expire(Date.now(), 20))
    await settle(sentAtMs, wanted, { paidEnd: 'late' })
  }

  async function claimedChat(id: string, accountId: string): Promise<void> {
    const sentAtMs = Date.now()
    const holdId = `claim_${id}`
    // Few keys, so that processes meet. Each key has one body, except for one that comes with another.
    const key = `order_${below(40)}`
    const fingerprint = below(10) === 0 ? 'b' : 'a'
    const claim = { accountId, key, fingerprint, expiresAtMs: sentAtMs + HOUR_MS }
    const wanted = reservation(holdId, accountId, { claim })
    if (!(await reserve(wanted))) return
    const body = new TextEncoder().encode(holdId)
    const answer = below(3) === 0 ? undefined : { status: 200, headers: ['a', 'b'], body }
    await settle(sentAtMs, wanted, { answer })
  }

  /** A task that its vendor completes, or refuses. */
  async function video(id: string, accountId: string): Promise<void> {
    const sentAtMs = Date.now()
    const holdId = `video_${id}`
    const base = reservation(holdId, accountId)
    const task = exampleTask({ id: `task_${id}`, accountId, keyId: base.keyId, holdId, state: 'submitting' })
    if (!(await reserve({ ...base, task }))) return
    if (below(3) === 0) {
      const isDiscarded = await answered(() => tasks.discard(task.id, undefined, Date.now()))
      return report(base, sentAtMs, { end: isDiscarded ? 'voided' : 'left', amount: 0n })
    }
    const amount = amountBelow(1_400)
    asked.set(holdId, amount)
    const record = exampleDraft({ id: holdId, accountId, keyId: base.keyId })
    const details = { keyId: base.keyId, endpoint: 'videos', model: 'm', vendor: 'v', usage: { videoSeconds: 1 } }
    const change: TaskChange = {
      id: task.id,
      from: ['submitting'],
      set: { state: 'completed' },
      resolve: { kind: 'settle', amount, description: 'video', record, details },
    }
    const changed = await answered(() => tasks.change(change, Date.now()))
    const isPaid =
      changed?.charge?.resolved ?? (await answered(() => tasks.find(accountId, task.id)))?.state === 'completed'
    report(base, sentAtMs, { end: isPaid ? 'settled' : 'unpaid', amount })
  }

  async function credit(id: string, accountId: string): Promise<void> {
    const amount = amountBelow(2_000) + 1n
    const expiresAtMs = below(2) === 0 ? undefined : Date.now() + below(500)
    const wanted = { creditId: `credit_${id}`, accountId, amount, description: 'x', expiresAtMs }
    for (let times = below(3); times >= 0; times--) await answered(() => ledger.credit(wanted, Date.now()))
    operations.set(`credit ${wanted.creditId}`, amount)
  }

  async function adjust(id: string, accountId: string): Promise<void> {
    const amount = amountBelow(1_000) - 500n
    if (amount === 0n) return
    const wanted = { adjustmentId: `adjustment_${id}`, accountId, amount, description: 'x' }
    const result = await answered(() => ledger.adjust(wanted, Date.now()))
    count(result)
    if (result !== 'insufficient_balance') operations.set(`adjustment ${wanted.adjustmentId}`, amount)
  }

  async function refund(id: string, accountId: string): Promise<void> {
    const entries = await answered(() => ledger.entries(accountId, 20))
    const charges = entries.filter(({ kind }) => kind === 'charge')
    const charge = charges[below(charges.length)]
    if (charge === undefined) return
    const wanted = { refundId: `refund_${id}`, chargeId: charge.id, amount: amountBelow(200) + 1n, description: 'x' }
    const result = await answered(() => ledger.refund(wanted, Date.now()))
    count(result.status)
    const isMade = result.status === 'refunded' || result.status === 'repeated'
    if (isMade) operations.set(`refund ${wanted.refundId}`, wanted.amount)
  }

  /** The process forgets the hold, as one that was killed does. */
  async function leave(id: string, accountId: string): Promise<void> {
    const sentAtMs = Date.now()
    const wanted = reservation(`left_${id}`, accountId, { expiresAtMs: sentAtMs + below(800) })
    if (await reserve(wanted)) report(wanted, sentAtMs, { end: 'left', amount: 0n })
  }
}

await store.start()
const word = once(process, 'message')
process.send!('ready')
await word
const stop = once(process, 'message')
void stop.then(() => {
  isOver = true
})
await Promise.all(Array.from({ length: job.lanes }, (_, number) => lane(number)))
await store.close()
await pool.end()
const knowledge: MoneyReport = { holds, asked, operations, outcomes, repeated, faults }
// A large message is still on its way when `send` returns.
process.send!(knowledge, () => process.disconnect())
