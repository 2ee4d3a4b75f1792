import { Buffer } from 'node:buffer'
import { joinChunks } from '../../wire/chunks.ts'
import type { ChatCompletion } from '../chat/chat-completion.ts'
import {
  brokenBody,
  type ChatOffer,
  type ChatOperation,
  completionTextBytes,
  reasonsUnseen,
  wireOfTranslation,
} from '../chat/chat-operation.ts'
import type { ChatRequest } from '../chat/chat-request.ts'
import { fitRequest } from '../chat/chat-schema.ts'
import { textBeside } from '../media-input.ts'
import { ESTIMATED_TOKENS_PER_FILE } from '../messages/messages-estimate.ts'
import { type TokenCountOperation, tokenCounter } from '../messages/messages-operation.ts'
import {
  type AnswerBody,
  type ChunkedAnswer,
  jsonBody,
  neverStreams,
  type Operation,
  type PassThroughOperation,
  passThrough,
  type VendorCall,
  type WireRequest,
} from '../operation.ts'
import type { StreamTransform } from '../stream-transform.ts'
import { estimateTokens } from '../token-estimate.ts'
import {
  asCallerError,
  callerField,
  chatRequestFromResponses,
  type TranslatedRequest,
} from './chat-request-from-responses.ts'
import { responsesMedia } from './responses-media.ts'
import type { ResponsesRequest } from './responses-request.ts'
import { ResponsesStreamWriter, TranslatedResponsesStream } from './responses-stream-writer.ts'

/** Responses at a vendor that accepts the dialect itself. Other vendors answer through their {@link ChatOperation}. */
export interface ResponsesPassThroughOperation extends PassThroughOperation<ResponsesRequest> {
  /** Operation that counts the tokens of a request. If omitted, the vendor has none, and the gateway estimates. */
  readonly inputTokens?: PassThroughOperation<ResponsesRequest>
  /**
   * Returns the call that deletes an answer at the vendor. If omitted, the vendor stores none, and follow-ups are sent with their
   * whole history.
   */
  readonly deletion?: (upstreamId: string, apiKey: string) => Omit<WireRequest, 'body' | 'dropped'>
  /** Whether the vendor fetches images given by URL. If false, the gateway fetches them and sends bytes. */
  readonly takesImageUrls?: boolean
}

/** Part of a vendor that handles Responses. */
export interface ResponsesOffer extends ChatOffer {
  /** Present if the vendor counts the tokens of a chat. Otherwise, they are estimated. */
  readonly tokenCount?: TokenCountOperation
  /** Present if the vendor accepts the Responses dialect itself. */
  readonly responses?: ResponsesPassThroughOperation
}

/**
 * Creates the Responses operation of a vendor: pass-through if it accepts the dialect, else translation into chat and back.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming a field that cannot be translated.
 */
export function createResponsesOperation(
  { responses, chat }: ResponsesOffer,
  call: VendorCall<ResponsesRequest>,
): Operation | undefined {
  if (responses !== undefined) return passThrough(responses.toWire(call), responses, call)
  return chat === undefined ? undefined : new TranslatedResponses(chat, call)
}

/**
 * Creates the token count of a request: from the vendor if it counts, else estimated without a call. An estimate has a member
 * `estimated`, which clients of the dialect ignore.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming the untranslatable field.
 */
export function createInputTokensOperation(
  offer: ResponsesOffer,
  call: VendorCall<ResponsesRequest>,
): Operation | undefined {
  const { responses, chat } = offer
  const counted = responses?.inputTokens
  if (counted !== undefined) return passThrough(counted.toWire(call), counted, call)
  if (chat === undefined) return undefined
  const object = 'response.input_tokens'
  const tokenCount = tokenCounter(offer, call)
  if (tokenCount === undefined) {
    const body = { object, input_tokens: estimatedInputTokens(call.request), estimated: true }
    return { requests: [], whole: () => jsonBody(body), stream: neverStreams }
  }
  const translated = translatedCall(call, chat)
  const wire = withCallerNames(translated, () => tokenCount.toWire(translated.chatCall))
  return {
    requests: [{ ...wire, dropped: droppedFields(translated, wire) }],
    whole([answer]) {
      if (answer === undefined) return undefined
      const tokens = tokenCount.fromWire({ ...answer, body: joinChunks(answer.chunks) })
      return tokens === undefined ? undefined : jsonBody({ object, input_tokens: tokens })
    },
    stream: neverStreams,
  }
}

/** Returns an upper estimate: the text by the gateway's usual rule, plus a fixed number per image or file. */
function estimatedInputTokens(request: ResponsesRequest): number {
  const { input, instructions, tools, text } = request
  const media = responsesMedia(request)
  const body = { input, instructions, tools, text }
  const textBytes = textBeside(media, body)?.byteLength ?? Buffer.byteLength(JSON.stringify(body))
  return estimateTokens(textBytes) + media.length * ESTIMATED_TOKENS_PER_FILE
}

/** A Responses call converted to a chat call. */
export interface TranslatedCall extends Omit<TranslatedRequest, 'request'> {
  readonly chatCall: VendorCall<ChatRequest>
}

