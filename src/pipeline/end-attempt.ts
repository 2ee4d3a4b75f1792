import type { CatalogModel } from '../catalog/model.ts'
import type { AbortScope } from './abort-scope.ts'
import type { UnstreamedOutcome } from './attempt.ts'
import type { CandidateCall } from './candidate-call.ts'
import { failureOfTransport, failureOfVendor } from './error-classification.ts'

/** The whole time that a request may take. */
export interface RequestTime {
  isOver: boolean
}

/** What a call that ends belongs to. */
export interface EndedAttempt {
  readonly requestId: string
  readonly scope: AbortScope
  readonly time: RequestTime
}

/**
 * Reports to its candidate what came of a call that did not become a stream, and gives it. A call that was stopped because the time
 * was over has failed at its vendor; one that was stopped for another reason counts for nothing.
 */
export function endAttempt(
  asked: CandidateCall,
  tried: UnstreamedOutcome,
  { requestId, scope, time }: EndedAttempt,
): UnstreamedOutcome {
  const outcome = time.isOver ? overdue(tried) : aboutModel(tried, asked.candidate.model)
  if (outcome.kind === 'json') asked.answered()
  else if (scope.isAborted && !time.isOver) asked.ignored()
  else asked.failed(requestId, outcome.failure)
  return outcome
}

/** An id that no catalog knows is the caller's own text, so a vendor that has no such model refuses the caller, and alerts nobody. */
function aboutModel(outcome: UnstreamedOutcome, { family }: CatalogModel): UnstreamedOutcome {
  const problem = outcome.kind === 'failed' ? outcome.failure.operatorProblem : undefined
  if (family === undefined || problem === undefined || problem.concerns === 'key') return outcome
  if (problem.status !== 400 && problem.status !== 404) return outcome
  return { kind: 'failed', failure: failureOfVendor({ ...problem, kind: 'caller' }) }
}

/** The same failure as the vendor's: the whole time of the request was over before it answered. */
function overdue(outcome: UnstreamedOutcome): UnstreamedOutcome {
  if (outcome.kind !== 'failed' || !outcome.failure.wasSent) return outcome
  const error = new Error('the whole time of the request is over')
  // What is known of the answer stays.
  const failure = { ...outcome.failure, ...failureOfTransport({ phase: 'sent', kind: 'timeout', error }) }
  return { kind: 'failed', failure }
}
