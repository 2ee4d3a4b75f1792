// See docs/decisions/0006-spending-caps.md.

import type { SpendingCap } from './principal.ts'

/**
 * Spending of an account or a key: charges and open holds of the latest day (UTC) with any, and of its month. Stored even without
 * a cap, so that a later cap includes earlier spending.
 */
export interface SpendingCounts {
  /** Day as a number: `20261122`. */
  readonly period: number
  readonly chargedDay: bigint
  readonly chargedMonth: bigint
  readonly heldDay: bigint
  readonly heldMonth: bigint
}

/** Counts of an account and of some keys. */
export interface StoredSpending {
  readonly account: SpendingCounts
  readonly keys: readonly SpendingCounts[]
}

export const NOTHING_SPENT: SpendingCounts = {
  period: 0,
  chargedDay: 0n,
  chargedMonth: 0n,
  heldDay: 0n,
  heldMonth: 0n,
}

const DAYS_PER_MONTH = 100

const MS_PER_DAY = 86_400_000

/** Cached, because every reservation needs the day, which is nearly always the same. */
let latest = { day: Number.NaN, period: 0 }

/** Returns the UTC day of a time in the format of {@link SpendingCounts}. */
export function spendingPeriod(nowMs: number): number {
  const day = Math.floor(nowMs / MS_PER_DAY)
  if (day === latest.day) return latest.period
  const now = new Date(nowMs)
  const period = (now.getUTCFullYear() * 100 + now.getUTCMonth() + 1) * DAYS_PER_MONTH + now.getUTCDate()
  latest = { day, period }
  return period
}

/** Returns the counts as of a day: zero for past periods. An earlier day changes nothing, because clocks of processes may differ. */
export function spendingAt(counts: SpendingCounts, period: number): SpendingCounts {
  if (period <= counts.period) return counts
  if (monthOf(period) !== monthOf(counts.period)) return { ...NOTHING_SPENT, period }
  return { ...counts, period, chargedDay: 0n, heldDay: 0n }
}

/**
 * Spending of an account or a key, changed in place. A month is the day plus earlier days, so that most changes update one sum
 * instead of two, because every request causes some. Amounts of past days or months no longer count.
 */
export class Spending implements SpendingCounts {
  period: number
  chargedDay: bigint
  heldDay: bigint
  /** Charges of the month on other days than the latest. */
  #chargedBefore: bigint
  #heldBefore: bigint

  constructor({ period, chargedDay, chargedMonth, heldDay, heldMonth }: SpendingCounts = NOTHING_SPENT) {
    this.period = period
    this.chargedDay = chargedDay
    this.heldDay = heldDay
    this.#chargedBefore = chargedMonth - chargedDay
    this.#heldBefore = heldMonth - heldDay
  }

  get chargedMonth(): bigint {
    return this.#chargedBefore + this.chargedDay
  }

  get heldMonth(): bigint {
    return this.#heldBefore + this.heldDay
  }

  /** Returns the current counts. */
  counts(): SpendingCounts {
    const { period, chargedDay, chargedMonth, heldDay, heldMonth } = this
    return { period, chargedDay, chargedMonth, heldDay, heldMonth }
  }

  /** Advances to a day, unless a later one was reached. */
  reach(period: number): void {
    if (period <= this.period) return
    const isSameMonth = monthOf(period) === monthOf(this.period)
    this.#chargedBefore = isSameMonth ? this.chargedMonth : 0n
    this.#heldBefore = isSameMonth ? this.heldMonth : 0n
    this.chargedDay = 0n
    this.heldDay = 0n
    this.period = period
  }

  /** Counts a charge of a hold of that day; negative for a refund. */
  charge(period: number, amount: bigint): void {
    if (period === this.period) this.chargedDay += amount
    else if (monthOf(period) === monthOf(this.period)) this.#chargedBefore += amount
  }

  /** Counts a hold of that day; negative for its end. */
  hold(period: number, amount: bigint): void {
    if (period === this.period) this.heldDay += amount
    else if (monthOf(period) === monthOf(this.period)) this.#heldBefore += amount
  }
}

/**
 * Whether counts may be purged. Counts of an earlier month have no effect, but a hold that lives into the next month still finds
 * its own for some days.
 */
export function isForgotten({ period }: SpendingCounts, today: number): boolean {
  return period < oldestKept(today)
}

/** Returns the earliest day whose counts are kept: the first of the previous month. */
export function oldestKept(today: number): number {
  const month = monthOf(today)
  const isJanuary = month % 100 === 1
  return (isJanuary ? month - 89 : month - 1) * DAYS_PER_MONTH + 1
}

/** Account or key with its cap and its spending. */
export interface SpendingOwner {
  readonly spendingCap: SpendingCap | undefined
  readonly spending: SpendingCounts
}

