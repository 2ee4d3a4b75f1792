import { type Clock, countdown } from '../core/clock.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 5_000

/** Maximum number of waiting settlements. Beyond it, holds end by expiry. */
const MAX_WAITING = 10_000

/**
 * Reason why a settlement is no longer retried. `expired`: its time limit has passed. `too-many`: too many wait. `closing`: the
 * gateway closes.
 */
export type GiveUpReason = 'expired' | 'too-many' | 'closing'

/** Failed settlement. */
export interface WaitingSettlement {
  /** Settles the call; safe to repeat. */
  readonly run: () => MaybePromise<unknown>
  /** Unix milliseconds after which it is not retried. */
  readonly untilMs: number
  /** Error of the last attempt. */
  readonly error: unknown
  /** Called once, when retries end, with the store's last error. */
  readonly giveUp: (reason: GiveUpReason, error: unknown) => void
}

/**
 * Settlements that failed at the store when their requests ended. They are retried until the store accepts them or their
 * holds have expired, so that a database restart costs nothing. Settling is idempotent, so repeating an unacknowledged
 * settlement is harmless. Every dropped settlement is reported.
 */
export class SettlementRetries {
  readonly #clock: Clock
  readonly #onFailure: (waiting: number, error: unknown) => void
  #waiting: WaitingSettlement[] = []
  #delayMs = FIRST_DELAY_MS
  #lastError: unknown
  #isOver = false
  #isScheduled = false
  #flushing = Promise.resolve()

  /** @param onFailure Called if the store rejects a retry, with the number of settlements that wait. */
  constructor(clock: Clock, onFailure: (waiting: number, error: unknown) => void) {
    this.#clock = clock
    this.#onFailure = onFailure
  }

  get size(): number {
    return this.#waiting.length
  }

  /** Adds a failed settlement. Drops it immediately if too many wait already, or after the end of {@link drain}. */
  add(settlement: WaitingSettlement): void {
    if (this.#isOver || this.#waiting.length >= MAX_WAITING) {
      settlement.giveUp(this.#isOver ? 'closing' : 'too-many', settlement.error)
      return
    }
    this.#waiting.push(settlement)
    this.#schedule()
  }

  /** Retries all waiting settlements immediately. */
  flush(): Promise<void> {
    // One run at a time: a concurrent call waits for the current run and continues with what remains.
    // An error of the host's logger in one settlement must not stop the next.
    this.#flushing = this.#flushing.catch(() => undefined).then(() => this.#flushAll())
    return this.#flushing
  }

  /** Retries immediately, then as usual until all settlements are done or `drainMs` has passed. For shutdown. */
  async drain(drainMs: number): Promise<void> {
    const leftMs = countdown(this.#clock, drainMs)
    await this.flush()
    while (this.#waiting.length > 0) {
      const delayMs = Math.min(this.#delayMs, leftMs())
      if (delayMs <= 0) break
      await new Promise<void>((resolve) => this.#clock.schedule(delayMs, resolve))
      await this.flush()
    }
    this.#isOver = true
    for (const { giveUp } of this.#waiting.splice(0)) giveUp('closing', this.#lastError)
  }

  async #flushAll(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    const failed: WaitingSettlement[] = []
    for (const settlement of waiting) {
      try {
        await settlement.run()
      } catch (error) {
        failed.push(settlement)
        this.#lastError = error
        this.#onFailure(waiting.length, error)
        // One failure shows that the store is down, so the rest are not tried. They come first the next time, so that one
        // settlement that always fails does not block them.
        failed.unshift(...waiting.slice(waiting.indexOf(settlement) + 1))
        break
      }
    }
    const nowMs = this.#clock.now()
    const left = failed.filter(({ untilMs }) => nowMs < untilMs)
    this.#waiting = [...left, ...this.#waiting]
    for (const { untilMs, giveUp } of failed) if (nowMs >= untilMs) giveUp('expired', this.#lastError)
    this.#delayMs = left.length > 0 ? Math.min(this.#delayMs * 2, LONGEST_DELAY_MS) : FIRST_DELAY_MS
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
