import { Buffer } from 'node:buffer'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { admit, release } from './admit.ts'
import { authenticate } from './authenticate.ts'
import type { Admitted, Parsed, Received, Reserved } from './call-record.ts'
import { findContinued, saveContinuation } from './continuation.ts'
import { dispatch } from './dispatch.ts'
import { keepAnswer, recall } from './kept-answers.ts'
import { parse } from './parse.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { type ReserveOutcome, reserve, StoredReplay } from './reserve.ts'
import { respondReplay, respondWhole, wholeHead } from './respond.ts'
import { route } from './route.ts'
import { type SettlementResult, settle } from './settle.ts'
import { pumpStream } from './stream-pump.ts'
import {
  type FailedResponse,
  failedResponse,
  type JsonResponse,
  type StreamResponse,
  type VendorResponse,
} from './vendor-response.ts'

/** How a request is reserved and ended: at once, or as a task. Made for one call where it has state. */
export interface Completion {
  /** Refuses what could not be ended, before anything is held. */
  check?(context: PipelineContext, parsed: Parsed): Promise<void>
  reserve(context: PipelineContext, admitted: Admitted): MaybePromise<ReserveOutcome>
  /**
   * Ends what was admitted and held, once, and answers the caller.
   * @throws GatewayError if the caller gets an error.
   */
  end(context: PipelineContext, reserved: Reserved, response: VendorResponse): MaybePromise<void>
}

/** The first stages: they cost nothing and ask no vendor. Credentials come before the body. */
export function readRequest(context: PipelineContext, received: Received): Promise<Parsed> {
  const authenticated = authenticate(context, received)
  return isPending(authenticated)
    ? Promise.resolve(authenticated.then((known) => parse(context, known)))
    : parse(context, authenticated)
}

/**
 * The stages of every request: authenticate → parse → admit → reserve → route → dispatch ⇄ vendor → settle → respond. A
 * JSON response is settled before it is sent; a stream when it has ended, failed or been abandoned; a task by the worker.
 * Each admission is released once, and each hold ends once.
 * @throws GatewayError when the request ends before a vendor was asked, or when none answered.
 */
export async function pipeline(context: PipelineContext, received: Received, tasks: () => Completion): Promise<void> {
  const parsed = await readRequest(context, received)
  const { endpoint } = parsed
  const completion = endpoint.task === undefined ? immediate : tasks()
  if (endpoint.continuation !== undefined) await findContinued(context, parsed)
  if (endpoint.kept !== undefined) await recall(context, parsed)
  if (completion.check !== undefined) await completion.check(context, parsed)
  if (endpoint.prepare !== undefined) await endpoint.prepare(parsed.body)
  const admission = admit(context, parsed)
  const admitted = isPending(admission) ? await admission : admission
  let outcome: ReserveOutcome
  try {
    const reserving = completion.reserve(context, admitted)
    outcome = isPending(reserving) ? await reserving : reserving
  } catch (error) {
    await release(context, admitted, 0)
    throw error
  }
  if (outcome instanceof StoredReplay) {
    await release(context, admitted, 0)
    return respondReplay(received.sink, outcome.answer, received.requestId)
  }
  // Not awaited here: an answer can take minutes, and what this function has read would be kept for as long.
  return answer(context, outcome, completion)
}

async function answer(context: PipelineContext, reserved: Reserved, completion: Completion): Promise<void> {
  if (reserved.endpoint.task === undefined && context.onEvent !== undefined) announce(context, reserved)
  reserved.measuredBy(context.tokenSizes.bytesPerToken(reserved.chain))
  let response: VendorResponse
  try {
    response = await dispatch(context, route(context, reserved))
  } catch (cause) {
    response = failedResponse(cause)
  }
  const ending = completion.end(context, reserved, response)
  if (isPending(ending)) await ending
}

function announce(context: PipelineContext, reserved: Reserved): void {
  reserved.announced()
  emit(context, {
    type: 'request-started',
    requestId: reserved.requestId,
    endpoint: reserved.endpoint.id,
    accountId: reserved.principal.accountId,
    keyId: reserved.principal.keyId,
    model: reserved.chain[0]?.id ?? reserved.body.model,
  })
}

