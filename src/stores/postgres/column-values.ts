import type { SpendingCap } from '../principal.ts'

/**
 * Reads and writes of columns. 64-bit integers are asked for as text and read with BigInt, because a host may have told its
 * client library to read them as floats.
 */

/** Text of a whole amount as nano-dollars. */
export function amountOf(column: unknown): bigint {
  return BigInt(column as string)
}

/** Text of a 64-bit integer as Unix milliseconds. */
export function timeOf(column: unknown): number {
  return Number(column)
}

/** The same for a column that may be null. */
export function optionalTimeOf(column: unknown): number | undefined {
  return column === null ? undefined : Number(column)
}

/** Unix milliseconds as a parameter. Clocks may give fractions; the column holds whole numbers. */
export function timeParameter(timeMs: number): string {
  return BigInt(Math.floor(timeMs)).toString()
}

/** Can this text stand in a column? U+0000 cannot (PostgreSQL, "Character Types"). */
export function isStorable(text: string): boolean {
  return !text.includes('\u0000')
}

/** A text to look for that a caller chose, as a parameter: null, which equals nothing, where no column can hold it. */
export function textParameter(text: string): string | null {
  return isStorable(text) ? text : null
}

/** A spending cap from its two columns. */
export function capOf(amount: unknown, period: unknown): SpendingCap | undefined {
  return amount === null ? undefined : { amount: amountOf(amount), period: period as SpendingCap['period'] }
}
