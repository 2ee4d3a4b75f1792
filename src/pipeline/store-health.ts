import { type Clock, countdown, type Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'

/** Timeout of a probe, in milliseconds. */
export const STORE_TIMEOUT_MS = 2_000

/** Time between two probes of a failing store, in milliseconds. */
const PROBE_INTERVAL_MS = 1_000

/** Id of no account. Searching for it costs the store one read. */
const PROBED_ACCOUNT = 'acct_health_check'

/** Checks that the store answers and, if calls are billed, accepts changes. Rejects with the store's error. */
export async function probeStore(store: GatewayStore, isBilled: boolean): Promise<void> {
  if (isBilled && store.checkWritable !== undefined) await store.checkWritable()
  else await store.ledger.account(PROBED_ACCOUNT)
}

/** Constructor arguments of {@link StoreOutage}. */
export interface StoreOutageParts {
  readonly clock: Clock
  readonly logger: Logger
  /** Checks the store; rejects if the store does not answer. */
  readonly probe: () => Promise<void>
  readonly emit: (event: GatewayEvent) => void
}

/**
 * State of the store, with one log line and one event for each change. A failure starts a probe. If the probe fails too, the
 * store is down: failures are then counted instead of logged, until a probe succeeds. If the probe succeeds, the failure
 * concerned one statement only, and its line is logged.
 */
export class StoreOutage {
  readonly #parts: StoreOutageParts
  #state: 'up' | 'suspect' | 'down' | 'closed' = 'up'
  #sinceMs = 0
  #failedRequests = 0
  #otherFaults = 0
  /** Log lines of failures, until the first probe has decided. */
  #lines: (() => void)[] = []
  #timer: Timer | undefined
  /** A hanging probe is not repeated: the next check waits for the same one. */
  #probing: Promise<boolean> | undefined

  constructor(parts: StoreOutageParts) {
    this.#parts = parts
  }

  /**
   * Notes a failure of the store.
   * @param line Logs the failure; not called if the store is down.
   */
  failed(error: unknown, line: () => void, isRequest = false): void {
    if (this.#state === 'closed') {
      line()
      return
    }
    if (isRequest) this.#failedRequests += 1
    else this.#otherFaults += 1
    if (this.#state === 'down') return
    this.#lines.push(line)
    if (this.#state === 'suspect') return
    this.#state = 'suspect'
    this.#sinceMs = this.#parts.clock.now()
    void this.#probe(error)
  }

  /** Stops probing. Failures are logged one by one from now on. */
  close(): void {
    this.#timer?.cancel()
    const lines = this.#end('closed')
    for (const line of lines) line()
  }

  async #probe(error: unknown): Promise<void> {
    const { clock, probe } = this.#parts
    this.#probing ??= probe()
      .then(isTrue, isFalse)
      .finally(() => {
        this.#probing = undefined
      })
    const answers = await withinTime(this.#probing, false, clock)
    if (this.#state === 'closed') return
    if (answers) this.#answers()
    else {
      if (this.#state === 'suspect') this.#goDown(error)
      this.#timer = clock.schedule(PROBE_INTERVAL_MS, () => void this.#probe(error))
    }
  }

  #goDown(error: unknown): void {
    const { logger, emit } = this.#parts
    this.#state = 'down'
    this.#lines = []
    const cause = GatewayError.isInstance(error) ? (error.cause ?? error) : error
    logger.error('the store does not answer', { error: cause })
    emit({ type: 'store-unavailable', error: cause })
  }

  #answers(): void {
    const { clock, logger, emit } = this.#parts
    const wasDown = this.#state === 'down'
    const downMs = Math.max(0, clock.now() - this.#sinceMs)
    const counts = { failedRequests: this.#failedRequests, otherFaults: this.#otherFaults }
    const lines = this.#end('up')
    for (const line of lines) line()
    if (!wasDown) return
    logger.info('the store answers again', { downMs, ...counts })
    emit({ type: 'store-recovered', downMs, ...counts })
  }

  /** Leaves the current state and returns the pending log lines. */
  #end(state: 'up' | 'closed'): readonly (() => void)[] {
    const lines = this.#lines
    this.#state = state
    this.#failedRequests = 0
    this.#otherFaults = 0
    this.#lines = []
    return lines
  }
}

const isTrue = (): boolean => true
const isFalse = (): boolean => false

/** Returns the value of the promise, or `late` if it takes longer than {@link STORE_TIMEOUT_MS}. */
export function withinTime<Value>(promise: Promise<Value>, late: Value, clock: Clock): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(STORE_TIMEOUT_MS, () => resolve(late))
    promise.then(resolve, reject).finally(() => timer.cancel())
  })
}

const FIRST_DELAY_MS = 250
const MAX_RETRY_DELAY_MS = 5_000

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
    this.#delayMs = left.length > 0 ? Math.min(this.#delayMs * 2, MAX_RETRY_DELAY_MS) : FIRST_DELAY_MS
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
