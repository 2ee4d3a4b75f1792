import { Buffer } from 'node:buffer'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import { usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import { passTokenCount } from '../../endpoints/operation.ts'
import { ENVELOPE_MARK, isEnvelope } from '../../endpoints/responses/reasoning-envelope.ts'
import { ownMembersOf } from '../../endpoints/responses/response-object.ts'
import { hasUnreportedInput } from '../../endpoints/responses/responses-media.ts'
import type { ResponsesPassThroughOperation } from '../../endpoints/responses/responses-operation.ts'
import { inputItems, itemType, type ResponsesRequest } from '../../endpoints/responses/responses-request.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import { replaceString } from '../../wire/json-edits.ts'
import type { AnswerBody, VendorCall, VendorFailure, WireRequest } from '../vendor.ts'
import { unsupportedParameter } from './invalid-response.ts'
import { usageAsMarked } from './openai-chat-answer.ts'
import { applyFieldRules, type FieldRule, type FieldRules } from './openai-chat-dialect.ts'
import { OpenAIResponsesStream } from './openai-responses-stream.ts'
import {
  markedCacheTime,
  mendedUsage,
  outputTextBytes,
  responsesUsage,
  unreportedImages,
} from './openai-responses-usage.ts'
import { withoutModeration } from './translated-chat-fields.ts'
import { bearerHeaders, type KeyHeaders } from './vendor-options.ts'

/** How a server implements the Responses dialect. */
export interface OpenAIResponsesDialect {
  /** Path, such as `/v1/responses`. */
  readonly path: string
  /** Query of every call, with its question mark, if any. */
  readonly query?: string | undefined
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  /** Rules of fields that the server treats specially. If omitted, all fields are passed on. */
  readonly rules?: FieldRules<ResponsesRequest> | undefined
  /** False for servers that store no answers and may reject `store: true`. */
  readonly keepsAnswers?: boolean | undefined
  /** False for servers that do not count the tokens of a request. */
  readonly countsTokens?: boolean | undefined
  /** Whether the server supports the field `moderation`. Default false: it is dropped, and a request to block is rejected. */
  readonly moderates?: true | undefined
  /** False for servers that accept images only as bytes. */
  readonly takesImageUrls?: boolean | undefined
  hasHiddenReasoning?(upstream: string, effort: string | null | undefined): boolean
  /** See `OpenAIChatDialect`. */
  readonly cachesAsMarked?: ((upstream: string) => boolean) | undefined
  /** Returns the rules of chat fields before the translation into the dialect. If omitted, there are none. */
  chatRulesFor?(upstream: string): FieldRules<ChatRequest>
  /** Reads an error object inside a stream. */
  streamFailure(envelope: Record<string, unknown>): VendorFailure
}

/** Creates Responses for a server that accepts the dialect: bytes pass, with only the model replaced. */
export function openaiResponses(dialect: OpenAIResponsesDialect): ResponsesPassThroughOperation {
  const { path, query = '', headers = bearerHeaders, keepsAnswers = true, countsTokens = true } = dialect
  const rules = keepsAnswers ? (dialect.rules ?? NO_RULES) : { ...STATELESS, ...dialect.rules }
  const sender = { moderates: dialect.moderates === true, headers, rules }
  return {
    toWire: (call) => responsesToWire(call, sender, `${path}${query}`),
    fromWire: (chunks, call) => passResponse(chunks, call, dialect),
    stream: (call) => new OpenAIResponsesStream(call, dialect),
    hasHiddenReasoning: ({ model, request }) =>
      hasUnreportedInput(request) ||
      (model.hasHiddenReasoning ?? dialect.hasHiddenReasoning?.(model.upstream, request.reasoning?.effort) === true),
    ...(dialect.takesImageUrls === false ? { takesImageUrls: false } : {}),
    ...(keepsAnswers
      ? {
          deletion: (upstreamId, apiKey) => ({
            path: `${path}/${encodeURIComponent(upstreamId)}${query}`,
            headers: headers(apiKey, 'application/json'),
          }),
        }
      : {}),
    ...(countsTokens
      ? {
          inputTokens: {
            toWire: (call) => responsesToWire(call, sender, `${path}/input_tokens${query}`),
            fromWire: passTokenCount,
          },
        }
      : {}),
  }
}

const NO_RULES: FieldRules<ResponsesRequest> = {}

/** The gateway itself stores the answers of a server that stores none. */
const STATELESS: FieldRules<ResponsesRequest> = {
  store: leftOut('store'),
  previous_response_id: leftOut('previous_response_id'),
}

/** Drops a field that the gateway handles itself. `store: false` is a promise, which is passed on. */
function leftOut(field: string): FieldRule<ResponsesRequest> {
  return {
    needed: (value) => value !== false,
    apply: (body) => {
      delete body[field]
    },
  }
}

/** How to write requests. */
interface Sender {
  readonly moderates: boolean
  readonly headers: KeyHeaders
  readonly rules: FieldRules<ResponsesRequest>
}

/**
 * Sends a request: the caller's own bytes with only the value of `model` replaced. State of other vendors is removed, because this
 * vendor rejects what it did not encrypt.
 * @throws GatewayError `unsupported_parameter` for a feature without a price.
 */
function responsesToWire(call: VendorCall<ResponsesRequest>, sender: Sender, path: string): WireRequest {
  if (call.request['moderation'] === undefined || sender.moderates) return writtenRequest(call, sender, path)
  const { request, dropped } = withoutModeration(call.request)
  const { conversation } = call
  const original = conversation?.original as { readonly request: ResponsesRequest } | undefined
  const kept = original && { ...original, request: withoutModeration(original.request).request, bytes: undefined }
  const unmoderated = {
    ...call,
    request,
    bytes: undefined,
    ...(conversation && { conversation: { ...conversation, original: kept } }),
  }
  const wire = writtenRequest(unmoderated, sender, path)
  return { ...wire, dropped: [...dropped, ...wire.dropped] }
}

function writtenRequest(call: VendorCall<ResponsesRequest>, { headers, rules }: Sender, path: string): WireRequest {
  const { request, bytes } = requestFor(call)
  if (request.background === true)
    throw unsupportedParameter('background', 'background: answers come on the connection only')
  if (request === call.request) refuseReferences(request)
  const own = withoutForeignState(request, bytes, call)
  const { body: ruled, dropped } = applyFieldRules(own, rules, isNeutral)
  const isUnchanged = own === request && ruled === undefined
  const edited = isUnchanged && bytes !== undefined ? renamed(asBuffer(bytes), request, call) : undefined
  return {
    path,
    headers: headers(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body: edited ?? exactJsonText({ ...(ruled ?? own), model: call.model.upstream }),
    dropped: own === request ? dropped : ['input.encrypted_content', ...dropped],
  }
}

/** In this dialect, an answer is stored unless the request forbids it. */
function isNeutral(field: string, value: unknown): boolean {
  return field !== 'store' && changesNothing(field, value)
}

/** Returns the caller's request if this vendor stores what it refers to, else the resolved request. */
function requestFor(call: VendorCall<ResponsesRequest>): {
  readonly request: ResponsesRequest
  readonly bytes: Uint8Array | undefined
} {
  const { conversation } = call
  if (conversation?.previousUpstreamId === undefined || conversation.original === undefined) return call
  const original = conversation.original as {
    readonly request: ResponsesRequest
    readonly bytes: Uint8Array | undefined
  }
  const { previous_response_id: previous } = original.request
  // A background answer has an id of the gateway.
  if (typeof previous !== 'string' || previous === conversation.previousUpstreamId) return original
  const request = { ...original.request, previous_response_id: conversation.previousUpstreamId }
  return { request, bytes: undefined }
}

/** Callers may refer only to objects that were verified to be their own. */
function refuseReferences(request: ResponsesRequest): void {
  if (typeof request.previous_response_id === 'string')
    throw unsupportedParameter('previous_response_id', 'previous_response_id: answers are not kept here')
  const index = inputItems(request).findIndex((item) => itemType(item) === 'item_reference')
  if (index !== -1) throw unsupportedParameter(`input[${index}]`, `input[${index}]: items are not kept here`)
}

function renamed(
  bytes: Buffer,
  request: ResponsesRequest,
  { model }: VendorCall<ResponsesRequest>,
): Uint8Array | undefined {
  return replaceString(bytes, 'model', request.model, model.upstream)
}

/** Removes reasoning that another vendor signed or encrypted. Returns the same object if there is none. */
function withoutForeignState(
  request: ResponsesRequest,
  bytes: Uint8Array | undefined,
  { model, conversation }: VendorCall<ResponsesRequest>,
): ResponsesRequest {
  if (bytes !== undefined && !asBuffer(bytes).includes(ENVELOPE_MARK)) return request
  const makers = conversation?.original?.makers
  const items = inputItems(request)
  const own = items.filter((item) => {
    const { encrypted_content: state } = item
    if (itemType(item) !== 'reasoning' || typeof state !== 'string') return true
    return !isEnvelope(state) && (makers?.get(state) ?? model.vendor) === model.vendor
  })
  return own.length === items.length ? request : { ...request, input: own }
}

/** Passes a whole response on with only the model replaced. Returns `undefined` if it is not a response. */
function passResponse(
  chunks: readonly Uint8Array[],
  call: VendorCall<ResponsesRequest>,
  dialect: OpenAIResponsesDialect,
): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const response = parseAnswerJson(bytes.toString('utf8'))
  if (!isJsonObject(response) || response['object'] !== 'response' || !Array.isArray(response['output']))
    return undefined
  const { publicModel } = call
  const outputBytes = outputTextBytes(response['output'])
  const reported = responsesUsage(response, call.request.service_tier, call.request)
  const usage = usageAsMarked(reported, markedCacheTime(call, dialect)) ?? unreportedImages(response, call.request)
  // As in a stream and in a chat, the error is the vendor's, and another candidate may answer.
  if (response['status'] === 'failed') {
    const failure = { ...dialect.streamFailure({ error: response['error'] }), status: 200 }
    return { chunks: [], usage: usedOf(usage), failure }
  }
  const mended = mendedUsage(response['usage'], usage, call.billedUsage?.(usage, outputBytes), call.isBilled)
  const added = { ...(mended === undefined ? {} : { usage: mended }), ...ownMembersOf(call) }
  const keptAnswer = { ...response, model: publicModel, ...added }
  const passed =
    Object.keys(added).length === 0 ? replaceString(bytes, 'model', response['model'], publicModel) : undefined
  return {
    chunks: [passed ?? Buffer.from(JSON.stringify(keptAnswer))],
    usage,
    outputBytes,
    keptAnswer,
  }
}
