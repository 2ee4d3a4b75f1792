import type { Clock, Timer } from '../core/clock.ts'
import type { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'

/** Policy for a vendor call whose caller disconnects: stop the call, or read it to the end within a time limit. */
export type DisconnectPolicy = 'cancel' | 'drain'

/** Policy for all endpoints, or one per endpoint id. Endpoints that are not listed use `default`, or `cancel`. */
export type DisconnectPolicies = DisconnectPolicy | Readonly<Record<string, DisconnectPolicy>>

/** Maximum number of abandoned calls that are drained at the same time. Others are aborted under any policy. */
const MAX_DRAINING = 100

/** Facts of a call whose caller disconnects. */
export interface AbandonedCall {
  readonly endpointId: string
  /** Whether the model has used tokens that only the vendor's report contains. */
  readonly isUnseen: boolean
}

/** Decides what to do when callers disconnect, and limits how much unused output is read. */
export class Disconnects {
  readonly drainMs: number
  readonly #policies: DisconnectPolicies | undefined
  #draining = 0

  /** @param policies If undefined, calls with visible output are cancelled, and calls with hidden output are drained. */
  constructor(policies: DisconnectPolicies | undefined, drainMs: number) {
    this.#policies = policies
    this.drainMs = drainMs
  }

  /** Returns whether an abandoned call may be drained. If true, `release` must be called when it has ended. */
  mayDrain(call: AbandonedCall): boolean {
    return this.drains(call) && this.mayReadOn()
  }

  /** Returns whether the policy drains such a call. */
  drains({ endpointId, isUnseen }: AbandonedCall): boolean {
    return (policyOf(this.#policies, endpointId) ?? (isUnseen ? 'drain' : 'cancel')) === 'drain'
  }

  /** Returns whether one more abandoned call may be drained, whatever the policy. */
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

  /** Sets the only listener, and calls it immediately if the caller has already disconnected. Undefined removes it. */
  onDisconnect(listener: (() => void) | undefined): void {
    this.#listener = listener
    if (this.#isDisconnected) listener?.()
  }
}

/** Vendor call that can be ended. */
export interface AbortableCall {
  abort(): void
  /** Whether nothing was sent to its vendor yet. If omitted, something may have been sent. */
  readonly isUnsent?: boolean
}

/** Reason why calls are aborted. An error means that the caller may no longer have the answer. */
type AbortReason = 'overdue' | 'otherwise' | GatewayError

/** Vendor calls of one request, which end together. */
export class AbortScope implements AbortableCall {
  // Nearly every request has one call; the set is created only for more.
  #call: AbortableCall | undefined
  #others: Set<AbortableCall> | undefined
  #aborted: AbortReason | undefined
  #drain: { readonly timer: Timer; readonly disconnects: Disconnects; readonly sinceMs: number } | undefined
  #releases: (() => void)[] | undefined
  readonly #parent: AbortScope | undefined

  /** @param parent Scope that contains this one. */
  constructor(parent?: AbortScope) {
    this.#parent = parent
  }

  /** Adds a call before it begins. Returns false if the scope is aborted and the call must not begin. */
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

  /** Whether the scope was aborted because the total time of its request was exceeded. */
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

  /** Whether none of its calls was sent to a vendor. */
  get isUnsent(): boolean {
    if (this.#call !== undefined && this.#call.isUnsent !== true) return false
    if (this.#others !== undefined) for (const call of this.#others) if (call.isUnsent !== true) return false
    return true
  }

  /** Whether the calls are drained for a caller that has disconnected. No retry follows then. */
  get isReadOn(): boolean {
    return this.#drain !== undefined || this.#parent?.isReadOn === true
  }

  /** Returns how long the calls were drained, in milliseconds. */
  readOnMs(nowMs: number): number {
    return this.#drain === undefined ? 0 : nowMs - this.#drain.sinceMs
  }

  /**
   * Handles a disconnected caller: ends the calls, or drains them for a while if the policy says so and something was sent.
   * Repeated calls have no effect.
   */
  abandon(disconnects: Disconnects, call: AbandonedCall, clock: Clock): void {
    if (this.isAborted || this.#drain !== undefined) return
    if (this.isUnsent || !disconnects.mayDrain(call)) this.abort()
    else this.#readOn(disconnects, disconnects.drainMs, clock)
  }

  /**
   * Drains the calls of a disconnected caller for this time, whatever the policy, because only the usage report is missing.
   * Returns false if nothing was sent, or if too many calls are being drained.
   */
  awaitUsage(disconnects: Disconnects, waitMs: number, clock: Clock): boolean {
    if (this.isAborted || this.#drain !== undefined || this.isUnsent || !disconnects.mayReadOn()) return false
    this.#readOn(disconnects, waitMs, clock)
    return true
  }

  /** Continues only those calls that were sent to a vendor. */
  #readOn(disconnects: Disconnects, waitMs: number, clock: Clock): void {
    this.#drain = { timer: clock.schedule(waitMs, () => this.abort()), disconnects, sinceMs: clock.now() }
    if (this.#call?.isUnsent === true) this.#call.abort()
    if (this.#others !== undefined) for (const call of this.#others) if (call.isUnsent === true) call.abort()
  }

  /** Adds memory that the calls need until an answer begins. `release` is called once. */
  holds(release: () => void): void {
    this.#releases = [...(this.#releases ?? []), release]
  }

  /** Releases the memory of calls that have ended or are being answered. */
  releaseMemory(): void {
    const releases = this.#releases
    this.#releases = undefined
    if (releases !== undefined) for (const release of releases) release()
  }

  /** Ends the scope with its request. */
  end(): void {
    this.releaseMemory()
    this.#drain?.timer.cancel()
    this.#drain?.disconnects.release()
    this.#drain = undefined
  }
}
