// See docs/decisions/0007-corrections-and-credits.md.

import type { ChargedEnd, UsageDraft } from '../usage/usage-record.ts'
import { type CreditTake, type ExpiringCredit, expireCredits, expiryText, spendCredits } from './expiring-credits.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from './idempotency-store.ts'
import {
  type Adjustment,
  type AdjustResult,
  assertAdjustment,
  assertRefund,
  assertRepeated,
  type ChargeDetails,
  type EntryKind,
  entryNumber,
  type Refund,
  type RefundResult,
} from './journal.ts'
import {
  type Account,
  assertAmount,
  assertCreditOf,
  assertOwable,
  assertRoom,
  type Credit,
  type EnlargeStatus,
  lesserOf,
  REPAYMENT,
  type Reservation,
  type ReserveResult,
  type Settlement,
} from './ledger.ts'
import type { BillingMode } from './principal.ts'
import type { Resolution } from './resolution.ts'
import { crossingsOf, exceededCap, type Spending, spendingPeriod } from './spending.ts'

/** Key or account whose spending counts under caps. The rules change `spending` in place. */
export interface MoneyOwner {
  readonly id: string
  readonly spendingCap: Account['spendingCap']
  readonly spending: Spending
}

/** Account whose money the rules change in place. */
export interface MoneyAccount extends MoneyOwner, Pick<Account, 'billing' | 'creditLimit' | 'frozen'> {
  balance: bigint
  held: bigint
  owed: bigint
  creditHeld: bigint
  /** Balance and held money after the latest credit. */
  funded: bigint
  /** Time of the newest journal line, in Unix milliseconds. */
  journalAtMs: number
  /** Time at which the first credit expires, or `undefined` for none. The books set it. */
  readonly firstExpiryMs: number | undefined
}

/** Part of a reservation that the end of its hold needs. */
export interface MoneyHold {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly amount: bigint
  readonly isMetered: boolean
  /** Day in which it counts. */
  readonly period: number
  readonly createdAtMs: number
}

/** How a hold ended. */
export type HoldEnd = NonNullable<Resolution['endedBy']>

/** Journal line to write. Its time, and the balance and debt after it, are those of the account. */
export interface NewLine {
  readonly kind: EntryKind
  readonly amount: bigint
  readonly description: string
  readonly owed?: bigint
  readonly holdId?: string | undefined
  /** Id of the credit, the adjustment or the refund. */
  readonly operationId?: string
  /** Number of the refunded line. */
  readonly chargeId?: bigint
  readonly due?: bigint
  readonly details?: ChargeDetails | undefined
  /** Key and day of a charge, in which it counts. */
  readonly keyId?: string
  readonly period?: number
}

/** Adjustment or refund that was made before. */
export interface MadeOperation {
  readonly accountId: string
  readonly amount: bigint
  readonly owed: bigint
  readonly chargeId: bigint | undefined
}

/** Charge in the journal. */
export interface ChargeLine {
  readonly accountId: string
  readonly keyId: string
  readonly period: number
  readonly holdId: string
  readonly due: bigint
}

/** Storage of accounts, holds and journal lines. Each operation of the rules is one transaction of it. */
export interface MoneyBooks<Hold extends MoneyHold> {
  /** Returns the store's time, which decides on expiry, from the caller's time. */
  timeOf(callerMs: number): number
  account(accountId: string): MoneyAccount | undefined
  /** Returns a key, with or without spending. `today`: day of a reservation. */
  key(keyId: string, today?: number): MoneyOwner
  /** Notes that the money of an account, and the spending of account and key, were changed. */
  noteChange(account: MoneyAccount, key: MoneyOwner): void
  /** Writes a line after the change of its account. */
  append(account: MoneyAccount, line: NewLine): void
  addRecord(draft: UsageDraft, ended: ChargedEnd): void

  /** Returns the credits of an account that expire, in the order of their expiry. */
  credits(account: MoneyAccount): readonly ExpiringCredit[]
  addCredit(account: MoneyAccount, credit: ExpiringCredit): void
  takeCredits(account: MoneyAccount, takes: readonly CreditTake[]): void
  /** Returns up to `limit` accounts with expired credits. */
  accountsWithExpired(timeMs: number, limit: number): readonly MoneyAccount[]
  /** Returns the balance that open holds from before a time hold. */
  heldBefore(account: MoneyAccount, timeMs: number): bigint

