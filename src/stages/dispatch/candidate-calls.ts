import type { Timer } from '../../core/clock.ts'
import type { Health } from '../../routing/health.ts'
import type { RouteCandidate, Verdict } from '../../routing/route-candidate.ts'
import type { Routed } from '../records.ts'
import { emit, type StageContext } from '../stage-context.ts'
import type { AttemptFailure } from './attempt-failure.ts'
import type { StreamCall } from './stream-call.ts'

/** Notes that a candidate is being asked; gives the time, in Unix milliseconds. */
export function beginCall(context: StageContext, candidate: RouteCandidate): number {
  const nowMs = context.clock.now()
  candidate.begin(nowMs, context.routes.nextTurn())
  return nowMs
}

/** Notes a whole answer. */
export function endWholeCall(context: StageContext, candidate: RouteCandidate, startedAtMs: number): void {
  const nowMs = context.clock.now()
  candidate.answered(Math.max(0, nowMs - startedAtMs), nowMs)
  succeed(context, candidate, nowMs)
  candidate.release()
}

/** Notes a call that failed, and tells the host of it; one that was given up on this side says nothing of the vendor. */
export function endFailedCall(
  context: StageContext,
  routed: Routed,
  candidate: RouteCandidate,
  outcome: { readonly failure: AttemptFailure; readonly isGivenUp: boolean },
): void {
  const { failure, isGivenUp } = outcome
  fail(context, candidate, isGivenUp ? 'nothing' : failure.verdict, failure.retryAfterMs)
  candidate.release()
  if (!isGivenUp) report(context, routed, candidate, failure)
}

/** Notes that a call ended by a fault of this side. */
export function abandonCall(context: StageContext, candidate: RouteCandidate): void {
  fail(context, candidate, 'nothing')
  candidate.release()
}

/**
 * Notes the first content of a stream. A key that was left alone is well again with it; for all others only the end counts,
 * so that a vendor whose streams always break is found out.
 * @returns the deadline, which also notes the end of the stream when it is cancelled at it.
 */
export function openStreamCall(
  context: StageContext,
  routed: Routed,
  candidate: RouteCandidate,
  stream: { readonly call: StreamCall; readonly startedAtMs: number; readonly deadline: Timer },
): Timer {
  const { call, startedAtMs, deadline } = stream
  const openedAtMs = context.clock.now()
  candidate.opened(Math.max(0, openedAtMs - startedAtMs), openedAtMs)
  if (candidate.key.health.isProbing || candidate.health.isProbing) succeed(context, candidate, openedAtMs)
  return new OpenStream(context, routed, candidate, { call, deadline })
}

/** A stream under way; cancelling its deadline tells what became of it, once. */
class OpenStream implements Timer {
  readonly #context: StageContext
  readonly #routed: Routed
  readonly #candidate: RouteCandidate
  readonly #call: StreamCall
  readonly #deadline: Timer
  #isOver = false

  constructor(
    context: StageContext,
    routed: Routed,
    candidate: RouteCandidate,
    { call, deadline }: { readonly call: StreamCall; readonly deadline: Timer },
  ) {
    this.#context = context
    this.#routed = routed
    this.#candidate = candidate
    this.#call = call
    this.#deadline = deadline
  }

  cancel(): void {
    this.#deadline.cancel()
    if (this.#isOver) return
    this.#isOver = true
    const { calls, caller } = this.#routed
    const { stream } = this.#call
    const isWhole = stream.isComplete && stream.failure === undefined
    if (isWhole) succeed(this.#context, this.#candidate, this.#context.clock.now())
    else fail(this.#context, this.#candidate, calls.isAborted || caller.hasLeft ? 'nothing' : 'failing')
    this.#candidate.release()
  }
}

function succeed(context: StageContext, candidate: RouteCandidate, nowMs: number): void {
  const { key, health: ofModel } = candidate
  const ofKey = key.health
  candidate.succeeded(nowMs)
  if (ofKey === key.health && ofModel === candidate.health) return
  tellRecovered(context, candidate, undefined, [ofKey, key.health])
  tellRecovered(context, candidate, candidate.model.id, [ofModel, candidate.health])
}

function fail(
  context: StageContext,
  candidate: RouteCandidate,
  verdict: Verdict,
  retryAfterMs: number | undefined = undefined,
): void {
  const { key, health: ofModel } = candidate
  const ofKey = key.health
  candidate.failed(verdict, retryAfterMs, context.clock.now())
  tellEjected(context, candidate, undefined, [ofKey, key.health])
  tellEjected(context, candidate, candidate.model.id, [ofModel, candidate.health])
}

type Change = readonly [before: Health, after: Health]

function tellEjected(
  context: StageContext,
  { key }: RouteCandidate,
  model: string | undefined,
  [before, after]: Change,
): void {
  const { reason, ejectedUntilMs: untilMs } = after
  if (untilMs === before.ejectedUntilMs || reason === undefined) return
  emit(context, {
    type: 'vendor-key-ejected',
    vendor: key.vendorId,
    account: key.account,
    model,
    reason,
    untilMs,
  })
}

function tellRecovered(
  context: StageContext,
  { key }: RouteCandidate,
  model: string | undefined,
  [before, after]: Change,
): void {
  if (before.ejectedUntilMs === 0 || after.ejectedUntilMs !== 0) return
  emit(context, { type: 'vendor-key-recovered', vendor: key.vendorId, account: key.account, model })
}

function report(context: StageContext, routed: Routed, candidate: RouteCandidate, failure: AttemptFailure): void {
  const { requestId } = routed
  const vendor = candidate.vendor.id
  emit(context, {
    type: 'attempt-failed',
    requestId,
    vendor,
    model: candidate.model.id,
    reason: failure.reason,
    status: failure.status,
  })
  const problem = failure.operatorProblem
  if (problem === undefined) return
  emit(context, {
    type: 'vendor-account-problem',
    requestId,
    vendor,
    status: problem.status,
    code: problem.code,
    message: problem.message,
  })
  context.logger.error("a vendor refused the operator's account, key, quota or model id", {
    requestId,
    vendor,
    status: problem.status,
    code: problem.code,
  })
}
