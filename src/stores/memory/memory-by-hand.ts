import { type CreditTake, type ExpiringCredit, expireCredits, spendCredits } from '../expiring-credits.ts'
import {
  assertAdjustment,
  assertRefund,
  assertRepeated,
  entryNumber,
  type Journal,
  type OpenHold,
  type Refund,
  type RefundResult,
} from '../journal.ts'
import { type Account, assertOwable, assertRoom, type Ledger, type Settlement } from '../ledger.ts'
import type { Resolution } from '../resolution.ts'
import type { JournalLine, MemoryJournal } from './memory-journal.ts'
import type { KeySpending, Spending } from './memory-key-spending.ts'

type Mutable<Type> = { -readonly [Member in keyof Type]: Type[Member] }

/** Synchronous ledger, so that a change of a task returns the result of its charge. */
export interface MemoryLedger extends Ledger {
  settle(settlement: Settlement, nowMs: number): Resolution
}

/** Account of a memory ledger. */
export interface MutableAccount extends Mutable<Account> {
  /** Balance and held money after the latest credit. */
  funded: bigint
  readonly spending: Spending
  readonly journal: MemoryJournal
  readonly credits: MemoryCredits
}

/** Returns the public state of an account. */
export function snapshot({
  funded: _,
  spending: __,
  journal: ___,
  credits: ____,
  ...account
}: MutableAccount): Account {
  return account
}

/** Functions that manual changes share with the rest of a memory ledger. */
interface ByHandParts {
  readonly accounts: ReadonlyMap<string, MutableAccount>
  readonly keySpending: Pick<KeySpending, 'counts'>
  write(account: MutableAccount, line: Omit<JournalLine, 'number' | 'balanceAfter'>): void
  /** Called after money was added. */
  settleDebt(account: MutableAccount, nowMs: number): void
  expireDue(account: MutableAccount, nowMs: number): void
}

interface MadeRefund {
  readonly accountId: string
  readonly number: bigint
  readonly amount: bigint
}

