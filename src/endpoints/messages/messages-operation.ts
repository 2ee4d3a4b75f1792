import { GatewayError } from '../../core/errors.ts'
import { joinChunks } from '../../wire/chunks.ts'
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
import type { ExtraFeature } from '../endpoint.ts'
import { renamedError } from '../field-errors.ts'
import {
  type AnswerBody,
  type ChunkedAnswer,
  jsonBody,
  neverStreams,
  type Operation,
  type PassThroughOperation,
  passThrough,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import type { StreamTransform } from '../stream-transform.ts'
import { chatRequestFromMessages, showsThinking } from './chat-request-from-messages.ts'
import { type MessageFacts, messageFromCompletion } from './message-from-completion.ts'
import { estimateMessageTokens } from './messages-estimate.ts'
import type { MessagesRequest } from './messages-request.ts'
import { MessagesStreamWriter, TranslatedMessagesStream } from './messages-stream-writer.ts'

/** Messages at a vendor that accepts the dialect itself. Other vendors answer through their {@link ChatOperation}. */
export interface MessagesOperation extends PassThroughOperation<MessagesRequest> {
  /** Returns features that the vendor may bill in addition to tokens. If omitted, there are none. */
  extraFeatures?(request: MessagesRequest, header: (name: string) => string | undefined): readonly ExtraFeature[]
  /** Price fields that never reach the vendor, because it lacks the features. If omitted, all reach it. */
  readonly leavesOut?: ReadonlySet<string>
  /** Whether the vendor fetches images given as URLs. Default true. If false, the gateway fetches them. */
  readonly takesImageUrls?: boolean
  /** Caller headers that decide the answer. If omitted, there are none. */
  readonly answerHeaders?: readonly string[]
  /** Operation that counts the tokens of a request. */
  readonly tokenCount: PassThroughOperation<MessagesRequest>
}

/** Counts the tokens of a chat, free of charge. All functions are pure. */
export interface TokenCountOperation {
  /** Whether the vendor counts the tokens of a model. If omitted, it counts those of every model. */
  applies?(model: VendorCall<unknown>['model']): boolean
  /** @throws GatewayError `unsupported_parameter` or `invalid_request`, naming a field that cannot be translated. */
  toWire(call: VendorCall<ChatRequest>): WireRequest
  /** Reads the count in a 2xx answer. Returns `undefined` if it is malformed. */
  fromWire(answer: WireAnswer): number | undefined
}

/** Part of a vendor that handles Messages. */
export interface MessagesOffer extends ChatOffer {
  /** Present if the vendor accepts the Messages dialect itself. */
  readonly messages?: MessagesOperation
  /** Present if the vendor counts the tokens of a chat. Otherwise, they are estimated. */
  readonly tokenCount?: TokenCountOperation
}

/**
 * Creates the Messages operation of a vendor: pass-through if it accepts the dialect, else translation into chat and back.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming a field that cannot be translated.
 */
export function createMessagesOperation(
  { messages, chat }: MessagesOffer,
  call: VendorCall<MessagesRequest>,
): Operation | undefined {
  const asked = asCalled(call)
  if (messages !== undefined) return passThrough(messages.toWire(asked), messages, asked)
  return chat === undefined ? undefined : new TranslatedMessages(chat, asked)
}

/**
 * Creates the token count of a request: from the vendor if it counts, else estimated without a call. An estimate has a
 * member `estimated`, which clients of the dialect ignore.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming the untranslatable field.
 */
export function createTokenCountOperation(
  offer: MessagesOffer,
  call: VendorCall<MessagesRequest>,
): Operation | undefined {
  const { messages, chat } = offer
  if (messages !== undefined) {
    const asked = asCalled(call)
    return passThrough(messages.tokenCount.toWire(asked), messages.tokenCount, asked)
  }
  if (chat === undefined) return undefined
  const tokenCount = tokenCounter(offer, call)
  if (tokenCount === undefined) {
    const estimate = { input_tokens: estimateMessageTokens(call.request), estimated: true }
    return { requests: [], whole: () => jsonBody(estimate), stream: neverStreams }
  }
  const { chatCall, dropped } = translatedCall(call, chat)
  const wire = tokenCount.toWire(chatCall)
  return {
    requests: [{ ...wire, dropped: droppedByTranslation(dropped, wire.dropped) }],
    whole([answer]) {
      if (answer === undefined) return undefined
      const tokens = tokenCount.fromWire({ ...answer, body: joinChunks(answer.chunks) })
      return tokens === undefined ? undefined : jsonBody({ input_tokens: tokens })
    },
    stream: neverStreams,
  }
}

/** Returns the operation that counts tokens at the vendor, or `undefined` if they are estimated. */
export function tokenCounter(
  { tokenCount }: Pick<MessagesOffer, 'tokenCount'>,
  { model }: VendorCall<unknown>,
): TokenCountOperation | undefined {
  return tokenCount?.applies?.(model) === false ? undefined : tokenCount
}

/** Callers get the id or alias that they wrote. An answer of a fallback has the fallback's id. */
function asCalled(call: VendorCall<MessagesRequest>): VendorCall<MessagesRequest> {
  const { model, request } = call
  return model.aliases.includes(request.model) ? { ...call, publicModel: request.model } : call
}

class TranslatedMessages implements Operation {
  readonly requests: readonly WireRequest[]
  readonly reasonsUnseen: boolean
  readonly #chat: ChatOperation
  readonly #chatCall: VendorCall<ChatRequest>
  readonly #facts: MessageFacts

  constructor(chat: ChatOperation, call: VendorCall<MessagesRequest>) {
    const { chatCall, dropped } = translatedCall(call, chat)
    const wire = withCallerNames(() => wireOfTranslation(chat, chatCall))
    this.requests = [{ ...wire, dropped: droppedByTranslation(dropped, wire.dropped) }]
    this.#chat = chat
    this.#chatCall = chatCall
    this.reasonsUnseen = reasonsUnseen(chat, chatCall)
    this.#facts = { model: call.publicModel, nowMs: call.nowMs, showsThinking: showsThinking(call.request) }
  }

  whole([answer]: readonly ChunkedAnswer[]): AnswerBody | undefined {
    if (answer === undefined) return undefined
    const whole = { ...answer, body: joinChunks(answer.chunks) }
    const read = this.#chat.fromWire(whole, this.#chatCall)
    if (read === undefined) return brokenBody(this.#chat, whole, this.#chatCall)
    const { completion, usage } = read
    const outputBytes = completionTextBytes(completion)
    const { billedUsage } = this.#chatCall
    const billed = billedUsage === undefined ? usage : billedUsage(usage, outputBytes)
    return jsonBody(messageFromCompletion(completion, billed, this.#facts), usage, outputBytes)
  }

  cutBytes(chunks: readonly Uint8Array[]): number | undefined {
    return this.#chat.cutBytes?.(chunks, this.#chatCall)
  }

  stream(): StreamTransform {
    const writer = new MessagesStreamWriter(this.#facts)
    const decoder = this.#chat.decoder(this.#chatCall, writer)
    return new TranslatedMessagesStream(decoder, writer, this.#chatCall.billedUsage)
  }
}

/** A Messages call converted to a chat call, and the names of its dropped fields. */
interface TranslatedCall {
  readonly chatCall: VendorCall<ChatRequest>
  readonly dropped: readonly string[]
}

function translatedCall(call: VendorCall<MessagesRequest>, chat: ChatOperation): TranslatedCall {
  const { request: asked, dropped } = chatRequestFromMessages(
    call.request,
    call.model.limits.maxOutputTokens,
    chat.takesCacheControl?.(call.model) === true,
  )
  const { request, dropped: unfit } = fitRequest(asked, chat.abilities?.(call.model))
  // Bytes and headers are in the caller's dialect, which this vendor does not accept.
  const chatCall = { ...call, request, bytes: undefined, header: undefined, costOf: undefined }
  return { chatCall, dropped: droppedByTranslation(dropped, unfit) }
}

/** The Messages names of fields that a chat vendor drops. */
const CALLER_NAMES: ReadonlyMap<string, string> = new Map([
  ['user', 'metadata.user_id'],
  ['safety_identifier', 'metadata.user_id'],
  ['stop', 'stop_sequences'],
  ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
  ['reasoning_effort', 'thinking'],
  ['response_format', 'output_config.format'],
  ['messages.reasoning_content', 'messages.thinking'],
])

/** Calls a vendor's translator and renames the fields in its errors to this dialect. */
function withCallerNames<Value>(translate: () => Value): Value {
  try {
    return translate()
  } catch (cause) {
    if (!GatewayError.isInstance(cause) || cause.param === undefined) throw cause
    throw renamedError(cause, CALLER_NAMES.get(cause.param) ?? cause.param)
  }
}

/** Returns all dropped fields under the caller's names. */
function droppedByTranslation(translation: readonly string[], vendor: readonly string[]): readonly string[] {
  return [...new Set([...translation, ...vendor.map((field) => CALLER_NAMES.get(field) ?? field)])]
}
