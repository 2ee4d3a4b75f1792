import { isPending, type MaybePromise } from '../../core/maybe-promise.ts'
import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import type { Candidate, Reserved } from '../call-record.ts'
import { emit, type PipelineContext } from '../pipeline-context.ts'
import type { AnswerCache } from './answer-cache.ts'
import { type CachePlan, MAX_ENTRY_BYTES, type UnscreenedAnswer } from './cache-plan.ts'
import { encodeAnswer } from './cached-answer.ts'

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
export function keepInCache(context: PipelineContext, reserved: Reserved, answer: FinishedAnswer): void {
  const { cache } = context
  const { cachePlan: plan } = reserved
  if (cache === undefined || plan?.key === undefined || !mayKeep(context, reserved, answer)) return
  const kept = write(context, cache, { plan, key: plan.key, requestId: reserved.requestId }, reserved, answer)
  if (isPending(kept)) plan.kept = kept
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
  let byteLength = 0
  for (const chunk of chunks) byteLength += chunk.byteLength
  return byteLength <= MAX_ENTRY_BYTES
}

interface EntryPlace {
  readonly plan: CachePlan
  readonly key: string
  readonly requestId: string
}

/** Settles when the waiting requests have the answer; the store may take longer. Never throws or rejects. */
function write(
  context: PipelineContext,
  cache: AnswerCache,
  { plan, key, requestId }: EntryPlace,
  { endpoint, isStream }: Reserved,
  { candidate, usage: charged = {}, contentType, given: { dropped, chunks } }: FinishedAnswer,
): MaybePromise<void> {
  // Hooks run again for each request, and charge for it again.
  const { hookUnits: _hookUnits, ...usage } = charged
  const rules = endpoint.cached!
  const body = joinChunks(chunks)
  if (rules.refusals.some((mark) => body.includes(mark))) return
  const storedAtMs = context.clock.now()
  const { flight, ttlMs } = plan
  const vendor = candidate.vendor.id
  const facts = { storedAtMs, staleFromMs: storedAtMs + ttlMs, isStream, contentType, vendor, usage, dropped }
  const failed = (error: unknown): void => writeFailed(context, cache, requestId, error)
  const done = (): void => {
    cache.stats.writes += 1
  }
  const set = (entry: Uint8Array): void => {
    flight?.answered(entry)
    const keepMs = ttlMs + cache.settings.staleIfErrorMs
    const written = cache.settings.store.set(key, entry, keepMs, context.clock.now())
    if (isPending(written)) written.then(done, failed)
    else done()
  }
  try {
    const encoded = encodeAnswer(facts, body, rules)
    if (isPending(encoded)) return encoded.then(set).then(undefined, failed)
    set(encoded)
  } catch (error) {
    failed(error)
  }
}

function writeFailed(context: PipelineContext, cache: AnswerCache, requestId: string, error: unknown): void {
  cache.stats.failedWrites += 1
  context.logger.warn('an answer could not be kept in the cache', { requestId, error })
  emit(context, { type: 'cache-write-failed', requestId, error })
}
