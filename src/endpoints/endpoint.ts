// See docs/decisions/0003-layers-and-endpoints.md.

import type { ModelFacts } from '../catalog/model-facts.ts'
import type { BillingFields } from '../catalog/prices/prices.ts'
import type { GatewayError } from '../core/errors.ts'
import type { ExactMembers } from '../core/exact-json.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import type { AnyModelKind } from '../core/model-kind.ts'
import type { Usage } from '../core/usage.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Tier } from '../stores/principal.ts'
import type { InteractionStore } from '../stores/response-cache.ts'
import type { ConversationStore, ResponseStore, StoredResponse } from '../stores/response-store.ts'
import type { StoredBounds } from '../stores/stored-bounds.ts'
import type { TaskRecord, TaskState } from '../stores/task-store.ts'
import type { FormLimits } from '../wire/form.ts'
import type { Form } from '../wire/write-form.ts'
import type { CachedAnswers } from './answer-json.ts'
import type { InlineBatches } from './batches.ts'
import type { ErrorDialect } from './error-dialect.ts'
import type { FileDialect } from './file-dialect.ts'
import type { MediaInput } from './media-input.ts'
import type { Operation, OriginalRequest, VendorCall, WireRequest } from './operation.ts'
import type { JsonSchema } from './schema.ts'
import type { TaskBehaviour } from './task.ts'
import type { EndpointTexts } from './texts.ts'

/** An address in a request that the gateway or the vendor will fetch. */
export interface CallerUrl {
  /** The address as the caller wrote it. */
  readonly url: string
  /** Path of the address in the request: `input.messages[0].content[1].image`. */
  readonly param: string
  /** Whether the gateway itself calls the address, whatever the vendor does. */
  readonly isCalledHere?: boolean
}

/** Media of a request that the gateway must fetch, because the vendor accepts only bytes. */
export interface RemoteMedia<Request> {
  /** Addresses of the media, in the order in which `inline` receives them. */
  readonly urls: readonly CallerUrl[]
  /** Replaces the addresses by the fetched media, given as `data:` URLs in the order of `urls`. */
  inline(dataUrls: readonly string[]): Request
}

/** A request that continues or begins a conversation with stored history. */
export interface ContinuationRequest {
  /** Id of the continued answer, as the caller received it. */
  readonly previousId: string | undefined
  /** Whether the answer can be continued later. */
  readonly isStored: boolean
}

/** A feature used by a request that the vendor may charge for, beyond its token prices. */
export interface ExtraFeature {
  /** Price field of the feature: `server_tool`, `beta`. */
  readonly field: string
  /** Value of the price field: `translate_20270101`. */
  readonly value: string
  /** Path of the feature in the request: `tools[0].type`. */
  readonly param: string
}

/** Another model of the vendor that may run within a call, at its own price. */
export interface InnerModel {
  /** The vendor's id of the model, or a public one. */
  readonly model: string
  /** Path of the model in the request: `tools[0].model`. */
  readonly param: string
}

/** How callers limit the length of an answer. */
export interface OutputBound<Request> {
  /** Returns the request's own limit of one answer, in tokens, if any. */
  of(request: Request): number | undefined
  /** Member of the body that a limit is written to, such as `max_tokens`. */
  readonly member: string
}

/** How the answers of an endpoint are continued: where their owners are stored, and for how long. */
export interface Continuation<Request> {
  /** Returns `undefined` for a request that neither begins nor continues a conversation at the vendor. */
  of(request: Request): ContinuationRequest | undefined
  /** Field that names the answer to continue. */
  readonly param: string
  /** Creates the error for an unknown, foreign or expired answer. If omitted, it is `interaction_not_found` naming `param`. */
  notFound?(): GatewayError
  /** Prefix of ids for answers without a vendor id. */
  readonly idPrefix: string
  /** How long a stored answer can be continued, in milliseconds. */
  readonly retentionMs: Readonly<Record<Tier, number>>
  /** Returns the store of the owners. */
  store(stores: GatewayStore): InteractionStore
}

