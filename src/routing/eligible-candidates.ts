import type { Circuit } from './circuit-breaker.ts'

/** A candidate as the decision sees it. */
export interface EligibleCandidate {
  readonly model: { readonly id: string }
  readonly vendor: { readonly id: string }
  /** The smallest number goes first. */
  readonly priority: number
  readonly load: { readonly hasRoom: boolean }
  /** Which call of the gateway it took last. */
  readonly lastTurn: number
  circuitAt(nowMs: number): Circuit
}

/** What the decision depends on beside the candidates. */
export interface SelectionContext<Candidate> {
  readonly nowMs: number
  /** Was nobody asked yet? Then somebody is, even if every circuit is open. */
  readonly isFirst: boolean
  /** May a half-open circuit be probed while others are closed? */
  readonly mayProbe: boolean
  /** Is it out of the question: asked before, unable, or a fallback that must not answer? */
  isExcluded(candidate: Candidate): boolean
  /** Did it make reasoning that the request carries? */
  ownsReasoning(candidate: Candidate): boolean
  /** Who failed last, and whether that was its key's own matter. */
  readonly lastFailed: { readonly vendorId: string; readonly isOfKey: boolean } | undefined
}

/** Those who may be asked next and between whom nothing but a strategy decides. Empty: nobody. */
export type Eligible<Candidate> = readonly [] | readonly [Candidate, ...Candidate[]]

/**
 * Decides who may be asked next. In this order: an open circuit waits while another is closed; the model asked for goes
 * before its fallbacks, which are given in order; a vendor that made the request's reasoning goes first; a vendor without
 * room waits while another of the model has some; the smallest priority goes first. After a failure of a key the vendor's
 * other keys go first, after a failure of a vendor other vendors. If every circuit is open, the candidate that was asked
 * longest ago is tried.
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

/** Those who are preferred; all when nobody is. The list itself where nobody is left out, which is what mostly happens. */
function preferred<Candidate>(candidates: Candidate[], isPreferred: (candidate: Candidate) => boolean): Candidate[] {
  let count = 0
  for (const candidate of candidates) if (isPreferred(candidate)) count++
  return count === 0 || count === candidates.length ? candidates : candidates.filter(isPreferred)
}
