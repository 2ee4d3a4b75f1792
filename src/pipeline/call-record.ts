import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields, Rate } from '../catalog/prices/prices.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Usage } from '../core/usage.ts'
import type { ContinuedRequest, Endpoint } from '../endpoints/endpoint.ts'
import type { MediaFacts } from '../endpoints/media-input.ts'
import { GENERATED_BYTES_PER_TOKEN } from '../endpoints/token-estimate.ts'
import type { RouteOverride } from '../routing/candidate.ts'
import type { IdempotencyClaim } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { BucketState, Lease, RateTake } from '../stores/rate-limiter.ts'
import { type AttemptRecord, MAX_ATTEMPTS_IN_RECORD } from '../usage/usage-record.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { AbortScope, DisconnectSignal } from './abort-scope.ts'
import type { CachePlan } from './cache/cache-plan.ts'
import type { CallObservation } from './call-observation.ts'
import type { HostCommit } from './commit-with.ts'
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
  /** Endpoint of the path. If a path has several shapes, the model decides the shape. */
  readonly called: Endpoint
  readonly caller: DisconnectSignal
  /** Vendor calls of this request; aborting them ends it. */
  readonly calls: AbortScope
  /** Set when the host calls in process and vouches for the caller. */
  readonly vouchedPrincipal: Principal | undefined
  /** The host's own routing choice; set only for requests within the process, never for callers over HTTP. */
  readonly routeOverride: RouteOverride | undefined
  /** Commits statements of the host with the charge; set only for requests within the process. */
  readonly hostCommit: HostCommit | undefined
  /** Id of the answer, if the request was accepted earlier and runs now. It has already been counted against the limits. */
  readonly answerId: string | undefined
  /** Whether the event `request-started` was emitted, or a task was accepted. An earlier error emits `request-refused`. */
  readonly isAnnounced: boolean
  /** Observation of the request, or `undefined` without observers. */
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
   * Original bytes of the request, serialized again only if an object repeats a member name. Undefined for a form, whose files
   * are in the body.
   */
  readonly bytes: Uint8Array | undefined
  /** Chunks that contain the files of a form, if nobody else uses them. Omitted for other bodies, or if others may use them. */
  readonly formChunks?: readonly Uint8Array[] | undefined
  /** Number of bytes that the model reads as text. */
  readonly textBytes: number
  /** Number of tokens that this text may have in addition to one per three bytes. */
  readonly denseTokens: number
  /** Other media that the model reads. */
  readonly media: readonly MediaFacts[]
  readonly isStream: boolean
  /** Requested model, followed by its fallbacks; only models with a configured vendor. Never empty. */
  readonly chain: readonly CatalogModel[]
  readonly billingFields: BillingFields
  readonly claim: IdempotencyClaim | undefined
}

export interface Parsed extends Shaped, ParsedRequest {
  /** Number of units that hooks charge for their own work on the request. */
  readonly hookUnits: number
  /** Set for requests that begin or continue a stored conversation. */
  readonly continued: ContinuedRequest | undefined
  continues(continued: ContinuedRequest): Parsed
  /** Replaces the references in the request by their content. */
  recalled(body: ParsedRequest['body'], input: Pick<ParsedRequest, 'textBytes' | 'denseTokens' | 'media'>): Parsed
  admitted(admission: Admission): Admitted
}

/** Result of the caller's limits. */
export interface Admission {
  /** Upper estimate for the requested model. */
  readonly estimate: Usage
  /** Leases of key, account and end user, if they have a limit. */
  readonly leases: readonly Lease[]
  /** Tokens taken from the token limits; corrected at the end. */
  readonly tokenTakes: readonly RateTake[]
  /** States of the limits that are exhausted first, for response headers. */
  readonly requestBucket: BucketState | undefined
  readonly tokenBucket: BucketState | undefined
}

