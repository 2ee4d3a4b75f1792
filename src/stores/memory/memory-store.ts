import type { GatewayStore } from '../gateway-store.ts'
import { MemoryClaims, type MemoryClaimsOptions } from './memory-claims.ts'
import { memoryIdempotency } from './memory-idempotency.ts'
import { type MemoryInteractionsOptions, memoryInteractions } from './memory-interactions.ts'
import { memoryKeys } from './memory-keys.ts'
import { type MemoryLedgerOptions, memoryLedger } from './memory-ledger.ts'
import { type MemoryTasksOptions, MemoryTaskTable } from './memory-task-table.ts'
import { memoryTasks } from './memory-tasks.ts'
import { type MemoryWebhooksOptions, memoryWebhooks } from './memory-webhooks.ts'

/** Bounds of a memory store. */
export interface MemoryStoreOptions
  extends MemoryClaimsOptions,
    MemoryInteractionsOptions,
    MemoryTasksOptions,
    MemoryWebhooksOptions,
    Omit<MemoryLedgerOptions, 'claims' | 'tasks'> {}

/**
 * Accounts, keys, idempotency keys, tasks, messages and conversations in this process: for tests, for trying things out, and for hosts that keep no money
 * here. Nothing survives the process, and no second process sees it.
 */
export function memoryStore(options: MemoryStoreOptions = {}): GatewayStore {
  const claims = new MemoryClaims(options)
  const table = new MemoryTaskTable(options)
  const webhooks = memoryWebhooks(options)
  const ledger = memoryLedger({ ...options, claims, tasks: table })
  return {
    ledger,
    keys: memoryKeys(),
    idempotency: memoryIdempotency(claims),
    interactions: memoryInteractions(options),
    tasks: memoryTasks({ table, ledger, claims, webhooks }),
    webhooks,
    start: async () => {},
    close: async () => {},
  }
}
