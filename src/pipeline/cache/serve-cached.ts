import { Buffer } from 'node:buffer'
import { CACHE_FIELD, CACHE_HIT, charge } from '../../catalog/prices/prices.ts'
import { isPending } from '../../core/maybe-promise.ts'
import { formatDollars } from '../../core/money.ts'
import { withHookUnits } from '../../core/usage.ts'
import type { StoredAnswer } from '../../stores/idempotency-store.ts'
import { release } from '../admit.ts'
import { announce } from '../announce.ts'
import type { Admitted, Reserved } from '../call-record.ts'
import { emit, type PipelineContext } from '../pipeline-context.ts'
import { type PricedRequest, priceHookUnits } from '../pricing.ts'
import { chargedFields } from '../request-rate.ts'
import { type ReserveOutcome, reservePriced, StoredReplay } from '../reserve.ts'
import { cachedHead, respondReplay, respondWhole } from '../respond.ts'
import { settle } from '../settle.ts'
import type { CallEnding } from '../vendor-response.ts'
import type { AnswerCache } from './answer-cache.ts'
import { type CachedAnswer, decodeAnswer } from './cached-answer.ts'
import { screenCached } from './screen-cached.ts'

const COMPLETED: CallEnding = { kind: 'completed', usage: undefined, estimatedUsage: undefined, error: undefined }

/**
 * Answers a request from the cache: reserves and charges the price of a hit, claims the Idempotency-Key, runs the answer hooks,
 * and releases the admission.
 * Returns false, without any effect, if the entry is unusable.
 * @throws GatewayError of `reserve`, and the denial of an answer hook.
 */
export async function serveHit(
  context: PipelineContext,
  cache: AnswerCache,
  admitted: Admitted,
  answer: CachedAnswer,
): Promise<boolean> {
  const priced = await pricedOrReleased(context, admitted, answer)
  const chunks = priced === 'unpriced' ? undefined : await chunksOf(answer, priced)
  if (priced === 'unpriced' || chunks === undefined) return false
  let outcome: ReserveOutcome
  try {
    const reserving = reservePriced(context, admitted, priced)
    outcome = isPending(reserving) ? await reserving : reserving
  } catch (error) {
    await release(context, admitted, 0)
    throw error
  }
  if (outcome instanceof StoredReplay) {
    await release(context, admitted, 0)
    respondReplay(admitted.sink, outcome.answer, admitted.requestId)
    return true
  }
  admitted.cachePlan!.status = 'hit'
  cache.stats.hits += 1
  announce(context, outcome)
  const screened = context.hooks === undefined ? undefined : await screenCached(context, outcome, answer, chunks)
  // Amount of the charge; undefined releases the hold.
  const nanoDollars = screened?.isCharged === false ? undefined : (priced?.amount ?? 0n)
  const own = { source: 'cache', cachedUsage: answer.usage, nanoDollars } as const
  if (screened !== undefined && 'error' in screened) {
    const { error } = screened
    const ending = { ...COMPLETED, kind: 'failed', error } as const
    await settle(context, outcome, { ending, candidate: undefined, status: error.status, answer: undefined, own })
    emitHit(context, outcome, answer, false)
    throw error
  }
  const shown = { answer, chunks: screened?.chunks ?? chunks }
  const kept = outcome.claim && storedAnswer(shown)
  const firstByteMs = context.clock.now() - admitted.startedAtMs
  const input = { ending: COMPLETED, candidate: undefined, status: 200, answer: kept, own, firstByteMs }
  const settling = settle(context, outcome, input)
  const { costNanoDollars = 0n } = isPending(settling) ? await settling : settling
  emitHit(context, outcome, answer, false)
  send(context, outcome, shown, costNanoDollars)
  return true
}

/** Answer with the bytes that its caller gets. */
export interface ShownAnswer {
  readonly answer: CachedAnswer
  readonly chunks: readonly Buffer[]
}

/** Returns the stale answer for a failed call, or `undefined` if there is none, a hook withholds it, or it does not apply. */
export async function staleFor(
  context: PipelineContext,
  reserved: Reserved,
  code: string,
): Promise<ShownAnswer | undefined> {
  const entry = reserved.cachePlan?.stale
  if (entry === undefined || !NO_VENDOR_ANSWERED.has(code)) return undefined
  const answer = decodeAnswer(entry)
  const chunks = answer && (await chunksOf(answer, undefined))
  if (answer === undefined || chunks === undefined) return undefined
  if (context.hooks === undefined) return { answer, chunks }
  const screened = await screenCached(context, reserved, answer, chunks)
  return 'error' in screened ? undefined : { answer, chunks: screened.chunks }
}

