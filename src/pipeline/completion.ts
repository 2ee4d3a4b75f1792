import { Buffer } from 'node:buffer'
import { freeMemory } from '../core/memory-use.ts'
import type { Usage } from '../core/usage.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import { byteLengthOf, joinChunks } from '../wire/chunks.ts'
import type { AnswerCache } from './cache/answer-cache.ts'
import { type CachePlan, MAX_ENTRY_BYTES, type UnscreenedAnswer } from './cache/cache-plan.ts'
import { encodeAnswer } from './cache/serve-cached.ts'
import type { Admitted, Candidate, Parsed, Reserved } from './call-record.ts'
import { settle } from './charge.ts'
import type { Routed } from './dispatch.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { type ReserveOutcome, reserve } from './reserve.ts'
import { respondWhole, wholeHead, wholeTypeOf } from './respond.ts'
import { keepAnswer, saveContinuation } from './stored-answers.ts'
import { type PumpedStream, pumpStream } from './stream-pump.ts'
import type { FailedResponse, JsonResponse, StreamResponse, VendorResponse } from './vendor-response.ts'

/** Maximum time that the end of a stream waits for its settlement. */
const MAX_END_DELAY_MS = 2_000

/** Returns an answer instead of a call. */
export type Ask = (context: PipelineContext, routed: Routed) => Promise<VendorResponse>

/** How a request is reserved and ended: immediately, later, or as a task. Created per call if it has state. */
export interface Completion {
  /** Rejects requests that could not be ended, before a hold is created. */
  check?(context: PipelineContext, parsed: Parsed): Promise<void>
  reserve(context: PipelineContext, admitted: Admitted): Promise<ReserveOutcome>
  /** Whether the request bypasses the caller's limits. Default false. */
  readonly isUnlimited?: boolean
  /** Returns the answer of a vendor that is not called here. If omitted, a vendor is called. */
  readonly ask?: Ask | undefined
  /** Ends the admission and the hold without calling a vendor, and answers the caller. If omitted, a vendor is called. */
  accept?(context: PipelineContext, reserved: Reserved): Promise<void>
  /** Replays an earlier request with the same Idempotency-Key. If omitted, the stored bytes are sent. */
  replay?(context: PipelineContext, admitted: Admitted, answer: StoredAnswer): Promise<void>
  /**
   * Ends the admission and the hold, once, and answers the caller.
   * @throws GatewayError if the caller gets an error.
   */
  end(context: PipelineContext, reserved: Reserved, response: VendorResponse): Promise<void>
}

