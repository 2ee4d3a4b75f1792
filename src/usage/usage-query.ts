import { hintAt } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import {
  assertRowLimit,
  DAY_MS,
  HOUR_MS,
  isOfRecords,
  USAGE_DIMENSIONS,
  type UsageDimension,
  type UsageFilter,
  type UsagePlace,
  type UsageRow,
  type UsageSeriesQuery,
} from './usage-store.ts'

/** Time as a `Date`, Unix milliseconds, or an ISO 8601 string such as `2026-11-01`. Without a zone, it is UTC. */
export type Moment = Date | number | string

/** Time steps, in UTC. */
export const USAGE_STEPS = ['hour', 'day', 'month'] as const
/** Time step: a member of {@link USAGE_STEPS}. */
export type UsageStep = (typeof USAGE_STEPS)[number]

/** Query for usage. */
export interface UsageQuery extends UsageFilter {
  /** Start of the range, rounded down to a whole UTC day, or to a whole hour if rows are by hour. */
  readonly from: Moment
  /** End of the range (exclusive), rounded up in the same way. Default: now. At most 400 days after `from`. */
  readonly to?: Moment | undefined
  /**
   * Groups of the rows, with at most one time step. Default: one row for the whole range. `hour` supports only all accounts
   * together: neither `account` nor `key` may be named, unless `endUser` or `tag` is. `endUser` and `tag` reach back only as far
   * as records are kept; they read every record of the range, so name an account if there are many. A call with several tags
   * appears in the row of each tag.
   */
  readonly groupBy?: readonly (UsageStep | UsageDimension)[] | undefined
  /**
   * Whether each row has the percentiles of durations and of times to the first content. Supports only all accounts together, as
   * far back as sums by hour are kept: neither `account` nor `key` may be named. Default false.
   */
  readonly percentiles?: boolean | undefined
  /** Maximum number of rows, 1 to 100,000; more are an error. Default 10,000. */
  readonly limit?: number | undefined
  /**
   * Number of rows to return, 1 to 1,000: those with the highest charges, then with the most calls, out of any number. Cannot be
   * combined with a time step.
   */
  readonly top?: number | undefined
}

/** Query that a store can answer, and whether its days are to be added up to months. */
export interface CheckedQuery {
  readonly series: UsageSeriesQuery
  readonly isByMonth: boolean
}

/** Invalid argument of a query. */
export class UsageQueryError extends RangeError {
  readonly param: string

  constructor(param: string, message: string) {
    super(`${param}: ${message}`)
    this.param = param
  }
}

const MAX_DAYS = 400
const MAX_ROWS = 100_000
const DEFAULT_ROWS = 10_000
const MAX_TOP = 1_000
const KNOWN: readonly string[] = ['from', 'to', 'groupBy', 'percentiles', 'limit', 'top', ...USAGE_DIMENSIONS]
/** Supported groups of usage queries. */
export const USAGE_GROUPS: readonly (UsageStep | UsageDimension)[] = [...USAGE_STEPS, ...USAGE_DIMENSIONS]

/**
 * Checks a query.
 * @param kept Start of the sums by hour, of the sums by day and account, and of the records. Unix milliseconds.
 * @throws UsageQueryError with the argument.
 */
