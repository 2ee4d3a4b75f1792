import type { ModelFacts } from '../catalog/model-facts.ts'
import type { BillingFields } from '../catalog/prices/prices.ts'
import type { GatewayError } from '../core/errors.ts'
import type { ExactMembers } from '../core/exact-json.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import type { AnyModelKind } from '../core/model-kind.ts'
import type { Usage } from '../core/usage.ts'
import type { ConversationStore } from '../stores/conversation-store.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { InteractionStore } from '../stores/interaction-store.ts'
import type { Tier } from '../stores/principal.ts'
import type { ResponseStore, StoredResponse } from '../stores/response-store.ts'
import type { StoredBounds } from '../stores/stored-bounds.ts'
import type { Form } from '../wire/multipart.ts'
import type { FormLimits } from '../wire/read-form.ts'
import type { CachedAnswers } from './cached-answers.ts'
import type { Deferral } from './deferral.ts'
import type { ErrorDialect } from './error-dialect.ts'
import type { FileDialect } from './file-dialect.ts'
import type { InlineBatches } from './inline-batches.ts'
import type { JsonSchema } from './json-schema.ts'
import type { MediaInput } from './media-input.ts'
import type { Operation, OriginalRequest, VendorCall, WireRequest } from './operation.ts'
import type { TaskBehaviour } from './task.ts'
import type { EndpointTexts } from './texts.ts'

/** An address in a request that the gateway or the vendor will fetch. */
export interface CallerUrl {
  /** As the caller wrote it. */
  readonly url: string
  /** Its path in the request: `input.messages[0].content[1].image`. */
  readonly param: string
  /** True for an address that the gateway itself calls, whatever the vendor does. */
  readonly isCalledHere?: boolean
}

/** Media of a request that the gateway must fetch, because the vendor takes bytes only. */
export interface RemoteMedia<Request> {
  /** In the order in which `inline` gets them. */
  readonly urls: readonly CallerUrl[]
  /** The same request with the fetched media in place of their addresses, as `data:` URLs in the order of `urls`. */
  inline(dataUrls: readonly string[]): Request
}

/** A request that continues, or begins, a conversation whose history is stored. */
export interface ContinuationRequest {
  /** Id of the answer that is continued, as the caller got it. */
  readonly previousId: string | undefined
  /** Shall the answer be continued later? */
  readonly isStored: boolean
}

/** A request's use of something that the vendor may charge for, and whose price a price list of tokens does not tell. */
export interface ExtraFeature {
  /** The price field that names it: `server_tool`, `beta`. */
  readonly field: string
  /** Which one: `translate_20270101`. */
  readonly value: string
  /** Where the request has it: `tools[0].type`. */
  readonly param: string
}

/** Another model of the vendor's that may work within a call, at its own price. */
export interface InnerModel {
  /** The vendor's id of it, or a public one. */
  readonly model: string
  /** Where the request names it: `tools[0].model`. */
  readonly param: string
}

/** How callers bound the length of an answer. */
export interface OutputBound<Request> {
  /** The request's own bound of one answer, in tokens; undefined: it names none. */
  of(request: Request): number | undefined
  /** The member of the body that a bound is written to, such as `max_tokens`. */
  readonly member: string
}

/** How an endpoint's answers are continued: where their owners are noted, and for how long. */
export interface Continuation<Request> {
  /** Returns `undefined` for a request that neither begins nor continues a conversation at the vendor. */
  of(request: Request): ContinuationRequest | undefined
  /** The field that names the answer to be continued. */
  readonly param: string
  /** Creates the error for an unknown, foreign or expired answer. If omitted, it is `interaction_not_found` naming `param`. */
  notFound?(): GatewayError
  /** Prefix of ids for answers without a vendor id. */
  readonly idPrefix: string
  /** How long a stored answer can be continued, in milliseconds. */
  readonly retentionMs: Readonly<Record<Tier, number>>
  /** Where the owners of answers are kept. */
  store(stores: GatewayStore): InteractionStore
}

/** Where and for whom answers are kept. */
export interface AnswerAccess {
  readonly store: ResponseStore
  readonly conversations: ConversationStore
  /** Bounds of the storage of the account. */
  readonly bounds: StoredBounds
  readonly accountId: string
  readonly nowMs: number
  /** How long what is kept is kept, in milliseconds. */
  readonly retentionMs: number
  /** A new unique id, such as `conv_019e…`. */
  newId(prefix: string): string
  /** False: the host has nothing kept. */
  readonly keeps: boolean
}

