import type { Clock } from '../core/clock.ts'

/** A request in progress. */
export interface Underway {
  /** Aborts its vendor calls, so that it settles and answers. */
  abort(): void
  /** Its position in {@link InFlight}; written there only. */
  place: number
}

/** Grace for aborted requests to settle before the store is closed. */
const SETTLE_GRACE_MS = 5_000

/**
 * The requests in progress, for a graceful shutdown. A list in which each entry knows its position, so adding and removing
 * take constant time.
 */
export class InFlight {
  readonly #requests: Underway[] = []
  #onEmpty: (() => void) | undefined

  add(request: Underway): void {
    request.place = this.#requests.length
    this.#requests.push(request)
  }

  delete(request: Underway): void {
    const last = this.#requests.pop()
    if (last !== undefined && last !== request) {
      this.#requests[request.place] = last
      last.place = request.place
    }
    if (this.#requests.length === 0) this.#onEmpty?.()
  }

  get size(): number {
    return this.#requests.length
  }

  /** Waits until all requests have ended; after `drainMs` it aborts the rest. */
  async drain(clock: Clock, drainMs: number): Promise<void> {
    if (await this.#emptyWithin(clock, drainMs)) return
    for (const request of [...this.#requests]) request.abort()
    await this.#emptyWithin(clock, SETTLE_GRACE_MS)
  }

  #whenEmpty(listener: () => void): void {
    this.#onEmpty = listener
  }

  #emptyWithin(clock: Clock, delayMs: number): Promise<boolean> {
    if (this.#requests.length === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      const timer = clock.schedule(delayMs, () => {
        this.#onEmpty = undefined
        resolve(false)
      })
      this.#whenEmpty(() => {
        this.#onEmpty = undefined
        timer.cancel()
        resolve(true)
      })
    })
  }
}
