import { formatDollars } from '../core/money.ts'
import type { SpendingCap } from '../stores/principal.ts'

/** Nano-dollars for people: `$1.5`, `-$0.003`. */
export function dollarsText(nanoDollars: bigint): string {
  return nanoDollars < 0n ? `-$${formatDollars(-nanoDollars)}` : `$${formatDollars(nanoDollars)}`
}

/** A spending cap for people: `$50 a month`. */
export function capText(cap: SpendingCap): string {
  return `${dollarsText(cap.amount)} a ${cap.period}`
}

/** A spending cap for machines. */
export function capJson(cap: SpendingCap | undefined): { amount: string; period: string } | null {
  return cap === undefined ? null : { amount: formatDollars(cap.amount), period: cap.period }
}
