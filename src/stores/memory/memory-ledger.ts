import { TransientMap } from '../../core/maps.ts'
import type { ChargedEnd, UsageDraft } from '../../usage/usage-record.ts'
import { type CreditTake, creditsWithout, type ExpiringCredit } from '../expiring-credits.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import { entryId, entryNumber, type JournalQuery, type JournalSums, type LedgerEntry, sumsOf } from '../journal.ts'
import {
  type Account,
  assertAmount,
  heldResult,
  type Ledger,
  type Reservation,
  type ReserveResult,
  type Settlement,
} from '../ledger.ts'
import {
  type ChargeLine,
  type HoldEnd,
  type MadeOperation,
  type MoneyAccount,
  type MoneyBooks,
  type MoneyHold,
  MoneyRules,
  type NewLine,
} from '../money-rules.ts'
import type { SpendingCap } from '../principal.ts'
import { byAge, type Resolution } from '../resolution.ts'
import { isForgotten, NOTHING_SPENT, Spending, type SpendingCounts } from '../spending.ts'
import { MapCursor } from './account-shares.ts'
import { MemoryClaims } from './memory-cache.ts'
import { MemoryTaskTable } from './memory-task-table.ts'

/** Limits of a memory ledger. */
export interface MemoryLedgerOptions {
  /** Claims of the idempotency store, so that hold and key are one step. Defaults to a separate set. */
  readonly claims?: MemoryClaims | undefined
  /** Table of the task store, so that hold and task are one step. Defaults to a separate table. */
  readonly tasks?: MemoryTaskTable | undefined
  /** Returns the cap of a key by its id. Default none. */
  readonly keyCap?: ((keyId: string) => SpendingCap | undefined) | undefined
  /** Stores the record of a charged call, in the same step. If omitted, no record is stored. */
  readonly addRecord?: ((draft: UsageDraft, ended: ChargedEnd) => void) | undefined
  /** Minimum number of journal lines per account; older ones are combined into one. Default 10,000. */
  readonly maxJournalLines?: number | undefined
  /** Minimum number of recent reservations whose outcome is stored; up to twice as many. Default 1,000. */
  readonly maxOutcomes?: number | undefined
}

/** Synchronous ledger, so that a change of a task returns the result of its charge. */
export interface MemoryLedger extends Ledger {
  settle(settlement: Settlement, nowMs: number): Resolution
}

type Mutable<Type> = { -readonly [Member in keyof Type]: Type[Member] }

/** Account of a memory ledger. */
interface MemoryAccount extends Mutable<Account & MoneyAccount> {
  readonly journal: MemoryJournal
  /** Credits in the order of their expiry. */
  credits: readonly ExpiringCredit[]
}

/** Open hold: a task stays open for hours, and its reservation need not stay with it. */
interface MemoryHold extends MoneyHold {
  readonly expiresAtMs: number
  readonly claim: Reservation['claim']
  readonly taskId: string | undefined
}

// Equal outcomes of reserving. The identity of the object shows how the hold has ended.
const HELD_AND_SETTLED: ReserveResult = { status: 'held' }
const HELD_AND_VOIDED: ReserveResult = { status: 'held' }
const UNRESOLVED: Resolution = { resolved: false, charged: 0n, shortfall: 0n }
const ALREADY_SETTLED: Resolution = { ...UNRESOLVED, endedBy: 'settled' }
const ALREADY_VOIDED: Resolution = { ...UNRESOLVED, endedBy: 'voided' }
const ALREADY_EXPIRED: Resolution = { ...UNRESOLVED, endedBy: 'expired' }