/** Returns the name of the first cap that an amount would exceed: `key:key_1:2026-11`. Zero exceeds none. */
export function exceededCap(
  account: SpendingOwner & { readonly id: string },
  key: SpendingOwner & { readonly id: string },
  caps: { readonly account?: SpendingCap | undefined; readonly key?: SpendingCap | undefined } | undefined,
  amount: bigint,
): string | undefined {
  const nameOf = (owner: string, { id, spending }: typeof key, cap: SpendingCap | undefined): string | undefined =>
    cap !== undefined && spentOf(spending, cap.period) + amount > cap.amount
      ? `${owner}:${id}:${periodName(spending.period, cap.period)}`
      : undefined
  if (amount === 0n) return undefined
  const exceeded = nameOf('account', account, account.spendingCap) ?? nameOf('account', account, caps?.account)
  return exceeded ?? nameOf('key', key, key.spendingCap) ?? nameOf('key', key, caps?.key)
}

/** Returns the amount that counts against a cap: charges and open holds of its period. */
export function spentOf(counts: SpendingCounts, period: SpendingCap['period']): bigint {
  return period === 'day' ? counts.chargedDay + counts.heldDay : counts.chargedMonth + counts.heldMonth
}

/** Formats a day of {@link spendingPeriod}: `2026-11-22`. */
export function dayName(day: number): string {
  const digits = String(day).padStart(8, '0')
  return `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}`
}

const MONTH_LENGTH = '2026-11'.length

/** Formats a period as `2026-11-22` or `2026-11`. */
function periodName(day: number, period: SpendingCap['period']): string {
  return period === 'day' ? dayName(day) : dayName(day).slice(0, MONTH_LENGTH)
}

/** Returns the month of a day. */
export function monthOf(period: number): number {
  return Math.floor(period / DAYS_PER_MONTH)
}

/** Thresholds at which a charge is reported, in percent. */
export interface SpendingThresholds {
  /** Thresholds of the caps of accounts and keys. */
  readonly caps: readonly number[]
  /** Thresholds of the balance after the latest credit, and of the credit limit of a metered account. */
  readonly balance: readonly number[]
}

/** Threshold that a charge has passed. Exactly one charge in a store passes a given threshold. */
export interface ThresholdCrossing {
  /** `balance`: the balance after the latest credit. `credit_limit`: the maximum debt of a metered account. */
  readonly of: 'account_cap' | 'key_cap' | 'balance' | 'credit_limit'
  /** Period of a cap; undefined for a balance or a credit limit. */
  readonly period: SpendingCap['period'] | undefined
  /** Threshold that was passed: 50, 80, 100. */
  readonly percent: number
  /** Total in nano-dollars, above zero. */
  readonly bound: bigint
  /** Used part of the total after the charge, in nano-dollars. */
  readonly used: bigint
}

/** Charge with its account and key after it, before any debt was repaid. */
export interface ChargeFacts {
  /** Amount due, in nano-dollars. */
  readonly amount: bigint
  /** Part of it that the balance paid. */
  readonly paid: bigint
  /** Day in which the hold was counted. */
  readonly period: number
  readonly isMetered: boolean
  readonly account: SpendingOwner & {
    readonly balance: bigint
    readonly held: bigint
    /** Balance and held money after the latest credit. */
    readonly funded: bigint
    readonly owed: bigint
    readonly creditLimit: bigint | undefined
  }
  readonly key: SpendingOwner
}

/** Returns the thresholds that a charge has passed, or `undefined` for none. */
export function crossingsOf(
  facts: ChargeFacts,
  thresholds: SpendingThresholds,
): readonly ThresholdCrossing[] | undefined {
  const { amount, paid, period, account, key, isMetered } = facts
  const { balance, held, funded, owed, creditLimit } = account
  const crossings: ThresholdCrossing[] = []
  const note = (use: BoundUse, percents: readonly number[]): void => {
    const { of, bound, used, added } = use
    if (bound <= 0n || added <= 0n) return
    for (const percent of percents) {
      const threshold = bound * BigInt(Math.round(percent * PARTS_PER_PERCENT))
      const isPassed = used * PARTS >= threshold && (used - added) * PARTS < threshold
      if (isPassed) crossings.push({ of, period: use.period, percent, bound, used })
    }
  }
  for (const [of, { spendingCap: cap, spending: counts }] of [
    ['account_cap', account] as const,
    ['key_cap', key] as const,
  ]) {
    if (cap === undefined || !isCountedIn(cap.period, period, counts)) continue
    const used = cap.period === 'day' ? counts.chargedDay : counts.chargedMonth
    note({ of, period: cap.period, bound: cap.amount, used, added: amount }, thresholds.caps)
  }
  const use = isMetered
    ? ({ of: 'credit_limit', bound: creditLimit ?? 0n, used: owed, added: amount - paid } as const)
    : ({ of: 'balance', bound: funded, used: funded - balance - held, added: paid } as const)
  note({ ...use, period: undefined }, thresholds.balance)
  return crossings.length === 0 ? undefined : crossings
}

/** Total and the part of it that a charge has used. */
interface BoundUse extends Omit<ThresholdCrossing, 'percent'> {
  readonly added: bigint
}

/** Percents are counted in thousandths. */
const PARTS_PER_PERCENT = 1_000
const PARTS = 100_000n

function isCountedIn(capPeriod: SpendingCap['period'], day: number, { period }: SpendingCounts): boolean {
  return capPeriod === 'day' ? day === period : monthOf(day) === monthOf(period)
}
