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

/** A moment: a `Date`, Unix milliseconds, or an ISO 8601 text such as `2026-11-01`, which is UTC without a zone. */
export type Moment = Date | number | string

/** Steps in time, in UTC. */
export const USAGE_STEPS = ['hour', 'day', 'month'] as const
/** One of them. */
export type UsageStep = (typeof USAGE_STEPS)[number]

/** A question about usage. */
export interface UsageQuery extends UsageFilter {
  /** Rounded down to a whole UTC day; to a whole hour where rows are by hour. */
  readonly from: Moment
  /** The first moment after the range, rounded up in the same way. Default: now. At most 400 days after `from`. */
  readonly to?: Moment | undefined
  /**
   * One row for each of these, at most one of them a step in time; default: one row for the whole range. By `hour` only of all
   * accounts together: neither `account` nor `key` may be named, unless `endUser` or `tag` is. By `endUser` and `tag` only as far
   * back as records are kept; every record of the range is read, so name an account where there are many. A call with several tags is
   * in a row of each.
   */
  readonly groupBy?: readonly (UsageStep | UsageDimension)[] | undefined
  /**
   * Give each row the percentiles of durations and of times to the first content. Of all accounts together, and as far back as there
   * are sums by hour: neither `account` nor `key` may be named. Default false.
   */
  readonly percentiles?: boolean | undefined
  /** Most rows, 1 to 100,000; more are an error. Default 10,000. */
  readonly limit?: number | undefined
  /**
   * Only so many rows, 1 to 1,000: those of the highest charges, then of the most calls, in that order, of however many there are. Not
   * with a step in time.
   */
  readonly top?: number | undefined
}

/** A question that a store can answer, and whether its days are to be added up to months. */
export interface CheckedQuery {
  readonly series: UsageSeriesQuery
  readonly isByMonth: boolean
}

/** An argument that cannot be used. */
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
/** What sums may be asked for by. */
export const USAGE_GROUPS: readonly (UsageStep | UsageDimension)[] = [...USAGE_STEPS, ...USAGE_DIMENSIONS]

/**
 * Checks a question.
 * @param kept From when on there are sums by hour, by day and account, and records. Unix milliseconds.
 * @throws UsageQueryError naming the argument.
 */