/**
 * Creates a ledger in this process; synchronous, so each method is one step. Everything is lost when the process ends. Amounts
 * below zero or above 2^63 − 1, the limits of every driver, are rejected with a RangeError before anything is changed.
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): MemoryLedger {
  const books = new MemoryBooks(options)
  const rules = new MoneyRules(books)
  const { accounts } = books

  return {
    createAccount({ id, tier = 'paid', spendingCap, name, plan, billing, creditLimit }, nowMs) {
      const existing = accounts.get(id)
      if (existing !== undefined) return snapshot(existing)
      if (creditLimit !== undefined) assertAmount(creditLimit)
      const facts = { id, tier, spendingCap, name, plan, billing, creditLimit, frozen: undefined, createdAtMs: nowMs }
      const money = { balance: 0n, held: 0n, owed: 0n, creditHeld: 0n, funded: 0n }
      const journal = new MemoryJournal(id, options.maxJournalLines ?? 10_000)
      const times = { journalAtMs: Number.NEGATIVE_INFINITY, firstExpiryMs: undefined }
      const account = { ...money, ...facts, ...times, spending: new Spending(), journal, credits: [] }
      accounts.set(id, account)
      return snapshot(account)
    },

    updateAccount(accountId, change) {
      const account = accounts.get(accountId)
      if (account === undefined) return undefined
      const { tier, spendingCap, name, plan, billing, creditLimit, frozen } = change
      if (creditLimit != null) assertAmount(creditLimit)
      if (tier !== undefined) account.tier = tier
      if (spendingCap !== undefined) account.spendingCap = spendingCap ?? undefined
      if (name !== undefined) account.name = name ?? undefined
      if (plan !== undefined) account.plan = plan ?? undefined
      if (billing !== undefined) account.billing = billing ?? undefined
      if (creditLimit !== undefined) account.creditLimit = creditLimit ?? undefined
      if (frozen !== undefined) account.frozen = frozen ?? undefined
      return snapshot(account)
    },

    account(accountId) {
      const account = accounts.get(accountId)
      return account === undefined ? undefined : snapshot(account)
    },

    listAccounts: ({ search = '', after = '', limit }) =>
      [...accounts.values()]
        .filter(({ id }) => id > after && id.includes(search))
        .sort((one, other) => (one.id < other.id ? -1 : 1))
        .slice(0, Math.max(0, limit))
        .map(snapshot),

    credit: (credit, nowMs) => rules.credit(credit, nowMs),
    adjust: (adjustment, nowMs) => rules.adjust(adjustment, nowMs),
    refund: (refund, nowMs) => rules.refund(refund, nowMs),
    expireCredits: (nowMs, limit) => rules.expireCredits(nowMs, limit),
    reserve: (reservation, nowMs) => rules.reserve(reservation, nowMs),
    enlarge: (holdId, amount, nowMs) => rules.enlarge(holdId, amount, nowMs),
    settle: (settlement, nowMs) => rules.settle(settlement, nowMs),
    void: (holdId, nowMs) => rules.void(holdId, nowMs),
    expire: (nowMs, limit) => rules.expire(nowMs, limit),

    entries: (accountId, limit) => accounts.get(accountId)?.journal.newest(limit) ?? [],
    lines: ({ accountId, ...query }) => accounts.get(accountId)?.journal.query(query) ?? [],
    sums: ({ accountId, ...range }) =>
      accounts.get(accountId)?.journal.sums(range) ?? { openingBalance: 0n, openingOwed: 0n, sums: [] },

    spending(accountId, keyIds) {
      const account = accounts.get(accountId)
      if (account === undefined) return undefined
      return { account: account.spending.counts(), keys: keyIds.map((keyId) => books.keys.counts(keyId)) }
    },

    openHolds: ({ accountId, after, limit }) =>
      [...books.openHolds.values()]
        .map(({ id, accountId, keyId, amount, createdAtMs, expiresAtMs }) => {
          return { id, accountId, keyId, amount, createdAtMs, expiresAtMs }
        })
        .filter((hold) => accountId === undefined || hold.accountId === accountId)
        .sort(byAge)
        .filter((hold) => after === undefined || byAge(after, hold) < 0)
        .slice(0, Math.max(0, limit)),
  }
}

/** Returns the public state of an account. */
function snapshot(account: MemoryAccount): Account {
  const {
    funded: _,
    spending: __,
    journal: ___,
    credits: ____,
    journalAtMs: _____,
    firstExpiryMs: ______,
    ...shown
  } = account
  return shown
}

/** Accounts, holds and journal lines in maps. */
class MemoryBooks implements MoneyBooks<MemoryHold> {
  readonly accounts = new Map<string, MemoryAccount>()
  readonly openHolds = new TransientMap<string, MemoryHold>()
  readonly keys: KeySpending
  readonly #claims: MemoryClaims
  readonly #tasks: MemoryTaskTable
  readonly #addRecord: MemoryLedgerOptions['addRecord']
  readonly #outcomes: NewestEntries<ReserveResult>
  /** Expired holds, which may still be settled. */
  readonly #expired: NewestEntries<MemoryHold>
  /** Account by id of credit. */
  readonly #credits = new Map<string, string>()
  readonly #operations = new Map<string, MadeOperation>()
  #lineCount = 0

  constructor({ claims, tasks, keyCap, addRecord, maxOutcomes = 1_000 }: MemoryLedgerOptions) {
    this.#claims = claims ?? new MemoryClaims()
    this.#tasks = tasks ?? new MemoryTaskTable()
    this.keys = new KeySpending(keyCap)
    this.#addRecord = addRecord
    this.#outcomes = new NewestEntries(maxOutcomes)
    this.#expired = new NewestEntries(maxOutcomes)
  }