/** Requests that are answered on their own connection. */
const immediate: Completion = {
  reserve,
  end(context, reserved, response) {
    switch (response.kind) {
      case 'json':
        return endWhole(context, reserved, response)
      case 'stream':
        return endStream(context, reserved, response)
      case 'failed':
        return endFailed(context, reserved, response)
    }
  },
}

function endWhole(context: PipelineContext, reserved: Reserved, response: JsonResponse): MaybePromise<void> {
  const { answerIds, keptAnswer } = response.body
  return answerIds === undefined && keptAnswer === undefined
    ? settleWhole(context, reserved, response)
    : keepWhole(context, reserved, response).then(() => settleWhole(context, reserved, response))
}

/** What a later request may ask for is there before the caller reads the answer. */
async function keepWhole(
  context: PipelineContext,
  reserved: Reserved,
  { body: { answerIds, keptAnswer }, candidate }: JsonResponse,
): Promise<void> {
  if (keptAnswer !== undefined) await keepAnswer(context, reserved, candidate, keptAnswer)
  if (answerIds !== undefined) await saveContinuation(context, reserved, candidate, answerIds)
}

function settleWhole(context: PipelineContext, reserved: Reserved, response: JsonResponse): MaybePromise<void> {
  const { body, candidate, ending, vendorRequestId } = response
  const answer = reserved.claim && { status: 200, headers: JSON_HEADERS, body: Buffer.concat(body.chunks) }
  const firstByteMs = context.clock.now() - reserved.startedAtMs
  const settlement = settle(context, reserved, { ending, candidate, status: 200, answer, firstByteMs, vendorRequestId })
  return isPending(settlement)
    ? settlement.then((settled) => sendWhole(reserved, response, settled))
    : sendWhole(reserved, response, settlement)
}

function sendWhole(reserved: Reserved, response: JsonResponse, { costNanoDollars }: SettlementResult): void {
  const { chunks } = response.body
  let byteLength = 0
  for (let index = 0; index < chunks.length; index++) byteLength += chunks[index]!.byteLength
  const headers = wholeHead(reserved, response, { byteLength, costNanoDollars })
  respondWhole(reserved.sink, { status: 200, headers }, chunks)
}

async function endStream(context: PipelineContext, reserved: Reserved, response: StreamResponse): Promise<void> {
  const { candidate } = response
  const firstByteMs = context.clock.now() - reserved.startedAtMs
  // Its id reaches the caller with the first bytes, so its owner is noted before them.
  const { answerIds } = response.call.transform
  if (answerIds !== undefined) await saveContinuation(context, reserved, candidate, answerIds)
  const { ending, contentType, recorded, sinkFault } = await pumpStream(
    context,
    reserved,
    response,
    keeper(context, reserved, response),
  )
  const headers = ['content-type', contentType, 'cache-control', 'no-cache, no-transform']
  const answer = recorded && { status: 200, headers, body: recorded }
  const vendorRequestId = context.usage && response.call.vendorRequestId
  await settle(context, reserved, { ending, candidate, status: 200, answer, firstByteMs, vendorRequestId })
  if (sinkFault !== undefined) throw sinkFault
}

/** Keeps a streamed answer before its end is sent, so that a follow-up finds it; undefined: nothing is kept. */
function keeper(
  context: PipelineContext,
  reserved: Reserved,
  { call, candidate }: StreamResponse,
): (() => Promise<void>) | undefined {
  if (reserved.continued?.recalled?.turn === undefined) return undefined
  return async () => {
    const { keptAnswer } = call.transform
    if (keptAnswer !== undefined) await keepAnswer(context, reserved, candidate, keptAnswer)
  }
}

async function endFailed(context: PipelineContext, reserved: Reserved, response: FailedResponse): Promise<never> {
  const { ending, candidate, error } = response
  await settle(context, reserved, { ending, candidate, status: error.status, answer: undefined })
  throw error
}

const JSON_HEADERS = ['content-type', 'application/json']