export function checkQuery(
  query: UsageQuery,
  nowMs: number,
  kept: { readonly hoursFromMs: number; readonly daysFromMs: number; readonly recordsFromMs: number },
): CheckedQuery {
  refuseUnknown(query, KNOWN)
  const groups = checkGroups(query.groupBy ?? [])
  const steps = groups.filter((group): group is UsageStep => isStep(group))
  if (steps.length > 1) throw new UsageQueryError('groupBy', `takes one of ${USAGE_STEPS.join(', ')}, not several`)
  const [step] = steps
  const groupBy = groups.filter((group): group is UsageDimension => !isStep(group))
  const filter: { [Dimension in UsageDimension]?: string } = {}
  for (const dimension of USAGE_DIMENSIONS) {
    const value = query[dimension]
    if (value === undefined) continue
    if (typeof value !== 'string') throw new UsageQueryError(dimension, 'must be a text')
    filter[dimension] = value
  }
  const named = [...groupBy, ...Object.keys(filter)] as readonly UsageDimension[]
  const isByAccount = named.some((name) => name === 'account' || name === 'key')
  const isByRecord = named.some(isOfRecords)
  if (step === 'hour' && isByAccount && !isByRecord)
    throw new UsageQueryError('groupBy', '"hour" is of all accounts together; for an account or a key take "day"')
  const { fromMs, untilMs } = checkRange(query, nowMs, step === 'hour' ? HOUR_MS : DAY_MS)
  const limit = query.limit ?? DEFAULT_ROWS
  checkCount('limit', limit, MAX_ROWS)
  const { top } = query
  if (top !== undefined) {
    checkCount('top', top, MAX_TOP)
    if (step !== undefined) throw new UsageQueryError('top', 'is of the whole range: leave the step in time out')
  }
  if (isByRecord && fromMs < kept.recordsFromMs)
    throw new UsageQueryError('from', 'sums by end user and by tag are made of records, which are not kept for so long')
  // Of the day that is being deleted, what is left is given.
  if (step === 'hour' && !isByRecord && fromMs + HOUR_MS <= kept.hoursFromMs - DAY_MS)
    throw new UsageQueryError('from', 'sums by hour are not kept for so long; take "day"')
  const isOfHours = !isByRecord && (step === 'hour' || (!isByAccount && fromMs >= kept.hoursFromMs))
  if (!isByRecord && !isOfHours && fromMs + DAY_MS <= kept.daysFromMs) {
    const first = new Date(kept.daysFromMs).toISOString().slice(0, 10)
    throw new UsageQueryError('from', `sums by day are not kept for so long; ask from ${first} on`)
  }
  const withLatency = query.percentiles ?? false
  if (typeof withLatency !== 'boolean') throw new UsageQueryError('percentiles', 'must be true or false')
  if (withLatency && !isOfHours)
    throw new UsageQueryError(
      'percentiles',
      'are of all accounts, end users and tags together, and as far back as there are sums by hour',
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

/** Which records to give. */
export interface UsageRecordsRequest {
  /** Default: of all accounts. */
  readonly accountId?: string | undefined
  /** Default: as far back as there are records. */
  readonly from?: Moment | undefined
  /** The first moment after the range. Default: now. */
  readonly to?: Moment | undefined
  /** `next` of the page before. */
  readonly cursor?: string | undefined
  /** Records of one page, 1 to 1,000. Default 100. */
  readonly limit?: number | undefined
}

const MAX_PAGE = 1_000
const DEFAULT_PAGE = 100

/** @throws UsageQueryError naming the argument. */
export function checkRecordsRequest(request: UsageRecordsRequest, nowMs: number) {
  refuseUnknown(request, ['accountId', 'from', 'to', 'cursor', 'limit'])
  const { accountId, cursor, limit = DEFAULT_PAGE } = request
  if (accountId !== undefined && typeof accountId !== 'string') throw new UsageQueryError('accountId', 'must be a text')
  checkCount('limit', limit, MAX_PAGE)
  const fromMs = request.from === undefined ? 0 : momentOf('from', request.from)
  // Now included: what has just ended was written by then.
  const untilMs = request.to === undefined ? Math.floor(nowMs) + 1 : momentOf('to', request.to)
  if (untilMs < fromMs) throw new UsageQueryError('to', 'must not be before from')
  return { accountId, fromMs, untilMs, after: cursor === undefined ? undefined : placeOf(cursor), limit }
}

/** The text by which a caller asks for the next page. */
export function cursorOf({ endedAtMs, number }: UsagePlace): string {
  return `${endedAtMs}_${number}`
}

function placeOf(cursor: unknown): UsagePlace {
  const match = typeof cursor === 'string' ? /^(\d{1,15})_(\d{1,18})$/.exec(cursor) : null
  if (match === null) throw new UsageQueryError('cursor', 'is not a cursor; give "next" of the page before')
  return { endedAtMs: Number(match[1]), number: BigInt(match[2]!) }
}

/**
 * Sums of each UTC month by itself: a month has fewer rows than its days.
 * @param ask answers what is of one month, without a step.
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
    throw new UsageQueryError('from', `at most ${MAX_DAYS} days can be asked for at once`)
  return { fromMs, untilMs }
}

/** Latest moment that is taken: the end of the year 9999. */
const MAX_MOMENT_MS = 253_402_300_799_999
const ISO = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/

/**
 * Unix milliseconds of a moment.
 * @throws UsageQueryError for what is none.
 */
export function momentOf(param: string, moment: unknown): number {
  const atMs = millisecondsOf(moment)
  if (atMs >= 0 && atMs <= MAX_MOMENT_MS) return atMs
  throw new UsageQueryError(
    param,
    'must be a Date, Unix milliseconds, or a text such as 2026-11-01 or 2026-11-01T08:00Z',
  )
}

/** Unix milliseconds of a moment; NaN for what is none. */
export function millisecondsOf(moment: unknown): number {
  if (typeof moment === 'number') return moment
  if (moment instanceof Date) return moment.getTime()
  if (typeof moment !== 'string') return Number.NaN
  const match = ISO.exec(moment)
  if (match === null || !isDay(moment.slice(0, 10))) return Number.NaN
  // Without a zone JavaScript reads a time of day as local.
  return Date.parse(match[1] !== undefined && match[4] === undefined ? `${moment}Z` : moment)
}

/** JavaScript reads the 30th of February as a day in March. */
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
