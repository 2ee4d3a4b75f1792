import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { formatDollars, parseDollars } from '../../core/money.ts'
import { monthOf } from '../../gateway/account-books.ts'
import type { AccountUpdate } from '../../gateway/accounts.ts'
import type { KeyRecord } from '../../stores/api-keys.ts'
import type { Account, NewAccount } from '../../stores/ledger.ts'
import type { SpendingCap } from '../../stores/principal.ts'
import type { RateLimits } from '../../stores/rate-limiter.ts'
import {
  type Administration,
  changeId,
  checkScope,
  defineRawRoute,
  defineRoute,
  existing,
  notFound,
  type Operator,
  type UntaggedRoute,
} from '../admin-route.ts'
import {
  accountObject,
  accountSchema,
  entryObject,
  entrySchema,
  holdObject,
  holdSchema,
  keyObject,
  keySchema,
  madeKeySchema,
  resolutionObject,
  resolutionSchema,
  spendingObject,
  spendingSchema,
  statementObject,
  statementSchema,
} from '../objects/accounts.ts'
import {
  amount,
  bodyMoment,
  countOf,
  defineObject,
  dollars,
  id,
  kind,
  label,
  listObject,
  listOfObjects,
  moment,
  momentMs,
  newId,
  pageQuery,
  periodLimit,
  rateLimits,
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

/** Routes of accounts. */
export const ACCOUNT_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_accounts',
    get: '/accounts',
    summary: 'List accounts, ordered by id',
    query: z.strictObject({ search: z.string().max(200).optional(), ...pageQuery }),
    answer: listOfObjects(accountSchema),
    async run({ gateway, query: { search, after, limit } }) {
      const page = await gateway.accounts.list({ search, cursor: after, limit: countOf(limit) })
      return listObject(page.accounts.map(accountObject), page.next)
    },
  }),
  defineRoute({
    id: 'create_account',
    post: '/accounts',
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
    get: '/accounts/{account}',
    summary: 'Show balance, held money and settings of an account',
    answer: accountSchema,
    run: async ({ gateway: { accounts }, params: { account } }) => accountAnswer(account, await accounts.get(account)),
  }),
  defineRoute({
    id: 'update_account',
    patch: '/accounts/{account}',
    summary: 'Change an account; null removes a value',
    scope: 'write',
    body: update,
    answer: accountSchema,
    async run({ gateway: { accounts }, operator, params: { account }, body }) {
      return accountAnswer(account, await accounts.update(account, settingsOf(body, operator)))
    },
  }),
  defineRoute({
    id: 'get_spending',
    get: '/accounts/{account}/spending',
    summary: 'Show what an account and its keys have spent today and this month, and the rest of their caps',
    answer: spendingSchema,
    async run({ gateway: { accounts }, params: { account } }) {
      return spendingObject(existing('account', account, await accounts.spending(account)))
    },
  }),
  defineRoute({
    id: 'freeze_account',
    post: '/accounts/{account}/freeze',
    summary: 'Reject the calls of an account',
    scope: 'write',
    body: z.strictObject({ reason }),
    answer: accountSchema,
    async run({ gateway: { accounts }, params: { account }, body }) {
      return accountAnswer(account, await accounts.freeze(account, body))
    },
  }),
  defineRoute({
    id: 'unfreeze_account',
    post: '/accounts/{account}/unfreeze',
    summary: 'Accept the calls of an account again',
    scope: 'write',
    answer: accountSchema,
    async run({ gateway: { accounts }, params: { account } }) {
      return accountAnswer(account, await accounts.unfreeze(account))
    },
  }),
]