/** Where, for whom and for how long answers are stored. */
export interface AnswerAccess {
  readonly store: ResponseStore
  readonly conversations: ConversationStore
  /** Storage limits of the account. */
  readonly bounds: StoredBounds
  readonly accountId: string
  readonly nowMs: number
  /** How long stored objects are kept, in milliseconds. */
  readonly retentionMs: number
  /** Creates a unique id, such as `conv_019e…`. */
  newId(prefix: string): string
  /** Whether the host stores anything. */
  readonly keeps: boolean
}

/** Access to objects that callers store themselves. */
export interface ObjectAccess extends AnswerAccess {
  /**
   * Passes an object, written as a request, through the request hooks and returns the result to store.
   * @throws GatewayError if a hook denies it or fails.
   */
  screened<Kept extends { readonly model: string }>(kept: Kept): Promise<Kept>
}

/** An answer that is tied to the credential that generated it. */
export interface BoundAnswer {
  /** Id of the vendor. */
  readonly vendor: string
  readonly credentialId: string
  /**
   * Id at the vendor if the vendor stores the answer too; only that credential can continue it there. If `undefined`,
   * the whole history is sent, preferably with that credential, because only it can read its encrypted parts.
   */
  readonly upstreamId: string | undefined
}

/** A request whose references are replaced by what they refer to. */
export interface RecalledRequest<Request> {
  /** Request with resolved references. Without references, it is the same object as before. */
  readonly request: Request
  /** The caller's request, if `request` differs from it only by resolved references. */
  readonly original: Request | undefined
  /** Ids of the vendors that issued the state in resolved references, by the state. If omitted, they are unknown. */
  readonly makers?: ReadonlyMap<string, string>
  /** Set if one vendor also stores everything that the request refers to. */
  readonly bound: BoundAnswer | undefined
  /** Ids of vendor objects that answers to the account have named. If omitted, there are none. */
  readonly ownIds?: ReadonlySet<string>
  /** The turn to store apart from the answer, if any. */
  readonly turn: Pick<StoredResponse, 'previousId' | 'conversation' | 'input'> | undefined
}

/** A conversation that a request begins or continues. */
export interface ContinuedRequest {
  /** Stored answer to continue at its vendor, or `undefined` for a new conversation. */
  readonly previous: BoundAnswer | undefined
  /** Whether the answer can be continued later. */
  readonly isStored: boolean
  /** Id of the answer if the vendor assigns none. */
  readonly freshId: string
  /** Present if the gateway stores the history too, so that other vendors can continue it. */
  readonly recalled?: {
    readonly original: OriginalRequest | undefined
    readonly turn: RecalledRequest<object>['turn']
    readonly ownIds?: RecalledRequest<object>['ownIds']
  }
}

/** A query about a stored answer: its id, and the path after the id. */
export interface StoredQuery {
  readonly id: string
  readonly action: string
  readonly parameters: URLSearchParams
}

/** An answer about a stored answer. */
export type StoredReply = { readonly json: object } | { readonly events: string }

/** A request about objects that callers store. */
export interface ObjectRequest {
  readonly method: string
  /** Path segments after the path of the objects. */
  readonly segments: readonly string[]
  readonly parameters: URLSearchParams
  /** Body, or `undefined` for a request without one. */
  readonly body: unknown
}

/** Objects that callers store, change and delete themselves, and name in requests. */
export interface StoredObjects {
  readonly path: string
  /** Returns the methods of a path below `path`, or `undefined` if the path does not exist. */
  methods(segments: readonly string[]): readonly string[] | undefined
  /** Paths below `path` for API documents, with ids in braces: `/{conversation}/items`. Empty for `path` itself. */
  readonly places: readonly string[]
  /** @throws GatewayError if an object is not found or a field is invalid. */
  serve(request: ObjectRequest, access: ObjectAccess): Promise<object>
}