/** The same for objects that callers write by themselves. */
export interface ObjectAccess extends AnswerAccess {
  /**
   * What is kept for later requests, written as a request, as the request hooks of the endpoint have left it.
   * @throws GatewayError where one denies it or fails.
   */
  screened<Kept extends { readonly model: string }>(kept: Kept): Promise<Kept>
}

/** An answer that belongs to the credential that made it. */
export interface BoundAnswer {
  /** Id of the vendor. */
  readonly vendor: string
  readonly credentialId: string
  /**
   * Set if the vendor keeps it too: only that credential can continue it there. Undefined: everything is sent along, and the
   * credential is preferred where it is still configured, because only it can read what it encrypted.
   */
  readonly upstreamId: string | undefined
}

/** A request with what it refers to in its place. */
export interface RecalledRequest<Request> {
  /** The same object if it refers to nothing. */
  readonly request: Request
  /** What the caller wrote, where `request` differs only by what stands in place of references. */
  readonly original: Request | undefined
  /** Ids of the vendors that made state which stands in place of references, by the state. Absent: not known. */
  readonly makers?: ReadonlyMap<string, string>
  /** Set if everything that it refers to is kept by one vendor too. */
  readonly bound: BoundAnswer | undefined
  /** Ids of objects at vendors that answers to the account have named. If omitted, there are none. */
  readonly ownIds?: ReadonlySet<string>
  /** The turn to keep, apart from the answer; undefined: nothing is kept. */
  readonly turn: Pick<StoredResponse, 'previousId' | 'conversation' | 'input'> | undefined
}

/** A conversation that a request begins or continues. */
export interface ContinuedRequest {
  /** The stored answer to continue at its vendor; undefined: a new conversation there. */
  readonly previous: BoundAnswer | undefined
  /** Can the answer be continued later? */
  readonly isStored: boolean
  /** Used if the vendor gives the answer no id. */
  readonly freshId: string
  /** Present where the history is kept here too, so that other vendors can continue it. */
  readonly recalled?: {
    readonly original: OriginalRequest | undefined
    readonly turn: RecalledRequest<object>['turn']
    readonly ownIds?: RecalledRequest<object>['ownIds']
  }
}

/** What a caller asks of a stored answer: its id, and what stands behind it in the path. */
export interface StoredQuery {
  readonly id: string
  readonly action: string
  readonly parameters: URLSearchParams
}

/** An answer about a stored answer. */
export type StoredReply = { readonly json: object } | { readonly events: string }

/** A request about objects that callers keep. */
export interface ObjectRequest {
  readonly method: string
  /** What stands behind the path, between slashes. */
  readonly segments: readonly string[]
  readonly parameters: URLSearchParams
  /** Undefined for a request without a body. */
  readonly body: unknown
}

/** Objects that callers keep, change and delete by themselves, and name in requests. */
export interface StoredObjects {
  readonly path: string
  /** The methods at what stands behind the path; undefined: there is nothing. */
  methods(segments: readonly string[]): readonly string[] | undefined
  /** What may stand behind the path, with ids in braces, for documents of the API: `/{conversation}/items`; empty: the path itself. */
  readonly places: readonly string[]
  /** @throws GatewayError for what is not found, or naming what is invalid. */
  serve(request: ObjectRequest, access: ObjectAccess): Promise<object>
}

/** How an endpoint's answers are kept, read, and referred to by later requests. */
export interface KeptAnswers<Request, Offers> {
  /** Prefix of the ids of answers that the gateway makes. */
  readonly idPrefix: string
  /** What can be done with a stored answer, by the path behind its id, and by which methods. */
  readonly actions: Readonly<Record<string, readonly string[]>>
  /** Words that are no ids, because the dialect has them for something that is not served here. Absent: none. */
  readonly reserved?: ReadonlySet<string>
  /** @throws GatewayError `invalid_request` naming the reference that is not found. */
  recall(request: Request, access: AnswerAccess): Promise<RecalledRequest<Request>>
  /** Does the vendor keep what it answers to this request? */
  isKeptAtVendor(request: Request, vendor: Offers): boolean
  /** The call that deletes an answer at the vendor; undefined: the vendor keeps none. */
  deletion(vendor: Offers, upstreamId: string, apiKey: string): Omit<WireRequest, 'body' | 'dropped'> | undefined
  /** @throws GatewayError `response_not_found`, or `invalid_request` naming the parameter. */
  read(query: StoredQuery, access: AnswerAccess): Promise<StoredReply>
  /** Objects that requests name beside answers. Absent: none. */
  readonly objects?: StoredObjects
}

