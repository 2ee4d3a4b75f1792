import { createHash, timingSafeEqual } from 'node:crypto'
import type { GatewayRequest } from '../core/exchange.ts'
import { bearerToken } from '../pipeline/authenticate.ts'

/** Fewest characters of the key: a key that can be guessed would expose the state of the vendors. */
export const SHORTEST_OPERATOR_KEY = 24

/**
 * Does a request carry the operator's key? Digests are compared in constant time, so the duration reveals neither the key
 * nor its length. Without a configured key the result is always false.
 */
export function bearsOperatorKey(request: GatewayRequest, operatorKey: string | undefined): boolean {
  const given = bearerToken(request.header('authorization'))
  if (given === undefined || operatorKey === undefined) return false
  return timingSafeEqual(digestOf(given), digestOf(operatorKey))
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