/** Sends the stale answer free of charge. The call has been settled as a failure. */
export function serveStale(context: PipelineContext, reserved: Reserved, shown: ShownAnswer): void {
  reserved.cachePlan!.status = 'stale'
  if (context.cache !== undefined) context.cache.stats.stale += 1
  emitHit(context, reserved, shown.answer, true)
  send(context, reserved, shown, 0n)
}

const NO_VENDOR_ANSWERED: ReadonlySet<string> = new Set(['upstream_unavailable', 'upstream_timeout'])

async function pricedOrReleased(
  context: PipelineContext,
  admitted: Admitted,
  answer: CachedAnswer,
): Promise<ReturnType<typeof priceOfHit>> {
  try {
    return priceOfHit(context, admitted, answer)
  } catch (error) {
    await release(context, admitted, 0)
    throw error
  }
}

/** Returns the price of a hit by its own rows, plus the charges of hooks; `undefined` if it is free. */
function priceOfHit(
  context: PipelineContext,
  admitted: Admitted,
  { usage }: CachedAnswer,
): PricedRequest | undefined | 'unpriced' {
  const { prices } = context
  const { chain, endpoint, hookUnits } = admitted
  const model = chain[0]
  if (prices === undefined || model === undefined) return undefined
  const fields = { ...chargedFields(context, admitted, model), [CACHE_FIELD]: CACHE_HIT }
  const rate = endpoint.isFree === true ? undefined : prices.quote(model.id, fields, HIT_ONLY)
  if (rate === undefined) return priceHookUnits(context, admitted)
  const isOfHit = rate.numerators.hook_unit !== undefined
  const amount = charge(rate, isOfHit ? withHookUnits(usage, hookUnits) : usage)
  // The rows price only a part of the usage, so no amount is right.
  if (amount === undefined) return 'unpriced'
  const ofHooks = isOfHit ? undefined : priceHookUnits(context, admitted)
  return { amount: amount + (ofHooks?.amount ?? 0n), rates: [rate], chain, estimates: [usage] }
}

const HIT_ONLY: readonly string[] = [CACHE_FIELD]

/** Returns the bytes of an answer, or undefined for a damaged entry. */
async function chunksOf(
  answer: CachedAnswer,
  priced: PricedRequest | undefined,
): Promise<readonly Buffer[] | undefined> {
  try {
    const chunks = answer.chunks(formatDollars(priced?.amount ?? 0n))
    return isPending(chunks) ? await chunks : chunks
  } catch {
    return undefined
  }
}

function storedAnswer({ answer: { contentType, isStream }, chunks }: ShownAnswer): StoredAnswer {
  const headers = ['content-type', contentType, ...(isStream ? ['cache-control', 'no-cache, no-transform'] : [])]
  return { status: 200, headers, body: Buffer.concat(chunks) }
}

function emitHit(context: PipelineContext, reserved: Reserved, answer: CachedAnswer, isStale: boolean): void {
  const { requestId, endpoint, principal, chain, body } = reserved
  const { accountId, keyId } = principal
  emit(context, {
    type: 'cache-hit',
    requestId,
    endpoint: endpoint.id,
    accountId,
    keyId,
    model: chain[0]?.id ?? body.model,
    ageMs: context.clock.now() - answer.storedAtMs,
    isStale,
  })
}

function send(
  context: PipelineContext,
  reserved: Reserved,
  { answer, chunks }: ShownAnswer,
  costNanoDollars: bigint,
): void {
  const ageSeconds = Math.max(0, Math.floor((context.clock.now() - answer.storedAtMs) / 1000))
  let byteLength: number | undefined
  if (!answer.isStream) byteLength = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0)
  const cost = context.prices === undefined ? undefined : costNanoDollars
  const { contentType, isStream, dropped } = answer
  const facts = { contentType, isStream, dropped, byteLength, ageSeconds, costNanoDollars: cost }
  const headers = cachedHead(reserved, facts)
  respondWhole(reserved.sink, { status: 200, headers }, chunks)
}
