import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { freeMemory } from '../core/free-memory.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { CompiledHook, HookTable } from '../hooks/hook-table.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import { admit, admitUnlimited, release } from './admit.ts'
import { announce } from './announce.ts'
import { runAnswerHooks } from './answer-hooks.ts'
import { authenticate } from './authenticate.ts'
import { keepInCache } from './cache/keep-answer.ts'
import { serveStale, staleFor } from './cache/serve-cached.ts'
import { throughCache } from './cache/through-cache.ts'
import type { Admitted, Parsed, ParsedRequest, Received, Reserved } from './call-record.ts'
import { findContinued, saveContinuation } from './continuation.ts'
import { dispatch } from './dispatch.ts'
import { keepAnswer, recall } from './kept-answers.ts'
import { answerByHook, endDenied } from './own-answers.ts'
import { parse } from './parse.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { type HookedOutcome, runRequestHooks, type WrittenRequest } from './request-hooks.ts'
import { type ReserveOutcome, reserve, StoredReplay } from './reserve.ts'
import { respondReplay, respondWhole, wholeHead, wholeTypeOf } from './respond.ts'
import { type Routed, route } from './route.ts'
import { reserveForTries } from './second-try.ts'
import { type SettlementResult, settle } from './settle.ts'
import { type PumpedStream, pumpStream } from './stream-pump.ts'
import { estimateFor } from './usage-estimate.ts'
import {
  type FailedResponse,
  failedResponse,
  type JsonResponse,
  type StreamResponse,
  type Unfinished,
  uncharged,
  type VendorResponse,
} from './vendor-response.ts'

/** Gives an answer in place of a call. */
export type Ask = (context: PipelineContext, routed: Routed) => Promise<VendorResponse>

