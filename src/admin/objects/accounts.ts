import * as z from 'zod'
import { formatDollars } from '../../core/money.ts'
import type { AccountStatement } from '../../gateway/account-books.ts'
import { type AccountSpending, balanceObject, type Spent } from '../../gateway/accounts.ts'
import type { KeyRecord } from '../../stores/api-keys.ts'
import type { AuditEntry } from '../../stores/audit-store.ts'
import { ENTRY_KINDS, type LedgerEntry, type OpenHold } from '../../stores/journal.ts'
import type { Account } from '../../stores/ledger.ts'
import type { Resolution } from '../../stores/resolution.ts'
import { capObject, dollars, dollarsOrNull, id, limitsObject, periodLimit, rateLimits, timeMs } from './fields.ts'

/** Account in the format of the API. */
export const accountSchema = z.strictObject({
  object: z.literal('account'),
  id,
  name: z.string().nullable(),
  tier: z.enum(['free', 'paid']),
  plan: z.string().nullable(),
  billing: z.enum(['prepaid', 'metered']).nullable(),
  balance: dollars,
  held: dollars,
  owed: dollars,
  currency: z.literal('USD'),
  credit_held: dollars,
  credit_limit: dollars.nullable(),
  spending_cap: periodLimit.nullable(),
  frozen: z.strictObject({ reason: z.string(), at_ms: timeMs }).nullable(),
  created_at_ms: timeMs,
})
export type AccountObject = z.infer<typeof accountSchema>

const spentShape = {
  /** Charges of the UTC day minus refunds, plus open holds. */
  spent_day: dollars,
  /** Charges of the UTC month minus refunds, plus open holds. */
  spent_month: dollars,
  spending_cap: periodLimit.nullable(),
  /** Rest of the cap, or null without a cap. */
  left: dollars.nullable(),
}

/** Amounts that count against the caps of an account and of its keys. */
export const spendingSchema = z.strictObject({
  object: z.literal('account.spending'),
  account: id,
  /** Day in UTC. */
  date: z.string(),
  ...spentShape,
  keys: z.array(z.strictObject({ key: id, label: z.string(), ...spentShape })),
})
export type SpendingObject = z.infer<typeof spendingSchema>

export function spendingObject(spending: AccountSpending): SpendingObject {
  return {
    object: 'account.spending',
    account: spending.accountId,
    date: spending.date,
    ...spentObject(spending),
    keys: spending.keys.map((key) => ({ key: key.keyId, label: key.label, ...spentObject(key) })),
  }
}

function spentObject({ day, month, cap, left }: Spent) {
  return {
    spent_day: formatDollars(day),
    spent_month: formatDollars(month),
    spending_cap: capObject(cap),
    left: dollarsOrNull(left),
  }
}

export function accountObject(account: Account): AccountObject {
  const { frozen } = account
  return {
    ...balanceObject(account),
    name: account.name ?? null,
    plan: account.plan ?? null,
    billing: account.billing ?? null,
    credit_held: formatDollars(account.creditHeld),
    credit_limit: dollarsOrNull(account.creditLimit),
    spending_cap: capObject(account.spendingCap),
    frozen: frozen === undefined ? null : { reason: frozen.reason, at_ms: frozen.atMs },
    created_at_ms: account.createdAtMs,
  }
}

/** Journal line in the format of the API. */
export const entrySchema = z.strictObject({
  object: z.literal('journal.entry'),
  id,
  account: id,
  kind: z.enum(ENTRY_KINDS),
  amount: dollars,
  owed: dollars,
  due: dollars.nullable(),
  balance_after: dollars.nullable(),
  description: z.string(),
  hold: z.string().nullable(),
  charge: z.string().nullable(),
  operation: z.string().nullable(),
  key: z.string().nullable(),
  endpoint: z.string().nullable(),
  model: z.string().nullable(),
  vendor: z.string().nullable(),
  created_at_ms: timeMs,
})
export type EntryObject = z.infer<typeof entrySchema>

