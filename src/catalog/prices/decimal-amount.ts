import { exactDecimal } from './exact-decimal.ts'

/** A price as a price row states it. */
export interface DecimalAmount {
  /** Dollars for `per` units, as a decimal string. */
  readonly amount: string
  /** A power of ten. */
  readonly per: number
}

/** Bounds of a price row's `amount` and `per`. */
const MOST_FRACTION_DIGITS = 18
const MOST_WHOLE_DIGITS = 15
const LARGEST_PER_DIGITS = 12

/**
 * Writes a price that JSON holds as a number, such as `3e-06` dollars for one token, as dollars for `10^perDigits` units:
 * `{ amount: '3', per: 1000000 }`. The number counts as the shortest decimal that stands for it, which is what the file's
 * author wrote, and is only ever shifted: nothing is rounded. `per` grows where the digits would not fit otherwise.
 *
 * @param fromDigits power of ten of the units that `dollars` is for: 0 for one, 6 for a million.
 * @param perDigits power of ten wanted for `per`; not below `fromDigits`.
 * @throws RangeError for negative or infinite numbers, and for those that no price row can hold.
 */
export function decimalAmount(dollars: number, fromDigits: number, perDigits: number): DecimalAmount {
  const { numerator, denominator } = exactDecimal(dollars)
  const scale = denominator.toString().length - 1
  for (let digits = perDigits; digits <= LARGEST_PER_DIGITS; digits++) {
    const amount = shiftedText(numerator, scale - (digits - fromDigits))
    if (amount !== undefined) return { amount, per: 10 ** digits }
  }
  throw new RangeError(`no price can hold ${dollars}`)
}

/** `numerator / 10^scale` without trailing zeros; undefined when it has too many digits. */
function shiftedText(numerator: bigint, scale: number): string | undefined {
  const digits = (scale < 0 ? numerator * 10n ** BigInt(-scale) : numerator).toString()
  const fractionLength = Math.max(scale, 0)
  const padded = digits.padStart(fractionLength + 1, '0')
  const whole = padded.slice(0, padded.length - fractionLength)
  const fraction = padded.slice(padded.length - fractionLength).replace(/0+$/, '')
  if (whole.length > MOST_WHOLE_DIGITS || fraction.length > MOST_FRACTION_DIGITS) return undefined
  return fraction === '' ? whole : `${whole}.${fraction}`
}
