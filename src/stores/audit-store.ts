import type { MaybePromise } from '../core/maybe-promise.ts'
import type { ListPlace } from './resolution.ts'

/** How long entries of the audit are kept, in milliseconds: 365 days. */
export const AUDIT_RETENTION_MS = 365 * 24 * 60 * 60 * 1000

/** Change by an operator. Contains no key and no secret. */
export interface AuditEntry {
  /** Unique id; orders the entries of the same time. */
  readonly id: string
  /** Time of the change in Unix milliseconds. */
  readonly createdAtMs: number
  /** Name of the operator; of the user of the operating system for the command line. */
  readonly operator: string
  /** Id of the operation in the OpenAPI document of the admin API, such as `credit_account`. */
  readonly action: string
  /** Id of what was changed, such as an account, a key or a hold; `undefined` if it has none. */
  readonly subject: string | undefined
  /** Whether the change came over the admin API or from the command line. */
  readonly source: 'admin_api' | 'command_line'
  /** Address of the operator; `undefined` for the command line. */
  readonly address: string | undefined
  /** Id of the request; `undefined` for the command line. */
  readonly requestId: string | undefined
  /** Error code if the change failed inside the gateway but may have taken effect; `undefined` after success. */
  readonly code: string | undefined
  /** Arguments of the change, as they were sent. */
  readonly input: Readonly<Record<string, unknown>>
  /** Changed members before the change; `undefined` for what is new or has no readable state. */
  readonly before: Readonly<Record<string, unknown>> | undefined
  /** Changed members after the change; for what is new, all of its members. */
  readonly after: Readonly<Record<string, unknown>> | undefined
}

/** Query for audit entries, newest first. */
export interface AuditQuery {
  /** Subject of the entries. If omitted, all subjects are listed. */
  readonly subject?: string | undefined
  /** First time in Unix milliseconds, inclusive. */
  readonly fromMs?: number | undefined
  /** Time in Unix milliseconds before which the entries end. */
  readonly untilMs?: number | undefined
  /** Cursor: lists the entries after this place. */
  readonly after?: ListPlace | undefined
  /** Maximum number of entries. */
  readonly limit: number
}

/** Maximum number of old entries that one `add` deletes. */
export const AUDIT_DELETE_BATCH = 10

/** Changes by operators, readable for 365 days. */
export interface AuditStore {
  /** Adds an entry and deletes up to 10 entries that are more than 365 days older. */
  add(entry: AuditEntry): MaybePromise<void>
  /** Lists entries, newest first: by time, then id. */
  list(query: AuditQuery): MaybePromise<readonly AuditEntry[]>
}

/** Returns the members of an entry that drivers store as JSON. */
export function auditDetails({ id, createdAtMs, subject, ...details }: AuditEntry): string {
  return JSON.stringify(details)
}

/** Returns the entry of a row with `id`, `created_at_ms`, `subject` and `details`. */
export function auditEntryOf(row: Readonly<Record<string, unknown>>): AuditEntry {
  const details = JSON.parse(row['details'] as string) as Partial<AuditEntry>
  return {
    id: row['id'] as string,
    createdAtMs: Number(row['created_at_ms']),
    operator: details.operator ?? '',
    action: details.action ?? '',
    subject: (row['subject'] as string | null) ?? undefined,
    source: details.source ?? 'admin_api',
    address: details.address,
    requestId: details.requestId,
    code: details.code,
    input: details.input ?? {},
    before: details.before,
    after: details.after,
  }
}