export function entryObject(entry: LedgerEntry): EntryObject {
  const { details } = entry
  return {
    object: 'journal.entry',
    id: entry.id,
    account: entry.accountId,
    kind: entry.kind,
    amount: formatDollars(entry.amount),
    owed: formatDollars(entry.owed),
    due: dollarsOrNull(entry.due),
    balance_after: dollarsOrNull(entry.balanceAfter),
    description: entry.description,
    hold: entry.holdId ?? null,
    charge: entry.chargeId ?? null,
    operation: entry.operationId ?? null,
    key: details?.keyId ?? null,
    endpoint: details?.endpoint ?? null,
    model: details?.model ?? null,
    vendor: details?.vendor ?? null,
    created_at_ms: entry.createdAtMs,
  }
}

/** Statement of an account's month in the format of the API. */
export const statementSchema = z.strictObject({
  object: z.literal('account.statement'),
  account: id,
  month: z.string(),
  from_ms: timeMs,
  until_ms: timeMs,
  opening_balance: dollars,
  opening_owed: dollars,
  sums: z.array(z.strictObject({ kind: z.enum(ENTRY_KINDS), lines: z.int(), amount: dollars, owed: dollars })),
  closing_balance: dollars,
  closing_owed: dollars,
})
export type StatementObject = z.infer<typeof statementSchema>

export function statementObject(statement: AccountStatement): StatementObject {
  return {
    object: 'account.statement',
    account: statement.accountId,
    month: statement.month,
    from_ms: statement.fromMs,
    until_ms: statement.untilMs,
    opening_balance: formatDollars(statement.openingBalance),
    opening_owed: formatDollars(statement.openingOwed),
    sums: statement.sums.map((sum) => ({
      kind: sum.kind,
      lines: sum.lines,
      amount: formatDollars(sum.amount),
      owed: formatDollars(sum.owed),
    })),
    closing_balance: formatDollars(statement.closingBalance),
    closing_owed: formatDollars(statement.closingOwed),
  }
}

/** Hold in the format of the API. */
export const holdSchema = z.strictObject({
  object: z.literal('hold'),
  id,
  account: id,
  key: z.string(),
  amount: dollars,
  created_at_ms: timeMs,
  expires_at_ms: timeMs,
})
export type HoldObject = z.infer<typeof holdSchema>

export function holdObject(hold: OpenHold): HoldObject {
  return {
    object: 'hold',
    id: hold.id,
    account: hold.accountId,
    key: hold.keyId,
    amount: formatDollars(hold.amount),
    created_at_ms: hold.createdAtMs,
    expires_at_ms: hold.expiresAtMs,
  }
}

/** End of a hold in the format of the API. */
export const resolutionSchema = z.strictObject({
  object: z.literal('hold.resolution'),
  hold: id,
  /** Whether this request ended the hold. If false, it had already ended as `ended_by` reports, and nothing was changed. */
  resolved: z.boolean(),
  ended_by: z.enum(['settled', 'voided', 'expired']).nullable(),
  charged: dollars,
  shortfall: dollars,
})
export type ResolutionObject = z.infer<typeof resolutionSchema>

export function resolutionObject(hold: string, resolution: Resolution): ResolutionObject {
  return {
    object: 'hold.resolution',
    hold,
    resolved: resolution.resolved,
    ended_by: resolution.endedBy ?? null,
    charged: formatDollars(resolution.charged),
    shortfall: formatDollars(resolution.shortfall),
  }
}

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
export type KeyObject = z.infer<typeof keySchema>

/** New key. The key itself is shown only once. */
export const madeKeySchema = keySchema.extend({
  /** The key itself, or null if the request was repeated. */
  key: z.string().nullable(),
})
export type NewKeyObject = z.infer<typeof madeKeySchema>

const SHOWN_DIGITS = 8

export function keyObject(record: KeyRecord): KeyObject {
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
export type AuditEntryObject = z.infer<typeof auditEntrySchema>

export function auditEntryObject(entry: AuditEntry): AuditEntryObject {
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
