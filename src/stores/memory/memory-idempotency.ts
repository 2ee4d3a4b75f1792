import type { IdempotencyStore } from '../idempotency-store.ts'
import { MemoryClaims } from './memory-claims.ts'

/**
 * Idempotency keys in this process; answers at once.
 *
 * @param claims give the ledger's, so that both see the same keys; a set of its own when absent.
 */
export function memoryIdempotency(claims: MemoryClaims = new MemoryClaims()): IdempotencyStore {
  return {
    claim: (claim, nowMs) => claims.claim(claim, nowMs),
    complete: (claim, answer) => claims.complete(claim, answer),
    release: (claim) => claims.release(claim),
  }
}
