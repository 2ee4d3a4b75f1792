import type { InteractionRecord, InteractionStore } from '../interaction-store.ts'
import { MapCursor } from './map-cursor.ts'

/** Bounds of what is kept of conversations. */
export interface MemoryInteractionsOptions {
  /** Most records kept, the oldest are dropped first; 100,000 when absent. */
  readonly maxInteractions?: number | undefined
}

const SWEPT_PER_SAVE = 2

/** Owners of conversations in this process; answers at once. */
export function memoryInteractions(options: MemoryInteractionsOptions = {}): InteractionStore {
  const maxInteractions = options.maxInteractions ?? 100_000
  const records = new Map<string, InteractionRecord>()
  const cursor = new MapCursor(records)
  let newestMs = Number.NEGATIVE_INFINITY

  function sweep(): void {
    for (let count = 0; count < SWEPT_PER_SAVE; count++) {
      const next = cursor.next()
      if (next !== undefined && next[1].expiresAtMs <= newestMs) records.delete(next[0])
    }
    if (records.size <= maxInteractions) return
    const [oldest] = records.keys()
    if (oldest !== undefined) records.delete(oldest)
  }

  return {
    save(record) {
      const name = nameOf(record.accountId, record.id)
      records.delete(name)
      records.set(name, record)
      // Saving tells no time of its own; a record is made now.
      newestMs = Math.max(newestMs, record.createdAtMs)
      sweep()
    },

    find(accountId, id, nowMs) {
      const record = records.get(nameOf(accountId, id))
      return record === undefined || record.expiresAtMs <= nowMs ? undefined : record
    },
  }
}

/** The length keeps account and id apart, whatever characters they hold. */
function nameOf(accountId: string, id: string): string {
  return `${accountId.length}:${accountId}${id}`
}
