import type { Circuit } from './circuit-breaker.ts'

/** Candidate in the view of the selection. */
export interface EligibleCandidate {
  readonly model: { readonly id: string }
  readonly vendor: { readonly id: string }
  /** Priority; the smallest number comes first. */
  readonly priority: number
  readonly load: { readonly hasRoom: boolean }
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
export type Eligible<Candidate> = readonly [] | readonly [Candidate, ...Candidate[]]

/**
 * Decides which candidates may be called next. Rules in order: a candidate with an open circuit waits while another is closed;
 * the requested model precedes its fallbacks, which keep their order; a vendor that produced the request's reasoning comes first;
 * a vendor without capacity waits while another of the model has some; the smallest priority comes first. After a failure of a
 * key, other keys of the vendor come first; after a failure of a vendor, other vendors. If every circuit is open, the least
 * recently used candidate is tried.
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
  left = preferred(left, ({ load }) => load.hasRoom)
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
