import type { PriceRow } from '../catalog/prices/price-file.ts'
import { type Decimal, parseDecimal } from '../core/money.ts'

/** A price that moves by more than this factor, either way, waits for `--accept`: such a move is often a mistake of the list. */
const LARGEST_MOVE = 3n

/** Returns the parts that rows for the same calls have in common. */
export function priceKey({ model, meter, when }: PriceRow): string {
  return JSON.stringify([model, meter, when ?? null])
}

/** Whether a price moved so far that the list may be wrong. */
export function isSuspicious(before: PriceRow, after: PriceRow): boolean {
  const [old, fresh] = [perUnit(before), perUnit(after)]
  const [left, right] = [old.numerator * fresh.denominator, fresh.numerator * old.denominator]
  return left === 0n || right === 0n || left > right * LARGEST_MOVE || right > left * LARGEST_MOVE
}

function perUnit({ amount, per = 1 }: PriceRow): Decimal {
  const { numerator, denominator } = parseDecimal(amount)
  return { numerator, denominator: denominator * BigInt(per) }
}
