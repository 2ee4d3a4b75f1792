import type { UsageRecord } from '../usage/usage-record.ts'
import type { UsageReports } from './usage.ts'

/** Reasons why a call may have no record. */
export const NO_RECORD =
  'calls that were rejected before a vendor was called have none: the access log and the event request-refused contain the reason; a task has one when it has ended'

/** Record to find. */
interface RecordSearch {
  /** Id of the request. */
  readonly id: string
  /** End of the request in Unix milliseconds, from a list of calls or tasks. If `undefined`, the search starts at the time in the id. */
  readonly endedAtMs: number | undefined
  readonly nowMs: number
}

type Records = Pick<UsageReports, 'records'>

/** Returns the time at which the gateway created an id, or `undefined` for other ids and for a time in the future. */
function madeAtMs(id: string, nowMs: number): number | undefined {
  const digits = /^[a-z]+_([0-9a-f]{12})[0-9a-f]{20}$/.exec(id)?.[1]
  const atMs = digits === undefined ? undefined : Number.parseInt(digits, 16)
  return atMs !== undefined && atMs <= nowMs ? atMs : undefined
}

/** Maximum time from the creation of an id to the end of its call, in milliseconds. Only a task lasts longer. */
const LONGEST_CALL_MS = 15 * 60_000

/**
 * Maximum time from the end of a task to its record, in milliseconds. The task has the time at which its vendor was polled, and the
 * answer may take half a minute.
 */
const LATEST_END_MS = 60_000

/** Maximum lag of the store's clock behind the process, in milliseconds. */
const CLOCKS_APART_MS = 1_000

/** Most calls end in the first time span. Each span is twice as long as the one before. */
const FIRST_SPAN_MS = 1_000

/** Maximum number of records that one search reads. */
const MOST_READ = 10_000

interface Span {
  readonly from: number
  readonly to: number
}

/** Finds the record of one request. Stores can find records only by account and time. */
export async function findRecord(
  usage: Records,
  { id, endedAtMs, nowMs }: RecordSearch,
): Promise<UsageRecord | undefined> {
  if (endedAtMs !== undefined) {
    const exactly = await searched(usage, id, { from: endedAtMs, to: endedAtMs + 1 })
    const about = { from: Math.max(0, endedAtMs - CLOCKS_APART_MS), to: endedAtMs + LATEST_END_MS }
    return exactly.record ?? (await firstOf(usage, id, about))
  }
  const startedAtMs = madeAtMs(id, nowMs)
  if (startedAtMs === undefined) return undefined
  return await firstOf(usage, id, { from: startedAtMs, to: startedAtMs + LONGEST_CALL_MS })
}

/** Returns the record with this id from a long time span, searched from its beginning. */
async function firstOf(usage: Records, id: string, { from: firstMs, to: lastMs }: Span) {
  let from = firstMs
  let read = 0
  // Pages come newest first. On a busy gateway, a search of the whole span would never reach the call.
  for (let lengthMs = FIRST_SPAN_MS; from < lastMs && read < MOST_READ; lengthMs *= 2) {
    const to = Math.min(from + lengthMs, lastMs)
    const found = await searched(usage, id, { from, to })
    if (found.record !== undefined) return found.record
    read += found.read
    from = to
  }
  return undefined
}

/** Returns the record with this id from a span, if it is among the newest ones, and the number of records read. */
async function searched(usage: Records, id: string, span: Span) {
  let cursor: string | undefined
  let read = 0
  do {
    const page = await usage.records({ ...span, cursor, limit: 1_000 })
    read += page.records.length
    const record = page.records.find((candidate) => candidate.id === id)
    if (record !== undefined) return { record, read }
    cursor = page.next
  } while (cursor !== undefined && read < MOST_READ)
  return { record: undefined, read }
}
