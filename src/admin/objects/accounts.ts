import * as z from 'zod'
import { formatDollars } from '../../core/money.ts'
import type { AccountStatement } from '../../gateway/account-books.ts'
import type { AccountSpending, Spent } from '../../gateway/accounts.ts'
import type { KeyRecord } from '../../stores/api-keys.ts'
import type { AuditEntry } from '../../stores/audit-store.ts'
import { ENTRY_KINDS, type LedgerEntry, type OpenHold } from '../../stores/journal.ts'
import type { Account } from '../../stores/ledger.ts'
import type { Resolution } from '../../stores/resolution.ts'
import {
  amount,
  capObject,
  defineObject,
  dollars,
  id,
  kind,
  limitsObject,
  optionalAmount,
  optionalText,
  optionalTime,
  periodLimit,
  rateLimits,
  text,
  time,
  timeMs,
} from './fields.ts'

const cap = periodLimit.nullable()
const freeze = z.strictObject({ reason: z.string(), at_ms: timeMs })

/** Account in the format of the API. `GET /v1/account` shows callers a part of it. */
export const { schema: accountSchema, write: accountObject } = defineObject<Account>()({
  object: kind('account'),
  id: [id, ({ id }) => id],
  name: optionalText(({ name }) => name),
  tier: [z.enum(['free', 'paid']), ({ tier }) => tier],
  plan: optionalText(({ plan }) => plan),
  billing: [z.enum(['prepaid', 'metered']).nullable(), ({ billing }) => billing ?? null],
  balance: amount(({ balance }) => balance),
  held: amount(({ held }) => held),
  owed: amount(({ owed }) => owed),
  currency: [z.literal('USD'), () => 'USD' as const],
  credit_held: amount(({ creditHeld }) => creditHeld),
  credit_limit: optionalAmount(({ creditLimit }) => creditLimit),
  spending_cap: [cap, ({ spendingCap }) => capObject(spendingCap)],
  frozen: [
    freeze.nullable(),
    ({ frozen }) => (frozen === undefined ? null : { reason: frozen.reason, at_ms: frozen.atMs }),
  ],
  created_at_ms: time(({ createdAtMs }) => createdAtMs),
})
export type AccountObject = z.infer<typeof accountSchema>

/** Charges of the UTC day and month minus refunds, plus open holds, and the rest of the cap. */
function spentFields<Source extends Spent>() {
  return {
    spent_day: amount<Source>(({ day }) => day),
    spent_month: amount<Source>(({ month }) => month),
    spending_cap: [cap, ({ cap }: Source) => capObject(cap)] as const,
    left: optionalAmount<Source>(({ left }) => left),
  }
}

const spentKey = defineObject<AccountSpending['keys'][number]>()({
  key: [id, ({ keyId }) => keyId],
  label: text(({ label }) => label),
  ...spentFields(),
})

/** Amounts that count against the caps of an account and of its keys. */
export const { schema: spendingSchema, write: spendingObject } = defineObject<AccountSpending>()({
  object: kind('account.spending'),
  account: [id, ({ accountId }) => accountId],
  /** Day in UTC. */
  date: text(({ date }) => date),
  ...spentFields(),
  keys: [z.array(spentKey.schema), ({ keys }) => keys.map(spentKey.write)],
})
export type SpendingObject = z.infer<typeof spendingSchema>

/** Journal line in the format of the API. */
export const { schema: entrySchema, write: entryObject } = defineObject<LedgerEntry>()({
  object: kind('journal.entry'),
  id: [id, ({ id }) => id],
  account: [id, ({ accountId }) => accountId],
  kind: [z.enum(ENTRY_KINDS), ({ kind }) => kind],
  amount: amount(({ amount }) => amount),
  owed: amount(({ owed }) => owed),
  due: optionalAmount(({ due }) => due),
  balance_after: optionalAmount(({ balanceAfter }) => balanceAfter),
  description: text(({ description }) => description),
  hold: optionalText(({ holdId }) => holdId),
  charge: optionalText(({ chargeId }) => chargeId),
  operation: optionalText(({ operationId }) => operationId),
  key: optionalText(({ details }) => details?.keyId),
  endpoint: optionalText(({ details }) => details?.endpoint),
  model: optionalText(({ details }) => details?.model),
  vendor: optionalText(({ details }) => details?.vendor),
  created_at_ms: time(({ createdAtMs }) => createdAtMs),
})
export type EntryObject = z.infer<typeof entrySchema>

const monthSum = z.strictObject({ kind: z.enum(ENTRY_KINDS), lines: z.int(), amount: dollars, owed: dollars })

