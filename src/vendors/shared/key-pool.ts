import type { CredentialProvider } from '../../core/credential.ts'
import type { ApiKeys, WeightedKey } from '../vendor.ts'

/** The keys of a vendor, with shares and providers if given. */
export interface KeyPool {
  readonly apiKeys: readonly string[]
  readonly keyWeights?: readonly number[]
  readonly credentialProviders?: readonly (CredentialProvider | undefined)[]
}

interface Slot extends WeightedKey {
  readonly provider?: CredentialProvider
}

/**
 * Reads the keys. Blank and absent keys are ignored, so that an unset environment variable means "not configured".
 * @throws TypeError for an invalid key, a weight that is not a positive number, and two providers with one `slot`.
 */
export function keyPool(given: ApiKeys): KeyPool {
  const list = typeof given === 'string' || typeof given === 'function' ? [given] : (given ?? [])
  if (!Array.isArray(list)) throw new TypeError('apiKey must be a string, a credential provider, or a list of these')
  const slots = list
    .filter((entry) => (entry ?? undefined) !== undefined)
    .map(slotOf)
    .filter(({ key, provider }) => provider !== undefined || key !== '')
  for (const { weight } of slots) {
    if (!(Number.isFinite(weight) && weight > 0))
      throw new TypeError(`the weight of a key must be a positive number, not ${weight}`)
  }
  const names = slots.flatMap(({ provider }) => provider?.slot ?? [])
  const twice = names.find((name, place) => names.indexOf(name) !== place)
  if (twice !== undefined) throw new TypeError(`two credential providers have the slot ${JSON.stringify(twice)}`)
  return {
    apiKeys: slots.map(({ key }) => key),
    ...(list.some((entry) => typeof entry === 'object') ? { keyWeights: slots.map(({ weight }) => weight) } : {}),
    ...(slots.some(({ provider }) => provider !== undefined)
      ? { credentialProviders: slots.map(({ provider }) => provider) }
      : {}),
  }
}

function slotOf(entry: string | WeightedKey | CredentialProvider): Slot {
  if (typeof entry === 'function') return { key: '', weight: 1, provider: entry }
  if (typeof entry === 'string') return { key: entry.trim(), weight: 1 }
  return { key: entry.key.trim(), weight: entry.weight }
}
