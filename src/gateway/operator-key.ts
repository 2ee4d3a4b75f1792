import { createHash, timingSafeEqual } from 'node:crypto'
import type { GatewayRequest } from '../core/exchange.ts'
import { bearerToken } from '../pipeline/authenticate.ts'

/** Fewest characters of the key: one that can be guessed would show the state of the vendors to anybody. */
export const SHORTEST_OPERATOR_KEY = 24

/**
 * Does a request bear the operator's key? Digests are compared, in constant time, so that neither the key nor its length shows
 * in how long it takes. Without an operator's key nobody bears it.
 */
export function bearsOperatorKey(request: GatewayRequest, operatorKey: string | undefined): boolean {
  const given = bearerToken(request.header('authorization'))
  if (given === undefined || operatorKey === undefined) return false
  return timingSafeEqual(digestOf(given), digestOf(operatorKey))
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