/** State of a vendor in requests and answers, which only the credential that made it can read. */
export interface CarriedState<Request> {
  /** The newest one that a request carries; undefined: none. */
  inRequest(request: Request): string | undefined
  inAnswer(answer: Readonly<Record<string, unknown>>): readonly string[]
}

/**
 * Everything that the gateway knows about one endpoint that calls models: its path, its request, its highest cost, its
 * vendor operation and its error dialect. Shared code never names an endpoint.
 *
 * `Offers` is the part of a vendor that carries it out, such as `{ readonly chat?: ChatOperation }`.
 */
export interface Endpoint<Request extends { readonly model: string } = { readonly model: string }, Offers = object> {
  /** Short id, used in key scopes and events: `chat`. Endpoints that belong together, and the shapes of one path, share it. */
  readonly id: string
  /** Below the mount: `/v1/chat/completions`. */
  readonly path: string
  /** Kind of the models it serves. */
  readonly kind: AnyModelKind
  /**
   * Can a vendor serve models of this kind that have no row? Where the endpoint has shapes: the protocol of such models.
   * Absent: no vendor can.
   */
  servesUnlisted?(vendor: Offers): boolean | string
  /** Values of `protocol` in rows of its models at a vendor. If omitted, the names of `shapes`, if any. */
  protocols?(vendor: Offers): readonly string[]
  /** What its vendor knows of a model whose row does not say it and has no routes, by the vendor's own id. Absent: nothing. */
  unlistedFacts?(vendor: Offers, upstream: string): Partial<ModelFacts> | undefined
  /** Members whose numbers reach the vendor with the caller's digits: arguments of tools, and schemas. If omitted, there are none. */
  readonly exactMembers?: ExactMembers
  /** The model of a request that names none. Absent: every request names one. */
  readonly defaultModel?: string
  /** How its callers read errors. */
  readonly errors: ErrorDialect
  /** Where one path takes several shapes of request: the endpoint of each, by the model's protocol. */
  readonly shapes?: ReadonlyMap<string, Endpoint>
  /** Status and code for an unknown model, if they are not 404 `model_not_found`. */
  readonly unknownModel?: { readonly status: number; readonly code: string }
  /**
   * True for a paid job: the vendor charges for it as soon as it has the request. Once its bytes were sent without an
   * answer, there is no retry.
   */
  readonly isPaidJob?: boolean
  /**
   * True for a free endpoint: it needs no price, and no money is held. `unless-priced`: so are its models without a price row; one
   * that has a row is charged by it.
   */
  readonly isFree?: boolean | 'unless-priced'
  /** True if its requests may be sent in batches. */
  readonly isBatchable?: boolean
  /** Batches of its requests in its own API, beside those of files. Absent: none. */
  readonly inlineBatches?: InlineBatches
  /** Files as clients that send the `clientHeader` of `errors` read them. If omitted, they get OpenAI's shape. */
  readonly files?: FileDialect
  /** True if hedging is allowed: JSON responses that can safely be produced twice. */
  readonly canHedge?: boolean
  /** True when requests of one conversation should reach the same credential, because vendors keep its prompt. */
  readonly isSticky?: boolean
  /** True when callers may send their key as `x-api-key` too. */
  readonly takesXApiKey?: boolean
  /** True when the vendor gets to see the caller's headers that belong to the dialect; see `VendorCall.header`. */
  readonly passesHeaders?: boolean

  /**
   * Checks a parsed body against the schema and the model's abilities. Unknown fields stay in it.
   * @throws GatewayError `invalid_request` naming the field.
   */
  parse(body: unknown, model: ModelFacts): Request
  /**
   * The rules of a JSON body that do not depend on the model, for documents of the API. Absent: not described. An endpoint with
   * shapes has none of its own.
   */
  requestSchema?(): JsonSchema
  /**
   * Makes a body for `parse` of a multipart form; absent where forms are not taken.
   * @throws GatewayError `invalid_request` naming the field.
   */
  formBody?(form: Form): { readonly model?: unknown }
  /** Limits of its forms where they are not the usual ones. */
  readonly formLimits?: Partial<FormLimits>
  /** `only` where a JSON body is refused; absent: both are taken where there is a `formBody`. For documents of the API. */
  readonly takesForms?: 'only'
  /** Loads what answering needs, such as an encoder, before money is held; undefined if nothing needs loading. */
  prepare?(request: Request): Promise<void> | undefined
  /** Is the answer sent while it arrives? */
  isStream(request: Request): boolean
  /** Media type of an answer that is sent while it arrives; absent: server-sent events. */
  streamType?(request: Request): string
  /** Media type of a whole answer that is text; undefined, and absent: JSON. Hooks are shown such an answer as `{ text }`. */
  answerType?(request: Request): string | undefined
  /**
   * Addresses that the vendor may fetch from, or the gateway; undefined: none. Those that are private by their text are refused,
   * unless no vendor that may answer fetches anything.
   */
  callerUrls?(request: Request): readonly CallerUrl[] | undefined

