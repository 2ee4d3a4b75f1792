/** Largest amount that every store can keep, in nano-dollars: 2^63 − 1, about 9.2 billion dollars. */
export const MAX_AMOUNT = 2n ** 63n - 1n

/**
 * Refuses what cannot be an amount of money in a store.
 * @throws RangeError when it is no bigint, below zero, or above {@link MAX_AMOUNT}.
 */
export function assertAmount(amount: bigint): void {
  if (typeof amount !== 'bigint') throw new RangeError('an amount must be a bigint of nano-dollars')
  if (amount < 0n) throw new RangeError('an amount must not be below zero')
  if (amount > MAX_AMOUNT) throw new RangeError('an amount must not be above 2^63 - 1 nano-dollars')
}
