import type { Operation } from '../endpoints/operation.ts'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import type { Selection } from '../routing/selection.ts'
import { AbortScope } from './abort-scope.ts'
import { attempt, type UnstreamedOutcome } from './attempt.ts'
import type { Reserved } from './call-record.ts'
import { CandidateCall } from './candidate-call.ts'
import type { AttemptFailure } from './error-classification.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { prepareIfAble } from './prepare-operation.ts'
import { emitUnbilledUsage, unreportedUsage } from './unbilled-usage.ts'
import { estimatedUsage, generatesTokens } from './usage-estimate.ts'

/** A candidate and its prepared request. */
export interface PreparedCall {
  readonly candidate: RouteCandidate
  readonly operation: Operation
}

/** The result of a prepared call. */
export interface HedgeResult extends PreparedCall {
  readonly outcome: UnstreamedOutcome
}

/** May a second candidate be called while the first one is slow? */
export function mayHedge(context: PipelineContext, { endpoint, isStream }: Reserved): boolean {
  return context.routing.hedge !== undefined && !isStream && endpoint.canHedge === true
}

/**
 * Calls a candidate. If it is slow, also calls another one of the same model, once, within the retry budget. The first
 * answer wins and the other call is aborted; an event tells what its vendor may bill. It fails if both have failed, or if there was
 * no second call.
 */
export function hedge(
  context: PipelineContext,
  call: Reserved,
  first: PreparedCall,
  selection: Selection,
): Promise<HedgeResult> {
  const afterMs = context.routing.hedge?.afterMs ?? 0
  return new Promise((resolve, reject) => {
    const running = new Map<AbortScope, PreparedCall>()
    const scopes: AbortScope[] = []
    let isOver = false
    const end = (): void => {
      isOver = true
      timer.cancel()
      for (const scope of scopes) call.calls.delete(scope)
    }
    const start = (prepared: PreparedCall): void => {
      const own = new AbortScope()
      scopes.push(own)
      running.set(own, prepared)
      // An aborted scope takes no calls; the calls of its members then end at once.
      if (!call.calls.add(own)) own.abort()
      run(context, call, prepared, own).then(
        (outcome) => {
          running.delete(own)
          if (isOver) return
          if (outcome.kind === 'failed' && running.size > 0) return tellFailed(context, call, prepared, outcome.failure)
          end()
          for (const loser of running.values()) tellStopped(context, call, loser)
          for (const other of scopes) if (other !== own) other.abort()
          resolve({ ...prepared, outcome })
        },
        (fault) => {
          running.delete(own)
          if (isOver) return reportFault(context, call.requestId, 'hedge', fault)
          end()
          for (const other of scopes) other.abort()
          reject(fault)
        },
      )
    }
    const timer = context.clock.schedule(afterMs, () => {
      prepareSecond(context, call, first.candidate, selection).then(
        (second) => {
          if (second === undefined) return
          if (isOver || call.calls.isAborted || !context.retryBudget.withdraw()) return
          selection.asked(second.candidate)
          start(second)
        },
        (fault) => reportFault(context, call.requestId, 'hedge', fault),
      )
    })
    start(first)
  })
}

/** One of two calls has failed, and the other one decides. */
function tellFailed(
  context: PipelineContext,
  call: Reserved,
  { candidate, operation }: PreparedCall,
  failure: AttemptFailure,
): void {
  const reasonsUnseen = operation.reasonsUnseen === true
  const { billedUsage } = failure
  const isMaking = generatesTokens(call.estimate)
  const unreported = unreportedUsage(call, failure, { reasonsUnseen, isMaking })
  if (billedUsage !== undefined) emitUnbilledUsage(context, call, candidate, billedUsage)
  else if (unreported !== undefined) emitUnbilledUsage(context, call, candidate, unreported, true)
}

/** The other call was faster. Vendors finish a whole answer even if its call was cancelled. */
function tellStopped(context: PipelineContext, call: Reserved, { candidate }: PreparedCall): void {
  const usage = estimatedUsage(call, { outputBytes: 0, isUnseen: true, isStopped: true })
  emitUnbilledUsage(context, call, candidate, usage, true)
}

async function prepareSecond(
  context: PipelineContext,
  call: Reserved,
  first: RouteCandidate,
  selection: Selection,
): Promise<PreparedCall | undefined> {
  if (call.calls.isAborted || !selection.hasAlternative(first, context.clock.now())) return undefined
  const candidate = selection.next(context.clock.now(), context.retryBudget.left > 0)
  if (candidate === undefined || candidate.model.id !== first.model.id) return undefined
  const operation = await prepareIfAble(context, call, candidate)
  return operation && { candidate, operation }
}

/** One call, whose outcome is always reported to its candidate. */
async function run(
  context: PipelineContext,
  call: Reserved,
  { candidate, operation }: PreparedCall,
  scope: AbortScope,
): Promise<UnstreamedOutcome> {
  const candidateCall = new CandidateCall(context, candidate, call)
  let outcome: Awaited<ReturnType<typeof attempt>>
  try {
    const { credentials } = candidate.key
    outcome = await attempt(context, candidate.vendor, operation, {
      isStream: false,
      isTask: false,
      scope,
      credentials,
      transport: candidateCall.transport,
    })
    if (outcome.kind === 'stream') throw new TypeError('a call that was to be whole became a stream')
  } catch (fault) {
    candidateCall.ignored()
    throw fault
  }
  if (outcome.kind === 'json') candidateCall.answered()
  else if (scope.isAborted) candidateCall.ignored()
  else candidateCall.failed(call.requestId, outcome.failure)
  return outcome
}
