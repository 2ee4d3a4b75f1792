import { type UsageRecord, usageRecord } from '../../usage/usage-record.ts'
import {
  type Account,
  assertAmount,
  assertCreditOf,
  type Ledger,
  type LedgerEntry,
  lesserOf,
  MAX_AMOUNT,
  REPAYMENT,
  type Reservation,
  type ReserveResult,
  type Resolution,
  type SpendingLimit,
} from '../ledger.ts'
import { MapCursor } from './map-scans.ts'
import { MemoryClaims } from './memory-claims.ts'
import { MemoryJournal } from './memory-journal.ts'
import { MemoryTaskTable } from './memory-task-table.ts'

/** How much a memory ledger remembers. */
export interface MemoryLedgerOptions {
  /** Give the idempotency store's, so that hold and key are one step; a set of its own when absent. */
  readonly claims?: MemoryClaims | undefined
  /** Give the task store's, so that hold and task are one step; a table of its own when absent. */
  readonly tasks?: MemoryTaskTable | undefined
  /** Takes the record of a charged call, in the same step; none is kept when absent. */
  readonly addRecord?: ((record: UsageRecord) => void) | undefined
  /** Journal lines kept of each account at least, older ones are summed up in one; 10,000 when absent. */
  readonly maxJournalLines?: number | undefined
  /** Newest reservations whose outcome is remembered at least; up to twice as many are. 1,000 when absent. */
  readonly maxOutcomes?: number | undefined
}

interface MutableAccount {
  readonly id: string
  balance: bigint
  held: bigint
  owed: bigint
  tier: Account['tier']
  spendingCap: Account['spendingCap']
  readonly createdAtMs: number
  readonly journal: MemoryJournal
}

/** Of a reservation what its end needs: a task stays open for hours, and its reservation need not stay with it. */
interface OpenHold {
  readonly amount: bigint
  readonly expiresAtMs: number
  readonly claim: Reservation['claim']
  readonly taskId: string | undefined
  readonly account: MutableAccount
  readonly counters: readonly SpendingCounter[]
}

const HELD: ReserveResult = { status: 'held' }
// The same outcome of reserving; which object it is tells how the hold has ended.
const HELD_AND_SETTLED: ReserveResult = { status: 'held' }
const HELD_AND_VOIDED: ReserveResult = { status: 'held' }
const IN_ARREARS: ReserveResult = { status: 'in_arrears' }
const INSUFFICIENT_BALANCE: ReserveResult = { status: 'insufficient_balance' }
const UNKNOWN_ACCOUNT: ReserveResult = { status: 'unknown_account' }
const UNRESOLVED: Resolution = { resolved: false, charged: 0n, shortfall: 0n }
const SETTLED_BEFORE: Resolution = { ...UNRESOLVED, endedBy: 'settled' }
const VOIDED_BEFORE: Resolution = { ...UNRESOLVED, endedBy: 'voided' }
const EXPIRED_BEFORE: Resolution = { ...UNRESOLVED, endedBy: 'expired' }