/** How the answers of an endpoint are stored, read, and referred to by later requests. */
export interface KeptAnswers<Request, Offers> {
  /** Prefix of ids that the gateway assigns to answers. */
  readonly idPrefix: string
  /** Actions on a stored answer: the HTTP methods by the path after its id. */
  readonly actions: Readonly<Record<string, readonly string[]>>
  /** Words in place of ids that the dialect reserves for features not served here. If omitted, there are none. */
  readonly reserved?: ReadonlySet<string>
  /** @throws GatewayError `invalid_request` naming a reference that is not found. */
  recall(request: Request, access: AnswerAccess): Promise<RecalledRequest<Request>>
  /** Whether the vendor stores its answer to this request. */
  isKeptAtVendor(request: Request, vendor: Offers): boolean
  /** Returns the call that deletes an answer at the vendor, or `undefined` if the vendor stores none. */
  deletion(vendor: Offers, upstreamId: string, apiKey: string): Omit<WireRequest, 'body' | 'dropped'> | undefined
  /** @throws GatewayError `response_not_found`, or `invalid_request` naming the parameter. */
  read(query: StoredQuery, access: AnswerAccess): Promise<StoredReply>
  /** Objects that requests name in addition to answers. If omitted, there are none. */
  readonly objects?: StoredObjects
}

/** State of a vendor in requests and answers, readable only with the credential that it was issued to. */
export interface CarriedState<Request> {
  /** Returns the newest state in a request, if any. */
  inRequest(request: Request): string | undefined
  inAnswer(answer: Readonly<Record<string, unknown>>): readonly string[]
}

/**
 * Everything that the gateway knows about one endpoint that calls models: its path, its request, its highest cost, its
 * vendor operation and its error dialect. Shared code never names an endpoint.
 *
 * `Offers` is the part of a vendor that handles the endpoint, such as `{ readonly chat?: ChatOperation }`.
 */
export interface Endpoint<Request extends { readonly model: string } = { readonly model: string }, Offers = object> {
  /** Short id, used in key scopes and events: `chat`. Endpoints that belong together, and the shapes of one path, share it. */
  readonly id: string
  /** Path below the mount: `/v1/chat/completions`. */
  readonly path: string
  /** Kind of the models that the endpoint serves. */
  readonly kind: AnyModelKind
  /**
   * Whether a vendor can serve models of this kind without a row. If the endpoint has shapes, the protocol of such
   * models instead of `true`. If omitted, no vendor can.
   */
  servesUnlisted?(vendor: Offers): boolean | string
  /** `protocol` values that rows of the endpoint's models may have at a vendor. If omitted, the names of `shapes`. */
  protocols?(vendor: Offers): readonly string[]
  /** Facts that the vendor knows about a model, by its own id, if the row omits them and has no routes. */
  unlistedFacts?(vendor: Offers, upstream: string): Partial<ModelFacts> | undefined
  /** Members whose numbers reach the vendor with the caller's digits: arguments of tools, and schemas. If omitted, there are none. */
  readonly exactMembers?: ExactMembers
  /** Model of a request that names none. If omitted, every request names a model. */
  readonly defaultModel?: string
  /** How callers of the endpoint read errors. */
  readonly errors: ErrorDialect
  /** Endpoint of each request shape by the model's protocol, if one path has several shapes. */
  readonly shapes?: ReadonlyMap<string, Endpoint>
  /** Status and code for an unknown model, if they are not 404 `model_not_found`. */
  readonly unknownModel?: { readonly status: number; readonly code: string }
  /**
   * Whether this is a paid job: the vendor charges for it on receipt of the request. Once the bytes were sent without
   * an answer, there is no retry.
   */
  readonly isPaidJob?: boolean
  /**
   * Whether the endpoint is free: it needs no price and no hold. With `unless-priced`, models without a price row are
   * free, and others are charged by their row.
   */
  readonly isFree?: boolean | 'unless-priced'
  /** Whether requests may be sent in batches. */
  readonly isBatchable?: boolean
  /** Batches in the endpoint's own API, in addition to batch files. If omitted, there are none. */
  readonly inlineBatches?: InlineBatches
  /** Files as clients that send the `clientHeader` of `errors` read them. If omitted, they get OpenAI's shape. */
  readonly files?: FileDialect
  /** Whether a conversation should stay with one credential, because vendors cache its prompt. */
  readonly isSticky?: boolean
  /** Whether callers may also send their key as `x-api-key`. */
  readonly takesXApiKey?: boolean
  /** Whether the vendor receives the caller's headers of the dialect; see `VendorCall.header`. */
  readonly passesHeaders?: boolean