/** How a request is reserved and ended: at once, later, or as a task. Made for one call where it has state. */
export interface Completion {
  /** Refuses what could not be ended, before anything is held. */
  check?(context: PipelineContext, parsed: Parsed): Promise<void>
  reserve(context: PipelineContext, admitted: Admitted): MaybePromise<ReserveOutcome>
  /** True for a request that no limit of its caller concerns. Absent: it counts against them. */
  readonly isUnlimited?: boolean
  /** Gives the answer of a vendor that is not called here. Absent: one is called. */
  readonly ask?: Ask | undefined
  /** Ends what was admitted and held without asking a vendor, and answers the caller. Absent: a vendor is asked. */
  accept?(context: PipelineContext, reserved: Reserved): Promise<void>
  /** Answers again a request that came before with the same Idempotency-Key. Absent: by the bytes that are kept. */
  replay?(context: PipelineContext, admitted: Admitted, answer: StoredAnswer): Promise<void>
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

/** Another ending than on the request's own connection; undefined: none. */
type CompletionOf = (parsed: Parsed) => Completion | undefined

/**
 * The stages of every request: authenticate → parse → admit → request hooks → cache → reserve → route → dispatch ⇄ vendor → answer
 * hooks → settle → respond. A JSON response is settled before it is sent; a stream when it has ended, failed or been abandoned; a
 * task by the worker. Each admission is released once, and each hold ends once.
 * @returns What is left of the answer, which must be awaited; undefined: nothing.
 * @throws GatewayError when the request ends before a vendor was asked, or when none answered.
 */
export async function pipeline(
  context: PipelineContext,
  received: Received,
  completionOf: CompletionOf,
): Promise<Unfinished | undefined> {
  const parsed = await readRequest(context, received)
  let completion = completionOf(parsed) ?? immediate
  const hooked = context.hooks === undefined ? undefined : hookedRequest(context.hooks, parsed)
  const lookedUp = lookUp(context, parsed, completion)
  if (lookedUp !== undefined) await lookedUp
  const admission = completion.isUnlimited === true ? admitUnlimited(context, parsed) : admit(context, parsed)
  const admitted = isPending(admission) ? await admission : admission
  if (hooked !== undefined) {
    const next = await askRequestHooks(context, admitted, hooked, { completion, completionOf })
    if (next === undefined) return undefined
    completion = next
  }
  // Not awaited here: an answer can take minutes, and what this function has read would be kept for as long.
  if (context.cache === undefined) return answer(context, admitted, completion)
  return throughCache(context, admitted, completion === immediate, { completion, proceed: answer })
}

/** As {@link pipeline}, and resolves when the answer has ended. */
export async function runToEnd(
  context: PipelineContext,
  received: Received,
  completionOf: CompletionOf,
): Promise<void> {
  const unfinished = await pipeline(context, received, completionOf)
  await unfinished?.end
}

/** Finds what a request refers to, and loads what its answer needs; undefined: nothing. */
function lookUp(context: PipelineContext, parsed: Parsed, completion: Completion): Promise<void> | undefined {
  const { continuation, kept, prepare } = parsed.endpoint
  const isNeeded =
    continuation !== undefined || kept !== undefined || completion.check !== undefined || prepare !== undefined
  return isNeeded ? lookUpAll(context, parsed, completion) : undefined
}

async function lookUpAll(context: PipelineContext, parsed: Parsed, completion: Completion): Promise<void> {
  const { endpoint } = parsed
  if (endpoint.continuation !== undefined) await findContinued(context, parsed)
  if (endpoint.kept !== undefined) await recall(context, parsed)
  if (completion.check !== undefined) await completion.check(context, parsed)
  if (endpoint.prepare !== undefined) await endpoint.prepare(parsed.body)
}

/** A request as its caller wrote it, and the hooks that are asked about it. */
interface HookedRequest {
  readonly written: WrittenRequest
  readonly hooks: readonly CompiledHook[]
}

/** Undefined: no hook is asked. */
function hookedRequest(table: HookTable, { endpoint, answerId, body, bytes }: Parsed): HookedRequest | undefined {
  // An accepted request that is run later was asked about when it was accepted.
  const hooks = answerId === undefined ? table.of(endpoint)?.request : undefined
  return hooks && { written: { body, bytes }, hooks }
}

/** Asks the hooks about an admitted request, which may be another one afterwards, with another ending. Undefined: one has answered it. */
async function askRequestHooks(
  context: PipelineContext,
  admitted: Admitted,
  { written, hooks }: HookedRequest,
  { completion, completionOf }: { readonly completion: Completion; readonly completionOf: CompletionOf },
): Promise<Completion | undefined> {
  let outcome: HookedOutcome
  let next = completion
  try {
    outcome = await runRequestHooks(context, admitted, written, hooks)
    const { changed, answered } = outcome
    if (changed !== undefined && answered !== undefined) admitted.parsed(changed)
    else if (changed !== undefined) next = await readmit(context, admitted, changed, completionOf)
  } catch (error) {
    const isDenied = admitted.hookUnits > 0 && GatewayError.isInstance(error) && error.code === 'request_denied'
    if (isDenied) await endDenied(context, admitted, error)
    else await release(context, admitted, 0)
    throw error
  }
  if (outcome.answered === undefined) return next
  await answerByHook(context, admitted, outcome.answered)
  return undefined
}

/** Another request stands in the place of an admitted one: it is looked up and estimated anew. */
async function readmit(
  context: PipelineContext,
  admitted: Admitted,
  rewritten: ParsedRequest,
  completionOf: CompletionOf,
): Promise<Completion> {
  const { leases, tokenTakes, requestBucket, tokenBucket } = admitted
  const parsed = admitted.parsed(rewritten)
  const completion = completionOf(parsed) ?? immediate
  await lookUp(context, parsed, completion)
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  parsed.admitted({ estimate, leases, tokenTakes, requestBucket, tokenBucket })
  return completion
}

/** Holds what an admitted request may cost, asks a vendor, and ends both. */
async function answer(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
): Promise<Unfinished | undefined> {
  let reserved: ReserveOutcome
  try {
    const reserving = completion.reserve(context, admitted)
    reserved = isPending(reserving) ? await reserving : reserving
  } catch (error) {
    await release(context, admitted, 0)
    throw error
  }
  if (reserved instanceof StoredReplay) {
    await release(context, admitted, 0)
    if (completion.replay === undefined) respondReplay(admitted.sink, reserved.answer, admitted.requestId)
    else await completion.replay(context, admitted, reserved.answer)
    return undefined
  }
  if (completion.accept !== undefined) {
    await completion.accept(context, reserved)
    return undefined
  }
  if (reserved.endpoint.task === undefined) announce(context, reserved)
  reserved.measuredBy(context.tokenSizes.habitsOf(reserved.chain))
  let response: VendorResponse
  try {
    const routed = route(context, reserved)
    response = await (completion.ask === undefined ? dispatch(context, routed) : completion.ask(context, routed))
    if (context.hooks !== undefined) response = await runAnswerHooks(context, reserved, response)
  } catch (cause) {
    if (context.hooks !== undefined) reserved.calls.abort()
    response = failedResponse(cause)
  }
  const end = completion.end(context, reserved, response)
  return isPending(end) ? { end } : undefined
}

/** Requests that are answered on their own connection. */
const immediate: Completion = {
  reserve: (context, admitted) =>
    context.hooks === undefined ? reserve(context, admitted) : reserveForTries(context, admitted),
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
  if (keptAnswer !== undefined) {
    context.stateMakers.note(reserved, candidate, keptAnswer)
    await keepAnswer(context, reserved, candidate, keptAnswer)
  }
  if (answerIds !== undefined) await saveContinuation(context, reserved, candidate, answerIds)
}

function settleWhole(context: PipelineContext, reserved: Reserved, response: JsonResponse): MaybePromise<void> {
  const { body, candidate, ending, vendorRequestId } = response
  const answer = reserved.claim && {
    status: 200,
    headers: ['content-type', wholeTypeOf(reserved)],
    body: Buffer.concat(body.chunks),
  }
  const firstByteMs = context.clock.now() - reserved.startedAtMs
  const settlement = settle(context, reserved, { ending, candidate, status: 200, answer, firstByteMs, vendorRequestId })
  return isPending(settlement)
    ? settlement.then((settled) => sendWhole(context, reserved, response, settled))
    : sendWhole(context, reserved, response, settlement)
}

function sendWhole(
  context: PipelineContext,
  reserved: Reserved,
  response: JsonResponse,
  settlement: SettlementResult,
): void {
  const { chunks } = response.body
  let byteLength = 0
  for (let index = 0; index < chunks.length; index++) byteLength += chunks[index]!.byteLength
  const headers = wholeHead(reserved, response, byteLength, settlement)
  // Hooks, the cache and a record of the answer may have what it is made of.
  const isAlone = context.hooks === undefined && reserved.cachePlan === undefined && reserved.claim === undefined
  respondWhole(reserved.sink, { status: 200, headers }, chunks, isAlone && context.transport.givesBytesAway === true)
  if (isAlone && response.isRequestSent === true && !reserved.wasTriedAgain) freeForm(reserved)
  if (reserved.cachePlan === undefined) return
  const { candidate, dropped, body, ending } = response
  // Of the call that made it, where another one came before.
  const ofLast = reserved.earlier && (ending.usage ?? ending.estimatedUsage)
  const usage = ofLast ?? settlement.usage ?? ending.unbilled?.usage
  const isRefusal = body.isRefusal === true
  const given = reserved.cachePlan.unscreened ?? { chunks, dropped, isRefusal }
  keepInCache(context, reserved, { candidate, usage, contentType: wholeTypeOf(reserved), given })
}

/** Frees what a form was read from: the one call that read its files is over. */
function freeForm(reserved: Reserved): void {
  const { formChunks } = reserved
  if (formChunks === undefined) return
  reserved.releaseBeginning()
  for (const chunk of formChunks) freeMemory(chunk)
}

function endStream(context: PipelineContext, reserved: Reserved, response: StreamResponse): PromiseLike<void> {
  const firstByteMs = context.clock.now() - reserved.startedAtMs
  // Its id reaches the caller with the first bytes, so its owner is noted before them.
  const { answerIds } = response.call.transform
  return answerIds === undefined
    ? streamToEnd(context, reserved, response, firstByteMs)
    : saveContinuation(context, reserved, response.candidate, answerIds).then(() =>
        streamToEnd(context, reserved, response, firstByteMs),
      )
}

// Not `async`: what waits for as long as a model speaks is a small function, not all that this one has read.
function streamToEnd(
  context: PipelineContext,
  reserved: Reserved,
  response: StreamResponse,
  firstByteMs: number,
): PromiseLike<void> {
  return pumpStream(context, reserved, response, keeper(context, reserved, response)).then((pumped) =>
    endPumped(context, reserved, response, { ...pumped, firstByteMs }),
  )
}

async function endPumped(
  context: PipelineContext,
  reserved: Reserved,
  response: StreamResponse,
  { ending, contentType, recorded, sinkFault, firstByteMs }: PumpedStream & { readonly firstByteMs: number },
): Promise<void> {
  const { candidate } = response
  const headers = ['content-type', contentType, 'cache-control', 'no-cache, no-transform']
  const answer = reserved.claim && recorded && { status: 200, headers, body: recorded }
  const vendorRequestId = context.usage && response.call.vendorRequestId
  const input = { ending, candidate, status: 200, answer, firstByteMs, vendorRequestId }
  const settlement = settle(context, reserved, input)
  const { usage } = isPending(settlement) ? await settlement : settlement
  const { cachePlan } = reserved
  if (cachePlan !== undefined && ending.kind === 'completed') {
    const chunks = cachePlan.recording === undefined ? recorded && [recorded] : cachePlan.recording.chunks
    const isRefusal = response.call.transform.isRefusal === true
    const { dropped } = response
    if (chunks !== undefined)
      keepInCache(context, reserved, { candidate, usage, contentType, given: { dropped, chunks, isRefusal } })
  }
  if (sinkFault !== undefined) throw sinkFault
}

/** Keeps a streamed answer before its end is sent, so that a follow-up finds it; undefined: nothing is kept. */
function keeper(
  context: PipelineContext,
  reserved: Reserved,
  { call, candidate }: StreamResponse,
): (() => Promise<void>) | undefined {
  const { stateMakers } = context
  const isKept = reserved.continued?.recalled?.turn !== undefined
  if (!isKept && !stateMakers.isNeeded(reserved.endpoint, candidate.vendor)) return undefined
  return async () => {
    const { keptAnswer } = call.transform
    if (keptAnswer === undefined) return
    stateMakers.note(reserved, candidate, keptAnswer)
    await keepAnswer(context, reserved, candidate, keptAnswer)
  }
}

async function endFailed(context: PipelineContext, reserved: Reserved, response: FailedResponse): Promise<void> {
  const { candidate, error } = response
  const { cachePlan } = reserved
  const stale = cachePlan?.stale === undefined ? undefined : await staleFor(context, reserved, error.code)
  // A stale answer is free, so that the call that failed is not charged either.
  const ending = stale === undefined ? response.ending : uncharged(response.ending)
  const status = stale === undefined ? error.status : 200
  const own = stale && ({ source: 'cache', cachedUsage: stale.answer.usage, nanoDollars: undefined } as const)
  const settlement = await settle(context, reserved, { ending, candidate, status, answer: undefined, own })
  // A hook has withheld the answer of a vendor: those who wait for it have hooks of their own, which are asked again.
  if (cachePlan?.unscreened !== undefined && candidate !== undefined) {
    const usage = settlement.usage ?? ending.unbilled?.usage
    const contentType = wholeTypeOf(reserved)
    keepInCache(context, reserved, { candidate, usage, contentType, given: cachePlan.unscreened })
  }
  if (stale === undefined) throw error
  serveStale(context, reserved, stale)
}
