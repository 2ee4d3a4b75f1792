import type { Clock, Timer } from '../core/clock.ts'
import type { ByteSink } from '../core/exchange.ts'

/** What happens at the vendor when the caller disconnects: stop the call, or read it to the end within a bounded time. */
export type DisconnectPolicy = 'cancel' | 'drain'

/** A policy for everything, or one per endpoint by its id; endpoints that are not listed use `default`, or `cancel`. */
export type DisconnectPolicies = DisconnectPolicy | Readonly<Record<string, DisconnectPolicy>>

/** Most abandoned calls that are drained at the same time; further ones are aborted under any policy. */
const MAX_DRAINING = 100

/** Decides what happens when callers disconnect, and limits how many abandoned calls are drained. */
export class Disconnects {
  readonly drainMs: number
  readonly #policies: DisconnectPolicies
  #draining = 0

  constructor(policies: DisconnectPolicies, drainMs: number) {
    this.#policies = policies
    this.drainMs = drainMs
  }

  /** Asks whether an abandoned call may be drained. If so, `release` must be called when it is over. */
  mayDrain(endpointId: string): boolean {
    if (policyOf(this.#policies, endpointId) === 'cancel' || this.#draining >= MAX_DRAINING) return false
    this.#draining += 1
    return true
  }

  release(): void {
    this.#draining -= 1
  }
}

function policyOf(policies: DisconnectPolicies, endpointId: string): DisconnectPolicy {
  if (typeof policies === 'string') return policies
  const own = Object.hasOwn(policies, endpointId) ? policies[endpointId] : policies['default']
  return own ?? 'cancel'
}

/**
 * Reports when the caller disconnects. Watches the sink from the start, so that a disconnect is noticed while a vendor
 * works.
 */
export class DisconnectSignal {
  #isDisconnected = false
  #listener: (() => void) | undefined

  constructor(sink: ByteSink) {
    sink.onClose(() => {
      this.#isDisconnected = true
      this.#listener?.()
    })
  }

  get isDisconnected(): boolean {
    return this.#isDisconnected
  }

  /** Sets the one listener; it is called at once if the caller has already disconnected. Undefined removes it. */
  set onDisconnect(listener: (() => void) | undefined) {
    this.#listener = listener
    if (this.#isDisconnected) listener?.()
  }
}

/** A vendor call that can be ended. */
export interface AbortableCall {
  abort(): void
}

/** The vendor calls of one request, which end together. */
export class AbortScope implements AbortableCall {
  /** Index in the list of requests under way. */
  place = -1
  // Nearly every request has one call; a set is made only for more.
  #call: AbortableCall | undefined
  #others: Set<AbortableCall> | undefined
  #isAborted = false
  #drain: { readonly timer: Timer; readonly disconnects: Disconnects } | undefined

  /** Adds a call before it begins; false when the scope is aborted and the call must not begin. */
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

  /**
   * The caller has disconnected: aborts the calls, or drains them for a while under the policy `drain`. Repeated calls do
   * nothing.
   */
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
