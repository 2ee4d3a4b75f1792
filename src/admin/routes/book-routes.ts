import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { formatDollars } from '../../core/money.ts'
import { monthOf } from '../../gateway/account-books.ts'
import {
  type AdminCall,
  type AdminRoute,
  changeId,
  defineRawRoute,
  defineRoute,
  existing,
  paramOf,
} from '../admin-route.ts'
import { entryObject, entrySchema, statementObject, statementSchema } from '../objects/books.ts'
import { countOf, dollars, id, label, listObject, listOfObjects, newId, pageQuery, reason } from '../objects/fields.ts'
import { bodyMoment, moment, momentMs } from './moment.ts'

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

/** State of an account after a change. */
async function changeObject({ gateway }: AdminCall | Pick<AdminCall, 'gateway'>, account: string, change: Change) {
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
export const BOOK_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'credit_account',
    method: 'POST',
    path: '/accounts/{account}/credits',
    tag: 'money',
    summary: 'Adds money; what the account owes is paid from it first',
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
    summary: 'Corrects a balance; a negative amount takes money',
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
    summary: 'Gives money of a charge back; what is left of it when no amount is given',
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
    summary: 'Lines of an account’s journal',
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
    summary: 'An account’s journal as CSV, oldest line first',
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
    summary: 'A UTC month’s opening balance, sums and closing balance',
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
