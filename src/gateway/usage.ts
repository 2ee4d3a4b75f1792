import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Retention } from '../stores/retention.ts'
import {
  checkQuery,
  checkRecordsRequest,
  cursorOf,
  type Moment,
  momentOf,
  seriesByMonth,
  type UsageQuery,
  UsageQueryError,
  type UsageRecordsRequest,
} from '../usage/usage-query.ts'
import { type Percentiles, percentilesOf, type UsageRecord } from '../usage/usage-record.ts'
import { DAY_MS, type UsageMismatch, type UsageRow, type UsageStore } from '../usage/usage-store.ts'
import { administer } from './audit.ts'

/** Sums of calls. */
export interface UsageReport {
  /** Start of the range in Unix milliseconds: the requested time, rounded to whole days or hours. */
  readonly fromMs: number
  readonly untilMs: number
  /** Time in Unix milliseconds. The sums include every call that ended before it. */
  readonly asOfMs: number
  /** Rows in the order of time, then of the groups. Groups without a call are omitted. */
  readonly rows: readonly UsageReportRow[]
}

/** Sums of one group of calls. */
export interface UsageReportRow extends Omit<UsageRow, 'latency'> {
  /** Percentiles, if the query requests them; `undefined` if no call of the group has a value. */
  readonly percentiles?: { readonly duration: Percentiles | undefined; readonly firstByte: Percentiles | undefined }
}

/** Range of whole UTC days. */
export interface UsageDays {
  /** Start of the range, rounded down to a UTC day. */
  readonly from: Moment
  /** End of the range, exclusive, rounded up to a UTC day. Default: now. */
  readonly to?: Moment | undefined
}

/** Usage and cost of calls, by caller. Every method throws a GatewayError. */
export interface UsageReports {
  /**
   * Returns sums of calls by time, account, key, model, endpoint and vendor; while records are kept, also by end user and tag.
   * @throws GatewayError `invalid_request` for an invalid argument (named by `param`), or for more rows than `limit`.
   */
  query(query: UsageQuery): Promise<UsageReport>
  /**
   * Returns records of single calls, newest first. `next` is the cursor of the next page, or `undefined` after the last.
   * @throws GatewayError `invalid_request` for an invalid argument.
   */
  records(
    request?: UsageRecordsRequest,
  ): Promise<{ readonly records: readonly UsageRecord[]; readonly next: string | undefined }>
  /**
   * Compares the charges of whole days in records, sums and journal, and returns the accounts that differ. Only days whose records
   * are all kept can be compared. Reads every record of the range.
   * @throws GatewayError `invalid_request` for a day whose records are not kept.
   */
  verify(days: UsageDays): Promise<readonly UsageMismatch[]>
  /**
   * Rebuilds the sums of whole days from their records, each day in one transaction.
   * @throws GatewayError `invalid_request` for a day whose records are not kept: its sums stay.
   */
  rebuild(days: UsageDays): Promise<void>
}

/** Number of records that are added to the sums before a query is answered. `asOfMs` shows a longer delay. */
const ADDED_PER_STEP = 500
const MAX_STEPS = 40

/** Parts of a gateway that queries of usage need. */
export interface UsageParts {
  /** Store, or `undefined` if calls are not recorded. */
  readonly store: UsageStore | undefined
  readonly clock: Clock
  /** Retention that the processes of the store share. */
  readonly retention: Retention
}

/** Returns the part of a store that keeps usage, or `undefined` if the host has disabled it. */
export function usageStoreOf(store: GatewayStore, option: object | 'off' | undefined): UsageStore | undefined {
  return option === 'off' ? undefined : store.usage
}

