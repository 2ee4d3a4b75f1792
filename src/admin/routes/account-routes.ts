import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { formatDollars, parseDollars } from '../../core/money.ts'
import { monthOf } from '../../gateway/account-books.ts'
import type { AccountUpdate } from '../../gateway/accounts.ts'
import type { Account, NewAccount } from '../../stores/ledger.ts'
import type { SpendingCap } from '../../stores/principal.ts'
import {
  type AdminCall,
  type Administration,
  type AdminRoute,
  changeId,
  checkScope,
  defineRawRoute,
  defineRoute,
  existing,
  type Operator,
  paramOf,
} from '../admin-route.ts'
import {
  accountObject,
  accountSchema,
  entryObject,
  entrySchema,
  holdObject,
  holdSchema,
  resolutionObject,
  resolutionSchema,
  spendingObject,
  spendingSchema,
  statementObject,
  statementSchema,
} from '../objects/accounts.ts'
import {
  bodyMoment,
  countOf,
  dollars,
  id,
  label,
  listObject,
  listOfObjects,
  moment,
  momentMs,
  newId,
  pageQuery,
  periodLimit,
  reason,
} from '../objects/fields.ts'

const settings = {
  name: label.nullable().optional(),
  tier: z.enum(['paid', 'free']).optional(),
  plan: z.string().min(1).max(200).nullable().optional(),
  /** Requires the scope `money`, like `credit_limit`. */
  billing: z.enum(['prepaid', 'metered']).nullable().optional(),
  credit_limit: dollars.nullable().optional(),
  spending_cap: periodLimit.nullable().optional(),
}
const update = z.strictObject(settings)
const creation = z.strictObject({ id: newId.optional(), ...settings })

/** Routes of accounts. Routes of their money are in `book-routes.ts`. */
export const ACCOUNT_ROUTES: readonly AdminRoute<Administration>[] = [
  defineRoute({
    id: 'list_accounts',
    method: 'GET',
    path: '/accounts',
    tag: 'accounts',
    summary: 'List accounts, ordered by id',
    scope: 'read',
    query: z.strictObject({ search: z.string().max(200).optional(), ...pageQuery }),
    answer: listOfObjects(accountSchema),
    async run({ gateway, query: { search, after, limit } }) {
      const page = await gateway.accounts.list({ search, cursor: after, limit: countOf(limit) })
      return listObject(page.accounts.map(accountObject), page.next)
    },
  }),
  defineRoute({
    id: 'create_account',
    method: 'POST',
    path: '/accounts',
    tag: 'accounts',
    summary: 'Create an account, or return the existing one with that id unchanged',
    scope: 'write',
    creates: 'account',
    body: creation,
    answer: accountSchema,
    async run({ gateway, operator, body }) {
      const account = settingsOf(body, operator)
      return accountObject(await gateway.accounts.create(withoutNulls({ id: body.id, ...account })))
    },
  }),
  defineRoute({
    id: 'get_account',
    method: 'GET',
    path: '/accounts/{account}',
    tag: 'accounts',
    summary: 'Show balance, held money and settings of an account',
    scope: 'read',
    answer: accountSchema,
    run: (call) => accountAnswer(call, (accounts, name) => accounts.get(name)),
  }),
  defineRoute({
    id: 'update_account',
    method: 'PATCH',
    path: '/accounts/{account}',
    tag: 'accounts',
    summary: 'Change an account; null removes a value',
    scope: 'write',
    body: update,
    answer: accountSchema,
    run: (call) => accountAnswer(call, (accounts, name) => accounts.update(name, settingsOf(call.body, call.operator))),
  }),
  defineRoute({
    id: 'get_spending',
    method: 'GET',
    path: '/accounts/{account}/spending',
    tag: 'accounts',
    summary: 'Show what an account and its keys have spent today and this month, and the rest of their caps',
    scope: 'read',
    answer: spendingSchema,
    async run(call) {
      const name = paramOf(call, 'account')
      return spendingObject(existing('account', name, await call.gateway.accounts.spending(name)))
    },
  }),
  defineRoute({
    id: 'freeze_account',
    method: 'POST',
    path: '/accounts/{account}/freeze',
    tag: 'accounts',
    summary: 'Reject the calls of an account',
    scope: 'write',
    body: z.strictObject({ reason }),
    answer: accountSchema,
    run: (call) => accountAnswer(call, (accounts, name) => accounts.freeze(name, call.body)),
  }),
  defineRoute({
    id: 'unfreeze_account',
    method: 'POST',
    path: '/accounts/{account}/unfreeze',
    tag: 'accounts',
    summary: 'Accept the calls of an account again',
    scope: 'write',
    answer: accountSchema,
    run: (call) => accountAnswer(call, (accounts, name) => accounts.unfreeze(name)),
  }),
]

