import * as z from 'zod'
import type { KeyRecord } from '../../stores/key-store.ts'
import { capObject, id, limitsObject, periodLimit, rateLimits, timeMs } from './fields.ts'

const names = z.array(z.string()).nullable()

/** Key in the format of the API, without the key itself. */
export const keySchema = z.strictObject({
  object: z.literal('key'),
  id,
  account: id,
  label: z.string(),
  /** Last 8 digits of the key's SHA-256. */
  fingerprint: z.string(),
  /** Endpoints and models that the key may use, or null for all. */
  endpoints: names,
  models: names,
  limits: rateLimits.nullable(),
  spending_cap: periodLimit.nullable(),
  names_end_users: z.boolean(),
  /** Tags of every call. */
  tags: z.array(z.string()),
  /** Id of the key that this one replaces by rotation. */
  replaces: z.string().nullable(),
  created_at_ms: timeMs,
  expires_at_ms: timeMs.nullable(),
  revoked_at_ms: timeMs.nullable(),
})

/** New key. The key itself is shown only once. */
export const madeKeySchema = keySchema.extend({
  /** The key itself, or null if the request was repeated. */
  key: z.string().nullable(),
})

const SHOWN_DIGITS = 8

export function keyObject(record: KeyRecord): z.infer<typeof keySchema> {
  return {
    object: 'key',
    id: record.id,
    account: record.accountId,
    label: record.label,
    fingerprint: record.hash.slice(-SHOWN_DIGITS),
    endpoints: record.scopes.endpoints === undefined ? null : [...record.scopes.endpoints],
    models: record.scopes.models === undefined ? null : [...record.scopes.models],
    limits: limitsObject(record.limits),
    spending_cap: capObject(record.spendingCap),
    names_end_users: record.namesEndUsers === true,
    tags: [...(record.tags ?? [])],
    replaces: record.replaces ?? null,
    created_at_ms: record.createdAtMs,
    expires_at_ms: record.expiresAtMs ?? null,
    revoked_at_ms: record.revokedAtMs ?? null,
  }
}
