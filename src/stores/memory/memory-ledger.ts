import { TransientMap } from '../../core/maps.ts'
import type { ChargedEnd, UsageDraft } from '../../usage/usage-record.ts'
import { expiryText } from '../expiring-credits.ts'
import {
  assertAmount,
  assertCreditOf,
  assertRoom,
  type EnlargeStatus,
  heldResult,
  lesserOf,
  REPAYMENT,
  type Reservation,
  type ReserveResult,
} from '../ledger.ts'
import type { SpendingCap } from '../principal.ts'
import type { Resolution } from '../resolution.ts'
import { crossingsOf, exceededCap, spendingPeriod } from '../spending.ts'
import { byHand, inOrder, MemoryCredits, type MemoryLedger, type MutableAccount, snapshot } from './memory-by-hand.ts'
import { MemoryClaims } from './memory-cache.ts'
import { type JournalLine, MemoryJournal } from './memory-journal.ts'
import { KeySpending, Spending } from './memory-key-spending.ts'
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

/** Part of a reservation that its end needs: a task stays open for hours, and its reservation need not stay with it. */
interface HeldMoney {
  readonly amount: bigint
  readonly isMetered: boolean
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly claim: Reservation['claim']
  readonly taskId: string | undefined
  readonly account: MutableAccount
  readonly keyId: string
  readonly keySpending: Spending
  /** Day in which it counts. */
  readonly period: number
}

const HELD: ReserveResult = { status: 'held' }
// Equal outcomes of reserving. The identity of the object shows how the hold has ended.
const HELD_AND_SETTLED: ReserveResult = { status: 'held' }
const HELD_AND_VOIDED: ReserveResult = { status: 'held' }
const ACCOUNT_FROZEN: ReserveResult = { status: 'account_frozen' }
const UNKNOWN_ACCOUNT: ReserveResult = { status: 'unknown_account' }
const UNRESOLVED: Resolution = { resolved: false, charged: 0n, shortfall: 0n }
const ALREADY_SETTLED: Resolution = { ...UNRESOLVED, endedBy: 'settled' }
const ALREADY_VOIDED: Resolution = { ...UNRESOLVED, endedBy: 'voided' }
const ALREADY_EXPIRED: Resolution = { ...UNRESOLVED, endedBy: 'expired' }

