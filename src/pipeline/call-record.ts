import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields, Rate } from '../catalog/prices/prices.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Usage } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { RouteOverride } from '../routing/routing-options.ts'
import type { IdempotencyClaim } from '../stores/idempotency-store.ts'
import type { InteractionRecord } from '../stores/interaction-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { BucketState, Lease, RateTake } from '../stores/rate-limiter.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { AbortScope, DisconnectSignal } from './abort-scope.ts'

/**
 * A request on its way. Every stage takes the record so far and returns a longer one by its one method, so that the order of
 * the stages is checked by types and what each of them adds stands here.
 */
export interface Received {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly startedAtMs: number
  /** The endpoint of the path. Where a path takes several shapes, the shape is found out with the model. */
  readonly called: Endpoint
  readonly caller: DisconnectSignal
  /** The vendor calls of this request; aborting them ends it. */
  readonly calls: AbortScope
  /** Set when the host calls in process and vouches for who it is. */
  readonly vouchedPrincipal: Principal | undefined
  /** The host's own choice of the way; set for requests within the process only, never for callers over HTTP. */
  readonly routeOverride: RouteOverride | undefined
  /** True once the event `request-started` was emitted, or a task was accepted. An error before is the event `request-refused`. */
  readonly isAnnounced: boolean
  announced(): void
  authenticated(principal: Principal): Authenticated
}

export interface Authenticated extends Received {
  readonly principal: Principal
  /** From here on errors are told as callers of this shape read them. */
  shaped(endpoint: Endpoint): Shaped
}

export interface Shaped extends Authenticated {
  readonly endpoint: Endpoint
  parsed(request: ParsedRequest): Parsed
}

/** What is known of a request once its body was checked. */
export interface ParsedRequest {
  /** The checked request; its type belongs to the endpoint. */
  readonly body: { readonly model: string }
  /**
   * The request's bytes as they came, written again only where a member stands twice in them; undefined for a form, whose
   * files stand in the body.
   */
  readonly bytes: Uint8Array | undefined
  readonly isStream: boolean
  /** The model asked for, then its fallbacks; only models whose vendor is configured. Never empty. */
  readonly chain: readonly CatalogModel[]
  readonly billingFields: BillingFields
  readonly claim: IdempotencyClaim | undefined
}

export interface Parsed extends Shaped, ParsedRequest {
  /** Set for requests that begin or continue a stored conversation. */
  readonly continued: ContinuedRequest | undefined
  continues(continued: ContinuedRequest): Parsed
  admitted(admission: Admission): Admitted
}

/** A conversation that the request begins or continues. */
export interface ContinuedRequest {
  /** The answer that is continued; undefined: a new conversation. */
  readonly previous: InteractionRecord | undefined
  /** Shall the answer be continued later? */
  readonly isStored: boolean
  /** For an answer to which the vendor gives no id. */
  readonly freshId: string
}

/** What the caller's limits say. */
export interface Admission {
  /** Upper estimate for the model asked for. */
  readonly estimate: Usage
  readonly lease: Lease | undefined
  /** What was taken from the token limit, to be corrected at the end. */
  readonly tokenTake: RateTake | undefined
  /** States of the caller's limits, for response headers. */
  readonly requestBucket: BucketState | undefined
  readonly tokenBucket: BucketState | undefined
}

export interface Admitted extends Parsed, Admission {
  /** Bound of one answer, in tokens, that the caller's balance decided; undefined: the request is sent as it came. */
  readonly fittedOutputTokens: number | undefined
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
  /** Names vendor and key without telling the key. */
  readonly credentialId: string
}

/** Money set aside for a request. */
export interface Hold {
  readonly id: string
  readonly amount: bigint
  /** Price of each model of the chain, in its order. */
  readonly rates: readonly Rate[]
}

export interface Reserved extends Admitted {
  /** Undefined: billing is off, or the endpoint is free. */
  readonly hold: Hold | undefined
  /**
   * Releases body and bytes: once a stream is open no vendor is asked again, and a prompt with pictures may weigh megabytes for
   * as long as the model speaks. Of the body its `model` is left.
   */
  releaseBody(): void
}

/** What a record begins with. */
export type CallBeginning = Pick<
  Received,
  'request' | 'sink' | 'requestId' | 'startedAtMs' | 'called' | 'vouchedPrincipal' | 'routeOverride'
>

/**
 * The one object behind all records of a request.
 *
 * A class with a place for everything, like all that lives as long as a vendor takes to answer: object literals that often
 * outlive a collection are put into V8's old space from the start (allocation-site pretenuring), where they keep the whole of a
 * finished request alive until the next full collection. Under load that doubled the time a request costs
 * (`npm run bench -- --only chat-json`).
 */
export class CallRecord implements Reserved {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly startedAtMs: number
  readonly called: Endpoint
  readonly caller: DisconnectSignal
  readonly calls = new AbortScope()
  readonly vouchedPrincipal: Principal | undefined
  readonly routeOverride: RouteOverride | undefined
  isAnnounced = false
  principal!: Principal
  endpoint!: Endpoint
  body!: { readonly model: string }
  bytes: Uint8Array | undefined
  isStream!: boolean
  chain!: readonly CatalogModel[]
  billingFields!: BillingFields
  claim: IdempotencyClaim | undefined
  continued: ContinuedRequest | undefined
  estimate!: Usage
  fittedOutputTokens: number | undefined
  lease: Lease | undefined
  tokenTake: RateTake | undefined
  requestBucket: BucketState | undefined
  tokenBucket: BucketState | undefined
  hold: Hold | undefined

  constructor(beginning: CallBeginning) {
    this.request = beginning.request
    this.sink = beginning.sink
    this.requestId = beginning.requestId
    this.startedAtMs = beginning.startedAtMs
    this.called = beginning.called
    this.caller = new DisconnectSignal(beginning.sink)
    this.vouchedPrincipal = beginning.vouchedPrincipal
    this.routeOverride = beginning.routeOverride
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

  parsed({ body, bytes, isStream, chain, billingFields, claim }: ParsedRequest): Parsed {
    this.body = body
    this.bytes = bytes
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

  admitted({ estimate, lease, tokenTake, requestBucket, tokenBucket }: Admission): Admitted {
    this.estimate = estimate
    this.lease = lease
    this.tokenTake = tokenTake
    this.requestBucket = requestBucket
    this.tokenBucket = tokenBucket
    return this
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

  releaseBody(): void {
    this.body = { model: this.body.model }
    this.bytes = undefined
  }
}
