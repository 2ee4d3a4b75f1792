import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib'
import { CACHE_FIELD, CACHE_HIT, charge } from '../../catalog/prices/prices.ts'
import { GatewayError } from '../../core/errors.ts'
import { formatDollars } from '../../core/money.ts'
import { type Usage, withHookUnits } from '../../core/usage.ts'
import type { CachedAnswers } from '../../endpoints/answer-json.ts'
import type { StreamTransform } from '../../endpoints/stream-transform.ts'
import type { StoredAnswer } from '../../stores/idempotency-store.ts'
import { findString } from '../../wire/json-edits.ts'
import { release } from '../admission.ts'
import type { Admitted, Reserved } from '../call-record.ts'
import { settle } from '../charge.ts'
import { screenedWhole, writtenAnswer } from '../hooks/answer-hooks.ts'
import { type AnswerScreen, type Screening, screeningOf } from '../hooks/hook-facts.ts'
import { ScreenedStream } from '../hooks/screened-stream.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline-context.ts'
import { chargedFields, type PricedRequest, priceHookUnits } from '../pricing.ts'
import { type ReserveOutcome, reservePriced, StoredReplay } from '../reserve.ts'
import { announce, cachedHead, respondReplay, respondWhole } from '../respond.ts'
import type { StreamEnd, StreamReceiver } from '../stream-call.ts'
import type { CallEnding, OpenStream, Unfinished } from '../vendor-response.ts'
import type { AnswerCache, CacheRequest } from './answer-cache.ts'
import { CachePlan, type Flight, type FlightOutcome } from './cache-plan.ts'

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
  const chunks = priced === 'unpriced' ? undefined : await answerChunks(answer, priced)
  if (priced === 'unpriced' || chunks === undefined) return false
  let outcome: ReserveOutcome
  try {
    outcome = await reservePriced(context, admitted, priced)
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
    emitHit(context, outcome, answer)
    throw error
  }
  const shown = { answer, chunks: screened?.chunks ?? chunks }
  const kept = outcome.claim && storedAnswer(shown)
  const firstByteMs = context.clock.now() - admitted.startedAtMs
  const input = { ending: COMPLETED, candidate: undefined, status: 200, answer: kept, own, firstByteMs }
  const { costNanoDollars = 0n } = await settle(context, outcome, input)
  emitHit(context, outcome, answer)
  send(context, outcome, shown, costNanoDollars)
  return true
}

/** Answer with the bytes that its caller gets. */
interface SentAnswer {
  readonly answer: CachedAnswer
  readonly chunks: readonly Buffer[]
}

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
async function answerChunks(
  answer: CachedAnswer,
  priced: PricedRequest | undefined,
): Promise<readonly Buffer[] | undefined> {
  try {
    return await answer.chunks(formatDollars(priced?.amount ?? 0n))
  } catch {
    return undefined
  }
}

function storedAnswer({ answer: { contentType, isStream }, chunks }: SentAnswer): StoredAnswer {
  const headers = ['content-type', contentType, ...(isStream ? ['cache-control', 'no-cache, no-transform'] : [])]
  return { status: 200, headers, body: Buffer.concat(chunks) }
}

function emitHit(context: PipelineContext, reserved: Reserved, answer: CachedAnswer): void {
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
  })
}

