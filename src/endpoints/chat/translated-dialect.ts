import { GatewayError } from '../../core/errors.ts'
import { isSet } from '../../core/json.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { renamedError } from '../field-errors.ts'
import {
  type AnswerBody,
  type ChunkedAnswer,
  jsonBody,
  neverStreams,
  type Operation,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import type { StreamTransform } from '../stream-transform.ts'
import type { ChatCompletion } from './chat-completion.ts'
import {
  brokenBody,
  type ChatOffer,
  type ChatOperation,
  completionTextBytes,
  hasHiddenReasoning,
  TranslatedStream,
  wireOfTranslation,
} from './chat-operation.ts'
import type { ChatRequest } from './chat-request.ts'
import { fitRequest } from './chat-schema.ts'
import type { AnswerWriter } from './chat-stream-writer.ts'

/** A request of another dialect as a chat request. */
export interface ChatTranslation {
  readonly request: ChatRequest
  /** Fields of the caller without an equivalent in chat. */
  readonly dropped: readonly string[]
  /** Returns the caller's name of a chat field that a vendor drops or rejects. */
  callerField(field: string): string
}

/** Returns a function that adds a dropped field of a caller. Callers choose some names, so unusual ones are not repeated in headers. */
export function reportTo(dropped: Set<string>): (field: string) => void {
  return (field) => void dropped.add(/^[\w.[\]-]{1,80}$/.test(field) ? field : '(unprintable)')
}

/** Returns a bound of the output that the model accepts. Calls `reportLowered` if that is less than the requested one. */
export function acceptedBound(
  requested: number | null | undefined,
  limit: number | undefined,
  reportLowered: () => void,
): number | undefined {
  if (!isSet(requested) || limit === undefined || requested <= limit) return requested ?? undefined
  reportLowered()
  return limit
}

/** Facts about a translated call that decide the form of its answer. */
export interface AnswerForm<Request, Translation> {
  readonly call: VendorCall<Request>
  readonly translation: Translation
  readonly chat: ChatOperation
  /** Fields that the vendor does not get, under the caller's names. */
  readonly dropped: readonly string[]
}

/** A caller's dialect whose requests are translated to chat, for vendors that do not accept it themselves. */
export interface TranslatedDialect<Request, Translation extends ChatTranslation> {
  /** @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field that cannot be translated. */
  translate(call: VendorCall<Request>, chat: ChatOperation): Translation
  /** Creates the writer of a streamed or of a whole answer, so that both have the same content. */
  writer(form: AnswerForm<Request, Translation>, isStream: boolean): AnswerWriter
  /** Returns the answer to a request for a token count. Clients ignore the member `estimated`. */
  tokenCount(inputTokens: number): object
  /** Returns an upper estimate of a request's tokens, for vendors that do not count. */
  estimateTokens(request: Request): number
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

/** Part of a vendor that answers translated requests. */
export interface TranslatedOffer extends ChatOffer {
  /** Present if the vendor counts the tokens of a chat. Otherwise, they are estimated. */
  readonly tokenCount?: TokenCountOperation
}

/** A call in the chat dialect. Bytes and headers are in the caller's dialect, which the vendor does not accept. */
interface TranslatedCall<Translation> {
  readonly translation: Translation
  readonly chatCall: VendorCall<ChatRequest>
  /** Creates the vendor's request. It names fields as the caller does, in errors and in `dropped`. */
  wireOf(toWire: (chatCall: VendorCall<ChatRequest>) => WireRequest): WireRequest
}

function translated<Request, Translation extends ChatTranslation>(
  dialect: TranslatedDialect<Request, Translation>,
  call: VendorCall<Request>,
  chat: ChatOperation,
): TranslatedCall<Translation> {
  const translation = dialect.translate(call, chat)
  const { request, dropped: unfit } = fitRequest(translation.request, chat.abilities?.(call.model))
  const chatCall = { ...call, request, bytes: undefined, header: undefined, costOf: undefined }
  return {
    translation,
    chatCall,
    wireOf(toWire) {
      let wire: WireRequest
      try {
        wire = toWire(chatCall)
      } catch (cause) {
        if (!GatewayError.isInstance(cause) || cause.param === undefined) throw cause
        throw renamedError(cause, translation.callerField(cause.param))
      }
      const lost = [...unfit, ...wire.dropped].map((field) => translation.callerField(field))
      return { ...wire, dropped: [...new Set([...translation.dropped, ...lost])] }
    },
  }
}

/**
 * Creates the operation of a call that is translated into chat and back.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming a field that cannot be translated.
 */
export class TranslatedOperation<Request, Translation extends ChatTranslation> implements Operation {
  readonly requests: readonly WireRequest[]
  readonly hasHiddenReasoning: boolean
  readonly #dialect: TranslatedDialect<Request, Translation>
  readonly #chat: ChatOperation
  readonly #chatCall: VendorCall<ChatRequest>
  readonly #form: AnswerForm<Request, Translation>

  constructor(dialect: TranslatedDialect<Request, Translation>, chat: ChatOperation, call: VendorCall<Request>) {
    const { translation, chatCall, wireOf } = translated(dialect, call, chat)
    const wire = wireOf((asked) => wireOfTranslation(chat, asked))
    this.requests = [wire]
    this.hasHiddenReasoning = hasHiddenReasoning(chat, chatCall)
    this.#dialect = dialect
    this.#chat = chat
    this.#chatCall = chatCall
    this.#form = { call, translation, chat, dropped: wire.dropped }
  }

  whole([answer]: readonly ChunkedAnswer[]): AnswerBody | undefined {
    if (answer === undefined) return undefined
    const whole = { ...answer, body: joinChunks(answer.chunks) }
    const read = this.#chat.fromWire(whole, this.#chatCall)
    if (read === undefined) return brokenBody(this.#chat, whole, this.#chatCall)
    const { completion, usage } = read
    const outputBytes = completionTextBytes(completion)
    const { billedUsage } = this.#chatCall
    const writer = this.#dialect.writer(this.#form, false)
    writeCompletion(completion, writer)
    const end = writer.done(billedUsage === undefined ? usage : billedUsage(usage, outputBytes))
    const body = jsonBody(end?.response, usage, outputBytes)
    return end?.lastEvent === undefined ? body : { ...body, keptAnswer: end.response }
  }

  cutBytes(chunks: readonly Uint8Array[]): number | undefined {
    return this.#chat.cutBytes?.(chunks, this.#chatCall)
  }

  stream(): StreamTransform {
    const writer = this.#dialect.writer(this.#form, true)
    return new TranslatedStream(this.#chat.decoder(this.#chatCall, writer), writer, this.#chatCall)
  }
}

/** Writes a whole answer as a stream would, so that both have the same content. */
export function writeCompletion({ id, choices }: ChatCompletion, writer: AnswerWriter): void {
  const [choice] = choices
  writer.start(id)
  if (choice === undefined) return
  const { message, finish_reason: reason } = choice
  if (message.thinking_blocks === undefined) writer.reasoning(message.reasoning_content ?? '')
  for (const block of message.thinking_blocks ?? []) {
    if (block.type === 'thinking') writer.reasoning(block.thinking)
    writer.thinkingBlock(block)
  }
  if (message.extra_content !== undefined) writer.extraContent(message.extra_content)
  writer.text(message.content ?? '')
  if (message.annotations !== undefined) writer.annotations?.(message.annotations)
  writer.refusal(message.refusal ?? '')
  for (const [index, call] of (message.tool_calls ?? []).entries()) {
    const { id: callId, function: called, extra_content: extra } = call
    writer.toolCall({ index, id: callId, name: called.name, ...(extra === undefined ? {} : { extra }) })
    writer.toolCallArguments(index, called.arguments)
  }
  writer.finish(reason)
}

/**
 * Creates the token count of a request in a translated dialect: from the vendor if it counts, else estimated without a call.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming the untranslatable field.
 */
export function translatedTokenCount<Request, Translation extends ChatTranslation>(
  dialect: TranslatedDialect<Request, Translation>,
  { chat, tokenCount }: TranslatedOffer,
  call: VendorCall<Request>,
): Operation | undefined {
  if (chat === undefined) return undefined
  if (tokenCount === undefined || tokenCount.applies?.(call.model) === false) {
    const estimate = { ...dialect.tokenCount(dialect.estimateTokens(call.request)), estimated: true }
    return { requests: [], whole: () => jsonBody(estimate), stream: neverStreams }
  }
  return {
    requests: [translated(dialect, call, chat).wireOf((chatCall) => tokenCount.toWire(chatCall))],
    whole([answer]) {
      if (answer === undefined) return undefined
      const tokens = tokenCount.fromWire({ ...answer, body: joinChunks(answer.chunks) })
      return tokens === undefined ? undefined : jsonBody(dialect.tokenCount(tokens))
    },
    stream: neverStreams,
  }
}
