import type { Timer } from '../../core/clock.ts'
import { GatewayError } from '../../core/errors.ts'
import { isPending } from '../../core/maybe-promise.ts'
import type { RouteCandidate } from '../../routing/route-candidate.ts'
import type { Selection } from '../../routing/selection.ts'
import { outputBound, promptUsage } from '../estimated-usage.ts'
import type { VendorExchange } from '../exchanges/vendor-exchange.ts'
import type { Answer, CallEnding, Routed, StreamAnswer } from '../records.ts'
import type { RoutedRequest } from '../route.ts'
import type { StageContext } from '../stage-context.ts'
import { type AttemptOutcome, attempt } from './attempt.ts'
import { type AttemptFailure, failureOfVendor } from './attempt-failure.ts'
import { abandonCall, beginCall, endFailedCall, endWholeCall, openStreamCall } from './candidate-calls.ts'
import { failedAnswer } from './failed-answer.ts'
import { finalError } from './final-error.ts'
import { hedgedAttempt, mayHedge, type UnstreamedOutcome } from './hedged-attempt.ts'
import { prepareExchange, prepareIfAble } from './prepare-exchange.ts'
import { nextOf, selectionFor } from './selection-for.ts'
import type { StreamCall } from './stream-call.ts'

/** Most attempts at one candidate. */
const MAX_ATTEMPTS_PER_CANDIDATE = 2

/**
 * Asks one candidate after another until one answers. Another one is asked, or the same one again, only while nothing has
 * reached the caller, and within the retry budget. Never throws for what a vendor does; the outcome says what to charge in
 * every case.
 */
export async function dispatch(context: StageContext, routed: RoutedRequest): Promise<Answer> {
  const group = routed.calls
  let isOverdue = false
  const deadline = context.deadlines.add(() => {
    isOverdue = true
    group.abort()
  })
  // Whoever left before anything was sent is not waited for under any policy.
  if (routed.caller.hasLeft) group.abort()
  // What outlives the request is not given up because its caller did not wait for the receipt.
  if (routed.endpoint.isTask !== true)
    routed.caller.onLeave = () => group.abandon(context.disconnects, routed.endpoint.id, context.clock)
  context.retryBudget.deposit()
  let last: LastFailure | undefined
  let wasSent = false
  let asking: RouteCandidate | undefined
  try {
    const selection = selectionFor(context, routed)
    let candidate = selection === undefined ? routed.candidates[0] : nextOf(context, selection)
    let attempts = 1
    while (candidate !== undefined && !group.isAborted) {
      const prepared = mayPassOver(routed, candidate, selection, last)
        ? prepareIfAble(context, routed, candidate)
        : prepareExchange(context, routed, candidate)
      let exchange: VendorExchange | undefined = isPending(prepared) ? await prepared : prepared
      if (exchange === undefined) {
        selection?.passOver(candidate)
        candidate = selection && nextOf(context, selection)
        continue
      }
      selection?.asked(candidate)
      let outcome: UnstreamedOutcome
      if (selection !== undefined && mayHedge(context, routed)) {
        ;({ candidate, exchange, outcome } = await hedgedAttempt(context, routed, { candidate, exchange }, selection))
      } else {
        asking = candidate
        const startedAtMs = beginCall(context, candidate)
        const tried = await attempt(context, candidate, exchange, { isStream: routed.isStream, group })
        asking = undefined
        if (tried.kind === 'stream') {
          const { call } = tried
          const ending = openStreamCall(context, routed, candidate, { call, startedAtMs, deadline })
          return new OpenedStream(call, candidate, droppedBy(exchange), ending)
        }
        if (tried.kind === 'whole') endWholeCall(context, candidate, startedAtMs)
        else endFailedCall(context, routed, candidate, { failure: tried.failure, isGivenUp: group.isAborted })
        outcome = tried
      }
      if (outcome.kind === 'whole') {
        deadline.cancel()
        return {
          kind: 'whole',
          chunks: outcome.body.chunks,
          candidate,
          dropped: droppedBy(exchange),
          ending: wholeEnding(routed, outcome),
          interaction: outcome.body.interaction,
          task: outcome.body.task,
        }
      }
      const { failure } = outcome
      wasSent ||= failure.wasSent
      last = { failure, candidate }
      if (group.isAborted || (routed.endpoint.isPaidJob === true && mayCostTwice(failure))) break
      if (attempts < MAX_ATTEMPTS_PER_CANDIDATE && mayRepeat(context, last, selection)) attempts++
      else {
        attempts = 1
        candidate = following(context, last, selection)
      }
    }
  } catch (error) {
    deadline.cancel()
    group.abort()
    if (asking !== undefined) abandonCall(context, asking)
    // The vendor was asked: a task must not be taken for one that nobody has.
    if (asking !== undefined && routed.endpoint.isTask === true)
      return { ...failedAnswer(error), candidate: asking, mayHaveBegun: true }
    throw asking !== undefined && routed.endpoint.isPaidJob === true ? finalError(error) : error
  }
  deadline.cancel()
  return failed(routed, last, { isOverdue, wasSent })
}

