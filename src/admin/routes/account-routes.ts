import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { parseDollars } from '../../core/money.ts'
import type { AccountUpdate } from '../../gateway/accounts.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Account, NewAccount } from '../../stores/ledger.ts'
import type { SpendingCap } from '../../stores/principal.ts'
import { type AdminCall, type AdminRoute, checkScope, defineRoute, existing, paramOf } from '../admin-route.ts'
import { accountObject, accountSchema, spendingObject, spendingSchema } from '../objects/account.ts'
import {
  countOf,
  dollars,
  label,
  listObject,
  listOfObjects,
  newId,
  pageQuery,
  periodLimit,
  reason,
} from '../objects/fields.ts'
import type { Operator } from '../operators.ts'

const settings = {
  tier: z.enum(['free', 'paid']).optional(),
  name: label.nullable().optional(),
  plan: z.string().min(1).max(200).nullable().optional(),
  /** Requires the scope `money`, like `credit_limit`. */
  billing: z.enum(['prepaid', 'metered']).nullable().optional(),
  credit_limit: dollars.nullable().optional(),
  spending_cap: periodLimit.nullable().optional(),
}
const update = z.strictObject(settings)
const creation = z.strictObject({ id: newId.optional(), ...settings })

/** Routes of accounts. Routes of their money are in `book-routes.ts`. */
export const ACCOUNT_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'list_accounts',
    method: 'GET',
    path: '/accounts',
    tag: 'accounts',
    summary: 'Accounts by id',
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
    summary: 'Makes an account, or gives the existing one of that id as it is',
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
    summary: 'One account',
    scope: 'read',
    answer: accountSchema,
    run: (call) => accountAnswer(call, (accounts, name) => accounts.get(name)),
  }),
  defineRoute({
    id: 'update_account',
    method: 'PATCH',
    path: '/accounts/{account}',
    tag: 'accounts',
    summary: 'Changes an account; null takes a value away',
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
    summary: 'What an account and its keys have spent today and in this month, and what their caps still allow',
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
    summary: 'Refuses the calls of an account from now on',
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
    summary: 'Accepts the calls of an account again',
    scope: 'write',
    answer: accountSchema,
    run: (call) => accountAnswer(call, (accounts, name) => accounts.unfreeze(name)),
  }),
]

/** Returns the account in the path after a step. @throws GatewayError with status 404 if it does not exist. */
async function accountAnswer(
  call: Pick<AdminCall, 'gateway' | 'params'>,
  step: (accounts: Gateway['accounts'], name: string) => Promise<Account | undefined>,
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