  /** Inputs that are no text, such as pictures and stored conversations, for the token estimate. Absent: none. */
  media?(request: Request): readonly MediaInput[]
  /** Bytes of text in the request, for the token estimate; absent: the whole body without its media. */
  textBytes?(request: Request): number
  /**
   * An upper estimate of what the request will use, given the tokens of its text and media; money and tokens are reserved by it.
   * It names every field of usage that may have a price.
   */
  estimate(request: Request, inputTokens: number, model: ModelFacts): Usage
  /**
   * Upper bound of how often the model reads its prompt and writes an answer: the number of answers, times the rounds of tools that the
   * vendor runs. It limits what a vendor may report. Defaults to 1.
   */
  samplings?(request: Request): number
  /** Returns the number of answers that the vendor writes at the same time. If omitted, it is 1. */
  answers?(request: Request): number
  /** Absent where no request bounds its output in tokens. */
  readonly outputBound?: OutputBound<Request>
  /** The most output tokens of an answer that this vendor is asked for, whatever the request says. Undefined, and absent: what it says. */
  mostOutputTokens?(vendor: Offers, model: VendorCall<Request>['model']): number | undefined
  /** Parameters on which a price may depend, such as `{ resolution: '720p' }`, surcharges included. Absent: none. */
  priceFields?(request: Request, model: ModelFacts): BillingFields
  /** All names that `priceFields` may give, so that a price for another one is noticed; absent: the surcharges, if any. */
  readonly priceFieldNames?: readonly string[]
  /** Names of price fields for which a vendor charges extra: a call that has one needs a price row that names it. */
  readonly surcharges?: readonly string[]
  /** The place in a request of what sets a price field, for errors; absent, and undefined: the name of the field. */
  priceFieldParam?(field: string, request: Request): string | undefined
  /**
   * What the request asks of this vendor beyond what is known to cost tokens only. While billing is on it is refused, unless a price
   * row or the option `unpricedFeatures` names it. Absent: nothing.
   */
  extraFeatures?(request: Request, vendor: Offers, sent: Pick<GatewayRequest, 'header'>): readonly ExtraFeature[]
  /** Price fields of `extraFeatures`. */
  readonly extraFields?: readonly string[]
  /** Other models of this vendor that may work within the call. Absent: none. */
  innerModels?(request: Request, vendor: Offers): readonly InnerModel[]
  /** Those of the price fields that reach a vendor; absent: all. Fields that a translation drops are not charged. */
  priceFieldsAt?(fields: BillingFields, vendor: Offers): BillingFields

  /**
   * The operation at a vendor; undefined if the vendor does not offer it.
   * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the unsupported field.
   */
  createOperation(vendor: Offers, call: VendorCall<Request>): Operation | undefined
  /** Media that must be fetched for a vendor first; absent, and undefined: none. */
  remoteMedia?(request: Request, vendor: Offers, model: VendorCall<Request>['model']): RemoteMedia<Request> | undefined
  /** The turns of a request in which vendors look for their own reasoning; absent: the request itself. */
  conversation?(request: Request): { readonly model: string }

  /** Present where answers can be continued by their id. */
  readonly continuation?: Continuation<Request>
  /** Present where callers carry state that is bound to a credential. It is noted of answers that have a `keptAnswer`. */
  readonly carried?: CarriedState<Request>
  /** Present where answers are kept here. */
  readonly kept?: KeptAnswers<Request, Offers>
  /** Present where an answer may be given again to an equal request. */
  readonly cached?: CachedAnswers<Request, Offers>
  /** Present where callers may have an answer made after its request has ended. */
  readonly deferral?: Deferral<Request>
  /** Where the texts of requests and answers are, for hooks. Absent: no hook that reads texts can cover the endpoint. */
  readonly texts?: EndpointTexts<Request>
  /** Present where the answer is a task that outlives the request. */
  readonly task?: TaskBehaviour<Request, Offers>
}

/**
 * Defines an endpoint. Its functions are methods, so that endpoints of different requests and offers stand in one list: the
 * pipeline hands them only what their own `parse` made, and vendors as far as they offer what `Offers` names.
 */
export function defineEndpoint<Request extends { readonly model: string }, Offers extends object = object>(
  definition: Endpoint<Request, Offers>,
): Endpoint<Request, Offers> {
  return definition
}