/**
 * Balances and holds in this process; answers at once, so each method is one step. Everything is lost when the process
 * ends. Amounts below zero or above 2^63 − 1, the bounds of every driver, are refused with a RangeError before anything is
 * changed.
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): Ledger {
  const claims = options.claims ?? new MemoryClaims()
  const tasks = options.tasks ?? new MemoryTaskTable()
  const maxJournalLines = options.maxJournalLines ?? 10_000
  const maxOutcomes = options.maxOutcomes ?? 1_000
  const accounts = new Map<string, MutableAccount>()
  const openHolds = new Map<string, OpenHold>()
  // Two generations: when the newer one is full it becomes the older, so that nothing is ever deleted one by one.
  let outcomes = new Map<string, ReserveResult>()
  let olderOutcomes = new Map<string, ReserveResult>()
  /** Expired holds, which may still be settled. Two generations too. */
  let expired = new Map<string, OpenHold>()
  let olderExpired = new Map<string, OpenHold>()
  /** Account by id of credit. */
  const credits = new Map<string, string>()
  const spending = new MemorySpending()
  let lineCount = 0

  function write(account: MutableAccount, line: Omit<LedgerEntry, 'id' | 'accountId'>): void {
    lineCount += 1
    account.journal.append({ number: lineCount, ...line })
  }

  function decide(reservation: Reservation, nowMs: number): ReserveResult {
    const account = accounts.get(reservation.accountId)
    if (account === undefined) return UNKNOWN_ACCOUNT
    if (reservation.claim !== undefined) {
      const found = claims.peek(reservation.claim, nowMs)
      if (found.status !== 'claimed') return found
    }
    const { amount, expiresAtMs, claim, spendingLimits = [] } = reservation
    if (account.owed > 0n) return IN_ARREARS
    if (account.balance < amount) return INSUFFICIENT_BALANCE
    const counter = spending.exceeded(spendingLimits, amount, nowMs)
    if (counter !== undefined) return { status: 'spending_limit', counter }
    if (reservation.claim !== undefined) claims.claim(reservation.claim, nowMs)
    account.balance -= amount
    account.held += amount
    const counters = spending.count(spendingLimits, amount, nowMs)
    const taskId = reservation.task?.id
    openHolds.set(reservation.holdId, { amount, expiresAtMs, claim, taskId, account, counters })
    if (reservation.task !== undefined) tasks.insert(reservation.task)
    return HELD
  }

  function remember(holdId: string, outcome: ReserveResult): void {
    // A replay is found again through its key; remembering it here would keep its body alive.
    if (outcome.status === 'replay') return
    outcomes.set(holdId, outcome)
    if (outcomes.size < maxOutcomes) return
    olderOutcomes = outcomes
    outcomes = new Map()
  }

  /** Gives a hold back to the balance, with its place under the spending limits. */
  function giveBack(holdId: string, { account, amount, counters }: OpenHold): void {
    openHolds.delete(holdId)
    account.held -= amount
    account.balance += amount
    for (const counter of counters) counter.spent -= amount
  }

  function voidHold(holdId: string, nowMs: number): Resolution {
    const hold = openHolds.get(holdId)
    if (hold === undefined) return endedBefore(holdId)
    giveBack(holdId, hold)
    remember(holdId, HELD_AND_VOIDED)
    if (hold.claim !== undefined) claims.release(hold.claim)
    repay(hold.account, nowMs)
    return { resolved: true, charged: 0n, shortfall: 0n }
  }

  function expireHold(holdId: string, hold: OpenHold, nowMs: number): void {
    voidHold(holdId, nowMs)
    expired.set(holdId, hold)
    if (expired.size < maxOutcomes) return
    olderExpired = expired
    expired = new Map()
  }

  /** Takes a hold out that may be settled: an open one, or one that has expired. */
  function takeForCharge(holdId: string): OpenHold | undefined {
    const open = openHolds.get(holdId)
    if (open !== undefined) {
      giveBack(holdId, open)
      return open
    }
    const late = expired.get(holdId) ?? olderExpired.get(holdId)
    expired.delete(holdId)
    olderExpired.delete(holdId)
    return late === undefined ? undefined : { ...late, claim: undefined }
  }

  function endedBefore(holdId: string): Resolution {
    if (expired.has(holdId) || olderExpired.has(holdId)) return EXPIRED_BEFORE
    const outcome = outcomes.get(holdId) ?? olderOutcomes.get(holdId)
    if (outcome === HELD_AND_SETTLED) return SETTLED_BEFORE
    return outcome === HELD_AND_VOIDED ? VOIDED_BEFORE : UNRESOLVED
  }

  /** Pays what an account owes from its balance, as far as that goes. */
  function repay(account: MutableAccount, nowMs: number): void {
    const paid = lesserOf(account.owed, account.balance)
    if (paid === 0n) return
    account.balance -= paid
    account.owed -= paid
    const line = { amount: -paid, owed: -paid, holdId: undefined, createdAtMs: nowMs }
    write(account, { kind: 'repayment', description: REPAYMENT, ...line })
  }

  return {
    createAccount({ id, tier = 'paid', spendingCap }, nowMs) {
      const existing = accounts.get(id)
      if (existing !== undefined) return snapshot(existing)
      const journal = new MemoryJournal(id, maxJournalLines)
      const money = { balance: 0n, held: 0n, owed: 0n }
      const account: MutableAccount = { id, ...money, tier, spendingCap, createdAtMs: nowMs, journal }
      accounts.set(id, account)
      return snapshot(account)
    },

    updateAccount(accountId, { tier, spendingCap }) {
      const account = accounts.get(accountId)
      if (account === undefined) return undefined
      if (tier !== undefined) account.tier = tier
      if (spendingCap !== undefined) account.spendingCap = spendingCap ?? undefined
      return snapshot(account)
    },

    account(accountId) {
      const account = accounts.get(accountId)
      return account === undefined ? undefined : snapshot(account)
    },

    credit({ creditId, accountId, amount, description }, nowMs) {
      const account = accounts.get(accountId)
      if (account === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      if (amount <= 0n) throw new RangeError('a credit must be above zero')
      const creditedId = credits.get(creditId)
      if (creditedId !== undefined) {
        assertCreditOf(accountId, { id: creditId, accountId: creditedId })
        return false
      }
      if (account.balance + account.held + amount > MAX_AMOUNT)
        throw new RangeError('the account cannot hold more than 2^63 - 1 nano-dollars')
      credits.set(creditId, accountId)
      account.balance += amount
      write(account, { kind: 'credit', amount, owed: 0n, holdId: undefined, description, createdAtMs: nowMs })
      repay(account, nowMs)
      return true
    },

    reserve(reservation, nowMs) {
      assertAmount(reservation.amount)
      const known = outcomes.get(reservation.holdId) ?? olderOutcomes.get(reservation.holdId)
      if (known !== undefined) return known
      if (openHolds.has(reservation.holdId)) return HELD
      const outcome = decide(reservation, nowMs)
      remember(reservation.holdId, outcome)
      return outcome
    },

    settle({ holdId, amount, description, answer, record }, nowMs) {
      assertAmount(amount)
      const hold = takeForCharge(holdId)
      if (hold === undefined) return endedBefore(holdId)
      const { account, counters, claim } = hold
      const charged = lesserOf(amount, account.balance)
      const shortfall = amount - charged
      account.balance -= charged
      account.owed += shortfall
      for (const counter of counters) counter.spent += amount
      remember(holdId, HELD_AND_SETTLED)
      const line = { holdId, description, createdAtMs: nowMs }
      write(account, { kind: 'charge', amount: -charged, owed: 0n, ...line })
      if (shortfall > 0n) write(account, { kind: 'owed', amount: 0n, owed: shortfall, ...line })
      repay(account, nowMs)
      if (claim !== undefined) {
        if (answer === undefined) claims.release(claim)
        else claims.complete(claim, answer)
      }
      if (record !== undefined)
        options.addRecord?.(
          usageRecord(record, { endedAtMs: nowMs, dueNanoDollars: amount, chargedNanoDollars: charged }),
        )
      return { resolved: true, charged, shortfall }
    },

    void: (holdId, nowMs) => voidHold(holdId, nowMs),

    expire(nowMs, limit) {
      let count = 0
      for (const [holdId, hold] of openHolds) {
        if (count >= limit) break
        if (hold.expiresAtMs > nowMs) continue
        if (hold.taskId !== undefined && tasks.isOpen(hold.taskId)) continue
        expireHold(holdId, hold, nowMs)
        count += 1
      }
      return count
    },

    entries: (accountId, limit) => accounts.get(accountId)?.journal.newest(limit) ?? [],
  }
}