  peekClaim(claim: IdempotencyClaim, nowMs: number): ClaimResult
  /** Stores a hold with the claim and the task of its reservation. Returns false if the id was reserved before. */
  place(hold: MoneyHold, reservation: Reservation, nowMs: number): boolean
  /** Returns the first outcome of an id that was reserved before. */
  firstOutcome(reservation: Reservation): ReserveResult | undefined
  /** Stores a rejection. */
  refuse(reservation: Reservation, outcome: ReserveResult): void
  openHold(holdId: string, timeMs: number): Hold | undefined
  /** Returns a hold that has expired and was not charged since. */
  expiredHold(holdId: string): Hold | undefined
  /** Returns up to `limit` open holds after their expiry, without those of open tasks. */
  overdueHolds(timeMs: number, limit: number): readonly Hold[]
  /** Adds an amount to an open hold. */
  enlarge(hold: Hold, amount: bigint): void
  /** Ends an open hold and its claim, which is freed if there is no answer. */
  end(hold: Hold, end: HoldEnd, timeMs: number, answer?: StoredAnswer): void
  /** Notes that an expired hold was charged. Its claim may belong to another request by now. */
  endExpired(hold: Hold): void
  /** Returns the result for a hold that is not open. */
  endedBefore(holdId: string, thresholds?: Settlement['thresholds']): Resolution

  /** Returns the account of a credit. */
  creditedAccount(creditId: string): string | undefined
  operation(kind: 'adjustment' | 'refund', id: string): MadeOperation | undefined
  charge(number: bigint): ChargeLine | undefined
  /** Returns the refunded part of a charge. */
  refunded(number: bigint): bigint
}

const HELD: ReserveResult = { status: 'held' }
const HELD_LARGER: ReserveResult = { status: 'held', isLarger: true }
const ACCOUNT_FROZEN: ReserveResult = { status: 'account_frozen' }
const UNKNOWN_ACCOUNT: ReserveResult = { status: 'unknown_account' }

/**
 * Rules of money, for stores whose operations run in JavaScript. PostgreSQL has the same rules as functions of its schema. Each
 * method is one step: it must not run at the same time as another one.
 */
export class MoneyRules<Hold extends MoneyHold> {
  readonly #books: MoneyBooks<Hold>

  constructor(books: MoneyBooks<Hold>) {
    this.#books = books
  }

  credit({ creditId, accountId, amount, description, expiresAtMs }: Credit, nowMs: number): boolean {
    const account = this.#knownAccount(accountId)
    assertAmount(amount)
    if (amount === 0n) throw new RangeError('a credit must be above zero')
    const credited = this.#books.creditedAccount(creditId)
    if (credited !== undefined) {
      assertCreditOf(accountId, { id: creditId, accountId: credited })
      return false
    }
    assertRoom(account, amount)
    const timeMs = this.#books.timeOf(nowMs)
    account.balance += amount
    this.#append(account, { kind: 'credit', amount, operationId: creditId, description }, timeMs)
    if (expiresAtMs !== undefined) this.#books.addCredit(account, { creditId, remaining: amount, expiresAtMs })
    this.#settleDebt(account, timeMs)
    return true
  }

  adjust({ adjustmentId, accountId, amount, description, billing }: Adjustment, nowMs: number): AdjustResult {
    assertAdjustment(amount)
    const account = this.#knownAccount(accountId)
    const made = this.#books.operation('adjustment', adjustmentId)
    if (made !== undefined) {
      const isSame = made.accountId === accountId && made.amount - made.owed === amount
      assertRepeated('adjustment', adjustmentId, isSame)
      return 'repeated'
    }
    const timeMs = this.#books.timeOf(nowMs)
    this.#expireDue(account, timeMs)
    const left = account.balance + amount
    if (left < 0n && !isMeteredFor(account, billing)) return 'insufficient_balance'
    const owed = left < 0n ? -left : 0n
    assertRoom(account, amount)
    assertOwable(account, owed)
    const moved = amount + owed
    account.balance += moved
    account.owed += owed
    if (moved < 0n) this.#spend(account, -moved, timeMs)
    this.#append(account, { kind: 'adjustment', amount: moved, owed, operationId: adjustmentId, description }, timeMs)
    if (amount > 0n) this.#settleDebt(account, timeMs)
    return 'adjusted'
  }

