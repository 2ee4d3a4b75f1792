import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields, Rate } from '../catalog/prices/prices.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Usage } from '../core/usage.ts'
import type { ContinuedRequest, Endpoint } from '../endpoints/endpoint.ts'
import type { MediaFacts } from '../endpoints/media-input.ts'
import { GENERATED_BYTES_PER_TOKEN } from '../endpoints/token-estimate.ts'
import type { RouteOverride } from '../routing/routing-options.ts'
import type { IdempotencyClaim } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { BucketState, Lease, RateTake } from '../stores/rate-limiter.ts'
import { type AttemptRecord, MAX_ATTEMPTS_IN_RECORD } from '../usage/usage-record.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { AbortScope, DisconnectSignal } from './abort-scope.ts'
import type { CachePlan } from './cache/cache-plan.ts'
import type { CallObservation } from './call-observation.ts'
import { DEFAULT_TOKENS_PER_SECOND, type ModelHabits } from './token-sizes.ts'

/**
 * A request in progress. Each stage takes the record of the previous one and returns a longer one, so types check the order
 * of the stages. This file shows what each stage adds.
 */
export interface Received {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly startedAtMs: number
  /** The endpoint of the path. If a path takes several shapes, the model decides the shape. */
  readonly called: Endpoint
  readonly caller: DisconnectSignal
  /** The vendor calls of this request; aborting them ends it. */
  readonly calls: AbortScope
  /** Set when the host calls in process and vouches for the caller. */
  readonly vouchedPrincipal: Principal | undefined
  /** The host's own routing choice; set only for requests within the process, never for callers over HTTP. */
  readonly routeOverride: RouteOverride | undefined
  /** Set where a request is run that was accepted before: the id that its answer gets. Its request is counted already. */
  readonly answerId: string | undefined
  /** True once the event `request-started` was emitted, or a task was accepted. An earlier error emits `request-refused`. */
  readonly isAnnounced: boolean
  /** Undefined: nobody observes requests. */
  readonly observation: CallObservation | undefined
  announced(): void
  authenticated(principal: Principal): Authenticated
}

export interface Authenticated extends Received {
  readonly principal: Principal
  /** From here on errors use this shape's dialect. */
  shaped(endpoint: Endpoint): Shaped
}

export interface Shaped extends Authenticated {
  readonly endpoint: Endpoint
  parsed(request: ParsedRequest): Parsed
}

/** Facts of a request whose body was checked. */
export interface ParsedRequest {
  /** The checked request; its type belongs to the endpoint. */
  readonly body: { readonly model: string }
  /**
   * The request's original bytes, serialised again only if an object repeats a member name; undefined for a form, whose
   * files are in the body.
   */
  readonly bytes: Uint8Array | undefined
  /** What a form was read from, parts of which its files are, where nobody else has it. Absent: no form, or others may have it. */
  readonly formChunks?: readonly Uint8Array[] | undefined
  /** Bytes of what the model reads as text. */
  readonly textBytes: number
  /** Tokens that this text may have beyond one per three bytes. */
  readonly denseTokens: number
  /** What the model reads besides. */
  readonly media: readonly MediaFacts[]
  readonly isStream: boolean
  /** The requested model, then its fallbacks; only models with a configured vendor. Never empty. */
  readonly chain: readonly CatalogModel[]
  readonly billingFields: BillingFields
  readonly claim: IdempotencyClaim | undefined
}

export interface Parsed extends Shaped, ParsedRequest {
  /** Units that hooks charge for their own work on the request. */
  readonly hookUnits: number
  /** Set for requests that begin or continue a stored conversation. */
  readonly continued: ContinuedRequest | undefined
  continues(continued: ContinuedRequest): Parsed
  /** The request with what it refers to in its place. */
  recalled(body: ParsedRequest['body'], input: Pick<ParsedRequest, 'textBytes' | 'denseTokens' | 'media'>): Parsed
  admitted(admission: Admission): Admitted
}

