import * as z from 'zod'
import { formatDollars } from '../../core/money.ts'
import type { AccountStatement } from '../../gateway/account-books.ts'
import { ENTRY_KINDS, type LedgerEntry, type OpenHold } from '../../stores/journal.ts'
import type { Resolution } from '../../stores/resolution.ts'
import { dollars, dollarsOrNull, id, timeMs } from './fields.ts'

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

export function entryObject(entry: LedgerEntry): z.infer<typeof entrySchema> {
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

export function statementObject(statement: AccountStatement): z.infer<typeof statementSchema> {
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

export function holdObject(hold: OpenHold): z.infer<typeof holdSchema> {
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

export function resolutionObject(hold: string, resolution: Resolution): z.infer<typeof resolutionSchema> {
  return {
    object: 'hold.resolution',
    hold,
    resolved: resolution.resolved,
    ended_by: resolution.endedBy ?? null,
    charged: formatDollars(resolution.charged),
    shortfall: formatDollars(resolution.shortfall),
  }
}
