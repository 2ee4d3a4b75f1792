import { createHash, timingSafeEqual } from 'node:crypto'
import { type Clock, isYoungerThan } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ClientAddress, GatewayRequest } from '../core/exchange.ts'
import { RecentMap } from '../core/maps.ts'
import { bearerToken } from '../pipeline/authenticate.ts'
import { hashApiKey, isUsable, type KeyRecord } from '../stores/api-keys.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
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

/** Minimum length of the key, in characters. A guessed key would expose the state of the vendors. */
export const MIN_OPERATOR_KEY = 24

/**
 * Whether a request carries the operator's key. Digests are compared in constant time, so the duration reveals neither the key nor
 * its length. Always false if no key is configured.
 */
export function bearsOperatorKey(request: GatewayRequest, operatorKey: string | undefined): boolean {
  const given = bearerToken(request.header('authorization'))
  if (given === undefined || operatorKey === undefined) return false
  return timingSafeEqual(digestOf(given), digestOf(operatorKey))
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

const WRONG_KEYS_PER_MINUTE = 5
const WINDOW_MS = 60_000

/** Maximum number of stored addresses. The oldest are removed first. */
const MAX_ADDRESSES = 10_000

/** Wrong keys of one address. */
interface WrongKeys {
  count: number
  beganAtMs: number
}

/** Wrong keys by address, for all handlers of the process that use the same clock. */
const WRONG_KEYS = new WeakMap<Clock, Map<string, WrongKeys>>()

/**
 * Returns the error for a request without a valid operator key: `invalid_api_key`, or `rate_limited` after 5 wrong keys within a
 * minute from one address, whichever handlers they were sent to. Callers check the key first, so a valid key is never limited.
 */
export function operatorRefusal(request: GatewayRequest, clock: Clock, clientAddress?: ClientAddress): GatewayError {
  if (bearerToken(request.header('authorization')) !== undefined) {
    const waitMs = countWrongKey(clientAddress?.(request) ?? request.remoteAddress ?? '', clock)
    if (waitMs > 0) return new GatewayError('rate_limited', { retryAfterSeconds: waitMs / 1000 })
  }
  const message = 'This needs an operator. Send an operator key as bearer token.'
  return new GatewayError('invalid_api_key', { message })
}

/** Counts a wrong key below the limit and returns 0. Above the limit, returns how long the address must wait, in milliseconds. */
function countWrongKey(address: string, clock: Clock): number {
  const addresses = WRONG_KEYS.get(clock) ?? new Map<string, WrongKeys>()
  WRONG_KEYS.set(clock, addresses)
  const nowMs = clock.now()
  const known = addresses.get(address)
  // If the clock was set back, the minute begins again.
  if (known !== undefined) known.beganAtMs = Math.min(known.beganAtMs, nowMs)
  if (known !== undefined && isYoungerThan(WINDOW_MS, known.beganAtMs, nowMs)) {
    if (known.count >= WRONG_KEYS_PER_MINUTE) return known.beganAtMs + WINDOW_MS - nowMs
    known.count += 1
    return 0
  }
  addresses.delete(address)
  addresses.set(address, { count: 1, beganAtMs: nowMs })
  if (addresses.size > MAX_ADDRESSES) addresses.delete(addresses.keys().next().value!)
  return 0
}