/**
 * Creates a ledger in this process; synchronous, so each method is one step. Everything is lost when the process ends. Amounts
 * below zero or above 2^63 − 1, the limits of every driver, are rejected with a RangeError before anything is changed.
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): MemoryLedger {
  const claims = options.claims ?? new MemoryClaims()
  const tasks = options.tasks ?? new MemoryTaskTable()
  const keyCap = options.keyCap ?? (() => undefined)
  const maxJournalLines = options.maxJournalLines ?? 10_000
  const maxOutcomes = options.maxOutcomes ?? 1_000
  const accounts = new Map<string, MutableAccount>()
  const openHolds = new TransientMap<string, HeldMoney>()
  const outcomes = new NewestEntries<ReserveResult>(maxOutcomes)
  /** Expired holds, which may still be settled. */
  const expired = new NewestEntries<HeldMoney>(maxOutcomes)
  /** Account by id of credit. */
  const credits = new Map<string, string>()
  const keySpending = new KeySpending()
  let lineCount = 0

  /** Called after each change of an account's money. Completes the line in place, because a copy would cost a microsecond. */
  function write(account: MutableAccount, line: Omit<JournalLine, 'number' | 'balanceAfter'>): void {
    const written = line as { -readonly [Field in keyof JournalLine]: JournalLine[Field] }
    written.number = ++lineCount
    written.createdAtMs = Math.max(line.createdAtMs, account.journal.newestMs)
    written.balanceAfter = account.balance + account.held
    account.journal.append(written)
  }

  /** Removes expired credits. */
  function expireDue(account: MutableAccount, nowMs: number): void {
    if ((account.credits.firstExpiryMs ?? Number.POSITIVE_INFINITY) > nowMs) return
    const counts = (hold: HeldMoney, timeMs: number): boolean =>
      hold.account === account && !hold.isMetered && hold.createdAtMs < timeMs
    const heldBefore = (timeMs: number): bigint =>
      [...openHolds.values()].reduce((sum, hold) => (counts(hold, timeMs) ? sum + hold.amount : sum), 0n)
    for (const { creditId, amount } of account.credits.expire({ nowMs, account, heldBefore })) {
      account.balance -= amount
      const line = { amount: -amount, owed: 0n, holdId: undefined, operationId: creditId, createdAtMs: nowMs }
      write(account, { kind: 'expiry', description: expiryText(creditId), ...line })
    }
  }

  function decide(reservation: Reservation, nowMs: number): ReserveResult {
    const account = accounts.get(reservation.accountId)
    if (account === undefined) return UNKNOWN_ACCOUNT
    if (account.frozen !== undefined) return ACCOUNT_FROZEN
    if (reservation.claim !== undefined) {
      const found = claims.peek(reservation.claim, nowMs)
      if (found.status !== 'claimed') return found
    }
    const { amount, requiredFree = amount, keyId, expiresAtMs, claim, caps } = reservation
    const isMetered = (account.billing ?? reservation.billing) === 'metered'
    const refusal = moneyRefusal(account, requiredFree, isMetered)
    if (refusal !== undefined) return { status: refusal }
    const spentByKey = keySpending.of(keyId, spendingPeriod(nowMs))
    const period = Math.max(account.spending.period, spentByKey.period)
    account.spending.reach(period)
    spentByKey.reach(period)
    const exceeded = exceededCapOf({ account, keyId, keySpending: spentByKey }, caps, requiredFree)
    if (exceeded !== undefined) return { status: 'spending_limit', counter: exceeded }
    if (claim !== undefined) claims.claim(claim, nowMs)
    const taskId = reservation.task?.id
    const hold = {
      amount,
      isMetered,
      createdAtMs: nowMs,
      expiresAtMs,
      claim,
      taskId,
      account,
      keyId,
      keySpending: spentByKey,
      period,
    }
    setAside(hold)
    openHolds.set(reservation.holdId, hold)
    if (reservation.task !== undefined) tasks.insert(reservation.task)
    return HELD
  }

  function exceededCapOf(
    { account, keyId, keySpending }: Pick<HeldMoney, 'account' | 'keyId' | 'keySpending'>,
    caps: Reservation['caps'],
    amount: bigint,
  ): string | undefined {
    const capOfKey = keyCap(keyId)
    const isCapped = account.spendingCap !== undefined || capOfKey !== undefined || caps !== undefined
    if (!isCapped) return undefined
    return exceededCap(
      [
        { owner: 'account', id: account.id, counts: account.spending, caps: [account.spendingCap, caps?.account] },
        { owner: 'key', id: keyId, counts: keySpending, caps: [capOfKey, caps?.key] },
      ],
      amount,
    )
  }

  function remember(holdId: string, outcome: ReserveResult): void {
    // A replay is found again through its key; storing it here would retain its body.
    if (outcome.status !== 'replay') outcomes.set(holdId, outcome)
  }

  /** Holds money and counts it under the caps. */
  function setAside({ account, isMetered, keySpending, period, amount }: HeldMoney): void {
    if (isMetered) account.creditHeld += amount
    else {
      account.balance -= amount
      account.held += amount
    }
    account.spending.hold(period, amount)
    keySpending.hold(period, amount)
  }

  /** Releases a hold. */
  function giveBack(holdId: string, { account, isMetered, keySpending, period, amount }: HeldMoney): void {
    openHolds.delete(holdId)
    if (isMetered) account.creditHeld -= amount
    else {
      account.balance += amount
      account.held -= amount
    }
    account.spending.release(period, amount)
    keySpending.release(period, amount)
  }

  function voidHold(holdId: string, nowMs: number): Resolution {
    const hold = openHolds.get(holdId)
    if (hold === undefined) return endedBefore(holdId)
    giveBack(holdId, hold)
    remember(holdId, HELD_AND_VOIDED)
    if (hold.claim !== undefined) claims.release(hold.claim)
    expireDue(hold.account, nowMs)
    repay(hold.account, nowMs)
    return { resolved: true, charged: 0n, shortfall: 0n }
  }

  function expireHold(holdId: string, hold: HeldMoney, nowMs: number): void {
    voidHold(holdId, nowMs)
    expired.set(holdId, hold)
  }

  /** Removes an expired hold that may still be settled. */
  function takeExpired(holdId: string, nowMs: number): HeldMoney | undefined {
    const late = expired.get(holdId)
    expired.delete(holdId)
    if (late !== undefined) expireDue(late.account, nowMs)
    return late === undefined ? undefined : { ...late, claim: undefined }
  }

  function endedBefore(holdId: string): Resolution {
    if (expired.get(holdId) !== undefined) return ALREADY_EXPIRED
    const outcome = outcomes.get(holdId)
    if (outcome === HELD_AND_SETTLED) return ALREADY_SETTLED
    return outcome === HELD_AND_VOIDED ? ALREADY_VOIDED : UNRESOLVED
  }

  function factsOf({ account, isMetered, period, keyId, keySpending }: HeldMoney, amount: bigint, paid: bigint) {
    const { balance, held, funded, owed, creditLimit, spendingCap: cap, spending: counts } = account
    const key = { cap: keyCap(keyId), counts: keySpending }
    const money = balance + held
    return { amount, paid, period, isMetered, account: { cap, counts }, key, money, funded, owed, creditLimit }
  }

  /** Pays an account's debt from its balance, as far as possible. */
  function repay(account: MutableAccount, nowMs: number): void {
    const paid = lesserOf(account.owed, account.balance)
    if (paid === 0n) return
    account.balance -= paid
    account.owed -= paid
    account.credits.spend(paid, nowMs)
    const line = { amount: -paid, owed: -paid, holdId: undefined, createdAtMs: nowMs }
    write(account, { kind: 'repayment', description: REPAYMENT, ...line })
  }

  function settleDebt(account: MutableAccount, nowMs: number): void {
    expireDue(account, nowMs)
    repay(account, nowMs)
    account.funded = account.balance + account.held
  }

  return {
    createAccount({ id, tier = 'paid', spendingCap, name, plan, billing, creditLimit }, nowMs) {
      const existing = accounts.get(id)
      if (existing !== undefined) return snapshot(existing)
      if (creditLimit !== undefined) assertAmount(creditLimit)
      const facts = { id, tier, spendingCap, name, plan, billing, creditLimit, frozen: undefined, createdAtMs: nowMs }
      const money = { balance: 0n, held: 0n, owed: 0n, creditHeld: 0n, funded: 0n }
      const journal = new MemoryJournal(id, maxJournalLines)
      const credits = new MemoryCredits()
      const account = { ...money, ...facts, spending: new Spending(), journal, credits }
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

    credit({ creditId, accountId, amount, description, expiresAtMs }, nowMs) {
      const account = accounts.get(accountId)
      if (account === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      if (amount <= 0n) throw new RangeError('a credit must be above zero')
      const creditedId = credits.get(creditId)
      if (creditedId !== undefined) {
        assertCreditOf(accountId, { id: creditId, accountId: creditedId })
        return false
      }
      assertRoom(account, amount)
      credits.set(creditId, accountId)
      account.balance += amount
      const line = { amount, owed: 0n, holdId: undefined, operationId: creditId, createdAtMs: nowMs }
      write(account, { kind: 'credit', description, ...line })
      if (expiresAtMs !== undefined) account.credits.add({ creditId, remaining: amount, expiresAtMs })
      settleDebt(account, nowMs)
      return true
    },

    reserve(reservation, nowMs) {
      assertAmount(reservation.amount)
      const account = accounts.get(reservation.accountId)
      if (account !== undefined) expireDue(account, nowMs)
      const known = outcomes.get(reservation.holdId)
      if (known !== undefined) return known
      const open = openHolds.get(reservation.holdId)
      if (open !== undefined) return heldResult(reservation, open.amount)
      const { larger } = reservation
      const tried = larger && decide({ ...reservation, ...larger }, nowMs)
      const outcome =
        larger !== undefined && tried?.status === 'held'
          ? heldResult(reservation, larger.amount)
          : decide(reservation, nowMs)
      remember(reservation.holdId, outcome)
      return outcome
    },

    enlarge(holdId, amount, nowMs) {
      assertAmount(amount)
      const hold = openHolds.get(holdId)
      if (hold === undefined) return 'not_held'
      const { account, isMetered } = hold
      expireDue(account, nowMs)
      if (account.frozen !== undefined) return 'account_frozen'
      const refusal = moneyRefusal(account, amount, isMetered)
      if (refusal !== undefined) return refusal
      account.spending.reach(spendingPeriod(nowMs))
      hold.keySpending.reach(spendingPeriod(nowMs))
      if (exceededCapOf(hold, undefined, amount) !== undefined) return 'spending_limit'
      setAside({ ...hold, amount })
      openHolds.set(holdId, { ...hold, amount: hold.amount + amount })
      return 'held'
    },

    settle({ holdId, amount, description, details, answer, record, thresholds }, nowMs) {
      assertAmount(amount)
      const open = openHolds.get(holdId)
      if (open !== undefined) expireDue(open.account, nowMs)
      const hold = open ?? takeExpired(holdId, nowMs)
      if (hold === undefined) return endedBefore(holdId)
      if (open !== undefined) giveBack(holdId, open)
      const { account, claim, isMetered, keySpending, period } = hold
      const paid = lesserOf(amount, account.balance)
      account.balance -= paid
      // Avoids an addition, which would create another bigint, for nearly every call.
      const owed = paid === amount ? 0n : amount - paid
      if (owed > 0n) account.owed += owed
      // Credits that were valid when the hold was created can still pay for it.
      account.credits.spend(paid, isMetered ? nowMs : hold.createdAtMs)
      account.spending.charge(period, amount)
      keySpending.charge(period, amount)
      const crossings = thresholds && crossingsOf(factsOf(hold, amount, paid), thresholds)
      remember(holdId, HELD_AND_SETTLED)
      write(account, {
        kind: 'charge',
        amount: -paid,
        owed: 0n,
        due: amount,
        holdId,
        description,
        details,
        createdAtMs: nowMs,
        counted: { keySpending, period },
      })
      if (record !== undefined) {
        const endedAtMs = account.journal.newestMs
        options.addRecord?.(record, { endedAtMs, dueNanoDollars: amount, chargedNanoDollars: paid })
      }
      if (owed > 0n) write(account, { kind: 'owed', amount: 0n, owed, holdId, description, createdAtMs: nowMs })
      expireDue(account, nowMs)
      repay(account, nowMs)
      if (claim !== undefined) {
        if (answer === undefined) claims.release(claim)
        else claims.complete(claim, answer)
      }
      const charged = isMetered ? amount : paid
      const shortfall = isMetered ? 0n : owed
      return crossings === undefined
        ? { resolved: true, charged, shortfall }
        : { resolved: true, charged, shortfall, crossings }
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

    ...byHand({ accounts, keySpending, write, settleDebt, expireDue }),

    openHolds: ({ accountId, after, limit }) =>
      [...openHolds]
        .map(([id, { account, keyId, amount, createdAtMs, expiresAtMs }]) => {
          return { id, accountId: account.id, keyId, amount, createdAtMs, expiresAtMs }
        })
        .filter((hold) => accountId === undefined || hold.accountId === accountId)
        .sort(inOrder)
        .filter((hold) => after === undefined || inOrder(after, hold) < 0)
        .slice(0, Math.max(0, limit)),
  }
}

/** Returns why an account's money does not allow a hold, or `undefined` if it does. */
function moneyRefusal(
  account: MutableAccount,
  amount: bigint,
  isMetered: boolean,
): (EnlargeStatus & ('credit_limit' | 'in_arrears' | 'insufficient_balance')) | undefined {
  const { creditLimit, balance, owed, creditHeld } = account
  if (isMetered)
    return creditLimit !== undefined && owed + creditHeld + amount > creditLimit + balance ? 'credit_limit' : undefined
  if (owed > 0n) return 'in_arrears'
  return balance < amount ? 'insufficient_balance' : undefined
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
