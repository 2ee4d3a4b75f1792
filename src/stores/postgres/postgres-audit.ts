import { AUDIT_DELETE_BATCH, AUDIT_RETENTION_MS, type AuditStore, auditDetails, auditEntryOf } from '../audit-store.ts'
import { isStorable, timeParameter } from './column-values.ts'
import type { PostgresConnection } from './postgres-connection.ts'

/** Changes by operators in PostgreSQL. */
export function postgresAudit({ run }: PostgresConnection, schema: string): AuditStore {
  return {
    async add(entry) {
      // PostgreSQL stores no NUL in a text; the escaped form in JSON stays.
      const subject = entry.subject?.replaceAll('\0', '\\u0000') ?? null
      await run(
        `WITH old AS (
          DELETE FROM ${schema}.audit WHERE id IN (
            SELECT id FROM ${schema}.audit WHERE created_at_ms <= $5
            ORDER BY created_at_ms LIMIT ${AUDIT_DELETE_BATCH} FOR UPDATE SKIP LOCKED
          )
        )
        INSERT INTO ${schema}.audit (id, created_at_ms, subject, details) VALUES ($1, $2, $3, $4)`,
        [
          ...[entry.id, timeParameter(entry.createdAtMs), subject, auditDetails(entry)],
          timeParameter(entry.createdAtMs - AUDIT_RETENTION_MS),
        ],
      )
    },

    async list({ subject, fromMs, untilMs, after, limit }) {
      if (![subject, after?.id].every((text) => isStorable(text ?? ''))) return []
      const values: unknown[] = [Math.max(0, limit)]
      const conditions: string[] = ['true']
      if (subject !== undefined) conditions.push(`t.subject = $${values.push(subject)}`)
      if (fromMs !== undefined) conditions.push(`t.created_at_ms >= $${values.push(timeParameter(fromMs))}`)
      if (untilMs !== undefined) conditions.push(`t.created_at_ms < $${values.push(timeParameter(untilMs))}`)
      if (after !== undefined) {
        const place = `$${values.push(timeParameter(after.createdAtMs))}, $${values.push(after.id)}`
        conditions.push(`(t.created_at_ms, t.id COLLATE "C") < (${place})`)
      }
      const rows = await run(
        `SELECT t.id, t.created_at_ms::text, t.subject, t.details FROM ${schema}.audit t
        WHERE ${conditions.join(' AND ')} ORDER BY t.created_at_ms DESC, t.id COLLATE "C" DESC LIMIT $1`,
        values,
      )
      return rows.map(auditEntryOf)
    },
  }
}
