import type { IdempotencyStore } from './idempotency-store.ts'
import type { KeyStore } from './key-store.ts'
import type { Ledger } from './ledger.ts'

/** Everything durable, as one driver gives it. */
export interface GatewayStore {
  readonly ledger: Ledger
  readonly keys: KeyStore
  readonly idempotency: IdempotencyStore
  /** Opens connections and brings the schema up to date. */
  start(): Promise<void>
  close(): Promise<void>
}
