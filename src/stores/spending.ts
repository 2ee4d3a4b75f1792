import type { MemberNames } from '../core/known-members.ts'
import type { SpendingCap } from './principal.ts'

/**
 * What an account or a key has spent: charges and open holds of the latest day (UTC) that anything was counted in, and of its
 * month. Kept whether there is a cap or not, so that a cap that is set later knows what was spent before it.
 */
export interface SpendingCounts {
  /** The day, as a number: `20261122`. */
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

/** Every reservation asks for the day, which is nearly always the same. */
let latest = { day: Number.NaN, period: 0 }

/** The UTC day of a moment, as {@link SpendingCounts} has it. */
export function spendingPeriod(nowMs: number): number {
  const day = Math.floor(nowMs / MS_PER_DAY)
  if (day === latest.day) return latest.period
  const now = new Date(nowMs)
  const period = (now.getUTCFullYear() * 100 + now.getUTCMonth() + 1) * DAYS_PER_MONTH + now.getUTCDate()
  latest = { day, period }
  return period
}

/** The counts as of a day: zero for what is over. An earlier day changes nothing, because clocks of processes may differ. */
export function spendingAt(counts: SpendingCounts, period: number): SpendingCounts {
  if (period <= counts.period) return counts
  if (monthOf(period) !== monthOf(counts.period)) return { ...NOTHING_SPENT, period }
  return { ...counts, period, chargedDay: 0n, heldDay: 0n }
}

/** The counts after a change by a hold of that day; what belongs to a day or month that is over is counted no more. */
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

/** Every call counts twice, and a sum is another bigint even where nothing is added. */
function added(amount: bigint, more: bigint): bigint {
  return more === 0n ? amount : amount + more
}

/**
 * May the counts be purged? Those of an earlier month count nothing, and a hold that lives into the next one still finds its own
 * for some days.
 */
export function isForgotten({ period }: SpendingCounts, today: number): boolean {
  return period < oldestKept(today)
}

/** The earliest day whose counts are kept: the first of the month before. */
export function oldestKept(today: number): number {
  const month = monthOf(today)
  const isJanuary = month % 100 === 1
  return (isJanuary ? month - 89 : month - 1) * DAYS_PER_MONTH + 1
}

/** An account or a key, with the caps that hold for it. */
export interface CappedSpender {
  readonly owner: 'account' | 'key'
  readonly id: string
  readonly counts: SpendingCounts
  readonly caps: readonly (SpendingCap | undefined)[]
}

/** Names the first cap that an amount would pass: `key:key_1:2026-11`. Zero passes none. */
export function exceededCap(spenders: readonly CappedSpender[], amount: bigint): string | undefined {
  if (amount === 0n) return undefined
  for (const { owner, id, counts, caps } of spenders) {
    const exceeded = caps.find((cap) => cap !== undefined && spentOf(counts, cap.period) + amount > cap.amount)
    if (exceeded !== undefined) return `${owner}:${id}:${periodName(counts.period, exceeded.period)}`
  }
  return undefined
}

/** What counts against a cap: charges and open holds of its period. */
export function spentOf(counts: SpendingCounts, period: SpendingCap['period']): bigint {
  return period === 'day' ? counts.chargedDay + counts.heldDay : counts.chargedMonth + counts.heldMonth
}

/** A day of {@link spendingPeriod} as text: `2026-11-22`. */
export function dayName(day: number): string {
  const digits = String(day).padStart(8, '0')
  return `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}`
}

const MONTH_LENGTH = '2026-11'.length

/** `2026-11-22` or `2026-11`. */
function periodName(day: number, period: SpendingCap['period']): string {
  return period === 'day' ? dayName(day) : dayName(day).slice(0, MONTH_LENGTH)
}

/** The month of a day. */
export function monthOf(period: number): number {
  return Math.floor(period / DAYS_PER_MONTH)
}

/** At which shares of a bound a charge is told, in percent. */
export interface SpendingThresholds {
  /** Of the caps of accounts and keys. */
  readonly caps: readonly number[]
  /** Of the balance after the latest credit, and of the credit limit of a metered account. */
  readonly balance: readonly number[]
}

export const SPENDING_THRESHOLDS_MEMBERS = {
  caps: true,
  balance: true,
} satisfies MemberNames<SpendingThresholds>

/** A charge has passed a share of a bound. Of all charges of a store exactly one passes a given share. */
export interface ThresholdCrossing {
  /** `balance`: what there was after the latest credit. `credit_limit`: what a metered account may owe. */
  readonly of: 'account_cap' | 'key_cap' | 'balance' | 'credit_limit'
  /** Period of a cap; undefined for a balance or a credit limit. */
  readonly period: SpendingCap['period'] | undefined
  /** The share that was passed: 50, 80, 100. */
  readonly percent: number
  /** Nano-dollars, above zero. */
  readonly bound: bigint
  /** What is used of the bound after the charge, nano-dollars. */
  readonly used: bigint
}

/** Cap and counts of an account or a key. */
export interface SpendingOwner {
  readonly cap: SpendingCap | undefined
  readonly counts: SpendingCounts
}

/** An account and a key as a charge has left them, before anything owed was paid back. */
export interface ChargeFacts {
  /** What was due, nano-dollars. */
  readonly amount: bigint
  /** What of it the balance paid. */
  readonly paid: bigint
  /** The day that the hold was counted in. */
  readonly period: number
  readonly isMetered: boolean
  readonly account: SpendingOwner
  readonly key: SpendingOwner
  /** Balance and held money. */
  readonly money: bigint
  /** The same after the latest credit. */
  readonly funded: bigint
  readonly owed: bigint
  readonly creditLimit: bigint | undefined
}

/** The shares that a charge has passed; undefined: none. */
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

/** A bound and what a charge has used of it. */
interface BoundUse extends Omit<ThresholdCrossing, 'percent'> {
  readonly added: bigint
}

/** Percents are counted in thousandths. */
const PARTS_PER_PERCENT = 1_000
const PARTS = 100_000n

function isCountedIn(capPeriod: SpendingCap['period'], day: number, { period }: SpendingCounts): boolean {
  return capPeriod === 'day' ? day === period : monthOf(day) === monthOf(period)
}
