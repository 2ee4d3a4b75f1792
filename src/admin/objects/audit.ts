import * as z from 'zod'
import type { AuditEntry } from '../../stores/audit-store.ts'
import { id, timeMs } from './fields.ts'

const members = z.record(z.string(), z.unknown())

/** Entry of the audit in the format of the API. */
export const auditEntrySchema = z.strictObject({
  object: z.literal('audit.entry'),
  id,
  created_at_ms: timeMs,
  operator: z.string(),
  action: z.string(),
  subject: z.string().nullable(),
  source: z.enum(['admin_api', 'command_line']),
  address: z.string().nullable(),
  request: z.string().nullable(),
  /** Error code of a change that failed and may have been made; null if it was made. */
  code: z.string().nullable(),
  input: members,
  before: members.nullable(),
  after: members.nullable(),
})

export function auditEntryObject(entry: AuditEntry): z.infer<typeof auditEntrySchema> {
  return {
    object: 'audit.entry',
    id: entry.id,
    created_at_ms: entry.createdAtMs,
    operator: entry.operator,
    action: entry.action,
    subject: entry.subject ?? null,
    source: entry.source,
    address: entry.address ?? null,
    request: entry.requestId ?? null,
    code: entry.code ?? null,
    input: entry.input,
    before: entry.before ?? null,
    after: entry.after ?? null,
  }
}
