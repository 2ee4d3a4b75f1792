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

/** Records that are read for one page, about. */
const MOST_READ = 10_000
/** Most of them in one question to the store. */
const LARGEST_PIECE = 500

/** Calls one by one. */
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
    /** When it ended, as a list of calls says; without it the call is looked for by the time in its id. */
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
 * Stores find records by account and time only, so that others are read and left out, up to a bound: in pieces that grow while little
 * fits, so that such filters cost few questions.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
async function filteredPage(gateway: Gateway, { range, after, limit, wanted }: AskedPage) {
  const found: UsageRecord[] = []
  let next = after
  let piece = limit
  // A page that is half full is enough: its rest would be read in ever smaller pieces.
  for (let read = 0; read < MOST_READ; ) {
    // A store in this process answers at once, and calls would wait for all pieces.
    if (read > 0) await endOfTurn()
    const page = await gateway.usage.records({ ...range, cursor: next, limit: piece })
    const fitting = page.records.filter((record) => isWanted(record, wanted))
    // A store may give an empty page before the end.
    read += Math.max(limit, page.records.length)
    const room = limit - found.length
    // A cursor is the end of a piece: what fits too often is read again in one that all of it fits into.
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

/** As in sums, an empty text stands for what there is not. */
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