/** Statement of an account's month in the format of the API. */
export const { schema: statementSchema, write: statementObject } = defineObject<AccountStatement>()({
  object: kind('account.statement'),
  account: [id, ({ accountId }) => accountId],
  month: text(({ month }) => month),
  from_ms: time(({ fromMs }) => fromMs),
  until_ms: time(({ untilMs }) => untilMs),
  opening_balance: amount(({ openingBalance }) => openingBalance),
  opening_owed: amount(({ openingOwed }) => openingOwed),
  sums: [
    z.array(monthSum),
    ({ sums }) => sums.map((sum) => ({ ...sum, amount: formatDollars(sum.amount), owed: formatDollars(sum.owed) })),
  ],
  closing_balance: amount(({ closingBalance }) => closingBalance),
  closing_owed: amount(({ closingOwed }) => closingOwed),
})
export type StatementObject = z.infer<typeof statementSchema>

/** Hold in the format of the API. */
export const { schema: holdSchema, write: holdObject } = defineObject<OpenHold>()({
  object: kind('hold'),
  id: [id, ({ id }) => id],
  account: [id, ({ accountId }) => accountId],
  key: text(({ keyId }) => keyId),
  amount: amount(({ amount }) => amount),
  created_at_ms: time(({ createdAtMs }) => createdAtMs),
  expires_at_ms: time(({ expiresAtMs }) => expiresAtMs),
})
export type HoldObject = z.infer<typeof holdSchema>

/** End of a hold in the format of the API. */
export const { schema: resolutionSchema, write: resolutionObject } = defineObject<
  Resolution & { readonly hold: string }
>()({
  object: kind('hold.resolution'),
  hold: [id, ({ hold }) => hold],
  /** Whether this request ended the hold. If false, it had already ended as `ended_by` reports, and nothing was changed. */
  resolved: [z.boolean(), ({ resolved }) => resolved],
  ended_by: [z.enum(['settled', 'voided', 'expired']).nullable(), ({ endedBy }) => endedBy ?? null],
  charged: amount(({ charged }) => charged),
  shortfall: amount(({ shortfall }) => shortfall),
})
export type ResolutionObject = z.infer<typeof resolutionSchema>

const names = z.array(z.string()).nullable()
const SHOWN_DIGITS = 8

/** Key in the format of the API, without the key itself. */
export const { schema: keySchema, write: keyObject } = defineObject<KeyRecord>()({
  object: kind('key'),
  id: [id, ({ id }) => id],
  account: [id, ({ accountId }) => accountId],
  label: text(({ label }) => label),
  /** Last 8 digits of the key's SHA-256. */
  fingerprint: text(({ hash }) => hash.slice(-SHOWN_DIGITS)),
  /** Endpoints and models that the key may use, or null for all. */
  endpoints: [names, ({ scopes: { endpoints } }) => (endpoints === undefined ? null : [...endpoints])],
  models: [names, ({ scopes: { models } }) => (models === undefined ? null : [...models])],
  limits: [rateLimits.nullable(), ({ limits }) => limitsObject(limits)],
  spending_cap: [cap, ({ spendingCap }) => capObject(spendingCap)],
  names_end_users: [z.boolean(), ({ namesEndUsers }) => namesEndUsers === true],
  /** Tags of every call. */
  tags: [z.array(z.string()), ({ tags = [] }) => [...tags]],
  /** Id of the key that this one replaces by rotation. */
  replaces: optionalText(({ replaces }) => replaces),
  created_at_ms: time(({ createdAtMs }) => createdAtMs),
  expires_at_ms: optionalTime(({ expiresAtMs }) => expiresAtMs),
  revoked_at_ms: optionalTime(({ revokedAtMs }) => revokedAtMs),
})
export type KeyObject = z.infer<typeof keySchema>

/** New key. The key itself is shown only once, and null if the request was repeated. */
export const madeKeySchema = keySchema.extend({ key: z.string().nullable() })
export type NewKeyObject = z.infer<typeof madeKeySchema>

const members = z.record(z.string(), z.unknown())

/** Entry of the audit in the format of the API. */
export const { schema: auditEntrySchema, write: auditEntryObject } = defineObject<AuditEntry>()({
  object: kind('audit.entry'),
  id: [id, ({ id }) => id],
  created_at_ms: time(({ createdAtMs }) => createdAtMs),
  operator: text(({ operator }) => operator),
  action: text(({ action }) => action),
  subject: optionalText(({ subject }) => subject),
  source: [z.enum(['admin_api', 'command_line']), ({ source }) => source],
  address: optionalText(({ address }) => address),
  request: optionalText(({ requestId }) => requestId),
  /** Error code of a change that failed and may have been made; null if it was made. */
  code: optionalText(({ code }) => code),
  input: [members, ({ input }) => ({ ...input })],
  before: [members.nullable(), ({ before }) => before ?? null],
  after: [members.nullable(), ({ after }) => after ?? null],
})
export type AuditEntryObject = z.infer<typeof auditEntrySchema>
