import { type Circuit, type FallbackPolicy, pickByKey, type RouteCandidate, type RoutingStrategy } from './candidate.ts'

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

/** Candidate in the view of the selection. */
export interface EligibleCandidate {
  readonly model: { readonly id: string }
  readonly vendor: { readonly id: string }
  /** Priority; the smallest number comes first. */
  readonly priority: number
  /** Sequence number of its last call. */
  readonly lastTurn: number
  circuitAt(nowMs: number): Circuit
}

/** Selection context in addition to the candidates. */
export interface SelectionContext<Candidate> {
  readonly nowMs: number
  /** Whether this is the first call. If so, one candidate is called even if every circuit is open. */
  readonly isFirst: boolean
  /** Whether a half-open circuit may be probed while others are closed. */
  readonly mayProbe: boolean
  /** Whether a candidate is excluded: tried before, unsupported, or a fallback that must not answer. */
  isExcluded(candidate: Candidate): boolean
  /** Whether a candidate produced reasoning that the request contains. */
  ownsReasoning(candidate: Candidate): boolean
  /** The last candidate that failed, and whether the cause was its key. */
  readonly lastFailed: { readonly vendorId: string; readonly isOfKey: boolean } | undefined
}

/** Candidates among which only the strategy decides; may be empty. */
type Eligible<Candidate> = readonly [] | readonly [Candidate, ...Candidate[]]

/**
 * Decides which candidates may be called next. Rules in order: a candidate with an open circuit waits while another is closed;
 * the requested model precedes its fallbacks, which keep their order; a vendor that produced the request's reasoning comes first;
 * the smallest priority comes first. After a failure of a key, other keys of the vendor come first; after a failure of a vendor,
 * other vendors. If every circuit is open, the least recently used candidate is tried.
 */
export function eligibleCandidates<Candidate extends EligibleCandidate>(
  candidates: readonly Candidate[],
  context: SelectionContext<Candidate>,
): Eligible<Candidate> {
  const { nowMs, mayProbe, lastFailed } = context
  let left: Candidate[] = []
  let isClosedLeft = false
  for (const candidate of candidates) {
    if (context.isExcluded(candidate)) continue
    const circuit = candidate.circuitAt(nowMs)
    if (circuit === 'closed') isClosedLeft = true
    if (circuit !== 'open') left.push(candidate)
  }
  const isProbe = (candidate: Candidate): boolean => candidate.circuitAt(nowMs) === 'half-open'
  if (isClosedLeft && !mayProbe) left = left.filter((candidate) => !isProbe(candidate))
  const [first] = left
  if (first === undefined) return context.isFirst ? lastResort(candidates, context) : []
  left = preferred(left, ({ model }) => model.id === first.model.id)
  left = preferred(left, (candidate) => context.ownsReasoning(candidate))
  const lowest = lowestPriority(left)
  left = preferred(left, ({ priority }) => priority === lowest)
  if (lastFailed !== undefined)
    left = preferred(left, ({ vendor }) => (vendor.id === lastFailed.vendorId) === lastFailed.isOfKey)
  return preferred(left, isProbe) as [Candidate, ...Candidate[]]
}

function lastResort<Candidate extends EligibleCandidate>(
  candidates: readonly Candidate[],
  context: SelectionContext<Candidate>,
): Eligible<Candidate> {
  let longestAgo: Candidate | undefined
  for (const candidate of candidates) {
    if (context.isExcluded(candidate)) continue
    if (longestAgo === undefined) longestAgo = candidate
    else if (candidate.model.id === longestAgo.model.id && candidate.lastTurn < longestAgo.lastTurn)
      longestAgo = candidate
  }
  return longestAgo === undefined ? [] : [longestAgo]
}

function lowestPriority(candidates: readonly EligibleCandidate[]): number {
  let lowest = Number.POSITIVE_INFINITY
  for (const { priority } of candidates) if (priority < lowest) lowest = priority
  return lowest
}

/**
 * Returns the preferred candidates, or all if none is preferred. Returns the same list if nothing is filtered, which is the usual
 * case.
 */
function preferred<Candidate>(candidates: Candidate[], isPreferred: (candidate: Candidate) => boolean): Candidate[] {
  let count = 0
  for (const candidate of candidates) if (isPreferred(candidate)) count++
  return count === 0 || count === candidates.length ? candidates : candidates.filter(isPreferred)
}

/** Entry that receives its share of calls by weight. */
export interface Weighted {
  /** Positive weight. */
  readonly weight: number
  /** Accumulated credit of the entry; changed only here. */
  credit: number
}

/**
 * Picks by smooth weighted round-robin: each entry gets its weight as credit, and the entry with the most credit is picked
 * and pays the total. It is deterministic, so shares are exact within one pick, and the picks of an entry are spread
 * evenly.
 */
export function pickSmoothly<Entry extends Weighted>(entries: readonly [Entry, ...Entry[]]): Entry {
  let picked: Entry = entries[0]
  if (entries.length === 1) return picked
  let total = 0
  for (const entry of entries) {
    entry.credit += entry.weight
    total += entry.weight
    if (entry.credit > picked.credit) picked = entry
  }
  picked.credit -= total
  return picked
}

/** Initial retries, so that a gateway with little traffic can retry. */
const INITIAL_RETRIES = 10
/** Retries earned per request. With the initial ones, the first 1,000 requests allow at most 100 retries. */
const RETRIES_PER_REQUEST = 0.09
/**
 * Maximum number of accumulated retries, enough to move the requests in progress when a vendor fails. Any 1,000 consecutive
 * requests allow at most 190 retries.
 */
const MAX_SAVED_RETRIES = 100

/**
 * Limits retries to a share of all requests, so that retries do not multiply the load on failing vendors. Retries at the
 * same vendor and at another one both count.
 */
export class RetryBudget {
  #retries = INITIAL_RETRIES

  /** Number of retries available now. */
  get left(): number {
    return Math.floor(this.#retries)
  }

  /** Counts a request that was sent for the first time. */
  deposit(): void {
    this.#retries = Math.min(MAX_SAVED_RETRIES, this.#retries + RETRIES_PER_REQUEST)
  }

  /** Uses one retry. Returns false if the budget is exhausted. */
  withdraw(): boolean {
    if (this.#retries < 1) return false
    this.#retries -= 1
    return true
  }
}
