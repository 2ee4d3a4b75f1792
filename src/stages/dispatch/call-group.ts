import type { Clock, Timer } from '../../core/clock.ts'
import type { Disconnects } from '../disconnect-policy.ts'

/** A vendor call that can be ended. */
export interface AbortableCall {
  abort(): void
}

/** The vendor calls of one request, which end together. */
export class CallGroup {
  /** For the list of requests under way. */
  place = -1
  // Nearly every request has one call; a set is made only for more.
  #call: AbortableCall | undefined
  #others: Set<AbortableCall> | undefined
  #isAborted = false
  #drain: { readonly timer: Timer; readonly disconnects: Disconnects } | undefined

  /** Adds a call before it begins; false when the group is over and the call must not begin. */
  add(call: AbortableCall): boolean {
    if (this.#isAborted) return false
    if (this.#call === undefined) this.#call = call
    else {
      this.#others ??= new Set()
      this.#others.add(call)
    }
    return true
  }

  delete(call: AbortableCall): void {
    if (this.#call === call) this.#call = undefined
    else this.#others?.delete(call)
  }

  get isAborted(): boolean {
    return this.#isAborted
  }

  abort(): void {
    this.#isAborted = true
    const others = this.#others
    this.#call?.abort()
    if (others !== undefined) for (const call of others) call.abort()
    this.#call = undefined
    this.#others = undefined
  }

  /** The caller has left: ends the calls, or lets them go on for a while where the policy says so. Later calls do nothing. */
  abandon(disconnects: Disconnects, endpointId: string, clock: Clock): void {
    if (this.#isAborted || this.#drain !== undefined) return
    if (!disconnects.mayDrain(endpointId)) this.abort()
    else this.#drain = { timer: clock.schedule(disconnects.drainMs, () => this.abort()), disconnects }
  }

  /** The request is over. */
  end(): void {
    this.#drain?.timer.cancel()
    this.#drain?.disconnects.release()
    this.#drain = undefined
  }
}