function send(
  context: PipelineContext,
  reserved: Reserved,
  { answer, chunks }: SentAnswer,
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

/** Answer from the cache after the hooks. */
export interface ScreenedHit {
  readonly chunks: readonly Buffer[]
  /** Whether it is charged. */
  readonly isCharged: boolean
}

/** Error that the caller gets instead of an answer from the cache. */
export interface DeniedHit {
  readonly error: GatewayError
  readonly isCharged: boolean
}

/**
 * Runs the current answer hooks on an answer that was stored before hooks. A stream is read completely before any of it is sent,
 * so a denial as an error has its own status. Never rejects.
 */
async function screenCached(
  context: PipelineContext,
  reserved: Reserved,
  { isStream, usage, vendor }: AnswerFacts,
  chunks: readonly Buffer[],
): Promise<ScreenedHit | DeniedHit> {
  const model = reserved.chain[0]
  const screening = model === undefined ? undefined : screeningOf(context, reserved, model.id)
  if (model === undefined || screening === undefined) return { chunks, isCharged: true }
  const { jsonSchema } = screening
  const screen = { context, reserved, candidate: { model, vendor: { id: vendor } }, usage, jsonSchema }
  try {
    return await (isStream ? screenEvents : screenBody)(screen, screening, chunks)
  } catch (cause) {
    return { error: GatewayError.from(cause), isCharged: false }
  }
}

async function screenBody(
  screen: AnswerScreen,
  screening: Screening,
  chunks: readonly Buffer[],
): Promise<ScreenedHit | DeniedHit> {
  const { answer, error, isCharged } = await screenedWhole(screen, screening, chunks)
  if (error !== undefined) return { error, isCharged }
  return { chunks: answer === undefined ? chunks : [Buffer.from(writtenAnswer(screen.reserved, answer))], isCharged }
}

async function screenEvents(
  screen: AnswerScreen,
  screening: Screening,
  chunks: readonly Buffer[],
): Promise<ScreenedHit | DeniedHit> {
  const stream = new ScreenedStream(new KeptStream(chunks, screen.usage), screen, screening)
  const sent: Buffer[] = []
  const end = await new Promise<StreamEnd>((resolve) => {
    stream.attach({ onBytes: (bytes) => sent.push(Buffer.from(bytes as Uint8Array)), onStreamEnd: resolve })
  })
  const { denial } = stream
  const isCharged = denial === undefined || (!denial.isFault && denial.hook.chargesDenied)
  if (end.kind !== 'denied') return { chunks: sent, isCharged }
  if (denial?.denial.isRefusal !== true) return { error: end.error, isCharged: isCharged && end.isCharged }
  sent.push(Buffer.from(stream.transform.failed?.(end.error) ?? ''))
  return { chunks: sent, isCharged }
}

/** Stored stream, which is available as a whole from the start. */
class KeptStream implements OpenStream {
  readonly transform: StreamTransform
  readonly vendorRequestId = undefined
  readonly #chunks: readonly Buffer[]

  constructor(chunks: readonly Buffer[], usage: Usage | undefined) {
    this.#chunks = chunks
    this.transform = new KeptTransform(usage)
  }

  attach(receiver: StreamReceiver): void {
    for (const bytes of this.#chunks) receiver.onBytes(bytes)
    receiver.onStreamEnd({ kind: 'ended' })
  }

  // The stream is available as a whole, so there is nothing to pause or abort.
  pause(): void {}
  resume(): void {}
  readAtMost(): void {}
  abort(): void {}
}

/** Transform of a stored stream, which was complete. */
class KeptTransform implements StreamTransform {
  readonly hasContent = true
  readonly isComplete = true
  readonly atBoundary = true
  readonly failure = undefined
  readonly outputBytesSeen = 0
  readonly usage: Usage | undefined

  constructor(usage: Usage | undefined) {
    this.usage = usage
  }

  push(): undefined {
    return undefined
  }

  end(): undefined {
    return undefined
  }
}

/** Minimum size for compression. Smaller answers gain less than the 15 µs it costs; large ones are compressed on another thread. */
const COMPRESSED_FROM_BYTES = 4096
const OWN_THREAD_FROM_BYTES = 128 * 1024

/** Number of events that are searched for the id of a streamed answer, and its minimum length: a short id may occur elsewhere too. */
const EVENTS_WITH_ID = 4
const MIN_ID = 8

/** Speed matters more than size, because the events of a stream are repetitive. */
const COMPRESSION = { level: 1 } as const

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** Facts of an answer in addition to its bytes. */
interface AnswerFacts {
  /** Unix milliseconds. */
  readonly storedAtMs: number
  /** Time from which the answer is stale, in Unix milliseconds. */
  readonly staleFromMs: number
  readonly isStream: boolean
  readonly contentType: string
  /** Id of the vendor that created it, for hooks. */
  readonly vendor: string
  /** Usage of the original call. */
  readonly usage: Usage
  readonly dropped: readonly string[]
}

/** Head of an entry, before its bytes. */
interface EntryHead extends AnswerFacts {
  readonly byteLength: number
  readonly isCompressed: boolean
  /** Offset of each id from the previous one, and the length of the id. */
  readonly idSteps: readonly number[]
  readonly idLength: number
  /** Position of the cost of the call, or `undefined` if the answer has none. */
  readonly cost?: { readonly start: number; readonly end: number } | undefined
}

/** Decoded entry. */
export interface CachedAnswer extends AnswerFacts {
  /** Returns the bytes with a new id and this cost, in one or several chunks. */
  chunks(cost: string): Promise<readonly Buffer[]>
}

const HEAD_LENGTH_BYTES = 4

type AnswerRules = Pick<CachedAnswers<never, never>, 'idPaths' | 'costMark'>

/** Encodes an entry: length of the head, the head as JSON, then the bytes. */
export async function encodeAnswer(facts: AnswerFacts, body: Buffer, rules: AnswerRules): Promise<Uint8Array> {
  const { byteLength } = body
  if (byteLength < COMPRESSED_FROM_BYTES) return entryOf(facts, body, body, rules)
  const isLarge = byteLength >= OWN_THREAD_FROM_BYTES
  return entryOf(facts, body, isLarge ? await deflate(body, COMPRESSION) : deflateRawSync(body, COMPRESSION), rules)
}

function entryOf(facts: AnswerFacts, body: Buffer, deflated: Buffer, rules: AnswerRules): Uint8Array {
  const { idPaths, costMark } = rules
  const ids = idPaths === undefined ? NO_IDS : idsIn(body, facts.isStream, idPaths)
  const packed = deflated.byteLength < body.byteLength ? deflated : body
  // Every member by name: serializing an object created by spreading takes four microseconds more.
  const head: EntryHead = {
    storedAtMs: facts.storedAtMs,
    staleFromMs: facts.staleFromMs,
    isStream: facts.isStream,
    contentType: facts.contentType,
    vendor: facts.vendor,
    usage: facts.usage,
    dropped: facts.dropped,
    idSteps: ids.idSteps,
    idLength: ids.idLength,
    byteLength: body.byteLength,
    isCompressed: packed !== body,
    cost: costMark === undefined || !facts.isStream ? undefined : costIn(body, costMark),
  }
  const text = JSON.stringify(head)
  const textLength = Buffer.byteLength(text)
  // Not from a pool, which would be retained as a whole with the entry.
  const entry = Buffer.allocUnsafeSlow(HEAD_LENGTH_BYTES + textLength + packed.byteLength)
  entry.writeUInt32LE(textLength, 0)
  entry.write(text, HEAD_LENGTH_BYTES)
  packed.copy(entry, HEAD_LENGTH_BYTES + textLength)
  return entry
}

/** Decodes an entry; undefined if it is invalid. */
export function decodeAnswer(entry: Uint8Array): CachedAnswer | undefined {
  try {
    const bytes = Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength)
    const bodyStart = HEAD_LENGTH_BYTES + bytes.readUInt32LE(0)
    const answer = JSON.parse(bytes.toString('utf8', HEAD_LENGTH_BYTES, bodyStart)) as EntryHead & {
      chunks: CachedAnswer['chunks']
    }
    if (!isHead(answer)) return undefined
    const packed = bytes.subarray(bodyStart)
    answer.chunks = chunksReader(answer, packed)
    return answer
  } catch {
    return undefined
  }
}

const HEADER_TEXT = /^[\x20-\x7e]+$/

/** Whether a head is complete. A damaged head may still be JSON. */
function isHead({ contentType, storedAtMs, staleFromMs, byteLength, usage, dropped, idSteps }: EntryHead): boolean {
  if (typeof contentType !== 'string' || !HEADER_TEXT.test(contentType)) return false
  if (typeof storedAtMs !== 'number' || typeof staleFromMs !== 'number' || typeof byteLength !== 'number') return false
  return typeof usage === 'object' && usage !== null && Array.isArray(dropped) && Array.isArray(idSteps)
}

function chunksReader(head: EntryHead, packed: Buffer): CachedAnswer['chunks'] {
  const { byteLength, isCompressed } = head
  const bound = { maxOutputLength: byteLength }
  return async (cost) => {
    if (!isCompressed) return edited(head, Buffer.from(packed), cost)
    const isLarge = byteLength >= OWN_THREAD_FROM_BYTES
    return edited(head, isLarge ? await inflate(packed, bound) : inflateRawSync(packed, bound), cost)
  }
}

function edited({ idSteps, idLength, cost: place, byteLength }: EntryHead, body: Buffer, cost: string): Buffer[] {
  if (body.byteLength !== byteLength) throw new Error('the entry is damaged')
  const [first] = idSteps
  if (first !== undefined) {
    const id = freshId(body.toString('latin1', first, first + idLength))
    let position = 0
    for (let index = 0; index < idSteps.length; index++) {
      position += idSteps[index]!
      body.write(id, position, 'latin1')
    }
  }
  return place === undefined ? [body] : [body.subarray(0, place.start), Buffer.from(cost), body.subarray(place.end)]
}

const NO_IDS = { idSteps: [] as readonly number[], idLength: 0 }

/** Finds the id of an answer: at one position of a JSON answer, or in any number of events. */
function idsIn(body: Buffer, isStream: boolean, paths: readonly (readonly string[])[]): typeof NO_IDS {
  const id = isStream ? streamId(body, paths) : idAt(body, paths, 0, body.byteLength)
  if (id === undefined || id.length < MIN_ID || !/^[\w.-]+$/.test(id)) return NO_IDS
  const quoted = Buffer.from(`"${id}"`)
  const idSteps: number[] = []
  let last = 0
  for (let at = body.indexOf(quoted); at !== -1; at = body.indexOf(quoted, at + quoted.byteLength)) {
    idSteps.push(at + 1 - last)
    last = at + 1
  }
  return { idSteps, idLength: id.length }
}

const DATA = Buffer.from('data:')

function streamId(body: Buffer, paths: readonly (readonly string[])[]): string | undefined {
  let start = 0
  for (let event = 0; event < EVENTS_WITH_ID; event++) {
    const at = body.indexOf(DATA, start)
    if (at === -1) return undefined
    const lineEnd = body.indexOf('\n', at)
    const end = lineEnd === -1 ? body.byteLength : lineEnd
    const id = idAt(body, paths, at + DATA.byteLength, end)
    if (id !== undefined && id !== '') return id
    start = end
  }
  return undefined
}

function idAt(body: Buffer, paths: readonly (readonly string[])[], start: number, end: number): string | undefined {
  for (const path of paths) {
    const span = findString(body, path, start, end)
    if (span !== undefined) return body.toString('latin1', span.start + 1, span.end - 1)
  }
  return undefined
}

/** Finds the cost. The last occurrence counts, because the cost is at the end. */
function costIn(body: Buffer, mark: string): EntryHead['cost'] {
  const at = body.lastIndexOf(mark)
  if (at === -1) return undefined
  const start = at + mark.length
  const end = body.indexOf('"', start)
  return end === -1 ? undefined : { start, end }
}

const MAX_PREFIX = 16
const DIGITS = '0123456789abcdef'
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Returns another id of the same length and kind: the prefix up to the first `-` or `_` stays, and so do such characters after it. */
function freshId(id: string): string {
  const mark = id.search(/[-_]/)
  const kept = mark === -1 || mark > MAX_PREFIX || /^[0-9a-f]+$/.test(id.slice(0, mark)) ? 0 : mark + 1
  const alphabet = /^[0-9a-f-]*$/.test(id.slice(kept)) ? DIGITS : LETTERS
  const random = randomBytes(id.length)
  let fresh = id.slice(0, kept)
  for (let index = kept; index < id.length; index++) {
    const sign = id[index]!
    fresh += /[a-zA-Z0-9]/.test(sign) ? alphabet[random[index]! % alphabet.length] : sign
  }
  return fresh
}

/** Next stage if the cache has no answer: it reserves money and calls a vendor. */
export interface NextStage<Completion> {
  readonly completion: Completion
  /** Resolves with the rest of the answer, or `undefined` if there is none. */
  proceed(context: PipelineContext, admitted: Admitted, completion: Completion): Promise<Unfinished | undefined>
}

/**
 * Only place where a request meets the response cache: after its limits and before its hold. The request is answered from the
 * cache, waits for an equal request, or proceeds, and its answer is then stored. Each path releases the admission once.
 * @param isImmediate Whether the request is answered on its own connection. Others bypass the cache.
 * @throws GatewayError `cache_miss` if the caller accepts only a cached answer, `invalid_request` for a header with an unknown
 *   value, and all errors of `proceed`.
 */
export async function throughCache<Completion>(
  context: PipelineContext,
  admitted: Admitted,
  isImmediate: boolean,
  { completion, proceed }: NextStage<Completion>,
): Promise<Unfinished | undefined> {
  const { cache } = context
  if (cache === undefined || admitted.endpoint.cached === undefined || !isImmediate) {
    if (cache?.wantsOnly(admitted.request) !== true) return proceed(context, admitted, completion)
    await release(context, admitted, 0)
    throw new GatewayError('cache_miss')
  }
  const plan = new CachePlan()
  admitted.planned(plan)
  let outcome: CachedAnswer | 'proceed'
  try {
    outcome = await lookUp(context, cache, admitted, plan)
  } catch (error) {
    // A request that is rejected here has used nothing.
    await release(context, admitted, 0)
    throw error
  }
  if (outcome !== 'proceed' && (await serveHit(context, cache, admitted, outcome))) return undefined
  // An unusable entry counts as a miss.
  if (plan.isOnly) {
    await release(context, admitted, 0)
    throw new GatewayError('cache_miss')
  }
  const { flight } = plan
  if (flight === undefined) return proceed(context, admitted, completion)
  try {
    const rest = await proceed(context, admitted, completion)
    await rest?.end
    return undefined
  } finally {
    if (plan.kept !== undefined) await plan.kept
    flight.leaderOver()
  }
}

/** Finds the answer to a request, or plans what happens to the answer that it will get. */
async function lookUp(
  context: PipelineContext,
  cache: AnswerCache,
  admitted: Admitted,
  plan: CachePlan,
): Promise<CachedAnswer | 'proceed'> {
  const wish = cache.wishOf(admitted)
  const key = wish && (await keyOf(context, cache, admitted, wish))
  // Also applies to requests that are never looked up, because their vendor would be paid.
  const isOnly = cache.wantsOnly(admitted.request)
  plan.isOnly = isOnly
  if (wish === undefined || key === undefined) {
    if (isOnly) throw new GatewayError('cache_miss')
    return 'proceed'
  }
  plan.key = key
  plan.ttlMs = wish.ttlMs
  plan.model = admitted.chain[0]!.id
  plan.status = wish.mode === 'refresh' ? 'refresh' : 'miss'
  if (wish.mode === 'refresh') return 'proceed'
  const entry = await read(context, cache, admitted, key)
  const answer = entry && decodeAnswer(entry)
  if (answer !== undefined && isFresh(answer, context.clock.now())) return answer
  if (isOnly) throw new GatewayError('cache_miss')
  cache.stats.misses += 1
  if (!cache.settings.collapse || admitted.isStream) return 'proceed'
  const underWay = cache.flightOf(key)
  if (underWay !== undefined) return collapse(context, admitted, plan, underWay)
  plan.flight = cache.takeOff(key)
  return 'proceed'
}

/** An entry from the future, beyond the clock differences of processes, shows that the clock was set back. */
function isFresh({ storedAtMs, staleFromMs }: CachedAnswer, nowMs: number): boolean {
  return nowMs < staleFromMs && storedAtMs - nowMs < staleFromMs - storedAtMs
}

/** Returns the key, or `undefined` if the current generations are unknown. */
async function keyOf(
  context: PipelineContext,
  cache: AnswerCache,
  admitted: Admitted,
  wish: CacheRequest,
): Promise<string | undefined> {
  const { store } = cache.settings
  const nowMs = context.clock.now()
  try {
    const [ofAll, ofAccount] = await Promise.all([
      store.generation(ALL_ACCOUNTS, nowMs),
      wish.isOfAccount ? store.generation(admitted.principal.accountId, nowMs) : 0,
    ])
    if (ofAll === undefined || ofAccount === undefined) return undefined
    return cache.keyOf(admitted, wish, [ofAll, ofAccount], context.vendors)
  } catch (error) {
    reportFault(context, admitted.requestId, 'cache', error)
    return undefined
  }
}

/** Scope of all entries. No account has this id. */
export const ALL_ACCOUNTS = ''

/** Treats a failing cache as an empty one. */
async function read(
  context: PipelineContext,
  cache: AnswerCache,
  { requestId }: Admitted,
  key: string,
): Promise<Uint8Array | undefined> {
  try {
    return await cache.settings.store.get(key, context.clock.now())
  } catch (error) {
    reportFault(context, requestId, 'cache', error)
    return undefined
  }
}

/** Waits for an equal request in flight, and replaces it if it fails. */
async function collapse(
  context: PipelineContext,
  admitted: Admitted,
  plan: CachePlan,
  underWay: Flight,
): Promise<CachedAnswer | 'proceed'> {
  const outcome = await waitFor(context, admitted, underWay)
  if (outcome === 'lead') plan.flight = underWay
  return typeof outcome === 'string' ? 'proceed' : (decodeAnswer(outcome) ?? 'proceed')
}

/**
 * Waits within the request's own time limit.
 * @throws GatewayError `upstream_timeout`, `client_closed_request` if the caller disconnects, `gateway_closing`.
 */
function waitFor(context: PipelineContext, { caller, calls }: Admitted, flight: Flight): Promise<FlightOutcome> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      leave()
      deadline.cancel()
      calls.delete(waiting)
      caller.onDisconnect(undefined)
    }
    const fail = (code: 'upstream_timeout' | 'client_closed_request' | 'gateway_closing'): void => {
      end()
      reject(calls.refusal ?? new GatewayError(code))
    }
    const waiting = { abort: () => fail('gateway_closing') }
    const leave = flight.join((outcome) => {
      end()
      resolve(outcome)
    })
    const deadline = context.deadlines.add(() => fail('upstream_timeout'))
    if (!calls.add(waiting)) return fail('gateway_closing')
    caller.onDisconnect(() => fail('client_closed_request'))
  })
}