  /**
   * Checks a parsed body against the schema and the model's abilities. Unknown fields stay in it.
   * @throws GatewayError `invalid_request` naming the field.
   */
  parse(body: unknown, model: ModelFacts): Request
  /**
   * Rules of a JSON body that do not depend on the model, for API documents. If omitted, the body is not described. An
   * endpoint with shapes has none.
   */
  requestSchema?(): JsonSchema
  /**
   * Converts a multipart form to a body for `parse`. If omitted, forms are not accepted.
   * @throws GatewayError `invalid_request` naming the field.
   */
  formBody?(form: Form): { readonly model?: unknown }
  /** Limits of forms, if they differ from the usual limits. */
  readonly formLimits?: Partial<FormLimits>
  /** `only` if JSON bodies are rejected. By default, `formBody` decides about forms. For API documents. */
  readonly takesForms?: 'only'
  /** Loads what the answer needs, such as an encoder, before the hold. Returns `undefined` if nothing is needed. */
  prepare?(request: Request): Promise<void> | undefined
  /** Whether the answer is sent while it arrives. */
  isStream(request: Request): boolean
  /** Media type of a streamed answer. Defaults to server-sent events. */
  streamType?(request: Request): string
  /** Media type of a whole text answer. JSON by default or if `undefined`. Hooks see the text as `{ text }`. */
  answerType?(request: Request): string | undefined
  /**
   * Returns the addresses that the vendor or the gateway may fetch, if any. Private addresses are rejected, unless no
   * possible vendor fetches anything.
   */
  callerUrls?(request: Request): readonly CallerUrl[] | undefined

  /** Returns inputs other than text, such as images and stored conversations, for the token estimate. */
  media?(request: Request): readonly MediaInput[]
  /** Bytes of text in the request, for the token estimate. Defaults to the whole body without its media. */
  textBytes?(request: Request): number
  /**
   * Returns an upper estimate of the usage, given the tokens of text and media. Money and tokens are reserved by it. It
   * contains every usage field that may have a price.
   */
  estimate(request: Request, inputTokens: number, model: ModelFacts): Usage
  /**
   * Returns how often the model may read its prompt and write an answer: the number of answers, times the rounds of
   * tools that the vendor runs. It limits the usage that a vendor may report. Defaults to 1.
   */
  samplings?(request: Request): number
  /** Returns the number of answers that the vendor generates in parallel. Defaults to 1. */
  answers?(request: Request): number
  /** If omitted, no request limits its output in tokens. */
  readonly outputBound?: OutputBound<Request>
  /** Returns the maximum output tokens to request. By default or if `undefined`, the request decides. */
  mostOutputTokens?(vendor: Offers, model: VendorCall<Request>['model']): number | undefined
  /** Returns fields that prices may depend on, such as `{ resolution: '720p' }`, and surcharges. */
  priceFields?(request: Request, model: ModelFacts): BillingFields
  /** All names that `priceFields` may return; prices for others are reported. Defaults to the surcharges. */
  readonly priceFieldNames?: readonly string[]
  /** Names of price fields that cost extra at a vendor. Such calls need a price row that names the field. */
  readonly surcharges?: readonly string[]
  /** Returns the request path that sets a price field, for errors. Defaults to the name of the field. */
  priceFieldParam?(field: string, request: Request): string | undefined
  /**
   * Returns features that the vendor may bill in addition to tokens. With billing, they are rejected unless a price row
   * or the option `unpricedFeatures` names them. If omitted, there are none.
   */
  extraFeatures?(request: Request, vendor: Offers, sent: Pick<GatewayRequest, 'header'>): readonly ExtraFeature[]
  /** Price fields of `extraFeatures`. */
  readonly extraFields?: readonly string[]
  /** Returns other models of this vendor that may run within the call. If omitted, there are none. */
  innerModels?(request: Request, vendor: Offers): readonly InnerModel[]
  /** Returns the price fields that reach a vendor. Defaults to all. Fields that a translation drops are not charged. */
  priceFieldsAt?(fields: BillingFields, vendor: Offers): BillingFields