/** The result of the caller's limits. */
export interface Admission {
  /** Upper estimate for the requested model. */
  readonly estimate: Usage
  /** Of key, account and end user, where they have a limit. */
  readonly leases: readonly Lease[]
  /** Tokens taken from the token limits, corrected at the end. */
  readonly tokenTakes: readonly RateTake[]
  /** States of the limits that the caller meets first, for response headers. */
  readonly requestBucket: BucketState | undefined
  readonly tokenBucket: BucketState | undefined
}

export interface Admitted extends Parsed, Admission {
  /** Bound of one answer, in tokens, that the caller's balance decided; undefined: the request is sent as it came. */
  readonly fittedOutputTokens: number | undefined
  /** Hooks charge more units. */
  chargedUnits(units: number): void
  /** Headers that hooks add to its answer, names and values in turn; undefined: none. */
  readonly answerHeaders: readonly string[] | undefined
  addHeaders(headers: readonly string[]): void
  /** Another answer comes in the place of one: gives up what was added to it. @param headers Those that were there before. */
  resetHeaders(headers: readonly string[] | undefined): void
  /** Gives up its Idempotency-Key: what its caller gets is not kept under it. */
  unclaimed(): void
  /** What is to be done with its answer by the cache; undefined: the gateway has none, or not for this endpoint. */
  readonly cachePlan: CachePlan | undefined
  planned(plan: CachePlan): void
  /** The request with a bound that the balance pays. */
  fitted(fit: OutputFit): Admitted
  /** @param chain The models that may answer, where they are fewer than were asked for. */
  reserved(hold: Hold | undefined, chain?: readonly CatalogModel[]): Reserved
}

/** A request whose output was bounded by the balance. */
export interface OutputFit extends Pick<ParsedRequest, 'body' | 'bytes'>, Pick<Admission, 'estimate'> {
  /** Most tokens of one answer. */
  readonly outputTokens: number
}

/** One model at one vendor that could answer. */
export interface Candidate {
  readonly model: CatalogModel
  readonly vendor: Vendor
  readonly apiKey: string
  /** Identifies vendor and key without revealing the key. */
  readonly credentialId: string
}

/** Money held for a request. */
export interface Hold {
  readonly id: string
  readonly amount: bigint
  /** Price of each model of the chain, in the same order. */
  readonly rates: readonly Rate[]
}

/** A call to a vendor that was answered before the last one of the same request, and is paid with it. */
export interface EarlierCall {
  readonly candidate: Candidate
  readonly usage: Usage
  /** False: it is the operator's loss. */
  readonly isCharged: boolean
}

/** A request in another's place. */
export type ReplacedRequest = Omit<ParsedRequest, 'isStream' | 'claim'> & Pick<Admission, 'estimate'>

export interface Reserved extends Admitted {
  /** May its answer be asked for once more? Where money is held, it is for two calls. */
  readonly mayTryAgain: boolean
  allowSecondTry(): void
  /** Undefined: one call has answered it, or none. */
  readonly earlier: EarlierCall | undefined
  follows(earlier: EarlierCall): void
  /** Puts another request in its place. */
  replaced(request: ReplacedRequest): void
  /** Undefined: billing is off, or the endpoint is free. */
  readonly hold: Hold | undefined
  /** Bytes of generated text that count as one token where no usage is reported; the same until the call is settled. */
  readonly bytesPerToken: number
  /** Tokens of reasoning that such a call usually has; undefined: not known. The same until the call is settled. */
  readonly usualReasoningTokens: number | undefined
  /** Output tokens per second of the models that may answer, of all answers together. */
  readonly tokensPerSecond: number
  measuredBy(habits: ModelHabits): void
  /** Notes a call to a vendor that begins. */
  tries(attempt: Attempt): void
  /** The calls to vendors for the record of usage; undefined: there was at most one, and it did not fail. */
  attemptsUntil(nowMs: number): readonly AttemptRecord[] | undefined
  /**
   * Releases what only the beginning of an answer needs: body and bytes, and the limits that its head tells. Once a stream is open
   * no other vendor is called, and a prompt with pictures may hold megabytes for as long as the stream lasts. Only the body's
   * `model` is kept.
   */
  releaseBeginning(): void
  /** Has more than one call to a vendor begun? */
  readonly wasTriedAgain: boolean
}