/** Requests that are answered on their own connection. */
export const immediate: Completion = {
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

async function endWhole(context: PipelineContext, reserved: Reserved, response: JsonResponse): Promise<void> {
  const { body, candidate, dropped, ending, vendorRequestId } = response
  const { chunks, answerIds, keptAnswer } = body
  // Stored data that later requests may need must exist before the caller reads the answer.
  if (keptAnswer !== undefined) {
    context.stateMakers.note(reserved, candidate, keptAnswer)
    await keepAnswer(context, reserved, candidate, keptAnswer)
  }
  if (answerIds !== undefined) await saveContinuation(context, reserved, candidate, answerIds)
  const contentType = wholeTypeOf(reserved)
  const { claim, hostCommit } = reserved
  const wholeAnswer =
    claim === undefined && hostCommit === undefined
      ? undefined
      : { status: 200, headers: ['content-type', contentType], body: Buffer.concat(chunks) }
  const firstByteMs = context.clock.now() - reserved.startedAtMs
  const answer = claim && wholeAnswer
  const input = { ending, candidate, status: 200, answer, wholeAnswer, firstByteMs, vendorRequestId }
  const settlement = await settle(context, reserved, input)
  if (settlement.failure !== undefined) throw settlement.failure
  const headers = wholeHead(reserved, response, byteLengthOf(chunks), settlement)
  const { cachePlan } = reserved
  // Hooks, the cache and a record of the answer may share its memory.
  const isAlone = context.hooks === undefined && cachePlan === undefined && claim === undefined
  respondWhole(reserved.sink, { status: 200, headers }, chunks, isAlone && context.transport.givesBytesAway === true)
  if (isAlone && response.isRequestSent === true && !reserved.wasTriedAgain) freeForm(reserved)
  if (cachePlan === undefined) return
  const usage = settlement.usage ?? ending.unbilled?.usage
  const given = cachePlan.unscreened ?? { chunks, dropped, isRefusal: body.isRefusal === true }
  keepInCache(context, reserved, { candidate, usage, contentType, given })
}

/** Frees the chunks of a form, because the only call that read its files has ended. */
function freeForm(reserved: Reserved): void {
  const { formChunks } = reserved
  if (formChunks === undefined) return
  reserved.releaseBeginning()
  for (const chunk of formChunks) freeMemory(chunk)
}

async function endStream(context: PipelineContext, reserved: Reserved, response: StreamResponse): Promise<void> {
  const firstByteMs = context.clock.now() - reserved.startedAtMs
  // The id reaches the caller with the first bytes, so its owner is stored before them.
  const { answerIds } = response.call.transform
  if (answerIds !== undefined) await saveContinuation(context, reserved, response.candidate, answerIds)
  const pumped = await pumpStream(context, reserved, response, keeper(context, reserved, response))
  await endPumped(context, reserved, response, { ...pumped, firstByteMs })
}

async function endPumped(
  context: PipelineContext,
  reserved: Reserved,
  response: StreamResponse,
  { ending, contentType, recorded, sendEnd, firstByteMs }: PumpedStream & { readonly firstByteMs: number },
): Promise<void> {
  const { candidate } = response
  const headers = ['content-type', contentType, 'cache-control', 'no-cache, no-transform']
  const answer = reserved.claim && recorded && { status: 200, headers, body: recorded }
  const vendorRequestId = context.usage && response.call.vendorRequestId
  const input = { ending, candidate, status: 200, answer, firstByteMs, vendorRequestId }
  const settlement = settle(context, reserved, input)
  // The caller gets the end of the stream after it, because hosts may freeze the process then, but not much later.
  // A call whose charge may fail must not look complete before it.
  const timer =
    reserved.hostCommit === undefined ? context.clock.schedule(MAX_END_DELAY_MS, () => void sendEnd()) : undefined
  const { usage, failure } = await settlement
  timer?.cancel()
  const sinkFault = sendEnd(failure)
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

/** Returns a function that stores a streamed answer before its end is sent, for follow-ups; `undefined` if nothing is stored. */
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
  const { candidate, ending, error } = response
  const { cachePlan } = reserved
  const settlement = await settle(context, reserved, { ending, candidate, status: error.status, answer: undefined })
  // A hook has withheld the vendor's answer. Waiting requests have their own hooks, which run on it again.
  if (cachePlan?.unscreened !== undefined && candidate !== undefined) {
    const usage = settlement.usage ?? ending.unbilled?.usage
    const contentType = wholeTypeOf(reserved)
    keepInCache(context, reserved, { candidate, usage, contentType, given: cachePlan.unscreened })
  }
  throw error
}

/** Whole answer of a vendor. */
export interface FinishedAnswer {
  /** Answer before hooks change it. */
  readonly given: UnscreenedAnswer
  readonly candidate: Candidate
  /** Usage of the call. */
  readonly usage: Usage | undefined
  readonly contentType: string
}

/** Only place where an answer enters the cache. Never throws; the write is not awaited. */
function keepInCache(context: PipelineContext, reserved: Reserved, answer: FinishedAnswer): void {
  const { cache } = context
  const { cachePlan: plan } = reserved
  if (cache === undefined || plan?.key === undefined || !mayKeep(context, reserved, answer)) return
  plan.kept = write(context, cache, { plan, key: plan.key }, reserved, answer)
}

/** Whether to store an answer: only whole answers of the requested model to the unchanged request, and no refusals. */
function mayKeep(
  { outputBounds: { defaultMaxOutputTokens } }: PipelineContext,
  { chain, endpoint, fittedOutputTokens, cachePlan }: Reserved,
  { candidate, usage, given: { chunks, isRefusal } }: FinishedAnswer,
): boolean {
  if (isRefusal || endpoint.cached === undefined) return false
  // A bound from the free money is not part of the request, and an answer that reached its bound may have been cut.
  const { maxOutputTokens: longest = defaultMaxOutputTokens } = candidate.model.limits
  const bound = fittedOutputTokens
  const isShort = bound !== undefined && bound < Math.min(longest, defaultMaxOutputTokens)
  if (isShort || (bound !== undefined && (usage?.outputTokens ?? bound) >= bound)) return false
  if (cachePlan?.model !== candidate.model.id || chain[0] === undefined) return false
  return byteLengthOf(chunks) <= MAX_ENTRY_BYTES
}

/** Settles when the waiting requests have the answer; the store may take longer. Never throws or rejects. */
async function write(
  context: PipelineContext,
  cache: AnswerCache,
  { plan, key }: { readonly plan: CachePlan; readonly key: string },
  { endpoint, isStream, requestId }: Reserved,
  { candidate, usage: charged = {}, contentType, given: { dropped, chunks } }: FinishedAnswer,
): Promise<void> {
  // Hooks run again for each request, and charge for it again.
  const { hookUnits: _hookUnits, ...usage } = charged
  const rules = endpoint.cached!
  const body = joinChunks(chunks)
  if (rules.refusals.some((mark) => body.includes(mark))) return
  const storedAtMs = context.clock.now()
  const { flight, ttlMs } = plan
  const vendor = candidate.vendor.id
  const facts = { storedAtMs, staleFromMs: storedAtMs + ttlMs, isStream, contentType, vendor, usage, dropped }
  const failed = (error: unknown): void => {
    cache.stats.failedWrites += 1
    context.logger.warn('an answer could not be kept in the cache', { requestId, error })
    emit(context, { type: 'cache-write-failed', requestId, error })
  }
  const save = async (entry: Uint8Array): Promise<void> => {
    await cache.settings.store.set(key, entry, ttlMs, context.clock.now())
    cache.stats.writes += 1
  }
  try {
    const entry = await encodeAnswer(facts, body, rules)
    flight?.answered(entry)
    save(entry).catch(failed)
  } catch (error) {
    failed(error)
  }
}