export function checkQuery(
  query: UsageQuery,
  nowMs: number,
  kept: { readonly hoursFromMs: number; readonly daysFromMs: number; readonly recordsFromMs: number },
): CheckedQuery {
  refuseUnknown(query, KNOWN)
  const groups = checkGroups(query.groupBy ?? [])
  const steps = groups.filter((group): group is UsageStep => isStep(group))
  if (steps.length > 1) throw new UsageQueryError('groupBy', `accepts only one of ${USAGE_STEPS.join(', ')}`)
  const [step] = steps
  const groupBy = groups.filter((group): group is UsageDimension => !isStep(group))
  const filter: { [Dimension in UsageDimension]?: string } = {}
  for (const dimension of USAGE_DIMENSIONS) {
    const value = query[dimension]
    if (value === undefined) continue
    if (typeof value !== 'string') throw new UsageQueryError(dimension, 'must be a string')
    filter[dimension] = value
  }
  const named = [...groupBy, ...Object.keys(filter)] as readonly UsageDimension[]
  const isByAccount = named.some((name) => name === 'account' || name === 'key')
  const isByRecord = named.some(isOfRecords)
  if (step === 'hour' && isByAccount && !isByRecord)
    throw new UsageQueryError('groupBy', '"hour" covers all accounts together; for an account or a key use "day"')
  const { fromMs, untilMs } = checkRange(query, nowMs, step === 'hour' ? HOUR_MS : DAY_MS)
  const limit = query.limit ?? DEFAULT_ROWS
  checkCount('limit', limit, MAX_ROWS)
  const { top } = query
  if (top !== undefined) {
    checkCount('top', top, MAX_TOP)
    if (step !== undefined) throw new UsageQueryError('top', 'covers the whole range: omit the time step')
  }
  if (isByRecord && fromMs < kept.recordsFromMs)
    throw new UsageQueryError('from', 'sums by end user and by tag need records, which do not reach back that far')
  // A day whose deletion has begun returns its remaining rows.
  if (step === 'hour' && !isByRecord && fromMs + HOUR_MS <= kept.hoursFromMs - DAY_MS)
    throw new UsageQueryError('from', 'sums by hour do not reach back that far; use "day"')
  const isOfHours = !isByRecord && (step === 'hour' || (!isByAccount && fromMs >= kept.hoursFromMs))
  if (!isByRecord && !isOfHours && fromMs + DAY_MS <= kept.daysFromMs) {
    const first = new Date(kept.daysFromMs).toISOString().slice(0, 10)
    throw new UsageQueryError('from', `sums by day do not reach back that far; start at ${first} or later`)
  }
  const withLatency = query.percentiles ?? false
  if (typeof withLatency !== 'boolean') throw new UsageQueryError('percentiles', 'must be true or false')
  if (withLatency && !isOfHours)
    throw new UsageQueryError(
      'percentiles',
      'cover only all accounts, end users and tags together, as far back as sums by hour are kept',
    )
  return {
    series: {
      source: isByRecord ? 'records' : isOfHours ? 'hours' : 'days',
      fromMs,
      untilMs,
      step: step === 'month' ? undefined : step,
      groupBy,
      filter,
      withLatency,
      limit,
      top,
    },
    isByMonth: step === 'month',
  }
}

/** Query for records. */
export interface UsageRecordsRequest {
  /** Account of the records. Default: all accounts. */
  readonly accountId?: string | undefined
  /** Start of the range. Default: the oldest record. */
  readonly from?: Moment | undefined
  /** End of the range (exclusive). Default: now. */
  readonly to?: Moment | undefined
  /** `next` of the previous page. */
  readonly cursor?: string | undefined
  /** Number of records per page, 1 to 1,000. Default 100. */
  readonly limit?: number | undefined
}

const MAX_PAGE = 1_000
const DEFAULT_PAGE = 100

/** @throws UsageQueryError with the argument. */
export function checkRecordsRequest(request: UsageRecordsRequest, nowMs: number) {
  refuseUnknown(request, ['accountId', 'from', 'to', 'cursor', 'limit'])
  const { accountId, cursor, limit = DEFAULT_PAGE } = request
  if (accountId !== undefined && typeof accountId !== 'string')
    throw new UsageQueryError('accountId', 'must be a string')
  checkCount('limit', limit, MAX_PAGE)
  const fromMs = request.from === undefined ? 0 : momentOf('from', request.from)
  // Includes the current millisecond, so that a call that has just ended is found.
  const untilMs = request.to === undefined ? Math.floor(nowMs) + 1 : momentOf('to', request.to)
  if (untilMs < fromMs) throw new UsageQueryError('to', 'must not be before from')
  return { accountId, fromMs, untilMs, after: cursor === undefined ? undefined : placeOf(cursor), limit }
}

/** Returns the cursor for the next page. */
export function cursorOf({ endedAtMs, number }: UsagePlace): string {
  return `${endedAtMs}_${number}`
}

function placeOf(cursor: unknown): UsagePlace {
  const match = typeof cursor === 'string' ? /^(\d{1,15})_(\d{1,18})$/.exec(cursor) : null
  if (match === null) throw new UsageQueryError('cursor', 'is not a cursor; use "next" of the previous page')
  return { endedAtMs: Number(match[1]), number: BigInt(match[2]!) }
}

