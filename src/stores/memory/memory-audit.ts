import { AUDIT_RETENTION_MS, type AuditEntry, type AuditQuery, type AuditStore } from '../audit-store.ts'

/** Limits of the audit in memory. */
export interface MemoryAuditOptions {
  /** Maximum number of entries of the audit; the oldest are dropped first. Default 10,000. */
  readonly maxAuditEntries?: number | undefined
}

/** Creates an audit in this process. */
export function memoryAudit({ maxAuditEntries = 10_000 }: MemoryAuditOptions = {}): AuditStore {
  const entries: AuditEntry[] = []

  const isWanted = (entry: AuditEntry, { subject, fromMs, untilMs, after }: AuditQuery): boolean =>
    (subject === undefined || entry.subject === subject) &&
    (fromMs === undefined || entry.createdAtMs >= fromMs) &&
    (untilMs === undefined || entry.createdAtMs < untilMs) &&
    (after === undefined ||
      entry.createdAtMs < after.createdAtMs ||
      (entry.createdAtMs === after.createdAtMs && entry.id < after.id))

  return {
    add(entry) {
      entries.push(entry)
      while (entries.length > maxAuditEntries || entries[0]!.createdAtMs <= entry.createdAtMs - AUDIT_RETENTION_MS)
        entries.shift()
    },
    list: (query) =>
      entries
        .filter((entry) => isWanted(entry, query))
        .sort((one, other) => other.createdAtMs - one.createdAtMs || (one.id < other.id ? 1 : -1))
        .slice(0, query.limit),
  }
}