function snapshot({ id, balance, held, owed, tier, spendingCap, createdAtMs }: MutableAccount): Account {
  return { id, balance, held, owed, tier, spendingCap, createdAtMs }
}

/** What was charged and is held in one period. A hold keeps the counters it counts in, to correct them when it ends. */
interface SpendingCounter {
  spent: bigint
  expiresAtMs: number
}

const SWEPT_PER_COUNT = 2

/** Counters of spending limits in this process. */
class MemorySpending {
  readonly #counters = new Map<string, SpendingCounter>()
  readonly #cursor = new MapCursor(this.#counters)

  /** Name of the first counter that an amount would take beyond its limit. Nothing is counted. Zero always fits. */
  exceeded(limits: readonly SpendingLimit[], amount: bigint, nowMs: number): string | undefined {
    if (amount === 0n) return undefined
    return limits.find(({ counter, limit }) => this.#spent(counter, nowMs) + amount > limit)?.counter
  }

  /** Counts an amount in all of the counters, and gives them. */
  count(limits: readonly SpendingLimit[], amount: bigint, nowMs: number): readonly SpendingCounter[] {
    const counters = limits.map(({ counter: name, expiresAtMs }) => {
      const counter = this.#live(name, expiresAtMs, nowMs)
      counter.spent += amount
      counter.expiresAtMs = Math.max(counter.expiresAtMs, expiresAtMs)
      return counter
    })
    for (let step = 0; step < SWEPT_PER_COUNT; step++) {
      const next = this.#cursor.next()
      if (next !== undefined && next[1].expiresAtMs <= nowMs) this.#counters.delete(next[0])
    }
    return counters
  }

  #spent(name: string, nowMs: number): bigint {
    const counter = this.#counters.get(name)
    return counter === undefined || counter.expiresAtMs <= nowMs ? 0n : counter.spent
  }

  #live(name: string, expiresAtMs: number, nowMs: number): SpendingCounter {
    const existing = this.#counters.get(name)
    if (existing !== undefined && existing.expiresAtMs > nowMs) return existing
    // A new object: a hold of the expired counter must not correct this one.
    const counter = { spent: 0n, expiresAtMs }
    this.#counters.delete(name)
    this.#counters.set(name, counter)
    return counter
  }
}
