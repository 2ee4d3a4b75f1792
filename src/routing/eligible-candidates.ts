import type { Circuit } from './circuit-breaker.ts'

/** A candidate as selection sees it. */
export interface EligibleCandidate {
  readonly model: { readonly id: string }
  readonly vendor: { readonly id: string }
  /** The smallest number goes first. */
  readonly priority: number
  readonly load: { readonly hasRoom: boolean }
  /** Sequence number of its last call. */
  readonly lastTurn: number
  circuitAt(nowMs: number): Circuit
}

/** The selection context beside the candidates. */
export interface SelectionContext<Candidate> {
  readonly nowMs: number
  /** Is this the first call? Then one candidate is called even if every circuit is open. */
  readonly isFirst: boolean
  /** May a half-open circuit be probed while others are closed? */
  readonly mayProbe: boolean
  /** Is it excluded: tried before, unsupported, or a fallback that must not answer? */
  isExcluded(candidate: Candidate): boolean
  /** Did it produce reasoning that the request carries? */
  ownsReasoning(candidate: Candidate): boolean
  /** The last candidate that failed, and whether the cause was its key. */
  readonly lastFailed: { readonly vendorId: string; readonly isOfKey: boolean } | undefined
}

/** The candidates among which only the strategy decides. Empty: none. */
export type Eligible<Candidate> = readonly [] | readonly [Candidate, ...Candidate[]]

/**
 * Decides which candidates may be called next. In this order: an open circuit waits while another is closed; the requested
 * model goes before its fallbacks, which keep their order; a vendor that made the request's reasoning goes first; a vendor
 * without room waits while another of the model has some; the smallest priority goes first. After a failure of a key the
 * vendor's other keys go first, after a failure of a vendor other vendors. If every circuit is open, the least recently
 * used candidate is tried.
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
 * The preferred candidates; all if none is preferred. Returns the same list if nothing is filtered, which is the usual
 * case.
 */
function preferred<Candidate>(candidates: Candidate[], isPreferred: (candidate: Candidate) => boolean): Candidate[] {
  let count = 0
  for (const candidate of candidates) if (isPreferred(candidate)) count++
  return count === 0 || count === candidates.length ? candidates : candidates.filter(isPreferred)
}