/** @throws GatewayError with status 404 if the account does not exist. */
function accountAnswer(name: string, account: Account | undefined) {
  return accountObject(existing('account', name, account))
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
function amountOf(param: string, text: string): bigint {
  try {
    return parseDollars(text)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new GatewayError('invalid_request', { message: `${param}: ${cause.message}`, param, cause })
  }
}

/** Parses a spending cap; null removes it. */
function capOf(cap: z.output<typeof periodLimit> | null | undefined): SpendingCap | null | undefined {
  return cap == null ? cap : { amount: amountOf('spending_cap.amount', cap.amount), period: cap.period }
}

interface MoneyChange {
  readonly accountId: string
  readonly isNew: boolean
  /** Amount of the change in decimal dollars. */
  readonly amount: string
  /** Account after the change. */
  readonly account: Account | undefined
}

const { schema: changeSchema, write: changeObject } = defineObject<MoneyChange>()({
  object: kind('account.change'),
  account: [id, ({ accountId }) => accountId],
  /** Whether the change is new. If false, a change with this id was made before, and nothing was changed now. */
  is_new: [z.boolean(), ({ isNew }) => isNew],
  /** Amount that was added or removed, or null if nothing was changed now. */
  amount: [dollars.nullable(), ({ isNew, amount }) => (isNew ? amount : null)],
  balance: amount(({ account }) => account?.balance ?? 0n),
  owed: amount(({ account }) => account?.owed ?? 0n),
})
export type MoneyChangeObject = z.infer<typeof changeSchema>

const range = { from: moment.optional(), until: moment.optional(), month: z.string().max(20).optional() }

/** Routes of accounts' money. Amounts are decimal dollars. */
export const BOOK_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'credit_account',
    post: '/accounts/{account}/credits',
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
      const { accounts } = call.gateway
      const { account: accountId } = call.params
      const { id, amount, description, expires_at } = call.body
      const expiresAtMs = momentMs('expires_at', expires_at)
      const isNew = await accounts.credit(accountId, amount, { creditId: changeId(id, call), description, expiresAtMs })
      return changeObject({ accountId, isNew, amount, account: await accounts.get(accountId) })
    },
  }),
  defineRoute({
    id: 'adjust_account',
    post: '/accounts/{account}/adjustments',
    summary: 'Correct a balance; a negative amount takes money',
    scope: 'money',
    body: z.strictObject({ amount: dollars, reason, id: newId.optional() }),
    answer: changeSchema,
    async run(call) {
      const { accounts } = call.gateway
      const { account: accountId } = call.params
      const { id, amount, reason } = call.body
      const isNew = await accounts.adjust(accountId, { amount, reason, adjustmentId: changeId(id, call) })
      return changeObject({ accountId, isNew, amount, account: await accounts.get(accountId) })
    },
  }),
  defineRoute({
    id: 'refund_charge',
    post: '/refunds',
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
      const { accounts } = call.gateway
      const { charge, id, amount, reason } = call.body
      const refund = await accounts.refund(charge, { amount, reason, refundId: changeId(id, call) })
      const account = await accounts.get(refund.accountId)
      return changeObject({ ...refund, amount: formatDollars(refund.amount), account })
    },
  }),
  defineRoute({
    id: 'list_journal',
    get: '/accounts/{account}/journal',
    summary: 'List lines of the journal of an account',
    query: z.strictObject({ ...range, order: z.enum(['newest', 'oldest']).optional(), ...pageQuery }),
    answer: listOfObjects(entrySchema),
    async run({ gateway, params: { account }, query }) {
      const { order, after, limit } = query
      const options = { ...rangeOf(query), order, cursor: after, limit: countOf(limit) }
      const page = await gateway.accounts.journal(account, options)
      return listObject(page.entries.map(entryObject), page.next)
    },
  }),
  defineRawRoute({
    id: 'export_journal',
    get: '/accounts/{account}/journal.csv',
    summary: 'Export the journal of an account as CSV, oldest line first',
    query: z.strictObject(range),
    answers: ['text/csv'],
    async run({ gateway: { accounts }, params: { account }, query }) {
      existing('account', account, await accounts.get(account))
      const lines = accounts.journalCsv(account, rangeOf(query))
      return { csv: { fileName: `journal-${account}.csv`, lines } }
    },
  }),
  defineRoute({
    id: 'get_statement',
    get: '/accounts/{account}/statements/{month}',
    summary: 'Show opening balance, sums and closing balance of a UTC month',
    answer: statementSchema,
    async run({ gateway, params: { account, month } }) {
      return statementObject(await gateway.accounts.statement(account, month))
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
  return { fromMs: momentMs('from', from), untilMs: momentMs('until', until) }
}

/** Routes of money held for calls in progress. */
export const HOLD_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_holds',
    get: '/holds',
    summary: 'List money held for calls in progress, oldest first',
    query: z.strictObject({ account: z.string().optional(), ...pageQuery }),
    answer: listOfObjects(holdSchema),
    async run({ gateway, query: { account, after, limit } }) {
      const page = await gateway.holds.list({ accountId: account, cursor: after, limit: countOf(limit) })
      return listObject(page.holds.map(holdObject), page.next)
    },
  }),
  defineRoute({
    id: 'settle_hold',
    post: '/holds/{hold}/settle',
    summary: 'Charge a hold manually',
    scope: 'money',
    body: z.strictObject({ amount: dollars, reason: reason.optional() }),
    answer: resolutionSchema,
    async run({ gateway, params: { hold }, body: { amount, reason } }) {
      return resolutionObject({ hold, ...(await gateway.holds.settle(hold, amount, { reason })) })
    },
  }),
  defineRoute({
    id: 'void_hold',
    post: '/holds/{hold}/void',
    summary: 'Release a hold without a charge',
    scope: 'money',
    answer: resolutionSchema,
    async run({ gateway, params: { hold } }) {
      return resolutionObject({ hold, ...(await gateway.holds.void(hold)) })
    },
  }),
]