  refund({ refundId, chargeId, amount: wanted, description }: Refund, nowMs: number): RefundResult {
    assertRefund(wanted)
    const number = entryNumber(chargeId)
    const made = this.#books.operation('refund', refundId)
    if (made !== undefined) {
      assertRepeated('refund', refundId, made.chargeId === number && (wanted ?? made.amount) === made.amount)
      return { status: 'repeated', accountId: made.accountId, amount: made.amount }
    }
    const charge = number === undefined ? undefined : this.#books.charge(number)
    if (charge === undefined || number === undefined) return { status: 'unknown_charge' }
    const left = charge.due - this.#books.refunded(number)
    const amount = wanted ?? left
    if (amount > left || left === 0n) return { status: 'above_charge', left }
    const { accountId, keyId, period, holdId } = charge
    const account = this.#knownAccount(accountId)
    assertRoom(account, amount)
    const timeMs = this.#books.timeOf(nowMs)
    account.balance += amount
    const key = this.#books.key(keyId)
    account.spending.charge(period, -amount)
    key.spending.charge(period, -amount)
    this.#books.noteChange(account, key)
    const line = { kind: 'refund', amount, holdId, operationId: refundId, chargeId: number, description } as const
    this.#append(account, line, timeMs)
    this.#settleDebt(account, timeMs)
    return { status: 'refunded', accountId, amount }
  }

  expireCredits(nowMs: number, limit: number): number {
    const timeMs = this.#books.timeOf(nowMs)
    const due = this.#books.accountsWithExpired(timeMs, Math.max(0, limit))
    for (const account of due) this.#expireDue(account, timeMs)
    return due.length
  }

  reserve(asked: Reservation, nowMs: number): ReserveResult {
    assertAmount(asked.amount)
    const { accountId, keyId, larger } = asked
    const timeMs = this.#books.timeOf(nowMs)
    const today = spendingPeriod(timeMs)
    const account = this.#books.account(accountId)
    if (account === undefined) return this.#refuse(asked, UNKNOWN_ACCOUNT)
    const key = this.#books.key(keyId, today)
    this.#expireDue(account, timeMs)
    const outcome = this.#judge(asked, account, key, nowMs, today)
    if (outcome.status !== 'held') return this.#refuse(asked, outcome)
    const amount = outcome === HELD_LARGER && larger !== undefined ? larger.amount : asked.amount
    const isMetered = isMeteredFor(account, asked.billing)
    const { period } = account.spending
    const hold = { id: asked.holdId, accountId, keyId, amount, isMetered, period, createdAtMs: timeMs }
    if (!this.#books.place(hold, asked, nowMs)) {
      const first = this.#books.firstOutcome(asked)
      if (first === undefined) throw new TypeError('a reservation lacks a value')
      return first
    }
    this.#moveHeld(account, key, hold, amount)
    return outcome
  }

  enlarge(holdId: string, amount: bigint, nowMs: number): EnlargeStatus {
    assertAmount(amount)
    const timeMs = this.#books.timeOf(nowMs)
    const hold = this.#books.openHold(holdId, timeMs)
    if (hold === undefined) return 'not_held'
    const account = this.#knownAccount(hold.accountId)
    const key = this.#books.key(hold.keyId)
    this.#expireDue(account, timeMs)
    if (account.frozen !== undefined) return 'account_frozen'
    const refusal = moneyRefusal(account, amount, hold.isMetered)
    if (refusal !== undefined) return refusal
    if (exceededCapOf(account, key, undefined, amount, spendingPeriod(timeMs)) !== undefined) return 'spending_limit'
    this.#books.enlarge(hold, amount)
    this.#moveHeld(account, key, hold, amount)
    return 'held'
  }

