import type { MaybePromise } from '../core/maybe-promise.ts'
import type { UsageCounts } from '../core/usage.ts'
import type { LatencyCounts } from './latency.ts'
import type { UsageRecord } from './usage-record.ts'

/** Members by which sums can be grouped, besides time. */
export const USAGE_DIMENSIONS = ['account', 'key', 'model', 'endpoint', 'vendor', 'endUser', 'tag'] as const
/** One of them. */
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]

/** Those of them that only records tell: there is no bound to their values, so that sums of them are made when they are asked for. */
export type RecordDimension = 'endUser' | 'tag'

/** Those that are kept in sums. */
export type SummedDimension = Exclude<UsageDimension, RecordDimension>

/** Is it of records only? */
export function isOfRecords(dimension: UsageDimension): dimension is RecordDimension {
  return dimension === 'endUser' || dimension === 'tag'
}

/** Only what has these values. */
export type UsageFilter = { readonly [Dimension in UsageDimension]?: string | undefined }

/** A question to the roll-ups. */
export interface UsageSeriesQuery {
  /**
   * `hours`: of all accounts together, without the dimensions `account` and `key`. `days`: UTC days, with all dimensions but
   * `endUser` and `tag`. `records`: of the records that are kept, with all dimensions and steps; counted there or not. A record with
   * several tags is in the sums of each of them, and one without in those of the tag `''`.
   */
  readonly source: 'hours' | 'days' | 'records'
  /** Unix milliseconds, a whole hour or UTC day. */
  readonly fromMs: number
  /** The first moment after the range; a whole hour or UTC day. */
  readonly untilMs: number
  /** Rows for each of these; undefined: one row for the whole range. `hour` needs the source `hours` or `records`. */
  readonly step: 'hour' | 'day' | undefined
  /** A row for each combination of their values; empty: one row for each step. */
  readonly groupBy: readonly UsageDimension[]
  /** Sums only of the calls with these values; empty: of all. */
  readonly filter: UsageFilter
  /** Also count the calls by their durations; of the source `hours` only. */
  readonly withLatency?: boolean | undefined
  /** Most rows. */
  readonly limit: number
  /** Only so many rows: those of the highest charges, then of the most calls, in that order, of however many there are. */
  readonly top?: number | undefined
}

/** Sums of the calls of one group. Amounts in nano-dollars. */
export interface UsageSums {
  /** Present where the question asks for it. */
  readonly latency?: LatencyCounts
  /** Number of calls. */
  readonly requests: number
  /** Of these, how many failed, and how many their callers left. */
  readonly failed: number
  readonly abandoned: number
  /** Of these, for how many the usage is an estimate. */
  readonly estimated: number
  /** Units by meter; those of zero are absent. */
  readonly usage: UsageCounts
  /** Sum of their durations. */
  readonly durationMs: number
  /** What they cost, the part that is owed included. */
  readonly dueNanoDollars: bigint
  /** What balances paid of it at once. */
  readonly chargedNanoDollars: bigint
}

/** The sums of one group: of a step in time, and of a value of each dimension grouped by. Other members are absent. */
export interface UsageRow extends UsageSums {
  /** Beginning of the step, Unix milliseconds. */
  readonly atMs?: number
  /** Account id. */
  readonly account?: string
  /** Key id. */
  readonly key?: string
  /** Public id of the model. */
  readonly model?: string
  /** Endpoint id, such as `chat`. */
  readonly endpoint?: string
  /** Empty: no vendor was asked. */
  readonly vendor?: string
  /** Empty: not told. */
  readonly endUser?: string
  /** Empty: the calls have no tag. */
  readonly tag?: string
}

/** Where a page of records ends. */
export interface UsagePlace {
  /** Unix milliseconds. */
  readonly endedAtMs: number
  /** Number of the record in its store. */
  readonly number: bigint
}

/** Which records to give. */
export interface UsageRecordsQuery {
  /** Undefined: of all accounts. */
  readonly accountId: string | undefined
  /** Unix milliseconds. */
  readonly fromMs: number
  /** The first moment after the range. */
  readonly untilMs: number
  /** Only what is older than this. */
  readonly after: UsagePlace | undefined
  /** Most records. */
  readonly limit: number
}

/** Records, newest first. */
export interface UsagePage {
  /** Newest first. */
  readonly records: readonly UsageRecord[]
  /** Where the page ends; undefined: there are no more. */
  readonly end: UsagePlace | undefined
}

/** What is to be deleted, and how many rows of each kind at most. Unix milliseconds; undefined: nothing. */
export interface UsageRetention {
  /** Records that ended before are deleted. */
  readonly recordsUntilMs: number | undefined
  /** Sums of hours that began before are deleted. */
  readonly hoursUntilMs: number | undefined
  /** Sums of days that began before are deleted. */
  readonly daysUntilMs: number | undefined
  /** Most rows of each kind. */
  readonly limit: number
}

/** Sums of one account over a range, by what was kept of it. */
export interface UsageMismatch {
  readonly accountId: string
  /** Charged by the records, the roll-up by day, and the journal, in nano-dollars. */
  readonly records: bigint
  readonly days: bigint
  readonly journal: bigint
}

/**
 * Records of calls, and sums of them. A record of a charged call is written by the ledger or the task store of the same driver,
 * in the transaction of the charge. Sums follow in steps, and each record is counted once, however many processes take part.
 */
export interface UsageStore {
  /** Writes records of calls that were not charged: all of them or none. */
  write(records: readonly UsageRecord[]): MaybePromise<void>
  /**
   * Adds at most about `limit` records to the sums. Safe in several processes at once and after a crash: the sums and the mark up
   * to which records are counted change together.
   * @returns how many were added, and up to when the sums are complete: Unix milliseconds.
   */
  rollUp(limit: number, nowMs: number): MaybePromise<{ readonly added: number; readonly asOfMs: number }>
  /**
   * Sums, in the order of time and then of the groups, unless `top` rows are asked for.
   * @throws RangeError when there are more than `limit` rows, unless `top` rows are asked for.
   */
  series(query: UsageSeriesQuery): MaybePromise<readonly UsageRow[]>
  /** A page of records, newest first. */
  records(query: UsageRecordsQuery): MaybePromise<UsagePage>
  /** Compares records, sums by day and the journal's charges of a range of whole UTC days; gives accounts that differ. */
  verify(range: { readonly fromMs: number; readonly untilMs: number }): MaybePromise<readonly UsageMismatch[]>
  /** Makes the sums of a range of whole UTC days again from the records of those days, in one step. */
  rebuild(range: { readonly fromMs: number; readonly untilMs: number }): MaybePromise<void>
  /** Deletes what is old, never a record that is not in the sums; gives how many rows. */
  forget(retention: UsageRetention): MaybePromise<number>
}

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** The order of the rows of a question for the top ones. */
export function byCharge(one: UsageSums, other: UsageSums): number {
  if (one.chargedNanoDollars === other.chargedNanoDollars) return other.requests - one.requests
  return one.chargedNanoDollars < other.chargedNanoDollars ? 1 : -1
}

/** @throws RangeError for more rows than were asked for. */
export function assertRowLimit(rowCount: number, limit: number): void {
  if (rowCount <= limit) return
  throw new RangeError(`the answer has more than ${limit} rows; ask for a shorter range or fewer groups`)
}
