import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import { quotedCost } from '../charge-for.ts'
import { outputBound, promptUsage } from '../estimated-usage.ts'
import { EXCHANGES } from '../exchanges/exchanges.ts'
import type { VendorExchange } from '../exchanges/vendor-exchange.ts'
import { inlineImages, needsInlineImages } from '../inline-images.ts'
import type { Answer, CallEnding, Candidate, Routed } from '../records.ts'
import { emit, type StageContext } from '../stage-context.ts'
import { type AttemptOutcome, attempt, vendorCall } from './attempt.ts'
import { type AttemptFailure, failureOfVendor } from './attempt-failure.ts'

/** Most attempts at one candidate. */
const MAX_ATTEMPTS_PER_CANDIDATE = 2

/**
 * Asks the candidates in order until one answers. Another one is asked, or the same one again, only while nothing has
 * reached the caller. Never throws for what a vendor does; the outcome says what to charge in every case.
 */
export async function dispatch(context: StageContext, routed: Routed): Promise<Answer> {
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
  let last: { readonly failure: AttemptFailure; readonly candidate: Candidate } | undefined
  let wasSent = false
  const end = (answer: Answer): Answer => {
    deadline.cancel()
    return answer
  }
  try {
    for (const candidate of routed.candidates) {
      for (let attempts = 1; attempts <= MAX_ATTEMPTS_PER_CANDIDATE; attempts++) {
        if (group.isAborted) break
        const body = needsInlineImages(candidate, routed.body, context.clock.now())
          ? await inlineImages(context, routed.body)
          : routed.body
        const exchange = prepared(context, routed, candidate, body)
        if (exchange === undefined) break
        const outcome = await attempt(context, candidate, exchange, { isStream: routed.isStream, group })
        if (outcome.kind === 'stream')
          return { kind: 'stream', call: outcome.call, candidate, dropped: droppedBy(exchange), deadline }
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
        wasSent ||= outcome.failure.wasSent
        last = { failure: outcome.failure, candidate }
        if (!group.isAborted) report(context, routed, candidate, outcome.failure)
        if (routed.endpoint.isPaidJob === true && outcome.failure.mayHaveBegun)
          return end(failed(routed, last, { isOverdue, wasSent }))
        if (!outcome.failure.mayRetry || attempts === MAX_ATTEMPTS_PER_CANDIDATE || !context.retryBudget.withdraw())
          break
      }
      if (group.isAborted || last?.failure.mayFallBack === false) break
    }
  } catch (error) {
    deadline.cancel()
    group.abort()
    throw error
  }
  return end(failed(routed, last, { isOverdue, wasSent }))
}

/**
 * A fallback that cannot do what the caller asks is passed over; the caller learns of it from the model asked for only.
 * Undefined: passed over.
 */
function prepared(
  context: StageContext,
  routed: Routed,
  candidate: Candidate,
  body: { readonly model: string },
): VendorExchange | undefined {
  if (candidate === routed.candidates[0]) return prepare(context, routed, candidate, body)
  try {
    return prepare(context, routed, candidate, body)
  } catch (cause) {
    const { status } = GatewayError.from(cause)
    if (status >= 500) throw cause
    return undefined
  }
}

function prepare(
  context: StageContext,
  routed: Routed,
  candidate: Candidate,
  body: { readonly model: string },
): VendorExchange {
  const nowMs = context.clock.now()
  // Bytes that no longer say what the body says are of no use to a vendor that passes bytes on.
  const bytes = body === routed.body ? routed.bytes : undefined
  const costOf = routed.hold === undefined ? undefined : (usage: Usage) => quotedCost(routed, candidate, usage)
  const conversation = routed.conversation && {
    previousUpstreamId: routed.conversation.previous?.upstreamId,
    freshId: routed.conversation.freshId,
  }
  const { request, endpoint, isStream } = routed
  const header = endpoint.passesHeaders === true ? (name: string) => request.header(name) : undefined
  const call = vendorCall(candidate, { body, bytes, isStream, costOf, header, conversation }, nowMs)
  const exchange = EXCHANGES.get(routed.endpoint.id)?.(candidate.vendor, call)
  if (exchange === undefined) {
    throw new GatewayError('endpoint_model_mismatch', {
      message: `The vendor of the model ${JSON.stringify(candidate.model.id)} does not serve ${routed.endpoint.path}.`,
      param: 'model',
    })
  }
  return exchange
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

function report(context: StageContext, routed: Routed, candidate: Candidate, failure: AttemptFailure): void {
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

function failed(
  routed: Routed,
  last: { readonly failure: AttemptFailure; readonly candidate: Candidate } | undefined,
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
  const error = circumstances.isOverdue
    ? new GatewayError('upstream_timeout')
    : (last?.failure ?? failureOfVendor({ kind: 'unavailable', status: 0, message: 'nobody was asked' })).error
  return {
    kind: 'failed',
    error,
    candidate: last?.candidate,
    mayHaveBegun,
    ending: { kind: 'failed', usage: undefined, estimatedUsage: undefined, error },
  }
}