  /**
   * Creates the operation at a vendor. Returns `undefined` if the vendor does not offer it.
   * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the unsupported field.
   */
  createOperation(vendor: Offers, call: VendorCall<Request>): Operation | undefined
  /** Returns media that the gateway must fetch for a vendor first, if any. */
  remoteMedia?(request: Request, vendor: Offers, model: VendorCall<Request>['model']): RemoteMedia<Request> | undefined
  /** Returns the turns in which vendors look for their own reasoning. Defaults to the request itself. */
  conversation?(request: Request): { readonly model: string }

  /** Present if answers can be continued by their id. */
  readonly continuation?: Continuation<Request>
  /** Present if callers carry state that is tied to a credential. It is stored for answers that have a `keptAnswer`. */
  readonly carried?: CarriedState<Request>
  /** Present if the gateway stores answers. */
  readonly kept?: KeptAnswers<Request, Offers>
  /** Present if answers may be cached for equal requests. */
  readonly cached?: CachedAnswers<Request, Offers>
  /** Present if callers may run requests in the background. */
  readonly deferral?: Deferral<Request>
  /** Where the texts of requests and answers are. Without it, text hooks cannot cover the endpoint. */
  readonly texts?: EndpointTexts<Request>
  /** Present if the answer is a task that outlives the request. */
  readonly task?: TaskBehaviour<Request, Offers>
}

/**
 * Defines an endpoint. Its functions are methods, so that one list can hold endpoints with different types: the
 * pipeline passes them only requests from their own `parse`, and vendors with the parts that `Offers` names.
 */
export function defineEndpoint<Request extends { readonly model: string }, Offers extends object = object>(
  definition: Endpoint<Request, Offers>,
): Endpoint<Request, Offers> {
  return definition
}

/** How a deferred answer ended without content. */
export interface UnmadeAnswer {
  readonly state: 'failed' | 'cancelled'
  readonly nowMs: number
}

/**
 * How an endpoint runs requests in the background, for callers who request it. Storing, running, settling, webhooks and
 * cancelling are the same for all endpoints. The endpoint stores its answers.
 */
export interface Deferral<Request = { readonly model: string }> {
  /** Whether the request asks to be run in the background. */
  applies(request: Request): boolean
  /** Address that gets a webhook at the end, if any. */
  webhookUrl(request: Request): string | undefined
  /** Returns the request that runs later, without the members that only concern the deferral. */
  runnable(request: Request): object
  /** Request fields without effect on deferred answers, as listed in `x-signalbox-dropped`. */
  dropped?(request: Request): readonly string[]
  /** Returns the answer before it is generated, as plain data. */
  begun(request: Request, facts: { readonly id: string; readonly model: string; readonly nowMs: number }): object
  /** Returns the answer of an open task as its owner reads it. */
  record(task: TaskRecord): object
  /** Returns a whole answer as its owner reads it, whichever vendor generated it. */
  made(answer: Readonly<Record<string, unknown>>, task: TaskRecord): Record<string, unknown>
  /** Returns an answer that failed or was cancelled, and its input. */
  unmade(task: TaskRecord, end: UnmadeAnswer): Pick<StoredResponse, 'previousId' | 'input' | 'response'>
  /** Type of the webhook for the end of a task. */
  eventType(state: Extract<TaskState, 'completed' | 'failed' | 'cancelled'>, task: TaskRecord): string
  eventData(task: TaskRecord): object
  /** Returns the first events after number `startingAfter` of a waiting stream, and the last event's number. */
  firstEvents(record: object, startingAfter: number): { readonly text: string; readonly lastNumber: number }
  /** Keeps a silent stream open after the event with this number. */
  keepAlive(lastNumber: number): string
}