/** Creates the queries of a store. `ready` resolves once the store can be used. */
export function usageOf({ store, clock, retention }: UsageParts, ready: () => Promise<void>): UsageReports {
  async function ask<Value>(question: (usage: UsageStore) => Promise<Value>): Promise<Value> {
    if (store === undefined)
      throw new GatewayError('invalid_request', {
        message: 'usage is not recorded: it is off, or the store does not support it',
      })
    return administer(ready, async () => {
      try {
        return await question(store)
      } catch (cause) {
        if (!(cause instanceof UsageQueryError)) throw cause
        throw new GatewayError('invalid_request', { message: cause.message, param: cause.param, cause })
      }
    })
  }

  /** @throws UsageQueryError for days whose records may be deleted: their sums would be made of what is left, and be lost. */
  async function recordedDays(days: UsageDays): Promise<{ readonly fromMs: number; readonly untilMs: number }> {
    const { recordDays } = await retention.days()
    const nowMs = clock.now()
    const range = daysOf(days, nowMs)
    const firstMs = Math.ceil((nowMs - recordDays * DAY_MS) / DAY_MS) * DAY_MS
    if (range.fromMs >= firstMs) return range
    const first = new Date(firstMs).toISOString().slice(0, 10)
    throw new UsageQueryError('from', `records of earlier days are not kept. Start at ${first} or later`)
  }

  async function addUp(usage: UsageStore): Promise<number> {
    let asOfMs = 0
    for (let step = 0; step < MAX_STEPS; step++) {
      const { added, asOfMs: reachedMs } = await usage.rollUp(ADDED_PER_STEP, clock.now())
      asOfMs = reachedMs
      if (added === 0) break
    }
    return asOfMs
  }

  return {
    query: (query) =>
      ask(async (usage) => {
        const { hourDays, dayDays, recordDays } = await retention.days()
        const nowMs = clock.now()
        const { series, isByMonth } = checkQuery(query, nowMs, {
          hoursFromMs: nowMs - (hourDays - 1) * DAY_MS,
          daysFromMs: nowMs - dayDays * DAY_MS,
          recordsFromMs: nowMs - recordDays * DAY_MS,
        })
        const asOfMs = await addUp(usage)
        const rows = isByMonth
          ? await seriesByMonth(series, (month) => usage.series(month))
          : await usage.series(series)
        return { fromMs: series.fromMs, untilMs: series.untilMs, asOfMs, rows: rows.map(reportRow) }
      }),
    records: (request = {}) =>
      ask(async (usage) => {
        const { records, end } = await usage.records(checkRecordsRequest(request, clock.now()))
        return { records, next: end && cursorOf(end) }
      }),
    verify: (days) =>
      ask(async (usage) => {
        const range = await recordedDays(days)
        await addUp(usage)
        return usage.verify(range)
      }),
    rebuild: (days) =>
      ask(async (usage) => {
        const { fromMs, untilMs } = await recordedDays(days)
        // Day by day: calls wait while sums are made, and a store may bound how long a statement takes.
        for (let dayMs = fromMs; dayMs < untilMs; dayMs += DAY_MS)
          await usage.rebuild({ fromMs: dayMs, untilMs: dayMs + DAY_MS })
      }),
  }
}

function reportRow({ latency, ...row }: UsageRow): UsageReportRow {
  if (latency === undefined) return row
  const percentiles = { duration: percentilesOf(latency.duration), firstByte: percentilesOf(latency.firstByte) }
  return { ...row, percentiles }
}

function daysOf({ from, to }: UsageDays, nowMs: number): { readonly fromMs: number; readonly untilMs: number } {
  const fromMs = Math.floor(momentOf('from', from) / DAY_MS) * DAY_MS
  const untilMs = Math.ceil((to === undefined ? nowMs + 1 : momentOf('to', to)) / DAY_MS) * DAY_MS
  if (untilMs <= fromMs) throw new UsageQueryError('to', 'must be after from')
  return { fromMs, untilMs }
}

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
const MAX_CALL_MS = 15 * 60_000

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
const MAX_READ = 10_000

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
  return await firstOf(usage, id, { from: startedAtMs, to: startedAtMs + MAX_CALL_MS })
}

/** Returns the record with this id from a long time span, searched from its beginning. */
async function firstOf(usage: Records, id: string, { from: firstMs, to: lastMs }: Span) {
  let from = firstMs
  let read = 0
  // Pages come newest first. On a busy gateway, a search of the whole span would never reach the call.
  for (let lengthMs = FIRST_SPAN_MS; from < lastMs && read < MAX_READ; lengthMs *= 2) {
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
  } while (cursor !== undefined && read < MAX_READ)
  return { record: undefined, read }
}
