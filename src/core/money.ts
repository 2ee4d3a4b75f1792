/**
 * Money as bigint nano-dollars (1 USD = 1,000,000,000). Amounts enter and leave as decimal strings, never as floats.
 */

/** Nano-dollars in one dollar. */
export const NANO_DOLLARS_PER_DOLLAR = 1_000_000_000n

const DECIMAL = /^(\d{1,15})(?:\.(\d{1,18}))?$/

/** Exact non-negative decimal: `numerator / denominator`. The denominator is a power of ten. */
export interface Decimal {
  readonly numerator: bigint
  readonly denominator: bigint
}

/**
 * Reads a non-negative decimal string such as `"3"`, `"0.10"` or `"0.0000000375"` exactly.
 * @throws RangeError for signs, exponents, more than 15 integer or 18 fraction digits, or anything else.
 */
export function parseDecimal(text: string): Decimal {
  const match = DECIMAL.exec(text)
  if (match === null)
    throw new RangeError(`expected a decimal number of 0 or more, such as "2.50", not ${JSON.stringify(text)}`)
  const fraction = match[2] ?? ''
  return { numerator: BigInt(`${match[1]}${fraction}`), denominator: 10n ** BigInt(fraction.length) }
}

/** Formats a decimal without trailing zeros. Its denominator is a power of ten. */
export function formatDecimal({ numerator, denominator }: Decimal): string {
  const scale = String(denominator).length - 1
  const digits = String(numerator).padStart(scale + 1, '0')
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '')
  const whole = digits.slice(0, digits.length - scale)
  return scale === 0 || fraction === '' ? whole : `${whole}.${fraction}`
}

/**
 * Parses a dollar amount with up to nine decimals into nano-dollars.
 * @throws RangeError if the text is not such a decimal, or if the value is a bigint.
 */
export function parseDollars(text: string): bigint {
  // Bigints are nano-dollars everywhere; read as dollars, an amount would be a billion times as high.
  if (typeof text === 'bigint') throw new RangeError(`an amount must be dollars as text, such as "2.50", not ${text}n`)
  const { numerator, denominator } = parseDecimal(text)
  const scaled = numerator * NANO_DOLLARS_PER_DOLLAR
  if (scaled % denominator !== 0n) throw new RangeError(`finer than a nano-dollar: ${JSON.stringify(text)}`)
  return scaled / denominator
}

/**
 * Parses a dollar amount that may be negative, such as `"-1.5"`. Accepts every result of {@link formatDollars}.
 * @throws RangeError if the text is not such a decimal.
 */
export function parseSignedDollars(text: string): bigint {
  return typeof text === 'string' && text.startsWith('-') ? -parseDollars(text.slice(1)) : parseDollars(text)
}

/** Formats nano-dollars as a decimal dollar string without trailing zeros: `1500000000n` → `"1.5"`. */
export function formatDollars(nanoDollars: bigint): string {
  if (nanoDollars >= 0n && nanoDollars <= LARGEST_EXACT) return formatExact(Number(nanoDollars))
  const negative = nanoDollars < 0n
  const absolute = negative ? -nanoDollars : nanoDollars
  const whole = absolute / NANO_DOLLARS_PER_DOLLAR
  const fraction = (absolute % NANO_DOLLARS_PER_DOLLAR).toString().padStart(9, '0').replace(/0+$/, '')
  return `${negative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

const LARGEST_EXACT = BigInt(Number.MAX_SAFE_INTEGER)
const NANOS = Number(NANO_DOLLARS_PER_DOLLAR)
const ZERO = 0x30

/** Formats an amount that a number holds exactly, as for every single request. Faster, because bigint operations allocate. */
function formatExact(nanoDollars: number): string {
  const fraction = nanoDollars % NANOS
  const whole = String((nanoDollars - fraction) / NANOS)
  if (fraction === 0) return whole
  // Adding 10^9 keeps the leading zeros of the fraction.
  const digits = String(NANOS + fraction)
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end -= 1
  return `${whole}.${digits.slice(1, end)}`
}

/** Divides integers and rounds up. Both operands must be non-negative and exact, and the divisor positive. */
export function divideRoundingUp(dividend: number | bigint, divisor: bigint): bigint {
  if (typeof dividend === 'bigint') return (dividend + divisor - 1n) / divisor
  const exactDivisor = Number(divisor)
  const rest = dividend % exactDivisor
  return BigInt((dividend - rest) / exactDivisor + (rest > 0 ? 1 : 0))
}

const SHORTEST_FORM = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/**
 * Returns a measured number as the decimal that it prints as: 5.04 is 504/100, not its binary approximation.
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