  timeOf(callerMs: number): number {
    return callerMs
  }

  account(accountId: string): MemoryAccount | undefined {
    return this.accounts.get(accountId)
  }

  key(keyId: string, today?: number): MemoryKey {
    return today === undefined ? this.keys.find(keyId) : this.keys.of(keyId, today)
  }

  // Accounts and keys are changed in place.
  noteChange(): void {}

  append(account: MemoryAccount, line: NewLine): void {
    const { kind, amount, owed = 0n, holdId, operationId, chargeId } = line
    if (operationId !== undefined && kind === 'credit') this.#credits.set(operationId, account.id)
    if (operationId !== undefined && (kind === 'adjustment' || kind === 'refund'))
      this.#operations.set(`${kind} ${operationId}`, { accountId: account.id, amount, owed, chargeId })
    account.journal.append({
      number: ++this.#lineCount,
      kind,
      amount,
      owed,
      due: line.due,
      balanceAfter: account.balance + account.held,
      holdId,
      operationId,
      chargeId: chargeId === undefined ? undefined : entryId(chargeId),
      description: line.description,
      details: line.details,
      createdAtMs: account.journalAtMs,
      keyId: line.keyId,
      period: line.period,
    })
  }

  addRecord(draft: UsageDraft, ended: ChargedEnd): void {
    this.#addRecord?.(draft, ended)
  }

  credits(account: MemoryAccount): readonly ExpiringCredit[] {
    return account.credits
  }

  addCredit(account: MemoryAccount, credit: ExpiringCredit): void {
    const later = account.credits.findIndex(({ expiresAtMs }) => expiresAtMs > credit.expiresAtMs)
    this.#setCredits(account, account.credits.toSpliced(later === -1 ? account.credits.length : later, 0, credit))
  }

  takeCredits(account: MemoryAccount, takes: readonly CreditTake[]): void {
    this.#setCredits(account, creditsWithout(account.credits, takes))
  }

