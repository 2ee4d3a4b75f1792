import { type Eligible, eligibleCandidates } from './eligible-candidates.ts'
import { pickByKey } from './rendezvous.ts'
import type { RouteCandidate } from './route-candidate.ts'
import type { FallbackPolicy, RoutingStrategy } from './routing-options.ts'
import { pickSmoothly } from './smooth-weighted.ts'

/** Selection settings of a request. */
export interface SelectionOptions {
  readonly strategy: RoutingStrategy
  readonly fallback: FallbackPolicy
  readonly isStream: boolean
  /** Key whose requests go to the same candidate if possible, or `undefined` for any candidate. */
  readonly stickyKey: string | undefined
  /** Returns the messages of the request, in which vendors find their own reasoning. */
  conversation(): { readonly model: string }
  /** Returns the cost of the request at a candidate, in nano-dollars; undefined if unknown. */
  costAt(candidate: RouteCandidate): bigint | undefined
}

/** Details of a failure that matter for the next selection. */
export interface FailedCall {
  /** HTTP status that the caller would get. */
  readonly status: number
  /** Whether the key is the cause, so that another key of the vendor may work. */
  readonly isOfKey: boolean
}

/** Status if every circuit of the model is open. */
const NOBODY_STATUS = 503

/** Selects the candidates for one request, one after another. Used only if there is a choice. */
export class Selection {
  readonly #candidates: readonly RouteCandidate[]
  readonly #options: SelectionOptions
  // A list, because for few entries it is cheaper than a set per request.
  readonly #excluded: RouteCandidate[] = []
  /** Whether a credential produced the request's reasoning. */
  #authors: Map<string, boolean> | undefined
  #conversation: { readonly model: string } | undefined
  /** Ids of models that are called first only if no other model can be. */
  #passedOver: ReadonlySet<string> | undefined
  #lastFailed: { readonly vendorId: string; readonly isOfKey: boolean } | undefined
  #status = NOBODY_STATUS
  #isFirst = true

  constructor(candidates: readonly RouteCandidate[], options: SelectionOptions) {
    this.#candidates = candidates
    this.#options = options
  }

  /** Returns the next candidate; undefined if none remains. */
  next(nowMs: number, mayProbe: boolean): RouteCandidate | undefined {
    let left = this.#eligible(nowMs, mayProbe)
    if (left.length === 0 && this.#isFirst && this.#passedOver !== undefined) {
      this.#passedOver = undefined
      left = this.#eligible(nowMs, mayProbe)
    }
    return left.length < 2 ? left[0] : this.#picked(left as readonly [RouteCandidate, ...RouteCandidate[]], nowMs)
  }

  /** Whether another candidate for the same model exists whose circuit is not open. */
  hasAlternative(candidate: RouteCandidate, nowMs: number): boolean {
    return this.#candidates.some(
      (other) =>
        other !== candidate &&
        other.model.id === candidate.model.id &&
        !this.#excluded.includes(other) &&
        other.circuitAt(nowMs) !== 'open',
    )
  }

  /** Whether another route of the same model remains, with another vendor or upstream id. */
  hasOtherRoute(candidate: RouteCandidate): boolean {
    return this.#candidates.some(
      (other) =>
        other.model.id === candidate.model.id && other.model !== candidate.model && !this.#excluded.includes(other),
    )
  }

  /** Excludes a candidate that does not support the request, and the other keys of its vendor. */
  skip(candidate: RouteCandidate): void {
    for (const other of this.#candidates) if (other.model === candidate.model) this.#excluded.push(other)
  }

  /**
   * Allows these models only if no other model can be called first. If the requested model is one of them, its fallbacks answer
   * as if it had failed with this HTTP status. Returns false, without any change, if they must not answer.
   */
  passOver(models: ReadonlySet<string>, status: number): boolean {
    if (!this.#mayFallBack(status)) return false
    this.#passedOver = models
    this.#status = status
    return true
  }

  /** Excludes models that cannot answer the request. */
  exclude(models: ReadonlySet<string>): void {
    for (const other of this.#candidates) if (models.has(other.model.id)) this.#excluded.push(other)
  }

  /** Notes that the candidate is being called. */
  asked(candidate: RouteCandidate): void {
    this.#excluded.push(candidate)
    this.#isFirst = false
  }

  /** Notes that the candidate has failed, and another one may answer. */
  failed(candidate: RouteCandidate, { status, isOfKey }: FailedCall): void {
    this.#status = status
    this.#lastFailed = { vendorId: candidate.vendor.id, isOfKey }
  }

  #eligible(nowMs: number, mayProbe: boolean): Eligible<RouteCandidate> {
    const mayFallBack = this.#mayFallBack(this.#status)
    const asked = this.#candidates[0]?.model.id
    return eligibleCandidates(this.#candidates, {
      nowMs,
      mayProbe,
      isFirst: this.#isFirst,
      isExcluded: (candidate) =>
        this.#excluded.includes(candidate) ||
        (!mayFallBack && candidate.model.id !== asked) ||
        this.#passedOver?.has(candidate.model.id) === true,
      ownsReasoning: (candidate) => this.#ownsReasoning(candidate),
      lastFailed: this.#lastFailed,
    })
  }

  #mayFallBack(status: number): boolean {
    const { fallback } = this.#options
    if (typeof fallback === 'object') return fallback.statuses.includes(status)
    return fallback === 'on-failure'
  }

  #ownsReasoning({ vendor, apiKey, credentialId }: RouteCandidate): boolean {
    if (vendor.ownsReasoning === undefined) return false
    this.#authors ??= new Map()
    let isAuthor = this.#authors.get(credentialId)
    if (isAuthor === undefined) {
      this.#conversation ??= this.#options.conversation()
      isAuthor = vendor.ownsReasoning(this.#conversation, apiKey)
      this.#authors.set(credentialId, isAuthor)
    }
    return isAuthor
  }

  #picked(left: readonly [RouteCandidate, ...RouteCandidate[]], nowMs: number): RouteCandidate {
    const { stickyKey, strategy } = this.#options
    if (stickyKey !== undefined) return pickByKey(left, stickyKey)
    switch (strategy) {
      case 'weighted':
        return pickSmoothly(left)
      case 'latency':
        return this.#sooner(pickSmoothly(left), pickSmoothly(left), nowMs)
      case 'cost':
        return pickSmoothly(this.#cheapest(left))
    }
  }

  #sooner(one: RouteCandidate, other: RouteCandidate, nowMs: number): RouteCandidate {
    const waitAt = (candidate: RouteCandidate): number =>
      candidate.expectedMs(this.#options.isStream, nowMs) * (candidate.key.inFlight + 1)
    return waitAt(other) < waitAt(one) ? other : one
  }

  #cheapest(left: readonly [RouteCandidate, ...RouteCandidate[]]): readonly [RouteCandidate, ...RouteCandidate[]] {
    let cheapest: [RouteCandidate, ...RouteCandidate[]] = [left[0]]
    let lowest = this.#options.costAt(left[0])
    for (const candidate of left.slice(1)) {
      const cost = this.#options.costAt(candidate)
      if (cost === lowest) cheapest.push(candidate)
      else if (cost !== undefined && (lowest === undefined || cost < lowest)) {
        cheapest = [candidate]
        lowest = cost
      }
    }
    return cheapest
  }
}
