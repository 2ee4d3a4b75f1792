import * as z from 'zod'
import type { Gateway } from '../../gateway/gateway.ts'
import type { UsageRecord } from '../../usage/usage-record.ts'
import { type AdminCall, type AdminRoute, defineRoute, notFound, paramOf } from '../admin-route.ts'
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

/** Records that are read for one page. */
const MOST_READ = 10_000
const MOST_PAGES = 200

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
        account: wanted.account,
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
      const { gateway, query } = call
      const id = paramOf(call, 'request')
      const endedAtMs = query.ended_at === undefined ? undefined : momentMs('ended_at', query.ended_at)
      const record = await recordOf(call, id, endedAtMs)
      if (record === undefined) throw notFound('request', id)
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
    readonly account: string | undefined
    readonly from: string | number | undefined
    readonly to: string | number | undefined
  }
  readonly after: string | undefined
  readonly limit: number
  readonly wanted: Wanted
}

/**
 * Stores find records by account and time only, so that others are read and left out, up to a bound.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
async function filteredPage(gateway: Gateway, { range, after, limit, wanted }: AskedPage) {
  const found: UsageRecord[] = []
  let read = 0
  let next = after
  // A page that is half full is enough: its rest would be read in ever smaller pieces.
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page = await gateway.usage.records({ ...range, cursor: next, limit: limit - found.length })
    found.push(...page.records.filter((record) => isWanted(record, wanted)))
    read += page.records.length
    next = page.next
    if (next === undefined || found.length * 2 >= limit || read >= MOST_READ) break
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

/** The time at which an id of ours was made; undefined for other ids, and for a time to come. */
function madeAtMs(id: string, nowMs: number): number | undefined {
  const digits = /^[a-z]+_([0-9a-f]{12})[0-9a-f]{20}$/.exec(id)?.[1]
  const atMs = digits === undefined ? undefined : Number.parseInt(digits, 16)
  return atMs !== undefined && atMs <= nowMs ? atMs : undefined
}

/** A call ends so long after its id was made, at most; only a task lasts longer. */
const LONGEST_CALL_MS = 15 * 60_000

/** Most calls end in the first of the spans of time that are searched; each is twice as long as the one before. */
const FIRST_SPAN_MS = 1_000

interface Span {
  readonly from: number
  readonly to: number
}

async function recordOf(
  { gateway, clock }: Pick<AdminCall, 'gateway' | 'clock'>,
  id: string,
  endedAtMs: number | undefined,
): Promise<UsageRecord | undefined> {
  if (endedAtMs !== undefined) return (await searched(gateway, id, { from: endedAtMs, to: endedAtMs + 1 })).record
  const startedAtMs = madeAtMs(id, clock.now())
  if (startedAtMs === undefined) return undefined
  const lastMs = startedAtMs + LONGEST_CALL_MS
  let from = startedAtMs
  let read = 0
  // Pages come newest first: of the whole time at once, those of a busy gateway would never reach the call.
  for (let lengthMs = FIRST_SPAN_MS; from < lastMs && read < MOST_READ; lengthMs *= 2) {
    const to = Math.min(from + lengthMs, lastMs)
    const found = await searched(gateway, id, { from, to })
    if (found.record !== undefined) return found.record
    read += found.read
    from = to
  }
  return undefined
}

/** The record of that id which ended within a span, among the newest of it, and how many were read. */
async function searched(gateway: Gateway, id: string, span: Span) {
  let cursor: string | undefined
  let read = 0
  do {
    const page = await gateway.usage.records({ ...span, cursor, limit: 1_000 })
    read += page.records.length
    const record = page.records.find((candidate) => candidate.id === id)
    if (record !== undefined) return { record, read }
    cursor = page.next
  } while (cursor !== undefined && read < MOST_READ)
  return { record: undefined, read }
}

/** A charge is written at the end of its call, and its hold has the call's id. */
async function journalOf(gateway: Gateway, { id, accountId, endedAtMs }: UsageRecord) {
  if ((await gateway.accounts.get(accountId)) === undefined) return []
  const range = { fromMs: endedAtMs, untilMs: endedAtMs + 1, limit: 1_000 }
  const { entries } = await gateway.accounts.journal(accountId, range)
  return entries.filter(({ holdId }) => holdId === id).map(entryObject)
}
