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

/** Returns the counts after a change by a hold of that day. Amounts of past days or months no longer count. */
export function spendingChanged(
  counts: SpendingCounts,
  period: number,
  change: { readonly charged: bigint; readonly held: bigint },
): SpendingCounts {
  if (monthOf(period) !== monthOf(counts.period)) return counts
  const isSameDay = period === counts.period
  return {
    period: counts.period,
    chargedDay: isSameDay ? added(counts.chargedDay, change.charged) : counts.chargedDay,
    chargedMonth: added(counts.chargedMonth, change.charged),
    heldDay: isSameDay ? added(counts.heldDay, change.held) : counts.heldDay,
    heldMonth: added(counts.heldMonth, change.held),
  }
}

/** Avoids an addition, which would create another bigint, because every call counts twice. */
function added(amount: bigint, more: bigint): bigint {
  return more === 0n ? amount : amount + more
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

/** Account or key with its applicable caps. */
export interface CappedSpender {
  readonly owner: 'account' | 'key'
  readonly id: string
  readonly counts: SpendingCounts
  readonly caps: readonly (SpendingCap | undefined)[]
}

/** Returns the name of the first cap that an amount would exceed: `key:key_1:2026-11`. Zero exceeds none. */
export function exceededCap(spenders: readonly CappedSpender[], amount: bigint): string | undefined {
  if (amount === 0n) return undefined
  for (const { owner, id, counts, caps } of spenders) {
    const exceeded = caps.find((cap) => cap !== undefined && spentOf(counts, cap.period) + amount > cap.amount)
    if (exceeded !== undefined) return `${owner}:${id}:${periodName(counts.period, exceeded.period)}`
  }
  return undefined
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

/** Cap and counts of an account or a key. */
export interface SpendingOwner {
  readonly cap: SpendingCap | undefined
  readonly counts: SpendingCounts
}

/** Account and key after a charge, before any debt was repaid. */
export interface ChargeFacts {
  /** Amount due, in nano-dollars. */
  readonly amount: bigint
  /** Part of it that the balance paid. */
  readonly paid: bigint
  /** Day in which the hold was counted. */
  readonly period: number
  readonly isMetered: boolean
  readonly account: SpendingOwner
  readonly key: SpendingOwner
  /** Balance and held money. */
  readonly money: bigint
  /** Balance and held money after the latest credit. */
  readonly funded: bigint
  readonly owed: bigint
  readonly creditLimit: bigint | undefined
}

/** Returns the thresholds that a charge has passed, or `undefined` for none. */
export function crossingsOf(
  facts: ChargeFacts,
  thresholds: SpendingThresholds,
): readonly ThresholdCrossing[] | undefined {
  const { amount, paid, period, account, key, isMetered, money, funded, owed, creditLimit } = facts
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
  for (const [of, { cap, counts }] of [['account_cap', account] as const, ['key_cap', key] as const]) {
    if (cap === undefined || !isCountedIn(cap.period, period, counts)) continue
    const used = cap.period === 'day' ? counts.chargedDay : counts.chargedMonth
    note({ of, period: cap.period, bound: cap.amount, used, added: amount }, thresholds.caps)
  }
  const use = isMetered
    ? ({ of: 'credit_limit', bound: creditLimit ?? 0n, used: owed, added: amount - paid } as const)
    : ({ of: 'balance', bound: funded, used: funded - money, added: paid } as const)
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
