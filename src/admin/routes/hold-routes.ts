import * as z from 'zod'
import { type AdminRoute, defineRoute, paramOf } from '../admin-route.ts'
import { holdObject, holdSchema, resolutionObject, resolutionSchema } from '../objects/books.ts'
import { countOf, dollars, listObject, listOfObjects, pageQuery, reason } from '../objects/fields.ts'

/** Routes of money held for calls in progress. */
export const HOLD_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'list_holds',
    method: 'GET',
    path: '/holds',
    tag: 'holds',
    summary: 'Open holds, oldest first',
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
    summary: 'Charges a hold by hand',
    scope: 'money',
    body: z.strictObject({ amount: dollars, reason: reason.optional() }),
    answer: resolutionSchema,
    async run(call) {
      const hold = paramOf(call, 'hold')
      const { amount, reason: why } = call.body
      return resolutionObject(hold, await call.gateway.holds.settle(hold, amount, { reason: why }))
    },
  }),
  defineRoute({
    id: 'void_hold',
    method: 'POST',
    path: '/holds/{hold}/void',
    tag: 'holds',
    summary: 'Gives a hold back without a charge',
    scope: 'money',
    answer: resolutionSchema,
    async run(call) {
      const hold = paramOf(call, 'hold')
      return resolutionObject(hold, await call.gateway.holds.void(hold))
    },
  }),
]
