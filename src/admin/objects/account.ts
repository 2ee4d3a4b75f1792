import * as z from 'zod'
import { formatDollars } from '../../core/money.ts'
import type { AccountSpending, Spent } from '../../gateway/account-spending.ts'
import type { Account } from '../../stores/ledger.ts'
import { capObject, dollars, dollarsOrNull, id, periodLimit, timeMs } from './fields.ts'

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
  credit_held: dollars,
  credit_limit: dollars.nullable(),
  spending_cap: periodLimit.nullable(),
  frozen: z.strictObject({ reason: z.string(), at_ms: timeMs }).nullable(),
  created_at_ms: timeMs,
})

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

export function spendingObject(spending: AccountSpending): z.infer<typeof spendingSchema> {
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

export function accountObject(account: Account): z.infer<typeof accountSchema> {
  const { frozen } = account
  return {
    object: 'account',
    id: account.id,
    name: account.name ?? null,
    tier: account.tier,
    plan: account.plan ?? null,
    billing: account.billing ?? null,
    balance: formatDollars(account.balance),
    held: formatDollars(account.held),
    owed: formatDollars(account.owed),
    credit_held: formatDollars(account.creditHeld),
    credit_limit: dollarsOrNull(account.creditLimit),
    spending_cap: capObject(account.spendingCap),
    frozen: frozen === undefined ? null : { reason: frozen.reason, at_ms: frozen.atMs },
    created_at_ms: account.createdAtMs,
  }
}
