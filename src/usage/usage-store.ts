import type { MaybePromise } from '../core/maybe-promise.ts'
import type { UsageCounts } from '../core/usage.ts'
import type { LatencyCounts, UsageRecord } from './usage-record.ts'

/** Dimensions by which sums can be grouped, in addition to time. */
export const USAGE_DIMENSIONS = ['account', 'key', 'model', 'endpoint', 'vendor', 'endUser', 'tag'] as const
/** Dimension: a member of {@link USAGE_DIMENSIONS}. */
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]

/** Dimensions that only records contain. Their values are unlimited, so their sums are computed on demand. */
export type RecordDimension = 'endUser' | 'tag'

/** Dimensions that roll-ups store. */
export type SummedDimension = Exclude<UsageDimension, RecordDimension>

/** Whether only records contain a dimension. */
export function isOfRecords(dimension: UsageDimension): dimension is RecordDimension {
  return dimension === 'endUser' || dimension === 'tag'
}

/** Values to which a query is limited, by dimension. */
export type UsageFilter = { readonly [Dimension in UsageDimension]?: string | undefined }

/** Query for roll-ups. */
export interface UsageSeriesQuery {
  /**
   * `hours`: all accounts together, without the dimensions `account` and `key`. `days`: UTC days, with all dimensions except
   * `endUser` and `tag`. `records`: the stored records, rolled up or not, with all dimensions and steps. A record with several
   * tags is in the sums of each of them, and a record without tags in the sums of the tag `''`.
   */
  readonly source: 'hours' | 'days' | 'records'
  /** Unix milliseconds, a whole hour or UTC day. */
  readonly fromMs: number
  /** End of the range (exclusive); a whole hour or UTC day. */
  readonly untilMs: number
  /** Time step of the rows, or `undefined` for one row for the whole range. `hour` needs the source `hours` or `records`. */
  readonly step: 'hour' | 'day' | undefined
  /** Dimensions of the groups. If empty, there is one row per step. */
  readonly groupBy: readonly UsageDimension[]
  /** Values to which the calls are limited. If empty, all calls count. */
  readonly filter: UsageFilter
  /** Whether to count the calls by their durations. Requires the source `hours`. */
  readonly withLatency?: boolean | undefined
  /** Maximum number of rows. */
  readonly limit: number
  /** Number of rows to return: those with the highest charges, then with the most calls, out of any number. */
  readonly top?: number | undefined
}

/** Sums of the calls of one group. Amounts in nano-dollars. */
export interface UsageSums {
  /** Counts by duration, if the query requests them. */
  readonly latency?: LatencyCounts
  /** Number of calls. */
  readonly requests: number
  /** Number of failed calls, and of calls that their callers abandoned. */
  readonly failed: number
  readonly abandoned: number
  /** Number of calls whose usage is an estimate. */
  readonly estimated: number
  /** Units by meter; zeros are absent. */
  readonly usage: UsageCounts
  /** Sum of their durations. */
  readonly durationMs: number
  /** Cost, including the part that is owed. */
  readonly dueNanoDollars: bigint
  /** Part of the cost that balances paid immediately. */
  readonly chargedNanoDollars: bigint
}

/** Sums of one group: one time step, and one value per grouped dimension. Other members are absent. */
export interface UsageRow extends UsageSums {
  /** Start of the step in Unix milliseconds. */
  readonly atMs?: number
  /** Account id. */
  readonly account?: string
  /** Key id. */
  readonly key?: string
  /** Public id of the model. */
  readonly model?: string
  /** Endpoint id, such as `chat`. */
  readonly endpoint?: string
  /** Vendor id; empty if no vendor was called. */
  readonly vendor?: string
  /** End user; empty if not specified. */
  readonly endUser?: string
  /** Tag; empty for calls without a tag. */
  readonly tag?: string
}

/** End of a page of records. */
export interface UsagePlace {
  /** Unix milliseconds. */
  readonly endedAtMs: number
  /** Number of the record in its store. */
  readonly number: bigint
}

/** Query for a page of records. */
export interface UsageRecordsQuery {
  /** Account of the records, or `undefined` for all accounts. */
  readonly accountId: string | undefined
  /** Unix milliseconds. */
  readonly fromMs: number
  /** End of the range (exclusive). */
  readonly untilMs: number
  /** Cursor: lists only older records. */
  readonly after: UsagePlace | undefined
  /** Maximum number of records. */
  readonly limit: number
}

/** Page of records. */
export interface UsagePage {
  /** Records, newest first. */
  readonly records: readonly UsageRecord[]
  /** End of the page, or `undefined` if there are no more records. */
  readonly end: UsagePlace | undefined
}

/** Rows to delete, with a limit per kind. Times are in Unix milliseconds; `undefined` deletes nothing. */
export interface UsageRetention {
  /** Records that ended before this time are deleted. */
  readonly recordsUntilMs: number | undefined
  /** Sums of hours that began before this time are deleted. */
  readonly hoursUntilMs: number | undefined
  /** Sums of days that began before this time are deleted. */
  readonly daysUntilMs: number | undefined
  /** Maximum number of rows per kind. */
  readonly limit: number
}

/** Sums of one account over a range, by source. */
export interface UsageMismatch {
  readonly accountId: string
  /** Charges according to the records, the roll-up by day, and the journal, in nano-dollars. */
  readonly records: bigint
  readonly days: bigint
  readonly journal: bigint
}

/**
 * Records of calls, and their sums. The ledger or the task store of the same driver writes the record of a charged call in the
 * transaction of the charge. Sums follow in steps, and each record is counted once, however many processes take part.
 */
export interface UsageStore {
  /** Writes records of uncharged calls: all of them or none. */
  write(records: readonly UsageRecord[]): MaybePromise<void>
  /**
   * Adds up to about `limit` records to the sums. Safe in several processes at the same time and after a crash: the sums and the
   * mark of the last counted record change together.
   * @returns The number of added records, and the time up to which the sums are complete, in Unix milliseconds.
   */
  rollUp(limit: number, nowMs: number): MaybePromise<{ readonly added: number; readonly asOfMs: number }>
  /**
   * Returns sums in the order of time and then of the groups, unless `top` rows are requested.
   * @throws RangeError if there are more than `limit` rows, unless `top` rows are requested.
   */
  series(query: UsageSeriesQuery): MaybePromise<readonly UsageRow[]>
  /** Returns a page of records, newest first. */
  records(query: UsageRecordsQuery): MaybePromise<UsagePage>
  /** Compares records, sums by day and the journal's charges of whole UTC days. Returns the accounts that differ. */
  verify(range: { readonly fromMs: number; readonly untilMs: number }): MaybePromise<readonly UsageMismatch[]>
  /** Rebuilds the sums of whole UTC days from their records, in one step. */
  rebuild(range: { readonly fromMs: number; readonly untilMs: number }): MaybePromise<void>
  /** Deletes old rows, but never a record that no sum contains. Returns the number of rows. */
  forget(retention: UsageRetention): MaybePromise<number>
}

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** Orders the rows of a query for the top ones. */
export function byCharge(one: UsageSums, other: UsageSums): number {
  if (one.chargedNanoDollars === other.chargedNanoDollars) return other.requests - one.requests
  return one.chargedNanoDollars < other.chargedNanoDollars ? 1 : -1
}

/** @throws RangeError for more rows than requested. */
export function assertRowLimit(rowCount: number, limit: number): void {
  if (rowCount <= limit) return
  throw new RangeError(`the answer has more than ${limit} rows; request a shorter range or fewer groups`)
}
