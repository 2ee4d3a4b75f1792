import type { Usage } from '../core/usage.ts'
import type { Operation } from '../endpoints/operation.ts'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import type { Selection } from '../routing/selection.ts'
import { AbortScope } from './abort-scope.ts'
import { attempt, type UnstreamedOutcome } from './attempt.ts'
import type { Reserved } from './call-record.ts'
import { CandidateCall } from './candidate-call.ts'
import { endAttempt, type RequestTime } from './end-attempt.ts'
import { failedAttempt, told } from './failed-usage.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { prepareIfAble } from './prepare-operation.ts'
import { emitUnbilledUsage } from './unbilled-usage.ts'
import { estimatedUsage, generatesTokens } from './usage-estimate.ts'

/** Candidate and its prepared request. */
export interface PreparedCall {
  readonly candidate: RouteCandidate
  readonly operation: Operation
}

/** The result of a prepared call. */
export interface HedgeResult extends PreparedCall {
  readonly outcome: UnstreamedOutcome
}

interface FailedCall extends PreparedCall {
  readonly outcome: Extract<UnstreamedOutcome, { kind: 'failed' }>
}

/** Whether a second candidate may be called while the first one is slow. */
export function mayHedge(context: PipelineContext, { endpoint, isStream }: Reserved): boolean {
  return context.routing.hedge !== undefined && !isStream && endpoint.canHedge === true
}

/**
 * Calls a candidate. If it is slow, also calls another one of the same model, once, within the retry budget. The first answer
 * wins and the other call is aborted; an event reports what its vendor may bill. Fails if both have failed, or if there was no
 * second call. If both fail, a call that its vendor may have begun decides, and an event reports what the other may cost.
 */
export function hedge(
  context: PipelineContext,
  call: Reserved,
  first: PreparedCall,
  { selection, time }: { readonly selection: Selection; readonly time: RequestTime },
): Promise<HedgeResult> {
  const afterMs = context.routing.hedge?.afterMs ?? 0
  return new Promise((resolve, reject) => {
    const running = new Set<AbortScope>()
    const scopes: AbortScope[] = []
    const failures: FailedCall[] = []
    let isOver = false
    const end = (): void => {
      isOver = true
      timer.cancel()
      for (const scope of scopes) call.calls.delete(scope)
    }
    /** Ends the other calls: reports what failed ones may cost, and stops the rest. */
    const endOthers = (decisive?: FailedCall): void => {
      for (const failed of failures) if (failed !== decisive) tellFailed(context, call, failed)
      for (const scope of running) scope.abort()
    }
    const start = (prepared: PreparedCall): void => {
      const own = new AbortScope(call.calls)
      scopes.push(own)
      running.add(own)
      // An aborted scope accepts no calls; the calls of its members then end immediately.
      if (!call.calls.add(own)) own.abort()
      run(context, call, prepared, { scope: own, time }).then(
        (outcome) => {
          running.delete(own)
          if (isOver) return tellLoser(context, call, { ...prepared, outcome })
          if (outcome.kind === 'failed') failures.push({ ...prepared, outcome })
          if (outcome.kind === 'failed' && running.size > 0) return
          end()
          const decisive = outcome.kind === 'failed' ? decisiveOf(failures) : undefined
          endOthers(decisive)
          resolve(decisive ?? { ...prepared, outcome })
        },
        (fault) => {
          running.delete(own)
          if (isOver) {
            tellMade(context, call, prepared.candidate, undefined)
            return reportFault(context, call.requestId, 'hedge', fault)
          }
          end()
          endOthers()
          reject(fault)
        },
      )
    }
    const timer = context.clock.schedule(afterMs, () => {
      prepareSecond(context, call, first.candidate, selection).then(
        (second) => {
          if (second === undefined) return
          if (isOver || !mayAskMore(call) || !context.retryBudget.withdraw()) return
          selection.asked(second.candidate)
          start(second)
        },
        (fault) => reportFault(context, call.requestId, 'hedge', fault),
      )
    })
    start(first)
  })
}

/** Returns the last failure, unless only an earlier one may be billed. */
function decisiveOf(failures: readonly FailedCall[]): FailedCall {
  return failures.findLast(({ outcome }) => outcome.failure.mayHaveBegun) ?? failures.at(-1)!
}

/** Reports a failed call while the other one decides. */
function tellFailed(context: PipelineContext, call: Reserved, { candidate, operation, outcome }: FailedCall): void {
  const facts = { reasonsUnseen: operation.reasonsUnseen === true, isMaking: generatesTokens(call.estimate) }
  told(context, call, failedAttempt(call, candidate, outcome.failure, facts))
}

/** Reports the slower call. Vendors finish a whole answer even if its call was cancelled; an unsent call costs nothing. */
function tellLoser(context: PipelineContext, call: Reserved, { candidate, operation, outcome }: HedgeResult): void {
  if (outcome.kind === 'failed') tellFailed(context, call, { candidate, operation, outcome })
  else tellMade(context, call, candidate, outcome.body.usage)
}

/** Reports an answer that nobody needs. */
function tellMade(
  context: PipelineContext,
  call: Reserved,
  candidate: RouteCandidate,
  reported: Usage | undefined,
): void {
  const usage = reported ?? estimatedUsage(call, { outputBytes: 0, isUnseen: true, isStopped: true })
  emitUnbilledUsage(context, call, candidate, { usage, isEstimated: reported === undefined })
}

/** No other call is made for a disconnected caller, although the first call may be drained. */
function mayAskMore({ calls, caller }: Reserved): boolean {
  return !calls.isAborted && !caller.isDisconnected
}

async function prepareSecond(
  context: PipelineContext,
  call: Reserved,
  first: RouteCandidate,
  selection: Selection,
): Promise<PreparedCall | undefined> {
  if (!mayAskMore(call) || !selection.hasAlternative(first, context.clock.now())) return undefined
  const candidate = selection.next(context.clock.now(), context.retryBudget.left > 0)
  if (candidate === undefined || candidate.model.id !== first.model.id) return undefined
  const operation = await prepareIfAble(context, call, candidate)
  return operation && { candidate, operation }
}

/** Makes one call, whose outcome is always reported to its candidate. */
async function run(
  context: PipelineContext,
  call: Reserved,
  { candidate, operation }: PreparedCall,
  { scope, time }: { readonly scope: AbortScope; readonly time: RequestTime },
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
      watched: candidateCall,
    })
    if (outcome.kind === 'stream') throw new TypeError('a call that was to be whole became a stream')
  } catch (fault) {
    candidateCall.ignored()
    throw fault
  }
  return endAttempt(candidateCall, outcome, { requestId: call.requestId, scope, time })
}
