import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { RecentMap } from '../core/recent-map.ts'
import { hashApiKey } from '../stores/api-key.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { isUsable, type KeyRecord } from '../stores/key-store.ts'
import type { Account } from '../stores/ledger.ts'
import type { Authenticate, Principal } from '../stores/principal.ts'

/** How long a key is cached, in milliseconds. Together with the interval of checks of work in progress, it is below 5 seconds. */
const CACHE_MS = 2_500

/** Maximum number of cached keys. */
const MAX_CACHED_KEYS = 10_000

/**
 * Authenticates by the keys of a store. Keys are looked up by their SHA-256, so neither the store nor the duration of the look-up
 * reveals anything about a key. Unknown keys are not cached, so guesses cannot fill the memory.
 */
export function keyAuthentication(store: GatewayStore, clock: Clock): Authenticate {
  const cache = new RecentMap<Principal>(MAX_CACHED_KEYS)

  const lookUp = async (hash: string, nowMs: number): Promise<Principal | undefined> => {
    const found = await readStore(store, hash)
    if (found === undefined) return undefined
    const { record, account } = found
    if (!isUsable(record, nowMs)) return undefined
    const principal: Principal = {
      accountId: record.accountId,
      keyId: record.id,
      tier: account.tier,
      scopes: record.scopes,
      limits: record.limits,
      plan: account.plan ?? null,
      namesEndUsers: record.namesEndUsers,
      tags: record.tags,
      isFrozen: account.frozen !== undefined,
      accountSpendingCap: account.spendingCap,
      keySpendingCap: record.spendingCap,
    }
    cache.set(hash, principal, nowMs, Math.min(CACHE_MS, (record.expiresAtMs ?? Number.POSITIVE_INFINITY) - nowMs))
    return principal
  }

  return ({ apiKey }) => {
    if (apiKey === undefined) return undefined
    const hash = hashApiKey(apiKey)
    const nowMs = clock.now()
    return cache.get(hash, nowMs) ?? lookUp(hash, nowMs)
  }
}

/** A failing store does not make the key invalid: the caller gets 503 and may retry. */
async function readStore(
  store: GatewayStore,
  hash: string,
): Promise<{ readonly record: KeyRecord; readonly account: Account } | undefined> {
  try {
    const record = await store.keys.findByHash(hash)
    const account = record === undefined ? undefined : await store.ledger.account(record.accountId)
    return record === undefined || account === undefined ? undefined : { record, account }
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
}