/** A call to a vendor, in progress or over. */
export interface Attempt {
  readonly hasFailed: boolean
  recordUntil(nowMs: number): AttemptRecord
}

/** The first fields of a record. */
export type CallBeginning = Pick<
  Received,
  'request' | 'sink' | 'requestId' | 'startedAtMs' | 'called' | 'vouchedPrincipal' | 'routeOverride'
> &
  Partial<Pick<Received, 'answerId'>>

const NO_MEDIA: readonly MediaFacts[] = []
const NO_LEASES: readonly Lease[] = []
const NO_TAKES: readonly RateTake[] = []

/**
 * The one object behind all records of a request.
 *
 * A class with all fields, like everything that lives as long as a vendor takes to answer. V8 allocates object literals
 * that often survive a collection directly in its old space (allocation-site pretenuring). There they retain the finished
 * request until the next full collection. Under load that doubled the time per request (`npm run bench -- --only
 * chat-json`).
 */
export class CallRecord implements Reserved {
  /** Index in the list of requests in flight. */
  place = -1
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly startedAtMs: number
  readonly called: Endpoint
  readonly caller: DisconnectSignal
  readonly calls = new AbortScope()
  readonly vouchedPrincipal: Principal | undefined
  readonly routeOverride: RouteOverride | undefined
  readonly answerId: string | undefined
  isAnnounced = false
  observation: CallObservation | undefined = undefined
  principal!: Principal
  endpoint!: Endpoint
  body!: { readonly model: string }
  bytes: Uint8Array | undefined
  formChunks: readonly Uint8Array[] | undefined = undefined
  textBytes = 0
  denseTokens = 0
  media = NO_MEDIA
  isStream!: boolean
  chain!: readonly CatalogModel[]
  billingFields!: BillingFields
  claim: IdempotencyClaim | undefined
  continued: ContinuedRequest | undefined
  estimate!: Usage
  fittedOutputTokens: number | undefined
  hookUnits = 0
  answerHeaders: readonly string[] | undefined = undefined
  cachePlan: CachePlan | undefined = undefined
  leases = NO_LEASES
  tokenTakes = NO_TAKES
  requestBucket: BucketState | undefined
  tokenBucket: BucketState | undefined
  hold: Hold | undefined
  mayTryAgain = false
  earlier: EarlierCall | undefined = undefined
  bytesPerToken = GENERATED_BYTES_PER_TOKEN
  usualReasoningTokens: number | undefined = undefined
  tokensPerSecond = DEFAULT_TOKENS_PER_SECOND
  #firstAttempt: Attempt | undefined = undefined
  /** Undefined for most requests: one list less. */
  #furtherAttempts: Attempt[] | undefined = undefined

  constructor(beginning: CallBeginning) {
    this.request = beginning.request
    this.sink = beginning.sink
    this.requestId = beginning.requestId
    this.startedAtMs = beginning.startedAtMs
    this.called = beginning.called
    this.caller = new DisconnectSignal(beginning.sink)
    this.vouchedPrincipal = beginning.vouchedPrincipal
    this.routeOverride = beginning.routeOverride
    this.answerId = beginning.answerId
  }

  announced(): void {
    this.isAnnounced = true
  }

  authenticated(principal: Principal): Authenticated {
    this.principal = principal
    return this
  }

  shaped(endpoint: Endpoint): Shaped {
    this.endpoint = endpoint
    return this
  }

