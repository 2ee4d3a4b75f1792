import type { CatalogModel } from '../catalog/model.ts'
import type { Rate } from '../catalog/prices/prices.ts'
import type { Timer } from '../core/clock.ts'
import type { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Usage } from '../core/usage.ts'
import type { BillingFields, Endpoint } from '../endpoints/endpoint.ts'
import type { IdempotencyClaim } from '../stores/idempotency-store.ts'
import type { InteractionRecord } from '../stores/interaction-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { BucketState, Lease, RateTake } from '../stores/rate-limiter.ts'
import type { AcceptedTask, AnsweredInteraction, Vendor } from '../vendors/vendor.ts'
import type { CallerPresence } from './caller-presence.ts'
import type { CallGroup } from './dispatch/call-group.ts'
import type { StreamCall } from './dispatch/stream-call.ts'
import type { StoredReplay } from './stored-replay.ts'

/** A request on its way. Every stage takes the record so far and returns a longer one, so their order is checked by types. */
export interface Received {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly startedAtMs: number
  readonly endpoint: Endpoint
  readonly caller: CallerPresence
  /** The vendor calls of this request; aborting them ends it. */
  readonly calls: CallGroup
  /** Set when the host calls in process and vouches for who it is. */
  readonly vouchedPrincipal: Principal | undefined
  /** Becomes true with the event `request-started`, or when a task was taken. An error before is the event `request-refused`. */
  isAnnounced?: boolean
}

export interface Authenticated extends Received {
  readonly principal: Principal
}

export interface Parsed extends Authenticated {
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
  /** Undefined where the vendor keeps no history. */
  readonly conversation: ResumedConversation | undefined
}

/** A conversation that the request begins or continues. */
export interface ResumedConversation {
  /** The answer that is continued; undefined: a new conversation. */
  readonly previous: InteractionRecord | undefined
  /** Shall the answer be continued later? */
  readonly isStored: boolean
  /** For an answer to which the vendor gives no id. */
  readonly freshId: string
}

export interface Admitted extends Parsed {
  /** Upper estimate for the model asked for. */
  readonly estimate: Usage
  readonly lease: Lease | undefined
  /** What was taken from the token limit, to be corrected at the end. */
  readonly tokenTake: RateTake | undefined
  /** States of the caller's limits, for response headers. */
  readonly requestBucket: BucketState | undefined
  readonly tokenBucket: BucketState | undefined
}

/** Money set aside for a request. */
export interface Hold {
  readonly id: string
  readonly amount: bigint
  /** Price of each model of the chain, in its order. */
  readonly rates: readonly Rate[]
}

export interface Reserved extends Admitted {
  /** Undefined: billing is off. */
  readonly hold: Hold | undefined
}

/** One model at one vendor that could answer. */
export interface Candidate {
  readonly model: CatalogModel
  readonly vendor: Vendor
  readonly apiKey: string
  /** Names vendor and key without telling the key. */
  readonly account: string
}

export interface Routed extends Reserved {
  /** In the order of trying. Never empty. */
  readonly candidates: readonly Candidate[]
}

/** What a call used and whether it is charged for. */
export interface CallEnding {
  readonly kind: 'completed' | 'failed' | 'abandoned'
  /** What the vendor reported; undefined when it did not. */
  readonly usage: Usage | undefined
  /**
   * What to charge for where the vendor reported nothing: the prompt, and the output seen so far.
   * Undefined: nothing is charged unless the vendor reported something.
   */
  readonly estimatedUsage: Usage | undefined
  readonly error: GatewayError | undefined
}

/** A vendor's whole answer in the caller's dialect. */
export interface WholeAnswer {
  readonly kind: 'whole'
  readonly chunks: readonly Uint8Array[]
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  readonly ending: CallEnding
  readonly interaction: AnsweredInteraction | undefined
  /** Set when the answer is the promise of a result. */
  readonly task: AcceptedTask | undefined
}

/** A stream whose first content has arrived; nothing was sent to the caller yet. */
export interface StreamAnswer {
  readonly kind: 'stream'
  readonly call: StreamCall
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  /** Ends the vendor call when the whole time of the request is over. */
  readonly deadline: Timer
}

/** No candidate answered, or the caller left. */
export interface FailedAnswer {
  readonly kind: 'failed'
  readonly error: GatewayError
  readonly candidate: Candidate | undefined
  /** True when the vendor has the request and nobody knows what it does with it. */
  readonly mayHaveBegun: boolean
  readonly ending: CallEnding
}

/** Outcome of dispatching. */
export type Answer = WholeAnswer | StreamAnswer | FailedAnswer

/** What was charged. */
export interface Settled {
  /** Nano-dollars; undefined when billing is off, or when the store could not be told yet. */
  readonly costNanoDollars: bigint | undefined
  readonly usage: Usage | undefined
}

/** Outcome of reserving: either money is held, or the same request was answered before. */
export type ReserveOutcome = Reserved | StoredReplay