  settle(settlement: Settlement, nowMs: number): Resolution {
    const { holdId, amount, description, details, answer, record, thresholds } = settlement
    assertAmount(amount)
    const books = this.#books
    const timeMs = books.timeOf(nowMs)
    const open = books.openHold(holdId, timeMs)
    const hold = open ?? books.expiredHold(holdId)
    const account = hold && books.account(hold.accountId)
    if (hold === undefined || account === undefined) return books.endedBefore(holdId, thresholds)
    const { isMetered, period, keyId } = hold
    const key = books.key(keyId)
    this.#expireDue(account, timeMs)
    if (open === undefined) {
      books.endExpired(hold)
      books.noteChange(account, key)
    } else {
      books.end(open, 'settled', timeMs, answer)
      this.#moveHeld(account, key, open, -open.amount)
    }
    const paid = lesserOf(amount, account.balance)
    account.balance -= paid
    // Avoids an addition, which would create another bigint, for nearly every call.
    const owed = paid === amount ? 0n : amount - paid
    // Credits that were valid when the hold was created can still pay for it.
    this.#spend(account, paid, isMetered ? timeMs : hold.createdAtMs)
    account.spending.charge(period, amount)
    key.spending.charge(period, amount)
    const charge = { kind: 'charge', amount: -paid, due: amount, holdId, description, details, keyId, period } as const
    this.#append(account, charge, timeMs)
    if (record !== undefined)
      books.addRecord(record, { endedAtMs: account.journalAtMs, dueNanoDollars: amount, chargedNanoDollars: paid })
    if (owed > 0n) {
      account.owed += owed
      this.#append(account, { kind: 'owed', amount: 0n, owed, holdId, description }, timeMs)
    }
    const crossings = thresholds && crossingsOf({ amount, paid, period, isMetered, account, key }, thresholds)
    this.#expireDue(account, timeMs)
    this.#repay(account, timeMs)
    const charged = isMetered ? amount : paid
    const resolution = { resolved: true, charged, shortfall: isMetered ? 0n : owed }
    return crossings === undefined ? resolution : { ...resolution, crossings }
  }

  void(holdId: string, nowMs: number): Resolution {
    const timeMs = this.#books.timeOf(nowMs)
    const hold = this.#books.openHold(holdId, timeMs)
    if (hold === undefined) return this.#books.endedBefore(holdId)
    this.#release(hold, 'voided', timeMs)
    return { resolved: true, charged: 0n, shortfall: 0n }
  }

  expire(nowMs: number, limit: number): number {
    const timeMs = this.#books.timeOf(nowMs)
    const overdue = this.#books.overdueHolds(timeMs, Math.max(0, limit))
    for (const hold of overdue) this.#release(hold, 'expired', timeMs)
    return overdue.length
  }

  #knownAccount(accountId: string): MoneyAccount {
    const account = this.#books.account(accountId)
    if (account === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
    return account
  }