export interface Admitted extends Parsed, Admission {
  /** Bound of one answer in tokens from the caller's balance, or `undefined` if the request is sent unchanged. */
  readonly fittedOutputTokens: number | undefined
  /** Adds units that hooks charge. */
  chargedUnits(units: number): void
  /** Headers that hooks add to its answer, names and values in turn; `undefined` for none. */
  readonly answerHeaders: readonly string[] | undefined
  addHeaders(headers: readonly string[]): void
  /** Gives up the Idempotency-Key: the answer is not stored under it. */
  unclaimed(): void
  /** Plan of the cache for its answer, or `undefined` if the gateway or the endpoint has no cache. */
  readonly cachePlan: CachePlan | undefined
  planned(plan: CachePlan): void
  /** Returns the request with a bound that the balance covers. */
  fitted(fit: OutputFit): Admitted
  /** @param chain Models that may answer, if they are fewer than requested. */
  reserved(hold: Hold | undefined, chain?: readonly CatalogModel[]): Reserved
}

/** Request whose output is limited by the balance. */
export interface OutputFit extends Pick<ParsedRequest, 'body' | 'bytes'>, Pick<Admission, 'estimate'> {
  /** Maximum number of tokens per answer. */
  readonly outputTokens: number
}

/** A model at a vendor that could answer. */
export interface Candidate {
  readonly model: CatalogModel
  readonly vendor: Vendor
  readonly apiKey: string
  /** Identifies vendor and key without revealing the key. */
  readonly credentialId: string
}

/** Money reserved for a request. */
export interface Hold {
  readonly id: string
  readonly amount: bigint
  /** Price of each model of the chain, in the same order. */
  readonly rates: readonly Rate[]
}

export interface Reserved extends Admitted {
  /** Hold, or `undefined` if billing is off or the endpoint is free. */
  readonly hold: Hold | undefined
  /** Bytes of generated text that count as one token without a usage report. Constant until the call is settled. */
  readonly bytesPerToken: number
  /** Usual number of reasoning tokens of such a call; `undefined` if not known. Constant until the call is settled. */
  readonly usualReasoningTokens: number | undefined
  /** Output tokens per second of the models that may answer, over all answers. */
  readonly tokensPerSecond: number
  measuredBy(habits: ModelHabits): void
  /** Adds a call to a vendor that begins. */
  tries(attempt: Attempt): void
  /** Returns the vendor calls for the usage record, or `undefined` if there was at most one and it did not fail. */
  attemptsUntil(nowMs: number): readonly AttemptRecord[] | undefined
  /**
   * Releases data that is needed only until an answer begins: body, bytes, and the limits in its head. After a stream has opened,
   * no other vendor is called, and a prompt with images could hold megabytes during the whole stream. Only the body's `model` is
   * kept.
   */
  releaseBeginning(): void
  /** Whether more than one call to a vendor has begun. */
  readonly wasTriedAgain: boolean
}

/** Call to a vendor, in progress or ended. */
export interface Attempt {
  readonly hasFailed: boolean
  recordUntil(nowMs: number): AttemptRecord
}

/** The first fields of a record. */
export type CallBeginning = Pick<
  Received,
  'request' | 'sink' | 'requestId' | 'startedAtMs' | 'called' | 'vouchedPrincipal' | 'routeOverride'
> &
  Partial<Pick<Received, 'answerId' | 'hostCommit'>>

const NO_MEDIA: readonly MediaFacts[] = []
const NO_LEASES: readonly Lease[] = []
const NO_TAKES: readonly RateTake[] = []

/**
 * Object behind all records of a request.
 *
 * A class with all fields, like every object that lives as long as a vendor takes to answer. V8 allocates object literals that
 * often survive a collection directly in its old space (allocation-site pretenuring). There they retain the finished request
 * until the next full collection. Under load that doubled the time per request (`npm run bench -- --only chat-json`).
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
  readonly hostCommit: HostCommit | undefined
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
  bytesPerToken = GENERATED_BYTES_PER_TOKEN
  usualReasoningTokens: number | undefined = undefined
  tokensPerSecond = DEFAULT_TOKENS_PER_SECOND
  #firstAttempt: Attempt | undefined = undefined
  /** Undefined for most requests, which saves a list. */
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
    this.hostCommit = beginning.hostCommit
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
