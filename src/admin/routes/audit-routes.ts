import * as z from 'zod'
import { type AdminRoute, defineRoute } from '../admin-route.ts'
import { auditEntryObject, auditEntrySchema } from '../objects/audit.ts'
import { countOf, id, listObject, listOfObjects, pageQuery } from '../objects/fields.ts'
import { moment, momentMs } from './moment.ts'

/** Routes of changes by operators. */
export const AUDIT_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'list_changes',
    method: 'GET',
    path: '/audit',
    tag: 'audit',
    summary: 'Changes by operators of the last 365 days, newest first',
    scope: 'read',
    query: z.strictObject({ subject: id.optional(), from: moment.optional(), to: moment.optional(), ...pageQuery }),
    answer: listOfObjects(auditEntrySchema),
    async run({ gateway, query: { subject, from, to, after: cursor, limit } }) {
      const page = await gateway.audit.list({
        subject,
        fromMs: from === undefined ? undefined : momentMs('from', from),
        untilMs: to === undefined ? undefined : momentMs('to', to),
        cursor,
        limit: countOf(limit),
      })
      return listObject(page.entries.map(auditEntryObject), page.next)
    },
  }),
]
