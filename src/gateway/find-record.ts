import type { UsageRecord } from '../usage/usage-record.ts'
import type { UsageReports } from './usage.ts'

/** Why a call may have no record, for those who look for one. */
export const NO_RECORD =
  'calls that were refused before a vendor was asked have none: the access log and the event request-refused tell why; a task has one when it has ended'

/** Which record is looked for. */
interface RecordSearch {
  /** Id of the request. */
  readonly id: string
  /** When it ended, as a list of calls or of tasks says; undefined: it is looked for from the time in its id on. */
  readonly endedAtMs: number | undefined
  readonly nowMs: number
}

type Records = Pick<UsageReports, 'records'>

/** The time at which an id of ours was made; undefined for other ids, and for a time to come. */
function madeAtMs(id: string, nowMs: number): number | undefined {
  const digits = /^[a-z]+_([0-9a-f]{12})[0-9a-f]{20}$/.exec(id)?.[1]
  const atMs = digits === undefined ? undefined : Number.parseInt(digits, 16)
  return atMs !== undefined && atMs <= nowMs ? atMs : undefined
}

/** A call ends so long after its id was made, at most; only a task lasts longer. */
const LONGEST_CALL_MS = 15 * 60_000

/**
 * The store notes the end of a task so long after the task itself does, at most: the task has the time at which its vendor was asked, which
 * may take half a minute to answer.
 */
const LATEST_END_MS = 60_000

/** So much earlier where the clock of the store is behind that of the process. */
const CLOCKS_APART_MS = 1_000

/** Most calls end in the first of the spans of time that are searched; each is twice as long as the one before. */
const FIRST_SPAN_MS = 1_000

/** Records that are read for one search. */
const MOST_READ = 10_000

interface Span {
  readonly from: number
  readonly to: number
}

/** The record of one request: stores find records by account and time only. */
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

/** The record of that id which ended within a long span, looked for from its beginning on. */
async function firstOf(usage: Records, id: string, { from: firstMs, to: lastMs }: Span) {
  let from = firstMs
  let read = 0
  // Pages come newest first: of the whole time at once, those of a busy gateway would never reach the call.
  for (let lengthMs = FIRST_SPAN_MS; from < lastMs && read < MOST_READ; lengthMs *= 2) {
    const to = Math.min(from + lengthMs, lastMs)
    const found = await searched(usage, id, { from, to })
    if (found.record !== undefined) return found.record
    read += found.read
    from = to
  }
  return undefined
}

/** The record of that id which ended within a span, among the newest of it, and how many were read. */
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
