import { Buffer } from 'node:buffer'
import { admit, release } from './admit.ts'
import { authenticate } from './authenticate.ts'
import type { Admitted, Parsed, Received, Reserved } from './call-record.ts'
import { findContinued, saveContinuation } from './continuation.ts'
import { dispatch } from './dispatch.ts'
import { parse } from './parse.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { reserve, StoredReplay } from './reserve.ts'
import { respondReplay, respondWhole, wholeHead } from './respond.ts'
import { route } from './route.ts'
import { settle } from './settle.ts'
import { pumpStream } from './stream-pump.ts'
import { failedResponse, type JsonResponse, type StreamResponse, type VendorResponse } from './vendor-response.ts'

/** A request whose money is held, and how it ends. */
export interface OpenCall {
  readonly reserved: Reserved
  /**
   * Ends what was admitted and held, once, and answers the caller.
   * @throws GatewayError when the caller is to read an error.
   */
  end(response: VendorResponse): Promise<void>
}

/** How the requests of an endpoint are reserved and ended. */
export interface Completion {
  /** Refuses what could not be ended, before anything is held. */
  check?(context: PipelineContext, parsed: Parsed): Promise<void>
  reserve(context: PipelineContext, admitted: Admitted): Promise<OpenCall | StoredReplay>
}

/** The first stages: they cost nothing and ask no vendor. Credentials come before the body. */
export async function readRequest(context: PipelineContext, received: Received): Promise<Parsed> {
  return parse(context, await authenticate(context, received))
}

/**
 * The way of every request: authenticate → parse → admit → reserve → route → dispatch ⇄ vendor → settle → respond.
 * A whole answer is settled before it is sent; a stream when it has ended, failed or been abandoned; a task by the worker.
 * What is admitted is released once, and what is held ends once.
 * @throws GatewayError when the request ends before a vendor was asked, or when none answered.
 */
export async function pipeline(context: PipelineContext, received: Received, tasks: Completion): Promise<void> {
  const parsed = await readRequest(context, received)
  const completion = parsed.endpoint.task === undefined ? immediate : tasks
  if (parsed.endpoint.continuation !== undefined) await findContinued(context, parsed)
  if (completion.check !== undefined) await completion.check(context, parsed)
  if (parsed.endpoint.prepare !== undefined) await parsed.endpoint.prepare(parsed.body)
  const admitted = await admit(context, parsed)
  const opened = await openOrRelease(context, admitted, completion)
  if (opened instanceof StoredReplay) return respondReplay(received.sink, opened.answer, received.requestId)
  // Not awaited here: an answer can take minutes, and what this function has read would be kept for as long.
  return answer(context, opened)
}

async function openOrRelease(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
): Promise<OpenCall | StoredReplay> {
  let opened: OpenCall | StoredReplay
  try {
    opened = await completion.reserve(context, admitted)
  } catch (error) {
    await release(context, admitted, 0)
    throw error
  }
  if (opened instanceof StoredReplay) await release(context, admitted, 0)
  return opened
}

async function answer(context: PipelineContext, opened: OpenCall): Promise<void> {
  let response: VendorResponse
  try {
    response = await dispatch(context, route(context, opened.reserved))
  } catch (cause) {
    response = failedResponse(cause)
  }
  return opened.end(response)
}

/** Requests that are answered on their own connection. */
const immediate: Completion = {
  async reserve(context, admitted) {
    const reserved = await reserve(context, admitted)
    return reserved instanceof StoredReplay ? reserved : new ImmediateCall(context, reserved)
  },
}

class ImmediateCall implements OpenCall {
  readonly reserved: Reserved
  readonly #context: PipelineContext

  constructor(context: PipelineContext, reserved: Reserved) {
    this.#context = context
    this.reserved = reserved
    if (context.onEvent === undefined) return
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

  async end(response: VendorResponse): Promise<void> {
    if (response.kind === 'stream') return this.#stream(response)
    if (response.kind === 'json') return this.#whole(response)
    const { ending, candidate, error } = response
    await settle(this.#context, this.reserved, { ending, candidate, status: error.status, answer: undefined })
    throw error
  }

  async #stream(response: StreamResponse): Promise<void> {
    const context = this.#context
    const { reserved } = this
    const { candidate } = response
    // Its id reaches the caller with the first bytes, so its owner is noted before them.
    await saveContinuation(context, reserved, candidate, response.call.transform.answerIds)
    const { ending, contentType, recorded, sinkFault } = await pumpStream(context, reserved, response)
    const headers = ['content-type', contentType, 'cache-control', 'no-cache, no-transform']
    const answer = recorded && { status: 200, headers, body: recorded }
    await settle(context, reserved, { ending, candidate, status: 200, answer })
    if (sinkFault !== undefined) throw sinkFault
  }

  async #whole(response: JsonResponse): Promise<void> {
    const context = this.#context
    const { reserved } = this
    const { body, candidate, ending } = response
    const { chunks } = body
    await saveContinuation(context, reserved, candidate, body.answerIds)
    let byteLength = 0
    for (const chunk of chunks) byteLength += chunk.byteLength
    const answer = reserved.claim && { status: 200, headers: JSON_HEADERS, body: Buffer.concat(chunks) }
    const { costNanoDollars } = await settle(context, reserved, { ending, candidate, status: 200, answer })
    const headers = wholeHead(reserved, response, { byteLength, costNanoDollars })
    respondWhole(reserved.sink, { status: 200, headers }, chunks)
  }
}

const JSON_HEADERS = ['content-type', 'application/json']
