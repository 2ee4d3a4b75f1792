import type { Decimal } from '../../core/money.ts'

const SHORTEST_FORM = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/**
 * A measured number as the decimal that it prints as: 5.04 is 504/100, not the binary fraction that stands for it.
 * @throws RangeError unless the number is finite and not negative.
 */
export function exactDecimal(value: number): Decimal {
  if (Number.isSafeInteger(value) && value >= 0) return { numerator: BigInt(value), denominator: 1n }
  const match = SHORTEST_FORM.exec(String(value))
  if (match === null) throw new RangeError(`not a finite, non-negative number: ${value}`)
  const fraction = match[2] ?? ''
  const digits = BigInt(`${match[1]}${fraction}`)
  const exponent = Number(match[3] ?? 0) - fraction.length
  return exponent >= 0
    ? { numerator: digits * 10n ** BigInt(exponent), denominator: 1n }
    : { numerator: digits, denominator: 10n ** BigInt(-exponent) }
}
