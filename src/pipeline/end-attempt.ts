import type { CatalogModel } from '../catalog/model.ts'
import type { AbortScope } from './abort-scope.ts'
import type { UnstreamedOutcome } from './attempt.ts'
import type { CandidateCall } from './candidate-call.ts'
import { failureOfTransport, failureOfVendor } from './error-classification.ts'

/** Total time of a request. */
export interface RequestTime {
  isOver: boolean
}

/** Context of a call that ends. */
export interface EndedAttempt {
  readonly requestId: string
  readonly scope: AbortScope
  readonly time: RequestTime
}

/**
 * Reports the outcome of an unstreamed call to its candidate, and returns it. A call that was stopped by a timeout counts as a
 * failure of its vendor; a call that was stopped for another reason counts for nothing.
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

/** An id that no catalog knows is the caller's own text, so a vendor without such a model blames the caller, and no alert is sent. */
function aboutModel(outcome: UnstreamedOutcome, { family }: CatalogModel): UnstreamedOutcome {
  const problem = outcome.kind === 'failed' ? outcome.failure.operatorProblem : undefined
  if (family === undefined || problem === undefined || problem.concerns === 'key') return outcome
  if (problem.status !== 400 && problem.status !== 404) return outcome
  return { kind: 'failed', failure: failureOfVendor({ ...problem, kind: 'caller' }) }
}

/** Returns the failure as a timeout of the vendor: the total time of the request was exceeded before it answered. */
function overdue(outcome: UnstreamedOutcome): UnstreamedOutcome {
  if (outcome.kind !== 'failed' || !outcome.failure.wasSent) return outcome
  const error = new Error('the total time of the request was exceeded')
  // Known facts of the answer are kept.
  const failure = { ...outcome.failure, ...failureOfTransport({ phase: 'sent', kind: 'timeout', error }) }
  return { kind: 'failed', failure }
}