/** Translates a call. Throws as {@link chatRequestFromResponses} does. */
export function translatedCall(call: VendorCall<ResponsesRequest>, chat: ChatOperation): TranslatedCall {
  const { request: asked, ...rest } = chatRequestFromResponses(call.request, {
    keepsBreakpoints: chat.takesCacheControl?.(call.model) === true,
    takesFileUrls: chat.takesFileUrls?.(call.model) === true,
    vendor: call.model.vendor,
    secret: call.stateSecret,
    maxOutputTokens: call.model.limits.maxOutputTokens,
  })
  const { request, dropped } = fitRequest(asked, chat.abilities?.(call.model))
  const names = dropped.map((field) => callerField(field, rest.paths))
  // Bytes are in the caller's dialect, which this vendor does not accept.
  const chatCall = { ...call, request, bytes: undefined, header: undefined, costOf: undefined }
  return { ...rest, dropped: [...rest.dropped, ...names], chatCall }
}

/** Returns all dropped fields under the caller's names. */
export function droppedFields({ dropped, paths }: TranslatedCall, wire: WireRequest): readonly string[] {
  return [...new Set([...dropped, ...wire.dropped.map((field) => callerField(field, paths))])]
}

/** Calls a vendor's translator and renames the fields in its errors to this dialect. */
export function withCallerNames<Value>({ paths }: TranslatedCall, translate: () => Value): Value {
  try {
    return translate()
  } catch (cause) {
    throw asCallerError(cause, paths)
  }
}

class TranslatedResponses implements Operation {
  readonly requests: readonly WireRequest[]
  readonly reasonsUnseen: boolean
  readonly #chat: ChatOperation
  readonly #call: VendorCall<ResponsesRequest>
  readonly #translated: TranslatedCall

  constructor(chat: ChatOperation, call: VendorCall<ResponsesRequest>) {
    const translated = translatedCall(call, chat)
    const wire = withCallerNames(translated, () => wireOfTranslation(chat, translated.chatCall))
    this.requests = [{ ...wire, dropped: droppedFields(translated, wire) }]
    this.reasonsUnseen = reasonsUnseen(chat, translated.chatCall)
    this.#chat = chat
    this.#call = call
    this.#translated = translated
  }

  whole([answer]: readonly ChunkedAnswer[]): AnswerBody | undefined {
    if (answer === undefined) return undefined
    const { chatCall } = this.#translated
    const whole = { ...answer, body: joinChunks(answer.chunks) }
    const read = this.#chat.fromWire(whole, chatCall)
    if (read === undefined) return brokenBody(this.#chat, whole, chatCall)
    const { completion, usage } = read
    const outputBytes = completionTextBytes(completion)
    const { billedUsage } = this.#call
    const billed = billedUsage === undefined ? usage : billedUsage(usage, outputBytes)
    const writer = this.#writer()
    writeCompletion(completion, writer)
    const { response } = writer.done(billed)
    return { ...jsonBody(response, usage, outputBytes), keptAnswer: response }
  }

  cutBytes(chunks: readonly Uint8Array[]): number | undefined {
    return this.#chat.cutBytes?.(chunks, this.#translated.chatCall)
  }

  stream(): StreamTransform {
    const writer = this.#writer()
    const decoder = this.#chat.decoder(this.#translated.chatCall, writer)
    return new TranslatedResponsesStream(decoder, writer, this.#call.billedUsage)
  }

  #writer(): ResponsesStreamWriter {
    const { request, publicModel, nowMs, clock, conversation, model, stateSecret } = this.#call
    const written = (conversation?.original?.request as ResponsesRequest | undefined) ?? request
    const isTierSent = this.requests[0]?.dropped.includes('service_tier') === false
    return new ResponsesStreamWriter({
      id: conversation?.freshId ?? `resp_${nowMs.toString(16)}`,
      model: publicModel,
      nowMs,
      clock,
      // Drops the input, because a prompt with images may hold megabytes for as long as the stream lasts.
      request: { ...written, input: '', service_tier: isTierSent ? written['service_tier'] : null },
      names: this.#translated.names,
      owner: { vendor: model.vendor, secret: stateSecret },
      replaysReasoning: this.#chat.replaysReasoning?.(model),
    })
  }
}

/** Writes a whole answer as a stream would, so that both have the same items. */
function writeCompletion({ choices }: ChatCompletion, writer: ResponsesStreamWriter): void {
  const [choice] = choices
  writer.start()
  if (choice === undefined) return
  const { message, finish_reason: reason } = choice
  if (message.thinking_blocks === undefined) writer.reasoning(message.reasoning_content ?? '')
  for (const block of message.thinking_blocks ?? []) {
    if (block.type === 'thinking') writer.reasoning(block.thinking)
    writer.thinkingBlock(block)
  }
  if (message.extra_content !== undefined) writer.extraContent(message.extra_content)
  writer.text(message.content ?? '')
  if (message.annotations !== undefined) writer.annotations(message.annotations)
  writer.refusal(message.refusal ?? '')
  for (const [index, call] of (message.tool_calls ?? []).entries()) {
    const { id, function: called, extra_content: extra } = call
    writer.toolCall({ index, id, name: called.name, ...(extra === undefined ? {} : { extra }) })
    writer.toolCallArguments(index, called.arguments)
  }
  writer.finish(reason)
}