  parsed(request: ParsedRequest): Parsed {
    const { body, bytes, formChunks, textBytes, denseTokens, media, isStream, chain, billingFields, claim } = request
    this.body = body
    this.bytes = bytes
    this.formChunks = formChunks
    this.textBytes = textBytes
    this.denseTokens = denseTokens
    this.media = media
    this.isStream = isStream
    this.chain = chain
    this.billingFields = billingFields
    this.claim = claim
    return this
  }

  continues(continued: ContinuedRequest): Parsed {
    this.continued = continued
    return this
  }

  recalled(body: ParsedRequest['body'], input: Pick<ParsedRequest, 'textBytes' | 'denseTokens' | 'media'>): Parsed {
    this.body = body
    this.bytes = undefined
    return Object.assign(this, input)
  }

  admitted({ estimate, leases, tokenTakes, requestBucket, tokenBucket }: Admission): Admitted {
    this.estimate = estimate
    this.leases = leases
    this.tokenTakes = tokenTakes
    this.requestBucket = requestBucket
    this.tokenBucket = tokenBucket
    return this
  }

  chargedUnits(units: number): void {
    this.hookUnits += units
  }

  addHeaders(headers: readonly string[]): void {
    this.answerHeaders = [...(this.answerHeaders ?? []), ...headers]
  }

  resetHeaders(headers: readonly string[] | undefined): void {
    this.answerHeaders = headers
  }

  unclaimed(): void {
    this.claim = undefined
  }

  planned(plan: CachePlan): void {
    this.cachePlan = plan
  }

  fitted({ body, bytes, estimate, outputTokens }: OutputFit): Admitted {
    this.body = body
    this.bytes = bytes
    this.estimate = estimate
    this.fittedOutputTokens = outputTokens
    return this
  }

  reserved(hold: Hold | undefined, chain: readonly CatalogModel[] = this.chain): Reserved {
    this.hold = hold
    this.chain = chain
    return this
  }

  allowSecondTry(): void {
    this.mayTryAgain = true
  }

  follows(earlier: EarlierCall): void {
    this.earlier = earlier
  }

  replaced(request: ReplacedRequest): void {
    Object.assign(this, request)
  }

  measuredBy({ bytesPerToken, reasoningTokens, tokensPerSecond }: ModelHabits): void {
    const answers = this.endpoint.answers?.(this.body) ?? 1
    this.bytesPerToken = bytesPerToken
    this.tokensPerSecond = tokensPerSecond * answers
    this.usualReasoningTokens = reasoningTokens && reasoningTokens * answers
  }

  tries(attempt: Attempt): void {
    if (this.#firstAttempt === undefined) this.#firstAttempt = attempt
    else if (this.#furtherAttempts === undefined) this.#furtherAttempts = [attempt]
    else if (this.#furtherAttempts.length < MAX_ATTEMPTS_IN_RECORD - 1) this.#furtherAttempts.push(attempt)
    else this.#furtherAttempts[MAX_ATTEMPTS_IN_RECORD - 2] = attempt
  }

  get wasTriedAgain(): boolean {
    return this.#furtherAttempts !== undefined
  }

  attemptsUntil(nowMs: number): readonly AttemptRecord[] | undefined {
    const first = this.#firstAttempt
    if (first === undefined || (this.#furtherAttempts === undefined && !first.hasFailed)) return undefined
    return [first, ...(this.#furtherAttempts ?? [])].map((attempt) => attempt.recordUntil(nowMs))
  }

  releaseBeginning(): void {
    this.calls.releaseMemory()
    this.body = { model: this.body.model }
    this.bytes = this.formChunks = this.requestBucket = this.tokenBucket = undefined
    const { continued } = this
    if (continued?.recalled?.original !== undefined)
      this.continued = { ...continued, recalled: { original: undefined, turn: continued.recalled.turn } }
  }
}
