import { type Clock, isYoungerThan, type Timer } from '../core/clock.ts'
import type { UsageRecord } from './usage-record.ts'
import { DAY_MS, type UsageRetention, type UsageStore } from './usage-store.ts'

/** Retention of usage, in days. */
export interface UsageRetentionDays {
  /** Retention of records of single calls. Default 30. */
  readonly recordDays?: number | undefined
  /** Retention of sums by hour. Default 400. */
  readonly hourDays?: number | undefined
  /** Retention of sums by day and account. Default: indefinite. */
  readonly dayDays?: number | undefined
}

/** Maximum number of records of calls without a charge that wait to be written. */
const MAX_WAITING = 10_000
/** Batch size of writes. A batch is written after a second at the latest. */
const WRITE_BATCH_SIZE = 500
const WRITE_DELAY_MS = 1_000
/** Maximum delay between a call and its sums if nobody queries them. */
const ROLL_UP_DELAY_MS = 10_000
/** Number of records added, or rows deleted, in one step. */
const ROWS_PER_STEP = 500
const FORGET_INTERVAL_MS = 10 * 60_000

/** Dependencies of a recorder. */
export interface UsageRecorderParts {
  readonly store: UsageStore
  readonly clock: Clock
  /** Returns how long each kind is kept now, in days. */
  retention(): Promise<Readonly<Record<keyof UsageRetentionDays, number>>>
  /** Reports that `count` records of calls without a charge are lost. `error` is the store's, or undefined if too many records waited. */
  dropped(count: number, error: unknown): void
  /** Called if the sums could not be updated or old rows not deleted. The next call triggers a retry. */
  failed(error: unknown): void
}

/**
 * Writes records of uncharged calls, which may be lost; the ledger writes the records of charged calls. Updates the sums and
 * deletes old rows. Works only after calls: an idle gateway does not query its store.
 */
export class UsageRecorder {
  readonly #parts: UsageRecorderParts
  #waiting: UsageRecord[] = []
  #droppedCount = 0
  /** Time of the oldest record that may not be in any sum yet. */
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

  /** Waiting time of the oldest record that is in no sum yet, in milliseconds; 0 if there is none. */
  get rollUpAgeMs(): number {
    return this.#notedAtMs === undefined ? 0 : Math.max(0, this.#parts.clock.now() - this.#notedAtMs)
  }

  /** Queues the record of an uncharged call. */
  add(record: UsageRecord): void {
    if (this.#isClosed || this.#waiting.length >= MAX_WAITING) {
      this.#droppedCount += 1
      if (this.#isClosed) this.#tellDropped()
      return
    }
    this.#waiting.push(record)
    this.noted()
    if (this.#waiting.length >= WRITE_BATCH_SIZE) void this.#write()
    else this.#writeTimer ??= this.#parts.clock.schedule(WRITE_DELAY_MS, () => void this.#write())
  }

  /** Notes that a record was written, here or by the ledger, so that the sums follow. */
  noted(): void {
    if (this.#isClosed) return
    this.#notedAtMs ??= this.#parts.clock.now()
    this.#rollUpTimer ??= this.#parts.clock.schedule(ROLL_UP_DELAY_MS, () => {
      this.#rollUpTimer = undefined
      // A deletion of old rows may still be running, and it adds nothing to the sums.
      if (this.#rollingUp !== undefined) return this.noted()
      this.#rollingUp = this.#rollUp().finally(() => {
        this.#rollingUp = undefined
      })
    })
  }

  /** Writes the waiting records. Never rejects. */
  flush(): Promise<void> {
    return this.#write()
  }

  /** Writes the waiting records, and stops. No work is left running. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#rollUpTimer?.cancel()
    await this.#write()
    await this.#rollingUp
  }

  /** Writes all waiting records, one batch at a time. While a store stalls, the others wait in the queue, whose size is limited. */
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
      const records = this.#waiting.splice(0, WRITE_BATCH_SIZE)
      try {
        await this.#parts.store.write(records)
      } catch (error) {
        // Never retried: the store may have written them before its answer was lost.
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
      // Records that arrived during the last step follow in the next run.
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