  #setCredits(account: MemoryAccount, credits: readonly ExpiringCredit[]): void {
    account.credits = credits
    account.firstExpiryMs = credits[0]?.expiresAtMs
  }

  accountsWithExpired(timeMs: number, limit: number): readonly MemoryAccount[] {
    return [...this.accounts.values()]
      .filter(({ firstExpiryMs }) => firstExpiryMs !== undefined && firstExpiryMs <= timeMs)
      .slice(0, limit)
  }

  heldBefore(account: MemoryAccount, timeMs: number): bigint {
    let sum = 0n
    for (const { accountId, isMetered, createdAtMs, amount } of this.openHolds.values())
      if (accountId === account.id && !isMetered && createdAtMs < timeMs) sum += amount
    return sum
  }

  peekClaim(claim: IdempotencyClaim, nowMs: number): ClaimResult {
    return this.#claims.peek(claim, nowMs)
  }

  place(hold: MoneyHold, { claim, task, expiresAtMs }: Reservation, nowMs: number): boolean {
    const { id, accountId, keyId, amount, isMetered, period, createdAtMs } = hold
    if (this.openHolds.get(id) !== undefined || this.#outcomes.get(id) !== undefined) return false
    if (claim !== undefined) this.#claims.claim(claim, nowMs)
    const taskId = task?.id
    const money = { id, accountId, keyId, amount, isMetered, period, createdAtMs, expiresAtMs, claim, taskId }
    this.openHolds.set(id, money)
    if (task !== undefined) this.#tasks.insert(task)
    return true
  }

  firstOutcome(reservation: Reservation): ReserveResult | undefined {
    const open = this.openHolds.get(reservation.holdId)
    return open === undefined ? this.#outcomes.get(reservation.holdId) : heldResult(reservation, open.amount)
  }

  refuse({ holdId }: Reservation, outcome: ReserveResult): void {
    this.#outcomes.set(holdId, outcome)
  }

  openHold(holdId: string): MemoryHold | undefined {
    return this.openHolds.get(holdId)
  }

  expiredHold(holdId: string): MemoryHold | undefined {
    return this.#expired.get(holdId)
  }

  overdueHolds(timeMs: number, limit: number): readonly MemoryHold[] {
    const overdue: MemoryHold[] = []
    for (const hold of this.openHolds.values()) {
      if (overdue.length >= limit) break
      const isOfOpenTask = hold.taskId !== undefined && this.#tasks.isOpen(hold.taskId)
      if (hold.expiresAtMs <= timeMs && !isOfOpenTask) overdue.push(hold)
    }
    return overdue
  }

  enlarge(hold: MemoryHold, amount: bigint): void {
    this.openHolds.set(hold.id, { ...hold, amount: hold.amount + amount })
  }

  end(hold: MemoryHold, end: HoldEnd, _timeMs: number, answer?: StoredAnswer): void {
    const { id, claim } = hold
    this.openHolds.delete(id)
    this.#outcomes.set(id, end === 'settled' ? HELD_AND_SETTLED : HELD_AND_VOIDED)
    if (end === 'expired') this.#expired.set(id, hold)
    if (claim === undefined) return
    if (answer === undefined) this.#claims.release(claim)
    else this.#claims.complete(claim, answer)
  }

  endExpired({ id }: MemoryHold): void {
    this.#expired.delete(id)
    this.#outcomes.set(id, HELD_AND_SETTLED)
  }

  endedBefore(holdId: string): Resolution {
    if (this.#expired.get(holdId) !== undefined) return ALREADY_EXPIRED
    const outcome = this.#outcomes.get(holdId)
    if (outcome === HELD_AND_SETTLED) return ALREADY_SETTLED
    return outcome === HELD_AND_VOIDED ? ALREADY_VOIDED : UNRESOLVED
  }

  creditedAccount(creditId: string): string | undefined {
    return this.#credits.get(creditId)
  }

  operation(kind: 'adjustment' | 'refund', id: string): MadeOperation | undefined {
    return this.#operations.get(`${kind} ${id}`)
  }

  charge(number: bigint): ChargeLine | undefined {
    for (const { id: accountId, journal } of this.accounts.values()) {
      const line = journal.find(number)
      if (line !== undefined) return chargeLineOf(accountId, line)
    }
    return undefined
  }

  refunded(number: bigint): bigint {
    let sum = 0n
    for (const { chargeId, amount } of this.#operations.values()) if (chargeId === number) sum += amount
    return sum
  }
}

function chargeLineOf(accountId: string, { holdId, keyId, period, due }: JournalLine): ChargeLine | undefined {
  if (holdId === undefined || keyId === undefined || period === undefined || due === undefined) return undefined
  return { accountId, holdId, keyId, period, due }
}

/**
 * Newest entries, at least `least` of them and up to twice as many. There are two generations: when the newer one is full it
 * becomes the older, so that entries are never deleted one by one.
 */
class NewestEntries<Value> {
  readonly #least: number
  #newer = new Map<string, Value>()
  #older = new Map<string, Value>()

  constructor(least: number) {
    this.#least = least
  }

  get(key: string): Value | undefined {
    return this.#newer.get(key) ?? this.#older.get(key)
  }

  set(key: string, value: Value): void {
    this.#newer.set(key, value)
    if (this.#newer.size < this.#least) return
    this.#older = this.#newer
    this.#newer = new Map()
  }

  delete(key: string): void {
    this.#newer.delete(key)
    this.#older.delete(key)
  }
}

/** Stored line, without the fields that all lines of the account share. */
interface JournalLine extends Omit<LedgerEntry, 'id' | 'accountId'> {
  /** Number of the line in the ledger, from 1. */
  readonly number: number
  /** Key and day of a charge, in which it counts. */
  readonly keyId: string | undefined
  readonly period: number | undefined
}

/**
 * Journal of one account. Only the newest lines are kept, so that a process may run indefinitely: older ones are combined into
 * one line, which preserves the sum of all lines.
 */
class MemoryJournal {
  readonly #accountId: string
  readonly #maxLines: number
  #lines: JournalLine[] = []
  #carriedForward: LedgerEntry | undefined

  constructor(accountId: string, maxLines: number) {
    this.#accountId = accountId
    this.#maxLines = maxLines
  }

  append(line: JournalLine): void {
    this.#lines.push(line)
    // Trimmed in large steps, so that the cost of a line does not depend on the number of lines.
    if (this.#lines.length >= this.#maxLines * 2) this.#carryForward(this.#lines.length - this.#maxLines)
  }

  /** Returns the newest lines, newest first. */
  newest(limit: number): readonly LedgerEntry[] {
    const count = Math.max(0, Math.min(limit, this.#lines.length))
    const newest = this.#lines
      .slice(this.#lines.length - count)
      .reverse()
      .map((line) => this.#entry(line))
    return this.#carriedForward !== undefined && limit > count ? [...newest, this.#carriedForward] : newest
  }

  find(number: bigint): JournalLine | undefined {
    return this.#lines.find((line) => BigInt(line.number) === number)
  }

  /** Returns lines; see {@link Journal.lines}. */
  query({ fromMs, untilMs, order, after, limit }: Omit<JournalQuery, 'accountId'>): readonly LedgerEntry[] {
    const oldestFirst = this.#all().filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs < untilMs)
    const ordered = order === 'oldest' ? oldestFirst : oldestFirst.reverse()
    const isBehind = ({ id }: LedgerEntry): boolean => {
      if (after === undefined) return true
      const number = entryNumber(id) ?? 0n
      return order === 'oldest' ? number > after.number : number < after.number
    }
    return ordered.filter(isBehind).slice(0, Math.max(0, limit))
  }

  /** Returns sums; see {@link Journal.sums}. */
  sums({ fromMs, untilMs }: Pick<JournalQuery, 'fromMs' | 'untilMs'>): JournalSums {
    const entries = this.#all()
    const before = entries.filter(({ createdAtMs }) => createdAtMs < fromMs)
    return {
      openingBalance: before.reduce((sum, entry) => sum + entry.amount, 0n),
      openingOwed: before.reduce((sum, entry) => sum + entry.owed, 0n),
      sums: sumsOf(entries.filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs < untilMs)),
    }
  }

  /** Returns all lines, oldest first. */
  #all(): LedgerEntry[] {
    const entries = this.#lines.map((line) => this.#entry(line))
    return this.#carriedForward === undefined ? entries : [this.#carriedForward, ...entries]
  }

  #entry({ number, keyId: _, period: __, ...line }: JournalLine): LedgerEntry {
    return { id: entryId(number), accountId: this.#accountId, ...line }
  }

  #carryForward(count: number): void {
    const folded = this.#lines.slice(0, count)
    const last = folded.at(-1)
    if (last === undefined) return
    const amount = folded.reduce((sum, line) => sum + line.amount, this.#carriedForward?.amount ?? 0n)
    const owed = folded.reduce((sum, line) => sum + line.owed, this.#carriedForward?.owed ?? 0n)
    this.#lines = this.#lines.slice(count)
    this.#carriedForward = {
      id: `carried_forward_entry_${last.number}`,
      accountId: this.#accountId,
      kind: amount < 0n ? 'charge' : 'credit',
      amount,
      owed,
      holdId: undefined,
      description: 'carried forward',
      createdAtMs: last.createdAtMs,
      balanceAfter: last.balanceAfter,
    }
  }
}

/** Returns the cap of a key by its id. */
type KeyCap = (keyId: string) => SpendingCap | undefined

/** Key with its spending. */
class MemoryKey {
  readonly id: string
  readonly spending = new Spending()
  readonly #capOf: KeyCap

  constructor(id: string, capOf: KeyCap) {
    this.id = id
    this.#capOf = capOf
  }

  get spendingCap(): SpendingCap | undefined {
    return this.#capOf(this.id)
  }
}

const SWEPT_PER_LOOK = 2

/** Spending of keys in this process. Keys without spending in this month or the last are dropped. */
export class KeySpending {
  readonly #capOf: KeyCap
  readonly #byKey = new Map<string, MemoryKey>()
  readonly #cursor = new MapCursor(this.#byKey)
  #sweptPeriod = 0
  /** Number of keys to check until all were seen in the period; nothing more falls due in it. */
  #leftToSweep = 0

  constructor(capOf: KeyCap = () => undefined) {
    this.#capOf = capOf
  }

  /** Returns the latest counts of a key. */
  counts(keyId: string): SpendingCounts {
    return this.#byKey.get(keyId)?.spending.counts() ?? NOTHING_SPENT
  }

  /** Returns a key. The changes of a dropped one count nowhere. */
  find(keyId: string): MemoryKey {
    return this.#byKey.get(keyId) ?? new MemoryKey(keyId, this.#capOf)
  }

  /** Returns a key with its spending as of a day. */
  of(keyId: string, period: number): MemoryKey {
    if (period !== this.#sweptPeriod) {
      this.#sweptPeriod = period
      this.#leftToSweep = this.#byKey.size
    }
    for (let step = 0; step < SWEPT_PER_LOOK && this.#leftToSweep > 0; step++) {
      this.#leftToSweep -= 1
      const next = this.#cursor.next()
      if (next !== undefined && isForgotten(next[1].spending, period)) this.#byKey.delete(next[0])
    }
    let key = this.#byKey.get(keyId)
    if (key === undefined) {
      key = new MemoryKey(keyId, this.#capOf)
      this.#byKey.set(keyId, key)
      // The new key may precede the remaining ones.
      if (this.#leftToSweep > 0) this.#leftToSweep += 1
    }
    key.spending.reach(period)
    return key
  }
}
