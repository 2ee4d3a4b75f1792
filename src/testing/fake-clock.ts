import type { Clock, Timer } from '../core/clock.ts'
import type { Ids } from '../core/ids.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'

/** A clock that moves only when it is advanced. */
export interface FakeClock extends Clock {
  /**
   * Moves the time forward and runs the callbacks that fall due, in the order of their times (equal times: in the order
   * they were scheduled). Callbacks scheduled meanwhile run too when they fall due within the same move.
   */
  advance(durationMs: number): void
  /** How many callbacks wait. */
  readonly pending: number
}

/** Settings of {@link fakeClock}. */
export interface FakeClockOptions {
  /** The initial time in Unix milliseconds; default 2026-01-01T00:00:00Z. */
  readonly startMs?: number
}

const FAKE_CLOCK_OPTIONS = memberNames<FakeClockOptions>()('startMs')

interface Scheduled {
  readonly dueMs: number
  readonly callback: () => void
}

/** Creates a {@link FakeClock}, for tests of code that needs a `Clock`. */
export function fakeClock(options: FakeClockOptions = {}): FakeClock {
  checkMembers(options, FAKE_CLOCK_OPTIONS, 'fakeClock')
  let nowMs = options.startMs ?? Date.UTC(2026, 0, 1)
  const waiting = new Set<Scheduled>()

  const takeDue = (untilMs: number): Scheduled | undefined => {
    let earliest: Scheduled | undefined
    for (const entry of waiting) {
      if (entry.dueMs > untilMs) continue
      // A Set keeps the order of insertion, so the first of several equal times is the one scheduled first.
      if (earliest === undefined || entry.dueMs < earliest.dueMs) earliest = entry
    }
    if (earliest !== undefined) waiting.delete(earliest)
    return earliest
  }

  return {
    now: () => nowMs,
    get pending() {
      return waiting.size
    },
    schedule(delayMs, callback): Timer {
      const entry: Scheduled = { dueMs: nowMs + Math.max(delayMs, 0), callback }
      waiting.add(entry)
      return { cancel: () => void waiting.delete(entry) }
    },
    advance(durationMs) {
      if (!(durationMs >= 0)) throw new RangeError(`the clock cannot be moved by ${durationMs} ms`)
      const untilMs = nowMs + durationMs
      for (let entry = takeDue(untilMs); entry !== undefined; entry = takeDue(untilMs)) {
        nowMs = entry.dueMs
        entry.callback()
      }
      nowMs = untilMs
    },
  }
}

/** Settings of {@link countingIds}. */
export interface CountingIdsOptions {
  /** The number of the first id; default 1. */
  readonly first?: number
}

const COUNTING_IDS_OPTIONS = memberNames<CountingIdsOptions>()('first')

/** Ids that count up in the usual shape: `req_00000000000000000000000000000001`, then `…2`, whatever the prefix. */
export function countingIds(options: CountingIdsOptions = {}): Ids {
  checkMembers(options, COUNTING_IDS_OPTIONS, 'countingIds')
  let count = options.first ?? 1
  return { next: (prefix) => `${prefix}_${(count++).toString(16).padStart(32, '0')}` }
}
