import { type Clock, isYoungerThan, type Timer } from '../core/clock.ts'
import type { MemberNames } from '../core/known-members.ts'
import type { UsageRecord } from './usage-record.ts'
import { DAY_MS, type UsageRetention, type UsageStore } from './usage-store.ts'

/** How long usage is kept, in days. */
export interface UsageRetentionDays {
  /** Records of single calls. Default 30. */
  readonly recordDays?: number | undefined
  /** Sums by hour. Default 400. */
  readonly hourDays?: number | undefined
  /** Sums by day and account. Default: for ever. */
  readonly dayDays?: number | undefined
}

export const USAGE_RETENTION_MEMBERS = {
  recordDays: true,
  hourDays: true,
  dayDays: true,
} satisfies MemberNames<UsageRetentionDays>

/** Most records of calls without a charge that wait to be written. */
const MAX_WAITING = 10_000
/** So many are written at once, at the latest after a second. */
const WRITTEN_AT_ONCE = 500
const WRITE_DELAY_MS = 1_000
/** How long after a call its record is in the sums, at most, while nobody asks. */
const ROLL_UP_DELAY_MS = 10_000
/** Records that are added, and rows that are deleted, in one step. */
const ROWS_PER_STEP = 500
const FORGET_INTERVAL_MS = 10 * 60_000

/** What a recorder works with, and whom it tells. */
export interface UsageRecorderParts {
  readonly store: UsageStore
  readonly clock: Clock
  /** Returns how long each kind is kept now, in days. */
  retention(): Promise<Readonly<Record<keyof UsageRetentionDays, number>>>
  /** So many records of calls without a charge are lost. `error`: the store's; undefined: too many waited. */
  dropped(count: number, error: unknown): void
  /** The sums could not be brought up to date, or old rows not deleted. It is tried again after the next call. */
  failed(error: unknown): void
}

/**
 * Writes records of calls that were not charged, which may be lost; the records of charged calls are written by the ledger. Keeps
 * the sums up to date and deletes what is old. Works only after calls: an idle gateway asks its store nothing.
 */
export class UsageRecorder {
  readonly #parts: UsageRecorderParts
  #waiting: UsageRecord[] = []
  #droppedCount = 0
  /** When the oldest record was noted that may be in no sum yet. */
  #notedAtMs: number | undefined
  #writeTimer: Timer | undefined
  #rollUpTimer: Timer | undefined
  #writing: Promise<void> | undefined
  #rollingUp: Promise<void> | undefined
  #forgottenAtMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(parts: UsageRecorderParts) {
    this.#parts = parts
  }

  /** How long the oldest record that is in no sum yet has waited, in milliseconds; 0: none does. */
  get rollUpAgeMs(): number {
    return this.#notedAtMs === undefined ? 0 : Math.max(0, this.#parts.clock.now() - this.#notedAtMs)
  }

  /** Takes the record of a call that was not charged. */
  add(record: UsageRecord): void {
    if (this.#isClosed || this.#waiting.length >= MAX_WAITING) {
      this.#droppedCount += 1
      if (this.#isClosed) this.#tellDropped()
      return
    }
    this.#waiting.push(record)
    this.noted()
    if (this.#waiting.length >= WRITTEN_AT_ONCE) void this.#write()
    else this.#writeTimer ??= this.#parts.clock.schedule(WRITE_DELAY_MS, () => void this.#write())
  }

  /** A record was written, here or by the ledger: the sums will follow. */
  noted(): void {
    if (this.#isClosed) return
    this.#notedAtMs ??= this.#parts.clock.now()
    this.#rollUpTimer ??= this.#parts.clock.schedule(ROLL_UP_DELAY_MS, () => {
      this.#rollUpTimer = undefined
      // Old rows may be being deleted still, after which nothing is added up.
      if (this.#rollingUp !== undefined) return this.noted()
      this.#rollingUp = this.#rollUp().finally(() => {
        this.#rollingUp = undefined
      })
    })
  }

  /** Writes the records that wait. Never rejects. */
  flush(): Promise<void> {
    return this.#write()
  }

  /** Writes what waits, and ends. Nothing is left under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#rollUpTimer?.cancel()
    await this.#write()
    await this.#rollingUp
  }

  /** Writes all that waits. One batch at a time: while a store stalls, the others wait where their number is bounded. */
  #write(): Promise<void> {
    this.#writeTimer?.cancel()
    this.#writeTimer = undefined
    this.#writing ??= this.#writeWaiting().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const records = this.#waiting.splice(0, WRITTEN_AT_ONCE)
      try {
        await this.#parts.store.write(records)
      } catch (error) {
        // Never twice: the store may have written them before its answer was lost.
        this.#parts.dropped(records.length, error)
      }
      if (this.#droppedCount > 0) this.#tellDropped()
    }
  }

  #tellDropped(): void {
    const count = this.#droppedCount
    this.#droppedCount = 0
    this.#parts.dropped(count, undefined)
  }

  async #rollUp(): Promise<void> {
    const { store, clock, failed } = this.#parts
    try {
      let beganAtMs = clock.now()
      while (!this.#isClosed && (await store.rollUp(ROWS_PER_STEP, clock.now())).added > 0) beganAtMs = clock.now()
      // What came during the last step follows with the next run.
      this.#notedAtMs = this.#rollUpTimer === undefined ? undefined : beganAtMs
      if (isYoungerThan(FORGET_INTERVAL_MS, this.#forgottenAtMs, clock.now())) return
      this.#forgottenAtMs = clock.now()
      const retention = await this.#retention()
      while (!this.#isClosed && (await store.forget(retention)) >= ROWS_PER_STEP);
    } catch (error) {
      failed(error)
    }
  }

  async #retention(): Promise<UsageRetention> {
    const { recordDays, hourDays, dayDays } = await this.#parts.retention()
    const nowMs = this.#parts.clock.now()
    const untilMs = (days: number): number | undefined => (Number.isFinite(days) ? nowMs - days * DAY_MS : undefined)
    return {
      recordsUntilMs: untilMs(recordDays),
      hoursUntilMs: untilMs(hourDays),
      daysUntilMs: untilMs(dayDays),
      limit: ROWS_PER_STEP,
    }
  }
}
