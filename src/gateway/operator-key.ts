import { createHash, timingSafeEqual } from 'node:crypto'
import { type Clock, isYoungerThan } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import type { ClientAddress } from '../core/forwarded-address.ts'
import { bearerToken } from '../pipeline/authenticate.ts'

/** Minimum length of the key, in characters. A guessed key would expose the state of the vendors. */
export const SHORTEST_OPERATOR_KEY = 24

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
