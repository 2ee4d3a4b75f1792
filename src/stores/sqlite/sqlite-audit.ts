import {
  AUDIT_DELETE_BATCH,
  AUDIT_RETENTION_MS,
  type AuditEntry,
  type AuditQuery,
  auditDetails,
  auditEntryOf,
} from '../audit-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import { type SqliteDatabase, type SqlValue, wholeMilliseconds } from './sqlite-database.ts'

/** Synchronous audit of an open database. */
export interface SqliteAudit {
  add(entry: AuditEntry): void
  list(query: AuditQuery): readonly AuditEntry[]
}

/** Prepares the statements of the audit. */
export function sqliteAudit(database: SqliteDatabase): SqliteAudit {
  const insert = database.prepare(
    'INSERT INTO signalbox_audit (id, created_at_ms, subject, details) VALUES (?, ?, ?, ?)',
  )
  const deleteOld = database.prepare(
    `DELETE FROM signalbox_audit WHERE id IN (
       SELECT id FROM signalbox_audit WHERE created_at_ms <= ? ORDER BY created_at_ms LIMIT ${AUDIT_DELETE_BATCH})`,
  )
  return {
    add(entry) {
      insert.run(entry.id, wholeMilliseconds(entry.createdAtMs), entry.subject ?? null, auditDetails(entry))
      deleteOld.run(wholeMilliseconds(entry.createdAtMs - AUDIT_RETENTION_MS))
    },
    // Prepared at each call, because only operators list entries.
    list({ subject, fromMs, untilMs, after, limit }) {
      const conditions: string[] = ['true']
      const values: SqlValue[] = []
      const add = (condition: string, ...given: SqlValue[]): void => {
        conditions.push(condition)
        values.push(...given)
      }
      if (subject !== undefined) add('subject = ?', subject)
      if (fromMs !== undefined) add('created_at_ms >= ?', wholeMilliseconds(fromMs))
      if (untilMs !== undefined) add('created_at_ms < ?', wholeMilliseconds(untilMs))
      if (after !== undefined) add('(created_at_ms, id) < (?, ?)', wholeMilliseconds(after.createdAtMs), after.id)
      const select = database.prepare(
        `SELECT * FROM signalbox_audit WHERE ${conditions.join(' AND ')} ORDER BY created_at_ms DESC, id DESC LIMIT ?`,
      )
      return (select.all(...values, Math.max(0, limit)) as SqlRow[]).map(auditEntryOf)
    },
  }
}