/** A class for the reason that `RequestRecord` gives: it lives as long as its stream. */
class OpenedStream implements StreamAnswer {
  readonly kind = 'stream'
  readonly call: StreamCall
  readonly candidate: RouteCandidate
  readonly dropped: readonly string[]
  readonly deadline: Timer

  constructor(call: StreamCall, candidate: RouteCandidate, dropped: readonly string[], deadline: Timer) {
    this.call = call
    this.candidate = candidate
    this.dropped = dropped
    this.deadline = deadline
  }
}

/**
 * Could asking again have a paid job done twice? Not where no byte has left, or where the vendor refused in its own words: too
 * busy, not for this key, not at the moment. Any other fault of its own leaves open what became of the job.
 */
function mayCostTwice(failure: AttemptFailure): boolean {
  return failure.wasSent && (failure.mayHaveBegun || (failure.verdict === 'failing' && failure.status !== 503))
}

interface LastFailure {
  readonly failure: AttemptFailure
  readonly candidate: RouteCandidate
}

/**
 * A fallback that cannot do what the caller asks is passed over, and so is a route while another one is left; the caller
 * learns what cannot be done from the last route of the model asked for.
 */
function mayPassOver(
  routed: RoutedRequest,
  candidate: RouteCandidate,
  selection: Selection | undefined,
  last: LastFailure | undefined,
): boolean {
  if (selection === undefined) return false
  const isFallback = candidate.model.id !== routed.candidates[0]?.model.id
  return isFallback || last !== undefined || selection.hasOtherRoute(candidate)
}

/** The same vendor is asked once more where nobody else is there for the model, and it is not left alone. */
function mayRepeat(
  context: StageContext,
  { failure, candidate }: LastFailure,
  selection: Selection | undefined,
): boolean {
  if (!failure.mayRetry) return false
  const nowMs = context.clock.now()
  if (candidate.standing(nowMs) === 'ejected' || selection?.hasAlternative(candidate, nowMs) === true) return false
  return context.retryBudget.withdraw()
}

/** Who is asked after a failure; undefined: nobody. */
function following(
  context: StageContext,
  { failure, candidate }: LastFailure,
  selection: Selection | undefined,
): RouteCandidate | undefined {
  if (selection === undefined || !failure.mayFallBack) return undefined
  const isOfKey = failure.verdict === 'refused' || failure.verdict === 'busy'
  selection.failed(candidate, { status: failure.error.status, isOfKey })
  const next = nextOf(context, selection)
  return next !== undefined && context.retryBudget.withdraw() ? next : undefined
}

const NOTHING_DROPPED: readonly string[] = []

function droppedBy(exchange: VendorExchange): readonly string[] {
  return exchange.requests[0]?.dropped ?? NOTHING_DROPPED
}

function wholeEnding(routed: Routed, outcome: AttemptOutcome & { kind: 'whole' }): CallEnding {
  const { chunks, usage, isRefusal } = outcome.body
  if (isRefusal === true) return { kind: 'completed', usage: undefined, estimatedUsage: undefined, error: undefined }
  let byteLength = 0
  for (const chunk of chunks) byteLength += chunk.byteLength
  return { kind: 'completed', usage, estimatedUsage: outputBound(routed.estimate, byteLength), error: undefined }
}

function failed(
  routed: Routed,
  last: LastFailure | undefined,
  circumstances: { readonly isOverdue: boolean; readonly wasSent: boolean },
): Answer {
  const mayHaveBegun = last?.failure.mayHaveBegun === true
  if (routed.caller.hasLeft && routed.endpoint.isTask !== true) {
    const error = new GatewayError('client_closed_request')
    // Whoever leaves after the request was sent pays for the prompt at least; else leaving early would be a way not to pay.
    const estimatedUsage = circumstances.wasSent ? promptUsage(routed.estimate, 0) : undefined
    return {
      kind: 'failed',
      error,
      candidate: last?.candidate,
      mayHaveBegun,
      ending: { kind: 'abandoned', usage: undefined, estimatedUsage, error },
    }
  }
  const cause = circumstances.isOverdue
    ? new GatewayError('upstream_timeout')
    : (last?.failure ?? failureOfVendor({ kind: 'unavailable', status: 0, message: 'nobody was asked' })).error
  // What is not asked again here must not be asked again by the caller's retries either.
  const isFinal = routed.endpoint.isPaidJob === true && last !== undefined && mayCostTwice(last.failure)
  const error = isFinal ? finalError(cause) : cause
  return {
    kind: 'failed',
    error,
    candidate: last?.candidate,
    mayHaveBegun,
    ending: { kind: 'failed', usage: undefined, estimatedUsage: undefined, error },
  }
}