  /** Returns the outcome of a reservation with a new id. A held one has advanced the spending to its day. */
  #judge(asked: Reservation, account: MoneyAccount, key: MoneyOwner, nowMs: number, today: number): ReserveResult {
    const { claim, larger, requiredFree = asked.amount } = asked
    if (account.frozen !== undefined) return ACCOUNT_FROZEN
    if (claim !== undefined) {
      const found = this.#books.peekClaim(claim, nowMs)
      if (found.status !== 'claimed') return found
    }
    if (larger !== undefined && refusalOf(asked, account, key, larger.requiredFree, today) === undefined)
      return HELD_LARGER
    return refusalOf(asked, account, key, requiredFree, today) ?? HELD
  }

  #refuse(asked: Reservation, outcome: ReserveResult): ReserveResult {
    const first = this.#books.firstOutcome(asked)
    if (first !== undefined) return first
    // A replay is found again through its key; storing it here would retain its body.
    if (outcome.status !== 'replay') this.#books.refuse(asked, outcome)
    return outcome
  }

  /** Ends a hold without a charge. */
  #release(hold: Hold, end: HoldEnd, timeMs: number): void {
    const account = this.#knownAccount(hold.accountId)
    this.#books.end(hold, end, timeMs)
    this.#moveHeld(account, this.#books.key(hold.keyId), hold, -hold.amount)
    this.#expireDue(account, timeMs)
    this.#repay(account, timeMs)
  }

  /** Holds an amount, or releases a negative one, and counts it under the caps. */
  #moveHeld(account: MoneyAccount, key: MoneyOwner, { isMetered, period }: MoneyHold, amount: bigint): void {
    if (isMetered) account.creditHeld += amount
    else {
      account.balance -= amount
      account.held += amount
    }
    account.spending.hold(period, amount)
    key.spending.hold(period, amount)
    this.#books.noteChange(account, key)
  }

  /** Called after each change of an account's money. The times of its lines never decrease. */
  #append(account: MoneyAccount, line: NewLine, timeMs: number): void {
    account.journalAtMs = Math.max(timeMs, account.journalAtMs)
    this.#books.append(account, line)
  }

  /** Called after money was added. */
  #settleDebt(account: MoneyAccount, timeMs: number): void {
    // Remove expired credits first, so that they cannot repay the debt.
    this.#expireDue(account, timeMs)
    this.#repay(account, timeMs)
    account.funded = account.balance + account.held
  }

  /** Pays an account's debt from its balance, as far as possible. */
  #repay(account: MoneyAccount, timeMs: number): void {
    if (account.owed === 0n || account.balance === 0n) return
    const paid = lesserOf(account.owed, account.balance)
    account.balance -= paid
    account.owed -= paid
    this.#spend(account, paid, timeMs)
    this.#append(account, { kind: 'repayment', amount: -paid, owed: -paid, description: REPAYMENT }, timeMs)
  }

  /** Takes spent money out of expiring credits; see {@link spendCredits}. */
  #spend(account: MoneyAccount, amount: bigint, atMs: number): void {
    if (amount === 0n || account.firstExpiryMs === undefined) return
    const takes = spendCredits(this.#books.credits(account), amount, atMs)
    if (takes.length > 0) this.#books.takeCredits(account, takes)
  }

  /** Removes expired credits; see {@link expireCredits}. */
  #expireDue(account: MoneyAccount, timeMs: number): void {
    if (account.firstExpiryMs === undefined || account.firstExpiryMs > timeMs) return
    const heldBefore = (beforeMs: number): bigint => this.#books.heldBefore(account, beforeMs)
    const takes = expireCredits(this.#books.credits(account), { nowMs: timeMs, account, heldBefore })
    for (const { creditId, amount } of takes) {
      account.balance -= amount
      const line = {
        kind: 'expiry',
        amount: -amount,
        operationId: creditId,
        description: expiryText(creditId),
      } as const
      this.#append(account, line, timeMs)
    }
    if (takes.length > 0) this.#books.takeCredits(account, takes)
  }
}

/** Whether an account pays later. `billing`: mode of accounts without their own. */
function isMeteredFor(account: MoneyAccount, billing: BillingMode | undefined): boolean {
  return (account.billing ?? billing) === 'metered'
}

/** Returns why an account's money does not allow a hold, or `undefined` if it does. */
function moneyRefusal(
  { creditLimit, balance, owed, creditHeld }: MoneyAccount,
  amount: bigint,
  isMetered: boolean,
): 'credit_limit' | 'in_arrears' | 'insufficient_balance' | undefined {
  if (isMetered)
    return creditLimit !== undefined && owed + creditHeld + amount > creditLimit + balance ? 'credit_limit' : undefined
  if (owed > 0n) return 'in_arrears'
  return balance < amount ? 'insufficient_balance' : undefined
}

/** Returns why there is not enough free money for a reservation, or `undefined` if there is. */
function refusalOf(
  asked: Reservation,
  account: MoneyAccount,
  key: MoneyOwner,
  required: bigint,
  today: number,
): ReserveResult | undefined {
  const status = moneyRefusal(account, required, isMeteredFor(account, asked.billing))
  if (status !== undefined) return { status }
  const counter = exceededCapOf(account, key, asked.caps, required, today)
  return counter === undefined ? undefined : { status: 'spending_limit', counter }
}

/** Advances the spending to today, or to a later day that is counted already, and returns the cap that an amount would exceed. */
function exceededCapOf(
  account: MoneyAccount,
  key: MoneyOwner,
  caps: Reservation['caps'],
  amount: bigint,
  today: number,
): string | undefined {
  const period = Math.max(today, account.spending.period, key.spending.period)
  account.spending.reach(period)
  key.spending.reach(period)
  // Few accounts and keys have a cap.
  if (account.spendingCap === undefined && key.spendingCap === undefined && caps === undefined) return undefined
  return exceededCap(account, key, caps, amount)
}
