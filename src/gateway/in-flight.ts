import type { Clock } from '../core/clock.ts'

/** A request under way. */
export interface Underway {
  /** Ends its vendor calls, so that it settles what it has and answers. */
  abort(): void
  /** Where {@link InFlight} keeps it; written by nobody else. */
  place: number
}

/** Grace for aborted requests to settle before the store is closed. */
const SETTLE_GRACE_MS = 5_000

/**
 * The requests under way, for a shutdown that loses none of them. A list in which each knows its place, so that adding and
 * removing cost the same however many there are.
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

  /** Waits until all requests have ended; after `drainMs` it ends the rest. */
  async drain(clock: Clock, drainMs: number): Promise<void> {
    if (await this.#emptyWithin(clock, drainMs)) return
    for (const request of [...this.#requests]) request.abort()
    await this.#emptyWithin(clock, SETTLE_GRACE_MS)
  }

  #emptyWithin(clock: Clock, delayMs: number): Promise<boolean> {
    if (this.#requests.length === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      const timer = clock.schedule(delayMs, () => {
        this.#onEmpty = undefined
        resolve(false)
      })
      this.#onEmpty = () => {
        this.#onEmpty = undefined
        timer.cancel()
        resolve(true)
      }
    })
  }
}
