/** A scheduled callback that has not run yet. */
export interface Timer {
  /** Stops the callback from running; harmless when it already ran. */
  cancel(): void
}

/** The source of time. Tests pass a clock that they advance themselves. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Runs `callback` once after `delayMs`. Never keeps the host's process alive. */
  schedule(delayMs: number, callback: () => void): Timer
}

// Node's timers overflow above this, and would fire immediately.
const MAX_DELAY_MS = 2 ** 31 - 1

/** The machine's clock, on unreferenced timers. */
export const systemClock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    return new SystemTimer(callback, Math.min(Math.max(delayMs, 0), MAX_DELAY_MS))
  },
}

/**
 * Schedules the end of a wait for work. If no time is left, the machine's clock runs the callback, so that a clock which tests
 * advance themselves does not stop a shutdown.
 */
export function scheduleCutOff(clock: Clock, leftMs: number, callback: () => void): Timer {
  return (leftMs > 0 ? clock : systemClock).schedule(leftMs, callback)
}

/**
 * Returns whether data of `fromMs` is younger than `ageMs` at `nowMs`. False if `fromMs` is in the future: the clock was set back, so the
 * data may have any age, and a process would keep it until the clock reaches `fromMs` again.
 */
export function isYoungerThan(ageMs: number, fromMs: number, nowMs: number): boolean {
  return fromMs <= nowMs && nowMs - fromMs < ageMs
}

/** Returns a function that returns how many milliseconds of `durationMs` are left. The rest never grows if the clock is set back. */
export function countdown(clock: Clock, durationMs: number): () => number {
  let leftMs = durationMs
  let askedAtMs = clock.now()
  return () => {
    const nowMs = clock.now()
    leftMs = Math.max(0, leftMs - Math.max(0, nowMs - askedAtMs))
    askedAtMs = nowMs
    return leftMs
  }
}

class SystemTimer implements Timer {
  readonly #handle: ReturnType<typeof setTimeout>

  constructor(callback: () => void, delayMs: number) {
    this.#handle = setTimeout(callback, delayMs)
    this.#handle.unref?.()
  }

  cancel(): void {
    clearTimeout(this.#handle)
  }
}
