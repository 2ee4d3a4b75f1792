import { GatewayError } from '../core/errors.ts'
import { andThen, type MaybePromise, settled } from '../core/maybe-promise.ts'
import { admit, leave } from '../stages/admit.ts'
import { authenticate } from '../stages/authenticate.ts'
import { dispatch } from '../stages/dispatch/dispatch.ts'
import { parse, receiveBody } from '../stages/parse.ts'
import type { Admitted, Answer, FailedAnswer, Received, Reserved, ReserveOutcome } from '../stages/records.ts'
import { relay } from '../stages/relay.ts'
import { wholeHead } from '../stages/reply-headers.ts'
import { reserve } from '../stages/reserve.ts'
import { respondReplay, respondWhole } from '../stages/respond.ts'
import { route } from '../stages/route.ts'
import { settle } from '../stages/settle.ts'
import { emit, type StageContext } from '../stages/stage-context.ts'

/**
 * The way of a request: authenticate → parse → admit → reserve → route → dispatch ⇄ vendor → settle → respond.
 * Credentials come before the body, so that nobody unknown makes us read one. A whole answer is settled before it is
 * sent; a stream when it has ended, failed or been abandoned. What is admitted leaves once, and what is held ends once.
 * @throws GatewayError when the request ends before a vendor was asked, or when none answered.
 */
export async function pipeline(context: StageContext, received: Received): Promise<void> {
  const authenticated = await authenticate(context, received)
  const bytes = await receiveBody(context, authenticated)
  const parsed = parse(context, authenticated, bytes)
  const admitted = await admit(context, parsed)
  const outcome = await reserveOrLeave(context, admitted)
  if (outcome.kind === 'replay') {
    await leave(context, admitted, 0)
    respondReplay(received.sink, outcome.answer, received.requestId)
    return
  }
  announce(context, outcome.reserved)
  await answer(context, outcome.reserved)
}

function reserveOrLeave(context: StageContext, admitted: Admitted): MaybePromise<ReserveOutcome> {
  return settled(
    () => reserve(context, admitted),
    (outcome) => outcome,
    (error) =>
      andThen(leave(context, admitted, 0), () => {
        throw error
      }),
  )
}

async function answer(context: StageContext, reserved: Reserved): Promise<void> {
  let outcome: Answer
  try {
    outcome = await dispatch(context, route(context, reserved))
  } catch (cause) {
    outcome = failedAnswer(GatewayError.from(cause))
  }
  const { sink } = reserved
  if (outcome.kind === 'stream') {
    const { ending, recorded, sinkFault } = await relay(context, reserved, outcome)
    const kept = recorded === undefined ? undefined : { status: 200, headers: STREAM_REPLAY_HEADERS, body: recorded }
    await settle(context, reserved, { ending, candidate: outcome.candidate, status: 200, answer: kept })
    if (sinkFault !== undefined) throw sinkFault
    return
  }
  if (outcome.kind === 'failed') {
    const { ending, candidate, error } = outcome
    await settle(context, reserved, { ending, candidate, status: error.status, answer: undefined })
    throw error
  }
  let byteLength = 0
  for (const chunk of outcome.chunks) byteLength += chunk.byteLength
  const kept =
    reserved.claim === undefined
      ? undefined
      : { status: 200, headers: WHOLE_REPLAY_HEADERS, body: Buffer.concat(outcome.chunks) }
  const { costNanoDollars } = await settle(context, reserved, {
    ending: outcome.ending,
    candidate: outcome.candidate,
    status: 200,
    answer: kept,
  })
  respondWhole(
    sink,
    { status: 200, headers: wholeHead(reserved, outcome, { byteLength, costNanoDollars }) },
    outcome.chunks,
  )
}

const WHOLE_REPLAY_HEADERS = ['content-type', 'application/json']
const STREAM_REPLAY_HEADERS = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-cache, no-transform',
]

/** Whatever is thrown between the hold and the settlement becomes a failed answer, so that the hold ends all the same. */
function failedAnswer(error: GatewayError): FailedAnswer {
  const ending = { kind: 'failed', usage: undefined, estimatedUsage: undefined, error } as const
  return { kind: 'failed', error, candidate: undefined, ending }
}

function announce(context: StageContext, reserved: Reserved): void {
  if (context.onEvent === undefined) return
  emit(context, {
    type: 'request-started',
    requestId: reserved.requestId,
    endpoint: reserved.endpoint.id,
    accountId: reserved.principal.accountId,
    keyId: reserved.principal.keyId,
    model: reserved.chain[0]?.id ?? reserved.body.model,
  })
}
