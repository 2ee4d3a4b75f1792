import type { ApiKeys } from '../vendor.ts'

/** The keys of a vendor, and their shares where any is given. */
export interface KeyPool {
  readonly apiKeys: readonly string[]
  readonly keyWeights?: readonly number[]
}

/**
 * Reads the keys. A blank one is left out, so that an unset environment variable means "not configured".
 * @throws TypeError for a weight that is no positive number.
 */
export function keyPool(given: ApiKeys): KeyPool {
  const list = typeof given === 'string' ? [given] : (given ?? [])
  const weighted = list
    .map((entry) => (typeof entry === 'string' ? { key: entry, weight: 1 } : entry))
    .map(({ key, weight }) => ({ key: key.trim(), weight }))
    .filter(({ key }) => key !== '')
  for (const { weight } of weighted) {
    if (!(Number.isFinite(weight) && weight > 0))
      throw new TypeError(`the weight of a key must be a positive number, not ${weight}`)
  }
  const apiKeys = weighted.map(({ key }) => key)
  return list.every((entry) => typeof entry === 'string')
    ? { apiKeys }
    : { apiKeys, keyWeights: weighted.map(({ weight }) => weight) }
}
