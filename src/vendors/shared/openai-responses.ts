import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { ENVELOPE_MARK, isEnvelope } from '../../endpoints/responses/reasoning-envelope.ts'
import type { ResponsesPassThroughOperation } from '../../endpoints/responses/responses-operation.ts'
import { inputItems, itemType, type ResponsesRequest } from '../../endpoints/responses/responses-request.ts'
import { refuseVendorObjects } from '../../endpoints/responses/vendor-objects.ts'
import { asBuffer, joinChunks } from '../../wire/join-chunks.ts'
import { replaceString } from '../../wire/json-edits.ts'
import type { AnswerBody, VendorCall, VendorFailure, WireRequest } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'
import { OpenAIResponsesStream } from './openai-responses-stream.ts'
import { mendedUsage, responsesUsage } from './openai-responses-usage.ts'
import { unsupportedParameter } from './parameter-errors.ts'

/** How a server speaks the Responses dialect. */
export interface OpenAIResponsesDialect {
  /** `/v1/responses`, or where the server has it. */
  readonly path: string
  /** May callers name files, vector stores and other objects of the operator's account? */
  readonly allowsVendorObjects: boolean
  reasonsUnseen?(upstream: string, effort: string | null | undefined): boolean
  /** Reads an error object that came inside a stream. */
  streamFailure(envelope: Record<string, unknown>): VendorFailure
}

/** Responses at a server that speaks the dialect itself: bytes pass, with only the model replaced. */
export function openaiResponses(dialect: OpenAIResponsesDialect): ResponsesPassThroughOperation {
  return {
    toWire: (call) => responsesToWire(call, dialect, dialect.path),
    fromWire: passResponse,
    stream: (call) => new OpenAIResponsesStream(call, dialect),
    reasonsUnseen: ({ model, request }) =>
      model.reasonsUnseen ?? dialect.reasonsUnseen?.(model.upstream, request.reasoning?.effort) ?? false,
    deletion: (upstreamId, apiKey) => ({
      path: `${dialect.path}/${encodeURIComponent(upstreamId)}`,
      headers: bearerHeaders(apiKey, 'application/json'),
    }),
    inputTokens: {
      toWire: (call) => responsesToWire(call, dialect, `${dialect.path}/input_tokens`),
      fromWire: passTokenCount,
    },
  }
}

/**
 * Sends a request: the caller's own bytes with only the value of `model` replaced. State of other vendors is removed, because
 * this vendor refuses what it did not encrypt.
 * @throws GatewayError `unsupported_parameter` for what is not priced, or belongs to the operator.
 */
function responsesToWire(
  call: VendorCall<ResponsesRequest>,
  dialect: OpenAIResponsesDialect,
  path: string,
): WireRequest {
  const { request, bytes } = requestFor(call)
  if (request.background === true)
    throw unsupportedParameter('background', 'background: answers come on the connection only')
  if (request === call.request) refuseReferences(request)
  if (!dialect.allowsVendorObjects) refuseVendorObjects(request)
  refuseUnpriced(request)
  const own = withoutEnvelopes(request, bytes)
  const edited = own === request && bytes !== undefined ? renamed(asBuffer(bytes), request, call) : undefined
  return {
    path,
    headers: bearerHeaders(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body: edited ?? JSON.stringify({ ...own, model: call.model.upstream }),
    dropped: own === request ? [] : ['input.encrypted_content'],
  }
}

/** The request as the caller wrote it where this vendor keeps what it refers to, else with everything in it. */
function requestFor(call: VendorCall<ResponsesRequest>): {
  readonly request: ResponsesRequest
  readonly bytes: Uint8Array | undefined
} {
  const { conversation } = call
  if (conversation?.previousUpstreamId === undefined || conversation.original === undefined) return call
  return conversation.original as { readonly request: ResponsesRequest; readonly bytes: Uint8Array | undefined }
}

/** What a caller refers to must have been found to be the caller's own. */
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

/** Pictures made by a tool are counted apart from the answer's tokens, so they cannot be charged for. */
function refuseUnpriced({ tools, input }: ResponsesRequest): void {
  const lists: [string, unknown][] = [['tools', tools]]
  if (Array.isArray(input))
    for (const [index, item] of input.entries()) lists.push([`input[${index}].tools`, item['tools']])
  for (const [path, list] of lists) {
    if (!Array.isArray(list)) continue
    const index = list.findIndex((tool) => isJsonObject(tool) && tool['type'] === 'image_generation')
    if (index !== -1)
      throw unsupportedParameter(`${path}[${index}]`, `${path}[${index}]: pictures are made on /v1/images/generations`)
  }
}

/** The request without reasoning that another vendor signed; the same object if it has none. */
function withoutEnvelopes(request: ResponsesRequest, bytes: Uint8Array | undefined): ResponsesRequest {
  if (bytes !== undefined && !asBuffer(bytes).includes(ENVELOPE_MARK)) return request
  const items = inputItems(request)
  const own = items.filter((item) => !(itemType(item) === 'reasoning' && isEnvelope(item['encrypted_content'])))
  return own.length === items.length ? request : { ...request, input: own }
}

/** Passes a whole response on: the vendor's bytes with only the model replaced. Undefined when it is no response. */
function passResponse(chunks: readonly Uint8Array[], call: VendorCall<ResponsesRequest>): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const response = parseVendorJson(bytes.toString('utf8'))
  if (!isJsonObject(response) || response['object'] !== 'response' || !Array.isArray(response['output']))
    return undefined
  const { publicModel } = call
  const outputBytes = outputTextBytes(response['output'])
  const usage = responsesUsage(response)
  const mended = mendedUsage(response['usage'], usage, call.billedUsage?.(usage, outputBytes))
  const keptAnswer = { ...response, model: publicModel, ...(mended === undefined ? {} : { usage: mended }) }
  const passed = mended === undefined ? replaceString(bytes, 'model', response['model'], publicModel) : undefined
  return {
    chunks: [passed ?? Buffer.from(JSON.stringify(keptAnswer))],
    usage,
    outputBytes,
    isRefusal: response['status'] === 'failed' && usage === undefined,
    keptAnswer,
  }
}

/** Passes a token count through. Undefined if there is none. */
function passTokenCount(chunks: readonly Uint8Array[]): AnswerBody | undefined {
  const count = parseVendorJson(joinChunks(chunks).toString('utf8'))
  return isJsonObject(count) && typeof count['input_tokens'] === 'number' ? { chunks, usage: undefined } : undefined
}

/** Bytes of generated text in the items of an answer. */
function outputTextBytes(items: readonly unknown[]): number {
  let byteLength = 0
  for (const item of items) if (isJsonObject(item)) byteLength += itemTextBytes(item)
  return byteLength
}

function itemTextBytes({ content, summary, name, arguments: json, input, code }: Record<string, unknown>): number {
  let byteLength = 0
  for (const text of [name, json, input, code]) if (typeof text === 'string') byteLength += Buffer.byteLength(text)
  for (const parts of [content, summary]) {
    if (!Array.isArray(parts)) continue
    for (const part of parts) {
      const text: unknown = isJsonObject(part) ? (part['text'] ?? part['refusal']) : undefined
      if (typeof text === 'string') byteLength += Buffer.byteLength(text)
    }
  }
  return byteLength
}
