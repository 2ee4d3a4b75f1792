import * as z from 'zod'
import { endOfTurn } from '../../core/end-of-turn.ts'
import { findRecord, NO_RECORD } from '../../gateway/find-record.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { UsageRecord } from '../../usage/usage-record.ts'
import { type AdminRoute, defineRoute, notFound, paramOf } from '../admin-route.ts'
import { entryObject } from '../objects/books.ts'
import { countOf, listObject, listOfObjects, pageQuery } from '../objects/fields.ts'
import { attemptObjects, requestDetailSchema, requestObject, requestSchema } from '../objects/usage.ts'
import { moment, momentMs, momentText } from './moment.ts'

const text = z.string().max(500).optional()
const filters = {
  account: text,
  key: text,
  model: text,
  endpoint: text,
  vendor: text,
  ending: z.enum(['completed', 'failed', 'abandoned']).optional(),
  code: text,
  user: text,
  tag: text,
}
const DEFAULT_LIMIT = 50

/** Approximate number of records that are read for one page. */
const MOST_READ = 10_000
/** Maximum number of records in one query. */
const LARGEST_PIECE = 500

/** Routes of single calls. */
export const REQUEST_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'list_requests',
    method: 'GET',
    path: '/requests',
    tag: 'requests',
    summary: 'Calls, newest first; with filters a page may hold fewer than `limit`, even none, while there are more',
    scope: 'read',
    query: z.strictObject({ from: moment.optional(), to: moment.optional(), ...filters, ...pageQuery }),
    answer: listOfObjects(requestSchema),
    async run({ gateway, query: { from, to, after, limit, ...wanted } }) {
      const range = {
        accountId: wanted.account,
        from: from === undefined ? undefined : momentText(from),
        to: to === undefined ? undefined : momentText(to),
      }
      const asked = { range, after, limit: countOf(limit) ?? DEFAULT_LIMIT, wanted }
      const page = await filteredPage(gateway, asked)
      return listObject(page.records.map(requestObject), page.next)
    },
  }),
  defineRoute({
    id: 'get_request',
    method: 'GET',
    path: '/requests/{request}',
    tag: 'requests',
    summary: 'One call with its attempts and its lines in the journal',
    scope: 'read',
    /** End of the call, from a list of calls. Without it, the search uses the time in the id. */
    query: z.strictObject({ ended_at: moment.optional() }),
    answer: requestDetailSchema,
    async run(call) {
      const { gateway, query, clock } = call
      const id = paramOf(call, 'request')
      const endedAtMs = query.ended_at === undefined ? undefined : momentMs('ended_at', query.ended_at)
      const record = await findRecord(gateway.usage, { id, endedAtMs, nowMs: clock.now() })
      if (record === undefined) throw notFound('record of a request', id, NO_RECORD)
      return {
        ...requestObject(record),
        attempts: attemptObjects(record),
        journal: await journalOf(gateway, record),
      }
    },
  }),
]

type Wanted = { readonly [Name in keyof typeof filters]?: string | undefined }

interface AskedPage {
  readonly range: {
    readonly accountId: string | undefined
    readonly from: string | number | undefined
    readonly to: string | number | undefined
  }
  readonly after: string | undefined
  readonly limit: number
  readonly wanted: Wanted
}

/**
 * Returns a page of calls with filters. Stores find records only by account and time, so other records are read and skipped, up to a
 * limit. The reads grow while few records match, so that such filters need few queries.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
async function filteredPage(gateway: Gateway, { range, after, limit, wanted }: AskedPage) {
  const found: UsageRecord[] = []
  let next = after
  let piece = limit
  // A half-full page is sufficient: the rest would be read in ever smaller parts.
  for (let read = 0; read < MOST_READ; ) {
    // A store in this process answers without waiting, so calls would wait for all parts.
    if (read > 0) await endOfTurn()
    const page = await gateway.usage.records({ ...range, cursor: next, limit: piece })
    const fitting = page.records.filter((record) => isWanted(record, wanted))
    // A store may return an empty page before the end.
    read += Math.max(limit, page.records.length)
    const room = limit - found.length
    // A cursor is the end of a read. If too many records match, they are read again in a part that fits completely.
    if (fitting.length > room) {
      piece = room
      continue
    }
    found.push(...fitting)
    next = page.next
    if (next === undefined || found.length * 2 >= limit) break
    piece = 4 * fitting.length < room ? Math.min(2 * piece, LARGEST_PIECE) : limit - found.length
  }
  return { records: found, next }
}

function isWanted(record: UsageRecord, { key, model, endpoint, vendor, ending, code, user, tag }: Wanted): boolean {
  return (
    isSame(key, record.keyId) &&
    (isSame(model, record.model) || isSame(model, record.requestedModel)) &&
    isSame(endpoint, record.endpoint) &&
    isSame(vendor, record.vendor) &&
    isSame(ending, record.ending) &&
    isSame(code, record.code) &&
    isSame(user, record.endUser) &&
    (tag === undefined || (tag === '' ? record.tags.length === 0 : record.tags.includes(tag)))
  )
}

/** In sums, an empty string stands for a missing value. */
function isSame(wanted: string | undefined, value = ''): boolean {
  return wanted === undefined || wanted === value
}

/** A charge is written at the end of its call, and its hold has the call's id. */
async function journalOf(gateway: Gateway, { id, accountId, endedAtMs }: UsageRecord) {
  if ((await gateway.accounts.get(accountId)) === undefined) return []
  const range = { fromMs: endedAtMs, untilMs: endedAtMs + 1, limit: 1_000 }
  const { entries } = await gateway.accounts.journal(accountId, range)
  return entries.filter(({ holdId }) => holdId === id).map(entryObject)
}
