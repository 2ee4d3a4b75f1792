import type { GatewayError } from '../core/errors.ts'
import type { ModelKind } from '../core/model-kind.ts'
import type { Usage } from '../core/usage.ts'
import type { Form } from '../wire/multipart.ts'
import type { ErrorDialect } from './error-body.ts'
import type { ModelFacts } from './model-facts.ts'

/** Parameters that a price may depend on, such as `{ resolution: '720p' }`. */
export type BillingFields = Readonly<Record<string, string>>

/** An address in a request that somebody will fetch from. */
export interface CallerUrl {
  readonly url: string
  /** Where it stands: `input.messages[0].content[1].image`. */
  readonly param: string
}

/** A request that continues, or begins, a conversation whose history the vendor keeps. */
export interface ConversationWish {
  /** Id of the answer that is continued, as the caller got it. */
  readonly previousId: string | undefined
  /** Shall the answer be continued later? */
  readonly isStored: boolean
}

/** One way to call models: a path, the shape of its request, and what the request will cost at most. */
export interface Endpoint<Request extends { model: string } = { model: string }> {
  /** Short id, used in key scopes and events: `chat`. The shapes of one path share it. */
  readonly id: string
  readonly path: string
  /** Kind of the models it serves. */
  readonly kind: ModelKind
  readonly dialect: ErrorDialect
  /** Where one path takes several shapes of request: the endpoint of each, by the model's protocol. */
  readonly shapes?: ReadonlyMap<string, Endpoint>
  /** Status and code for a model that does not exist, where they are not 404 `model_not_found`. */
  readonly unknownModel?: { readonly status: number; readonly code: string }
  /**
   * True for work that the vendor charges for as soon as it has the request: once its bytes have left and no answer came,
   * nobody is asked again.
   */
  readonly isPaidJob?: boolean
  /** True when the answer is a task that outlives the request. */
  readonly isTask?: boolean
  /** True for what costs nothing: no price is needed, and no money is held. */
  readonly isFree?: boolean
  /** True when the vendor gets to see the caller's headers that belong to the dialect; see `VendorCall.header`. */
  readonly passesHeaders?: boolean
  /**
   * Checks a parsed body against the schema and the model's abilities. Unknown fields stay in it.
   * @throws GatewayError `invalid_request` naming the field.
   */
  parse(body: unknown, model: ModelFacts): Request
  /**
   * Makes a body for `parse` of a multipart form; absent where forms are not taken.
   * @throws GatewayError `invalid_request` naming the field.
   */
  formBody?(form: Form): { readonly model?: unknown }
  /** Loads what answering takes, such as an encoder, before money is held; undefined when there is nothing to load. */
  prepare?(request: Request): Promise<void> | undefined
  /** Is the answer sent while it arrives? */
  isStream(request: Request): boolean
  /** Media type of an answer that is sent while it arrives; absent: server-sent events. */
  streamType?(request: Request): string
  /** Bytes of text in the request, for the token estimate; absent: the whole body. */
  textBytes?(request: Request): number
  /**
   * An upper estimate of what the request will use, given the tokens of its text; money and tokens are reserved by it.
   * It names every field of usage that may have a price.
   */
  estimate(request: Request, inputTokens: number, model: ModelFacts): Usage
  billingFields(request: Request, model: ModelFacts): BillingFields
  /** Addresses that the vendor will fetch from; those that are private by their text are refused. */
  callerUrls?(request: Request): readonly CallerUrl[]
  /** Absent where the vendor keeps no history. */
  conversation?(request: Request): ConversationWish
  /** An error event for a stream of events that has begun; the connection is ended after it. */
  streamError(error: GatewayError): string
}