/** Returns the account in the path after a step. @throws GatewayError with status 404 if it does not exist. */
async function accountAnswer(
  call: Pick<AdminCall<Administration>, 'gateway' | 'params'>,
  step: (accounts: Administration['accounts'], name: string) => Promise<Account | undefined>,
) {
  const name = paramOf(call, 'account')
  return accountObject(existing('account', name, await step(call.gateway.accounts, name)))
}

/**
 * @throws GatewayError `permission_denied` if the change affects what an account may owe, and the operator does not have the scope
 *   `money`.
 */
function settingsOf(body: z.output<typeof update>, operator: Operator): AccountUpdate {
  const { tier, name, plan, billing, credit_limit, spending_cap } = body
  if (billing !== undefined || credit_limit !== undefined) checkScope(operator, 'money')
  return {
    tier,
    name,
    plan,
    billing,
    creditLimit: credit_limit == null ? credit_limit : amountOf('credit_limit', credit_limit),
    spendingCap: capOf(spending_cap),
  }
}

/** A new account has no values that null could remove. */
function withoutNulls(account: AccountUpdate & { readonly id: string | undefined }): Partial<NewAccount> {
  return Object.fromEntries(Object.entries(account).filter(([, value]) => value != null))
}

/** @throws GatewayError `invalid_request` naming the field. */
export function amountOf(param: string, text: string): bigint {
  try {
    return parseDollars(text)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new GatewayError('invalid_request', { message: `${param}: ${cause.message}`, param, cause })
  }
}

/** Parses a spending cap; null removes it. */
export function capOf(cap: z.output<typeof periodLimit> | null | undefined): SpendingCap | null | undefined {
  return cap == null ? cap : { amount: amountOf('spending_cap.amount', cap.amount), period: cap.period }
}

const changeSchema = z.strictObject({
  object: z.literal('account.change'),
  account: id,
  /** Whether the change is new. If false, a change with this id was made before, and nothing was changed now. */
  is_new: z.boolean(),
  /** Amount that was added or removed, or null if nothing was changed now. */
  amount: dollars.nullable(),
  balance: dollars,
  owed: dollars,
})
export type MoneyChangeObject = z.infer<typeof changeSchema>

/** State of an account after a change. */
async function changeObject({ gateway }: Pick<AdminCall<Administration>, 'gateway'>, account: string, change: Change) {
  const { balance = 0n, owed = 0n } = (await gateway.accounts.get(account)) ?? {}
  return {
    object: 'account.change' as const,
    account,
    is_new: change.isNew,
    amount: change.amount,
    balance: formatDollars(balance),
    owed: formatDollars(owed),
  }
}

interface Change {
  readonly isNew: boolean
  readonly amount: string | null
}

const range = { from: moment.optional(), until: moment.optional(), month: z.string().max(20).optional() }

