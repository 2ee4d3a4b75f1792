import type { GatewayStore } from '../gateway-store.ts'
import { MemoryClaims, type MemoryClaimsOptions } from './memory-claims.ts'
import { memoryIdempotency } from './memory-idempotency.ts'
import { memoryKeys } from './memory-keys.ts'
import { type MemoryLedgerOptions, memoryLedger } from './memory-ledger.ts'

/** Bounds of a memory store. */
export interface MemoryStoreOptions extends MemoryClaimsOptions, Omit<MemoryLedgerOptions, 'claims'> {}

/**
 * Accounts, keys and idempotency keys in this process: for tests, for trying things out, and for hosts that keep no money
 * here. Nothing survives the process, and no second process sees it.
 */
export function memoryStore(options: MemoryStoreOptions = {}): GatewayStore {
  const claims = new MemoryClaims(options)
  return {
    ledger: memoryLedger({ ...options, claims }),
    keys: memoryKeys(),
    idempotency: memoryIdempotency(claims),
    start: async () => {},
    close: async () => {},
  }
}
