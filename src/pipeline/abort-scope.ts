import type { Clock, Timer } from '../core/clock.ts'
import type { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'

/** What happens at the vendor when the caller disconnects: stop the call, or read it to the end within a bounded time. */
export type DisconnectPolicy = 'cancel' | 'drain'

/** A policy for everything, or one per endpoint by its id; endpoints that are not listed use `default`, or `cancel`. */
export type DisconnectPolicies = DisconnectPolicy | Readonly<Record<string, DisconnectPolicy>>

/** Most abandoned calls that are drained at the same time; further ones are aborted under any policy. */
const MAX_DRAINING = 100

/** What is known of a call whose caller disconnects. */
export interface AbandonedCall {
  readonly endpointId: string
  /** Has the model used tokens that only the vendor's report can tell? */
  readonly isUnseen: boolean
}

/** Decides what to do about callers who disconnect, and bounds how much is read that no caller gets. */
export class Disconnects {
  readonly drainMs: number
  readonly #policies: DisconnectPolicies | undefined
  #draining = 0

  /** @param policies Undefined: what is seen is cancelled, what is not is drained. */
  constructor(policies: DisconnectPolicies | undefined, drainMs: number) {
    this.#policies = policies
    this.drainMs = drainMs
  }

  /** Asks whether an abandoned call may be read on; when it may, `release` must be called once it is over. */
  mayDrain(call: AbandonedCall): boolean {
    return this.drains(call) && this.mayReadOn()
  }

  /** Does the policy have such a call read to its end? */
  drains({ endpointId, isUnseen }: AbandonedCall): boolean {
    return (policyOf(this.#policies, endpointId) ?? (isUnseen ? 'drain' : 'cancel')) === 'drain'
  }

  /** Asks whether one more abandoned call may be read on, whatever the policy. */
  mayReadOn(): boolean {
    if (this.#draining >= MAX_DRAINING) return false
    this.#draining += 1
    return true
  }

  release(): void {
    this.#draining -= 1
  }
}

function policyOf(policies: DisconnectPolicies | undefined, endpointId: string): DisconnectPolicy | undefined {
  if (policies === undefined || typeof policies === 'string') return policies
  return Object.hasOwn(policies, endpointId) ? policies[endpointId] : policies['default']
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
  onDisconnect(listener: (() => void) | undefined): void {
    this.#listener = listener
    if (this.#isDisconnected) listener?.()
  }
}

/** A vendor call that can be ended. */
export interface AbortableCall {
  abort(): void
  /** True while its vendor has nothing of it. Absent: it may have. */
  readonly isUnsent?: boolean
}

/** Why calls are aborted. An error: the caller may not have the answer any more. */
type AbortReason = 'overdue' | 'otherwise' | GatewayError

/** The vendor calls of one request, which end together. */
export class AbortScope implements AbortableCall {
  // Nearly every request has one call; a set is made only for more.
  #call: AbortableCall | undefined
  #others: Set<AbortableCall> | undefined
  #aborted: AbortReason | undefined
  #drain: { readonly timer: Timer; readonly disconnects: Disconnects; readonly sinceMs: number } | undefined
  #releases: (() => void)[] | undefined
  readonly #parent: AbortScope | undefined

  /** @param parent The scope of which this one is a member. */
  constructor(parent?: AbortScope) {
    this.#parent = parent
  }

  /** Adds a call before it begins; false when the scope is aborted and the call must not begin. */
  add(call: AbortableCall): boolean {
    if (this.isAborted) return false
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
    return this.#aborted !== undefined
  }

  /** Was it aborted because the whole time of its request was over? */
  get isOverdue(): boolean {
    return this.#aborted === 'overdue'
  }

  /** Error for the caller, if the scope was aborted because the caller's rights have ended. */
  get refusal(): GatewayError | undefined {
    return typeof this.#aborted === 'object' ? this.#aborted : undefined
  }

  abort(why: AbortReason = 'otherwise'): void {
    this.#aborted ??= why
    const others = this.#others
    this.#call?.abort()
    if (others !== undefined) for (const call of others) call.abort()
    this.#call = undefined
    this.#others = undefined
  }

  /** Has no vendor anything of its calls? */
  get isUnsent(): boolean {
    if (this.#call !== undefined && this.#call.isUnsent !== true) return false
    if (this.#others !== undefined) for (const call of this.#others) if (call.isUnsent !== true) return false
    return true
  }

  /** Are the calls read on for a caller who has disconnected? Then nothing is asked for again. */
  get isReadOn(): boolean {
    return this.#drain !== undefined || this.#parent?.isReadOn === true
  }

  /** Returns for how long the calls were read on, in milliseconds. */
  readOnMs(nowMs: number): number {
    return this.#drain === undefined ? 0 : nowMs - this.#drain.sinceMs
  }

  /**
   * The caller has disconnected: ends the calls, or drains them for a while where the policy says so and something was sent. Later
   * calls do nothing.
   */
  abandon(disconnects: Disconnects, call: AbandonedCall, clock: Clock): void {
    if (this.isAborted || this.#drain !== undefined) return
    if (this.isUnsent || !disconnects.mayDrain(call)) this.abort()
    else this.#readOn(disconnects, disconnects.drainMs, clock)
  }

  /**
   * The caller has disconnected and only the report of usage is missing: reads on for so long whatever the policy. False where
   * nothing was sent, or too many calls are read on already.
   */
  awaitUsage(disconnects: Disconnects, waitMs: number, clock: Clock): boolean {
    if (this.isAborted || this.#drain !== undefined || this.isUnsent || !disconnects.mayReadOn()) return false
    this.#readOn(disconnects, waitMs, clock)
    return true
  }

  /** Of several calls only those go on that a vendor has. */
  #readOn(disconnects: Disconnects, waitMs: number, clock: Clock): void {
    this.#drain = { timer: clock.schedule(waitMs, () => this.abort()), disconnects, sinceMs: clock.now() }
    if (this.#call?.isUnsent === true) this.#call.abort()
    if (this.#others !== undefined) for (const call of this.#others) if (call.isUnsent === true) call.abort()
  }

  /** Adds memory that the calls need until an answer begins; `release` is called once. */
  holds(release: () => void): void {
    this.#releases = [...(this.#releases ?? []), release]
  }

  /** Releases the memory of calls that are over or being answered. */
  releaseMemory(): void {
    const releases = this.#releases
    this.#releases = undefined
    if (releases !== undefined) for (const release of releases) release()
  }

  /** The request is over. */
  end(): void {
    this.releaseMemory()
    this.#drain?.timer.cancel()
    this.#drain?.disconnects.release()
    this.#drain = undefined
  }
}
