import type { Clock } from '../core/clock.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 5_000

/** Most settlements that wait at once; beyond them, holds end by expiry. */
const MAX_WAITING = 10_000

interface Waiting {
  readonly run: () => MaybePromise<unknown>
  readonly untilMs: number
}

/**
 * Settlements that a store could not take when their requests ended. They are tried again until the store takes them or
 * their holds have expired, so that a restart of the database costs nobody money. Settling is idempotent, so a settlement
 * that did arrive and whose acknowledgement was lost does no harm.
 */
export class SettlementRetries {
  readonly #clock: Clock
  readonly #logger: Logger
  #waiting: Waiting[] = []
  #delayMs = FIRST_DELAY_MS
  #isScheduled = false
  #flushing = Promise.resolve()

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  get size(): number {
    return this.#waiting.length
  }

  /** Takes a settlement that failed; false when too many wait already. */
  add(run: () => MaybePromise<unknown>, untilMs: number): boolean {
    if (this.#waiting.length >= MAX_WAITING) return false
    this.#waiting.push({ run, untilMs })
    this.#schedule()
    return true
  }

  /** Tries everything that waits once more, at once. */
  flush(): Promise<void> {
    // One at a time: whoever comes while another is under way goes on after it with what it could not settle.
    this.#flushing = this.#flushing.then(() => this.#flushAll())
    return this.#flushing
  }

  /** For shutting down: tries at once, then as usual until everything is settled or the time is over. */
  async drain(drainMs: number): Promise<void> {
    const untilMs = this.#clock.now() + drainMs
    await this.flush()
    while (this.#waiting.length > 0) {
      const delayMs = Math.min(this.#delayMs, untilMs - this.#clock.now())
      if (delayMs <= 0) break
      await new Promise<void>((resolve) => this.#clock.schedule(delayMs, resolve))
      await this.flush()
    }
    if (this.#waiting.length > 0)
      this.#logger.error('settlements are given up: their holds end by expiry', { waiting: this.#waiting.length })
  }

  async #flushAll(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    const failed: Waiting[] = []
    for (const settlement of waiting) {
      if (settlement.untilMs <= this.#clock.now()) continue
      try {
        await settlement.run()
      } catch (error) {
        failed.push(settlement)
        this.#logger.warn('a settlement must wait: the store is not available', { waiting: waiting.length, error })
        // One failure tells about the store; the rest need not each find out. They come first the next time, so that one
        // settlement that can never be made does not stand in their way.
        failed.unshift(...waiting.slice(waiting.indexOf(settlement) + 1))
        break
      }
    }
    this.#waiting = [...failed, ...this.#waiting]
    this.#delayMs = failed.length > 0 ? Math.min(this.#delayMs * 2, LONGEST_DELAY_MS) : FIRST_DELAY_MS
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#clock.schedule(this.#delayMs, () => {
      void this.flush().finally(() => {
        this.#isScheduled = false
        if (this.#waiting.length > 0) this.#schedule()
      })
    })
  }
}