/** Larger than in other lists, which start with the newest: few accounts have more keys. */
const DEFAULT_KEYS_LIMIT = 1_000

const names = z.array(z.string().min(1).max(200)).min(1).max(1_000)

/** Routes of callers' keys. */
export const KEY_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_keys',
    get: '/keys',
    summary: 'List keys of one account, or of all, oldest first',
    query: z.strictObject({ account: z.string().optional(), ...pageQuery }),
    answer: listOfObjects(keySchema),
    async run({ gateway, query: { account, after, limit } }) {
      const page = await gateway.keys.page({
        accountId: account,
        cursor: after,
        limit: countOf(limit) ?? DEFAULT_KEYS_LIMIT,
      })
      return listObject(page.keys.map(keyObject), page.next)
    },
  }),
  defineRoute({
    id: 'create_key',
    post: '/keys',
    summary: 'Create a key, which is shown only once',
    scope: 'write',
    // A key can read the stored data of its account.
    alsoScope: 'content',
    target: 'account',
    secret: 'key',
    body: z.strictObject({
      account: id,
      label: label.optional(),
      /** Endpoints and models that the key may use. If omitted, all. */
      endpoints: names.optional(),
      models: names.optional(),
      limits: rateLimits.optional(),
      spending_cap: periodLimit.optional(),
      names_end_users: z.boolean().optional(),
      /** Tags of every call, for usage records. */
      tags: z.array(z.string()).max(8).optional(),
      expires_at: bodyMoment.optional(),
    }),
    answer: madeKeySchema,
    async run({ gateway, body }) {
      const { account: accountId, label, endpoints, models, limits, tags } = body
      const { key, record } = await gateway.keys.create({
        accountId,
        label,
        scopes: { ...(endpoints && { endpoints }), ...(models && { models }) },
        limits: limits && limitsOf(limits),
        spendingCap: capOf(body.spending_cap) ?? undefined,
        namesEndUsers: body.names_end_users,
        tags,
        expiresAtMs: momentMs('expires_at', body.expires_at),
      })
      return { ...keyObject(record), key }
    },
  }),
  defineRoute({
    id: 'update_key',
    patch: '/keys/{key}',
    summary: 'Change limits, cap and trust of a key; null removes limits or cap',
    scope: 'write',
    body: z.strictObject({
      limits: rateLimits.nullable().optional(),
      spending_cap: periodLimit.nullable().optional(),
      names_end_users: z.boolean().optional(),
    }),
    answer: keySchema,
    async run({ gateway, params: { key }, body: { limits, spending_cap, names_end_users } }) {
      const change = {
        limits: limits == null ? limits : limitsOf(limits),
        spendingCap: capOf(spending_cap),
        namesEndUsers: names_end_users,
      }
      if (!(await gateway.keys.update(key, change))) throw notFound('key', key)
      return keyObject(await storedKey(gateway, key))
    },
  }),
  defineRoute({
    id: 'revoke_key',
    post: '/keys/{key}/revoke',
    summary: 'Revoke a key; gateways reject it within 5 seconds',
    scope: 'write',
    answer: keySchema,
    async run({ gateway, params: { key } }) {
      if (!(await gateway.keys.revoke(key))) throw notFound('key', key)
      return keyObject(await storedKey(gateway, key))
    },
  }),
  defineRoute({
    id: 'rotate_key',
    post: '/keys/{key}/rotate',
    summary: 'Replace a key; the old one expires after the overlap, and the new one is shown only once',
    scope: 'write',
    // A key can read the stored data of its account.
    alsoScope: 'content',
    secret: 'key',
    body: z.strictObject({ overlap_ms: z.number().min(0).optional() }),
    answer: madeKeySchema,
    async run({ gateway, params, body }) {
      const { key, record } = await gateway.keys.rotate(params.key, { overlapMs: body.overlap_ms })
      return { ...keyObject(record), key }
    },
  }),
]

async function storedKey(gateway: Administration, keyId: string): Promise<KeyRecord> {
  return existing('key', keyId, await gateway.keys.find(keyId))
}

function limitsOf(limits: z.output<typeof rateLimits>): RateLimits {
  return {
    requestsPerMinute: limits.requests_per_minute ?? undefined,
    tokensPerMinute: limits.tokens_per_minute ?? undefined,
    concurrency: limits.concurrency ?? undefined,
  }
}