/**
 * Adds up the sums of each UTC month separately, because a month has fewer rows than its days.
 * @param ask Returns the sums of one month, without a step.
 * @throws RangeError for more than `limit` rows.
 */
export async function seriesByMonth(
  query: UsageSeriesQuery,
  ask: (query: UsageSeriesQuery) => MaybePromise<readonly UsageRow[]>,
): Promise<readonly UsageRow[]> {
  const rows: UsageRow[] = []
  for (let fromMs = query.fromMs; fromMs < query.untilMs; ) {
    const date = new Date(fromMs)
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
    const untilMs = Math.min(query.untilMs, Date.UTC(year, month + 1))
    for (const row of await ask({ ...query, fromMs, untilMs, step: undefined }))
      rows.push({ ...row, atMs: Date.UTC(year, month) })
    assertRowLimit(rows.length, query.limit)
    fromMs = untilMs
  }
  return rows
}

function isStep(group: string): group is UsageStep {
  return (USAGE_STEPS as readonly string[]).includes(group)
}

function checkGroups(groupBy: unknown): readonly (UsageStep | UsageDimension)[] {
  if (!Array.isArray(groupBy)) throw new UsageQueryError('groupBy', 'must be a list')
  for (const [index, group] of groupBy.entries()) {
    if (!(USAGE_GROUPS as readonly string[]).includes(group))
      throw new UsageQueryError('groupBy', `${JSON.stringify(group)} is none of ${USAGE_GROUPS.join(', ')}`)
    if (groupBy.indexOf(group) !== index)
      throw new UsageQueryError('groupBy', `${JSON.stringify(group)} is there twice`)
  }
  return groupBy
}

function checkRange({ from, to }: UsageQuery, nowMs: number, unitMs: number) {
  const fromMs = Math.floor(momentOf('from', from) / unitMs) * unitMs
  const toMs = to === undefined ? nowMs + 1 : momentOf('to', to)
  const untilMs = Math.ceil(toMs / unitMs) * unitMs
  if (untilMs <= fromMs) throw new UsageQueryError('to', 'must be after from')
  if (untilMs - fromMs > MAX_DAYS * DAY_MS)
    throw new UsageQueryError('from', `at most ${MAX_DAYS} days can be queried at a time`)
  return { fromMs, untilMs }
}

/** Latest accepted time: the end of the year 9999. */
const MAX_MOMENT_MS = 253_402_300_799_999
const ISO = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/

/**
 * Returns a time in Unix milliseconds.
 * @throws UsageQueryError if it is invalid.
 */
export function momentOf(param: string, moment: unknown): number {
  const atMs = millisecondsOf(moment)
  if (atMs >= 0 && atMs <= MAX_MOMENT_MS) return atMs
  throw new UsageQueryError(
    param,
    'must be a Date, Unix milliseconds, or a string such as 2026-11-01 or 2026-11-01T08:00Z',
  )
}

/** Returns a time in Unix milliseconds, or NaN if it is invalid. */
export function millisecondsOf(moment: unknown): number {
  if (typeof moment === 'number') return moment
  if (moment instanceof Date) return moment.getTime()
  if (typeof moment !== 'string') return Number.NaN
  const match = ISO.exec(moment)
  if (match === null || !isDay(moment.slice(0, 10))) return Number.NaN
  // JavaScript parses a time of day without a zone as local time.
  return Date.parse(match[1] !== undefined && match[4] === undefined ? `${moment}Z` : moment)
}

/** Whether a date exists. JavaScript parses the 30th of February as a day in March. */
function isDay(text: string): boolean {
  const atMs = Date.parse(text)
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text)
}

function checkCount(param: string, count: unknown, most: number): void {
  if (Number.isInteger(count) && Number(count) >= 1 && Number(count) <= most) return
  throw new UsageQueryError(param, `must be a whole number from 1 to ${most}`)
}

function refuseUnknown(given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown !== undefined) throw new UsageQueryError(unknown, `is unknown; ${hintAt(unknown, known)}`)
}
