import { createHash, timingSafeEqual } from 'node:crypto'
import type { GatewayRequest } from '../core/exchange.ts'

const BEARER = /^bearer +(\S+)$/i

/**
 * Does a request bear the operator's key? Digests are compared, in constant time, so that neither the key nor its length shows
 * in how long it takes. Without an operator's key nobody bears it.
 */
export function bearsOperatorKey(request: GatewayRequest, operatorKey: string | undefined): boolean {
  const given = BEARER.exec(request.header('authorization')?.trim() ?? '')?.[1]
  if (given === undefined || operatorKey === undefined) return false
  return timingSafeEqual(digestOf(given), digestOf(operatorKey))
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