/** Manual changes and the journal, in this process. */
export function byHand({
  accounts,
  keySpending,
  write,
  settleDebt,
  expireDue,
}: ByHandParts): Omit<Journal, 'openHolds'> {
  const adjustments = new Map<string, { readonly accountId: string; readonly amount: bigint }>()
  const refunds = new Map<string, MadeRefund>()

  function findCharge(chargeId: string): { account: MutableAccount; line: JournalLine } | undefined {
    const number = entryNumber(chargeId)
    if (number === undefined) return undefined
    for (const account of accounts.values()) {
      const line = account.journal.find(number)
      if (line !== undefined) return line.kind === 'charge' ? { account, line } : undefined
    }
    return undefined
  }

  function repeated({ refundId, chargeId, amount }: Refund, made: MadeRefund): RefundResult {
    assertRepeated('refund', refundId, entryNumber(chargeId) === made.number && (amount ?? made.amount) === made.amount)
    return { status: 'repeated', accountId: made.accountId, amount: made.amount }
  }

  return {
    adjust({ adjustmentId, accountId, amount, description, billing }, nowMs) {
      assertAdjustment(amount)
      const account = accounts.get(accountId)
      if (account === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      const made = adjustments.get(adjustmentId)
      if (made !== undefined) {
        assertRepeated('adjustment', adjustmentId, made.accountId === accountId && made.amount === amount)
        return 'repeated'
      }
      expireDue(account, nowMs)
      const left = account.balance + amount
      const isMetered = (account.billing ?? billing) === 'metered'
      if (left < 0n && !isMetered) return 'insufficient_balance'
      const owed = left < 0n ? -left : 0n
      assertRoom(account, amount)
      assertOwable(account, owed)
      adjustments.set(adjustmentId, { accountId, amount })
      const moved = amount + owed
      account.balance += moved
      account.owed += owed
      if (moved < 0n) account.credits.spend(-moved, nowMs)
      const line = { amount: moved, owed, holdId: undefined, operationId: adjustmentId, createdAtMs: nowMs }
      write(account, { kind: 'adjustment', description, ...line })
      if (amount > 0n) settleDebt(account, nowMs)
      return 'adjusted'
    },

    refund(refund, nowMs) {
      assertRefund(refund.amount)
      const { refundId, chargeId, description } = refund
      const made = refunds.get(refundId)
      if (made !== undefined) return repeated(refund, made)
      const found = findCharge(chargeId)
      if (found === undefined) return { status: 'unknown_charge' }
      const { account, line } = found
      const number = BigInt(line.number)
      const before = [...refunds.values()].filter((other) => other.number === number)
      const left = before.reduce((sum, other) => sum - other.amount, line.due ?? 0n)
      const amount = refund.amount ?? left
      if (amount > left || left === 0n) return { status: 'above_charge', left }
      assertRoom(account, amount)
      refunds.set(refundId, { accountId: account.id, number, amount })
      account.balance += amount
      const { holdId, counted } = line
      if (counted !== undefined)
        for (const spending of [account.spending, counted.keySpending]) spending.charge(counted.period, -amount)
      const about = { amount, owed: 0n, holdId, operationId: refundId, chargeId, createdAtMs: nowMs }
      write(account, { kind: 'refund', description, ...about })
      settleDebt(account, nowMs)
      return { status: 'refunded', accountId: account.id, amount }
    },

    lines: ({ accountId, ...query }) => accounts.get(accountId)?.journal.query(query) ?? [],

    sums: ({ accountId, ...range }) =>
      accounts.get(accountId)?.journal.sums(range) ?? { openingBalance: 0n, openingOwed: 0n, sums: [] },

    spending(accountId, keyIds) {
      const account = accounts.get(accountId)
      if (account === undefined) return undefined
      return { account: account.spending.counts(), keys: keyIds.map((keyId) => keySpending.counts(keyId)) }
    },

    expireCredits(nowMs, limit) {
      const due = [...accounts.values()]
        .filter(({ credits }) => credits.firstExpiryMs !== undefined && credits.firstExpiryMs <= nowMs)
        .slice(0, Math.max(0, limit))
      for (const account of due) expireDue(account, nowMs)
      return due.length
    },
  }
}

/** Returns holds by age. */
export function inOrder(
  one: Pick<OpenHold, 'createdAtMs' | 'id'>,
  other: Pick<OpenHold, 'createdAtMs' | 'id'>,
): number {
  if (one.createdAtMs !== other.createdAtMs) return one.createdAtMs - other.createdAtMs
  return one.id < other.id ? -1 : Number(one.id > other.id)
}

/** Expiring credits of one account, and the rest of each. */
export class MemoryCredits {
  /** Credits in the order of their expiry. */
  #credits: readonly ExpiringCredit[] = []

  /** Time at which the first one expires, or `undefined` if there is none. */
  get firstExpiryMs(): number | undefined {
    return this.#credits[0]?.expiresAtMs
  }

  add(credit: ExpiringCredit): void {
    const later = this.#credits.findIndex(({ expiresAtMs }) => expiresAtMs > credit.expiresAtMs)
    const place = later === -1 ? this.#credits.length : later
    this.#credits = [...this.#credits.slice(0, place), credit, ...this.#credits.slice(place)]
  }

  /** Spends money; see {@link spendCredits}. */
  spend(amount: bigint, atMs: number): void {
    if (this.#credits.length > 0) this.#take(spendCredits(this.#credits, amount, atMs))
  }

  /** Removes expired credits and returns the removed amounts; see {@link expireCredits}. */
  expire(state: Parameters<typeof expireCredits>[1]): CreditTake[] {
    const takes = expireCredits(this.#credits, state)
    this.#take(takes)
    return takes
  }

  #take(takes: readonly CreditTake[]): void {
    if (takes.length === 0) return
    const amounts = new Map(takes.map(({ creditId, amount }) => [creditId, amount]))
    this.#credits = this.#credits
      .map((credit) => ({ ...credit, remaining: credit.remaining - (amounts.get(credit.creditId) ?? 0n) }))
      .filter(({ remaining }) => remaining > 0n)
  }
}
