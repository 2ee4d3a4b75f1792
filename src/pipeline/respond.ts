import { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import { formatDollars } from '../core/money.ts'
import { type ErrorDialect, retryAfterOf } from '../endpoints/error-dialect.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { BucketState } from '../stores/rate-limiter.ts'
import { limitsOf } from './admission.ts'
import type { Admission, Admitted, Candidate, Parsed, Reserved } from './call-record.ts'
import { emitTo, type PipelineContext } from './pipeline-context.ts'

/** Sends a whole answer. For `mayFree` see {@link ByteSink.write}. */
export function respondWhole(
  sink: ByteSink,
  head: { readonly status: number; readonly headers: readonly string[] },
  chunks: readonly (Uint8Array | string)[],
  mayFree = false,
): void {
  if (sink.closed) return
  sink.head(head.status, head.headers)
  try {
    for (let index = 0; index < chunks.length - 1; index++) sink.write(chunks[index]!, mayFree)
    sink.end(chunks.at(-1), mayFree)
  } catch (fault) {
    // The answer has begun, so no other one may follow.
    sink.destroy()
    throw fault
  }
}

/** Sends an error in the caller's dialect. The only place where an error becomes an HTTP answer. */
export function respondError(
  sink: ByteSink,
  error: GatewayError,
  facts: { readonly dialect: ErrorDialect; readonly requestId: string; readonly headers?: readonly string[] },
): void {
  if (sink.closed) return
  const body = Buffer.from(facts.dialect.body(error, facts.requestId))
  const headers = [
    'content-type',
    'application/json',
    'content-length',
    String(body.byteLength),
    'x-request-id',
    facts.requestId,
    'x-signalbox-error-code',
    error.code,
  ]
  const retryAfter = retryAfterOf(error)
  if (retryAfter !== undefined) headers.push('retry-after', String(retryAfter))
  if (error.status === 401) headers.push('www-authenticate', 'Bearer')
  // SDKs retry 409, 429 and 5xx automatically, and coding clients also 401. This header stops them if a retry cannot help.
  if (!error.retryable) headers.push('x-should-retry', 'false')
  if (facts.headers !== undefined) headers.push(...facts.headers)
  sink.head(facts.dialect.status?.(error) ?? error.status, headers)
  sink.end(body)
}

/** Replays the answer stored under an Idempotency-Key. */
export function respondReplay(sink: ByteSink, answer: StoredAnswer, requestId: string): void {
  if (sink.closed) return
  sink.head(answer.status, [...answer.headers, 'x-request-id', requestId, 'idempotent-replayed', 'true'])
  sink.end(answer.body)
}

/** Sends a small JSON answer of the gateway, with additional headers. */
export function respondJson(
  sink: ByteSink,
  requestId: string,
  value: unknown,
  furtherHeaders: readonly string[] = [],
  status = 200,
): void {
  const body = Buffer.from(JSON.stringify(value))
  respondWhole(
    sink,
    {
      status,
      headers: [
        'content-type',
        'application/json',
        'content-length',
        String(body.byteLength),
        'x-request-id',
        requestId,
        ...furtherHeaders,
      ],
    },
    [body],
  )
}

/** Facts for an answer's headers in addition to its content. */
interface AnswerFacts {
  readonly candidate: Candidate
  readonly dropped: readonly string[]
}

/** Charge of a whole answer, or undefined if there was none or the store was unreachable; and its cost. */
interface WholeCost {
  readonly costNanoDollars: bigint | undefined
  readonly dueNanoDollars: bigint
}

/** Content type of server-sent events. */
export const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** Content type of an answer that is sent while it arrives. */
export function streamTypeOf({ endpoint, body }: Parsed): string {
  return endpoint.streamType?.(body) ?? EVENT_STREAM
}

/** Content type of a whole answer. */
export function wholeTypeOf({ endpoint, body }: Parsed): string {
  return endpoint.answerType?.(body) ?? JSON_TYPE
}

const JSON_TYPE = 'application/json'

/**
 * Returns the headers of a streamed answer. `no-transform` keeps compressing middleware from buffering events, and
 * `x-accel-buffering` does the same for nginx.
 */
export function streamHead(admitted: Admitted, facts: AnswerFacts, contentType: string): string[] {
  return answerHeaders(
    ['content-type', contentType, 'cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no'],
    admitted,
    facts,
  )
}

/**
 * Returns the headers of a whole answer. It is settled before it is sent, so they contain the charge, and the cost if it is
 * higher.
 */
export function wholeHead(
  admitted: Admitted,
  facts: AnswerFacts,
  byteLength: number,
  { costNanoDollars, dueNanoDollars }: WholeCost,
): string[] {
  const headers = ['content-type', wholeTypeOf(admitted), 'content-length', String(byteLength)]
  if (costNanoDollars !== undefined) headers.push('x-signalbox-cost', formatDollars(costNanoDollars))
  if (dueNanoDollars !== (costNanoDollars ?? 0n)) headers.push('x-signalbox-cost-due', formatDollars(dueNanoDollars))
  return answerHeaders(headers, admitted, facts)
}

/** Facts of an answer from the cache. */
interface CachedFacts {
  readonly contentType: string
  readonly isStream: boolean
  readonly dropped: readonly string[]
  /** Length of the body, or `undefined` for a stream. */
  readonly byteLength: number | undefined
  readonly ageSeconds: number
  /** Charge, or `undefined` if billing is off. */
  readonly costNanoDollars: bigint | undefined
}

/** Returns the headers of an answer from the cache, for which no vendor was called. */
export function cachedHead(admitted: Admitted, facts: CachedFacts): string[] {
  const headers = ['content-type', facts.contentType]
  if (facts.isStream) headers.push('cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no')
  if (facts.byteLength !== undefined) headers.push('content-length', String(facts.byteLength))
  headers.push('age', String(facts.ageSeconds))
  if (facts.costNanoDollars !== undefined) headers.push('x-signalbox-cost', formatDollars(facts.costNanoDollars))
  return pushAnswer(headers, admitted, undefined, facts.dropped)
}

/** Returns the headers of a hook's answer, for which no vendor was called. `costNanoDollars` is undefined if billing is off. */
export function ownHead(
  admitted: Admitted,
  headers: readonly string[],
  byteLength: number,
  costNanoDollars: bigint | undefined,
): string[] {
  const head = [...headers, 'content-length', String(byteLength)]
  if (costNanoDollars !== undefined) head.push('x-signalbox-cost', formatDollars(costNanoDollars))
  return pushAnswer(head, admitted, undefined, NOTHING_DROPPED)
}

const NOTHING_DROPPED: readonly string[] = []

/** Returns the headers of the receipt of a task. */
export function taskHead(
  admitted: Admitted,
  facts: { readonly vendorId: string; readonly dropped: readonly string[]; readonly byteLength: number },
): string[] {
  const headers = ['content-type', 'application/json', 'content-length', String(facts.byteLength)]
  return pushAnswer(headers, admitted, facts.vendorId, facts.dropped)
}

function answerHeaders(headers: string[], admitted: Admitted, facts: AnswerFacts): string[] {
  return pushAnswer(headers, admitted, facts.candidate.vendor.id, facts.dropped)
}

function pushAnswer(
  headers: string[],
  admitted: Admitted,
  vendorId: string | undefined,
  dropped: readonly string[],
): string[] {
  headers.push('x-request-id', admitted.requestId)
  if (vendorId !== undefined) headers.push('x-signalbox-vendor', vendorId)
  if (admitted.cachePlan !== undefined) headers.push('x-signalbox-cache', admitted.cachePlan.status)
  if (dropped.length > 0) headers.push('x-signalbox-dropped', headerText(dropped.join(', ')))
  if (admitted.fittedOutputTokens !== undefined)
    headers.push('x-signalbox-max-output-tokens', String(admitted.fittedOutputTokens))
  if (admitted.answerHeaders !== undefined) headers.push(...admitted.answerHeaders)
  return pushLimits(headers, admitted)
}

/** Maximum length of the list of dropped fields. Callers choose field names, and clients limit headers. */
const MAX_DROPPED_LENGTH = 2_048

/** Escapes text for a header, because names from callers may contain any character. */
function headerText(text: string): string {
  const safe = text.replace(/[^\x20-\x7e]/g, '?')
  return safe.length <= MAX_DROPPED_LENGTH ? safe : `${safe.slice(0, MAX_DROPPED_LENGTH)}...`
}

const REQUEST_HEADERS = [
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
] as const
const TOKEN_HEADERS = ['x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'] as const

/** Adds `x-ratelimit-*` in OpenAI's format if the caller has limits. */
export function pushLimits(headers: string[], limits: Pick<Admission, 'requestBucket' | 'tokenBucket'>): string[] {
  if (limits.requestBucket !== undefined) pushBucket(headers, REQUEST_HEADERS, limits.requestBucket)
  if (limits.tokenBucket !== undefined) pushBucket(headers, TOKEN_HEADERS, limits.tokenBucket)
  return headers
}

function pushBucket(headers: string[], names: readonly [string, string, string], bucket: BucketState): void {
  const [limit, remaining, reset] = names
  headers.push(limit, String(bucket.limit), remaining, String(bucket.remaining), reset, formatDuration(bucket.resetMs))
}

/** Formats a duration like OpenAI: `120ms`, `1.5s`, `6m0s`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.ceil(milliseconds)}ms`
  const seconds = Math.ceil(milliseconds / 100) / 10
  if (seconds < 60) return `${seconds}s`
  const whole = Math.ceil(seconds)
  return `${Math.floor(whole / 60)}m${whole % 60}s`
}

/** Emits `request-started`, once. */
export function announce(context: PipelineContext, reserved: Reserved): void {
  if (context.onEvent === undefined || reserved.isAnnounced) return
  reserved.announced()
  // Observers are notified separately.
  emitTo(context.onEvent, context.logger, {
    type: 'request-started',
    requestId: reserved.requestId,
    endpoint: reserved.endpoint.id,
    accountId: reserved.principal.accountId,
    keyId: reserved.principal.keyId,
    model: reserved.chain[0]?.id ?? reserved.body.model,
  })
}

/** Number of requests about tasks and stored answers per request of the key's limit. */
const READINGS_PER_REQUEST = 10

/**
 * Counts a request about tasks or stored answers. These have their own bucket with ten times the key's requests per minute:
 * polling does not use generation quota, but is still limited. Unlimited for keys without a request limit.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass.
 */
export async function countReading(context: PipelineContext, principal: Principal): Promise<void> {
  const { keyId } = principal
  const { requestsPerMinute } = (await limitsOf(context, principal)).perKey
  if (requestsPerMinute === undefined) return
  const take = { bucket: `tasks:${keyId}`, amount: 1, perMinute: requestsPerMinute * READINGS_PER_REQUEST }
  const decision = await context.rateLimiter.take([take], context.clock.now())
  if (!decision.allowed) throw new GatewayError('rate_limited', { retryAfterSeconds: decision.retryAfterMs / 1000 })
}