/** Routes of accounts' money. Amounts are decimal dollars. */
export const BOOK_ROUTES: readonly AdminRoute<Administration>[] = [
  defineRoute({
    id: 'credit_account',
    method: 'POST',
    path: '/accounts/{account}/credits',
    tag: 'money',
    summary: 'Add credit in dollars, which pays debts first; a repeated id has no effect',
    scope: 'money',
    body: z.strictObject({
      amount: dollars,
      /** Id that makes the change idempotent indefinitely. By default it is derived from the Idempotency-Key. */
      id: newId.optional(),
      description: label.optional(),
      expires_at: bodyMoment.optional(),
    }),
    answer: changeSchema,
    async run(call) {
      const account = paramOf(call, 'account')
      const { amount, description, expires_at } = call.body
      const creditId = changeId(call.body.id, call)
      const isNew = await call.gateway.accounts.credit(account, amount, {
        ...(creditId === undefined ? {} : { creditId }),
        ...(description === undefined ? {} : { description }),
        ...(expires_at === undefined ? {} : { expiresAtMs: momentMs('expires_at', expires_at) }),
      })
      return changeObject(call, account, { isNew, amount: isNew ? amount : null })
    },
  }),
  defineRoute({
    id: 'adjust_account',
    method: 'POST',
    path: '/accounts/{account}/adjustments',
    tag: 'money',
    summary: 'Correct a balance; a negative amount takes money',
    scope: 'money',
    body: z.strictObject({ amount: dollars, reason, id: newId.optional() }),
    answer: changeSchema,
    async run(call) {
      const account = paramOf(call, 'account')
      const { amount, reason: why } = call.body
      const adjustmentId = changeId(call.body.id, call)
      const isNew = await call.gateway.accounts.adjust(account, { amount, reason: why, adjustmentId })
      return changeObject(call, account, { isNew, amount: isNew ? amount : null })
    },
  }),
  defineRoute({
    id: 'refund_charge',
    method: 'POST',
    path: '/refunds',
    tag: 'money',
    summary: 'Refund a charge; without an amount, the rest of it',
    scope: 'money',
    target: 'charge',
    body: z.strictObject({
      /** Id of the charge’s line in the journal. */
      charge: id,
      amount: dollars.optional(),
      reason,
      id: newId.optional(),
    }),
    answer: changeSchema,
    async run(call) {
      const { charge, amount, reason: why } = call.body
      const refundId = changeId(call.body.id, call)
      const made = await call.gateway.accounts.refund(charge, { amount, reason: why, refundId })
      const refunded = made.isNew ? formatDollars(made.amount) : null
      return changeObject(call, made.accountId, { isNew: made.isNew, amount: refunded })
    },
  }),
  defineRoute({
    id: 'list_journal',
    method: 'GET',
    path: '/accounts/{account}/journal',
    tag: 'money',
    summary: 'List lines of the journal of an account',
    scope: 'read',
    query: z.strictObject({ ...range, order: z.enum(['newest', 'oldest']).optional(), ...pageQuery }),
    answer: listOfObjects(entrySchema),
    async run(call) {
      const { order, after, limit } = call.query
      const options = { ...rangeOf(call.query), order, cursor: after, limit: countOf(limit) }
      const page = await call.gateway.accounts.journal(paramOf(call, 'account'), options)
      return listObject(page.entries.map(entryObject), page.next)
    },
  }),
  defineRawRoute({
    id: 'export_journal',
    method: 'GET',
    path: '/accounts/{account}/journal.csv',
    tag: 'money',
    summary: 'Export the journal of an account as CSV, oldest line first',
    scope: 'read',
    query: z.strictObject(range),
    answers: ['text/csv'],
    async run(call) {
      const account = paramOf(call, 'account')
      existing('account', account, await call.gateway.accounts.get(account))
      const lines = call.gateway.accounts.journalCsv(account, rangeOf(call.query))
      return { csv: { fileName: `journal-${account}.csv`, lines } }
    },
  }),
  defineRoute({
    id: 'get_statement',
    method: 'GET',
    path: '/accounts/{account}/statements/{month}',
    tag: 'money',
    summary: 'Show opening balance, sums and closing balance of a UTC month',
    scope: 'read',
    answer: statementSchema,
    async run(call) {
      const { accounts } = call.gateway
      return statementObject(await accounts.statement(paramOf(call, 'account'), paramOf(call, 'month')))
    },
  }),
]

type AskedRange = Readonly<Partial<Record<keyof typeof range, string | undefined>>>

/** @throws GatewayError `invalid_request` naming the parameter. */
function rangeOf({ from, until, month }: AskedRange) {
  if (month !== undefined) {
    if (from === undefined && until === undefined) return monthOf(month)
    throw new GatewayError('invalid_request', { message: 'month: give it without from and until', param: 'month' })
  }
  return {
    ...(from === undefined ? {} : { fromMs: momentMs('from', from) }),
    ...(until === undefined ? {} : { untilMs: momentMs('until', until) }),
  }
}

/** Routes of money held for calls in progress. */
export const HOLD_ROUTES: readonly AdminRoute<Administration>[] = [
  defineRoute({
    id: 'list_holds',
    method: 'GET',
    path: '/holds',
    tag: 'holds',
    summary: 'List money held for calls in progress, oldest first',
    scope: 'read',
    query: z.strictObject({ account: z.string().optional(), ...pageQuery }),
    answer: listOfObjects(holdSchema),
    async run({ gateway, query: { account, after, limit } }) {
      const page = await gateway.holds.list({ accountId: account, cursor: after, limit: countOf(limit) })
      return listObject(page.holds.map(holdObject), page.next)
    },
  }),
  defineRoute({
    id: 'settle_hold',
    method: 'POST',
    path: '/holds/{hold}/settle',
    tag: 'holds',
    summary: 'Charge a hold manually',
    scope: 'money',
    body: z.strictObject({ amount: dollars, reason: reason.optional() }),
    answer: resolutionSchema,
    async run(call) {
      const hold = paramOf(call, 'hold')
      const { amount, reason: why } = call.body
      return resolutionObject({ hold, ...(await call.gateway.holds.settle(hold, amount, { reason: why })) })
    },
  }),
  defineRoute({
    id: 'void_hold',
    method: 'POST',
    path: '/holds/{hold}/void',
    tag: 'holds',
    summary: 'Release a hold without a charge',
    scope: 'money',
    answer: resolutionSchema,
    async run(call) {
      const hold = paramOf(call, 'hold')
      return resolutionObject({ hold, ...(await call.gateway.holds.void(hold)) })
    },
  }),
]
