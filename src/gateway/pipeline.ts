import { andThen, type MaybePromise, settled } from '../core/maybe-promise.ts'
import { admit, leave } from '../stages/admit.ts'
import { authenticate } from '../stages/authenticate.ts'
import { rememberInteraction, resumeConversation } from '../stages/conversation.ts'
import { dispatch } from '../stages/dispatch/dispatch.ts'
import { failedAnswer } from '../stages/dispatch/failed-answer.ts'
import { parse } from '../stages/parse.ts'
import { receiveBody } from '../stages/receive-body.ts'
import type { Admitted, Answer, Received, Reserved, ReserveOutcome } from '../stages/records.ts'
import { relay } from '../stages/relay.ts'
import { wholeHead } from '../stages/reply-headers.ts'
import { reserve } from '../stages/reserve.ts'
import { respondReplay, respondWhole } from '../stages/respond.ts'
import { route } from '../stages/route.ts'
import { settle } from '../stages/settle.ts'
import { emit, type StageContext } from '../stages/stage-context.ts'
import { StoredReplay } from '../stages/stored-replay.ts'

/**
 * The way of a request: authenticate → parse → admit → reserve → route → dispatch ⇄ vendor → settle → respond.
 * Credentials come before the body, so that nobody unknown makes us read one. A whole answer is settled before it is
 * sent; a stream when it has ended, failed or been abandoned. What is admitted leaves once, and what is held ends once.
 * @throws GatewayError when the request ends before a vendor was asked, or when none answered.
 */
export async function pipeline(context: StageContext, received: Received): Promise<void> {
  const authenticated = await authenticate(context, received)
  const body = await receiveBody(context, authenticated)
  const parsed = parse(context, authenticated, body)
  if (parsed.endpoint.conversation !== undefined) await resumeConversation(context, parsed)
  if (parsed.endpoint.prepare !== undefined) await parsed.endpoint.prepare(parsed.body)
  const admitted = await admit(context, parsed)
  const outcome = await reserveOrLeave(context, admitted)
  if (outcome instanceof StoredReplay) {
    await leave(context, admitted, 0)
    respondReplay(received.sink, outcome.answer, received.requestId)
    return
  }
  announce(context, outcome)
  // Not awaited here: an answer can take minutes, and what this function has read would be kept for as long.
  return answer(context, outcome)
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
    outcome = failedAnswer(cause)
  }
  const { sink } = reserved
  if (outcome.kind === 'stream') {
    // Its id reaches the caller with the first bytes, so its owner is noted before them.
    const { interaction } = outcome.call.stream
    if (interaction !== undefined) await rememberInteraction(context, reserved, outcome.candidate, interaction)
    const { ending, contentType, recorded, sinkFault } = await relay(context, reserved, outcome)
    const headers = ['content-type', contentType, 'cache-control', 'no-cache, no-transform']
    const kept = recorded === undefined ? undefined : { status: 200, headers, body: recorded }
    await settle(context, reserved, { ending, candidate: outcome.candidate, status: 200, answer: kept })
    if (sinkFault !== undefined) throw sinkFault
    return
  }
  if (outcome.kind === 'failed') {
    const { ending, candidate, error } = outcome
    await settle(context, reserved, { ending, candidate, status: error.status, answer: undefined })
    throw error
  }
  if (outcome.interaction !== undefined)
    await rememberInteraction(context, reserved, outcome.candidate, outcome.interaction)
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

function announce(context: StageContext, reserved: Reserved): void {
  if (context.onEvent === undefined) return
  reserved.isAnnounced = true
  emit(context, {
    type: 'request-started',
    requestId: reserved.requestId,
    endpoint: reserved.endpoint.id,
    accountId: reserved.principal.accountId,
    keyId: reserved.principal.keyId,
    model: reserved.chain[0]?.id ?? reserved.body.model,
  })
}
