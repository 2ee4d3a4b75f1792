import type { CatalogModel } from '../../catalog/model.ts'
import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import {
  type AnswerBody,
  type ChunkedAnswer,
  jsonBody,
  type Operation,
  type PassThrough,
  passThrough,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import type { StreamTransform, VendorFailure } from '../stream-transform.ts'
import { ChatChunkWriter, TranslatedChatStream } from './chat-chunk-writer.ts'
import { type ChatCompletion, chatUsage } from './chat-completion.ts'
import type { ChatMessage, ChatRequest } from './chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from './chat-stream-writer.ts'
import { completionTextBytes } from './chat-text-bytes.ts'
import type { ChatAbilities } from './fit-request.ts'

/** Chat at one vendor. All functions are pure: no I/O, clock, environment or logger. */
export interface ChatOperation {
  /**
   * @throws GatewayError `unsupported_parameter` naming the field if the vendor does not support it and it must not be
   *   dropped.
   */
  toWire(call: VendorCall<ChatRequest>): WireRequest
  /** Reads a complete 2xx answer. Undefined if it is malformed. */
  fromWire(
    answer: WireAnswer,
    call: VendorCall<ChatRequest>,
  ): { completion: ChatCompletion; usage: Usage | undefined } | undefined
  /**
   * Reads a complete 2xx answer that {@link fromWire} cannot use: why, and what its vendor reports to have used for it. Undefined
   * where the vendor's `errorFrom` tells why. Absent: always.
   */
  brokenAnswer?(answer: WireAnswer, call: VendorCall<ChatRequest>): BrokenChat | undefined
  /** Bytes of generated text in a whole answer that was cut. Undefined, and absent: all of its bytes are taken for text. */
  cutBytes?(chunks: readonly Uint8Array[], call: VendorCall<ChatRequest>): number | undefined
  /** Reads a streamed 2xx answer. */
  decoder(call: VendorCall<ChatRequest>, writer: ChatStreamWriter): ChatStreamDecoder
  /** Present where the vendor speaks the dialect itself. */
  readonly passThrough?: PassThrough<ChatRequest>
  /** The `protocol` of all its models, where it has one only. Absent: it is as their rows say. */
  readonly protocol?: string
  /** Values of `protocol` that rows of its models may have. If omitted, they have none. */
  readonly protocols?: readonly string[]
  /** Does the model reason without showing it for this call? Absent: no. */
  reasonsUnseen?(call: VendorCall<ChatRequest>): boolean
  /** Billing fields of surcharges that never reach the vendor, because the translation leaves their request fields out. */
  readonly leavesOut?: ReadonlySet<string>
  /** False when images given as https URLs must be fetched by the gateway and sent as bytes. Absent: the vendor fetches them. */
  takesImageUrls?(model: CatalogModel): boolean
  /** Does the vendor fetch files of Responses that are given as https URLs? Absent: no, such a request is refused. */
  takesFileUrls?(model: CatalogModel): boolean
  /** Does the model read the text of its reasoning again in later turns? Absent: no. */
  replaysReasoning?(model: CatalogModel): boolean
  /** The most output tokens of an answer that the vendor is asked for: a higher bound is lowered. Undefined, and absent: none is. */
  mostOutputTokens?(model: CatalogModel): number | undefined
  /** Returns what the model accepts of fields that translations into chat write. If omitted, all is sent. */
  abilities?(model: CatalogModel): ChatAbilities
  /** Is `cache_control` of parts of messages and of tools understood, so that Messages callers' is kept? Absent: no. */
  takesCacheControl?(model: CatalogModel): boolean
  /**
   * Is a `response_format` met also at models without structured output, by a tool or an instruction in its place? Absent: as the
   * catalog says of the model.
   */
  makesAnswerFormats?(model: CatalogModel): boolean
}

/** An answer that its vendor made and bills, and that is none for its caller. */
export interface BrokenChat {
  readonly failure: VendorFailure
  /** Undefined: the vendor reports nothing. */
  readonly usage: Usage | undefined
  /** Bytes of text that the model generated. Absent: those of the answer. */
  readonly outputBytes?: number
}

/** What of a vendor carries out a chat. */
export interface ChatOffer {
  readonly chat?: ChatOperation
}

/** Chat at a vendor: bytes through where it speaks the caller's dialect, else by translation. */
export function createChatOperation(chat: ChatOperation, call: VendorCall<ChatRequest>): Operation {
  const wire = chat.toWire(call)
  if (chat.passThrough?.applies(call) === true) return passThrough(wire, chat.passThrough, call)
  return new TranslatedChat([wire], chat, call)
}

/** What the model's row declares counts; else the vendor knows. */
export function reasonsUnseen(chat: ChatOperation, call: VendorCall<ChatRequest>): boolean {
  return call.model.reasonsUnseen ?? chat.reasonsUnseen?.(call) ?? false
}

/**
 * The request of a translated call. It reports reasoning text of the history that neither the model reads nor state of the vendor carries.
 */
export function wireOfTranslation(chat: ChatOperation, call: VendorCall<ChatRequest>): WireRequest {
  const wire = chat.toWire(call)
  const isLost = chat.replaysReasoning?.(call.model) !== true && call.request.messages.some(hasLooseReasoning)
  const isForeign = call.request.messages.some((message) => carriesStateOfOthers(message, call.model.vendor))
  return isLost || isForeign ? { ...wire, dropped: [...wire.dropped, 'messages.reasoning_content'] } : wire
}

function hasLooseReasoning(message: ChatMessage): boolean {
  const { reasoning_content: text, thinking_blocks: blocks, extra_content: extra, tool_calls: calls } = message
  if (!text || blocks !== undefined || extra !== undefined) return false
  return calls?.every(({ extra_content: own }) => own === undefined) ?? true
}

function carriesStateOfOthers({ extra_content: extra, tool_calls: calls }: ChatMessage, vendor: string): boolean {
  const states = [extra?.server, ...(calls?.map((call) => call.extra_content?.server) ?? [])]
  return states.some((state) => state !== undefined && state.vendor !== vendor)
}

/** The body of an answer that a vendor's translator cannot use; undefined where nothing is known of it. */
export function brokenBody(
  chat: ChatOperation,
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): AnswerBody | undefined {
  const broken = chat.brokenAnswer?.(answer, call)
  return broken && { chunks: [], ...broken }
}

class TranslatedChat implements Operation {
  readonly requests: readonly WireRequest[]
  readonly reasonsUnseen: boolean
  readonly #chat: ChatOperation
  readonly #call: VendorCall<ChatRequest>

  constructor(requests: readonly WireRequest[], chat: ChatOperation, call: VendorCall<ChatRequest>) {
    this.requests = requests
    this.reasonsUnseen = reasonsUnseen(chat, call)
    this.#chat = chat
    this.#call = call
  }

  whole([answer]: readonly ChunkedAnswer[]): AnswerBody | undefined {
    if (answer === undefined) return undefined
    const whole = { ...answer, body: joinChunks(answer.chunks) }
    const read = this.#chat.fromWire(whole, this.#call)
    if (read === undefined) return brokenBody(this.#chat, whole, this.#call)
    const { completion, usage } = read
    const outputBytes = completionTextBytes(completion)
    if (this.#call.billedUsage !== undefined) completion.usage = chatUsage(this.#call.billedUsage(usage, outputBytes))
    return jsonBody(completion, usage, outputBytes)
  }

  cutBytes(chunks: readonly Uint8Array[]): number | undefined {
    return this.#chat.cutBytes?.(chunks, this.#call)
  }

  stream(): StreamTransform {
    const call = this.#call
    const includeUsage = call.request.stream_options?.include_usage === true
    const writer = new ChatChunkWriter({
      model: call.publicModel,
      createdSeconds: Math.floor(call.nowMs / 1000),
      includeUsage,
    })
    return new TranslatedChatStream({
      decoder: this.#chat.decoder(call, writer),
      writer,
      includeUsage,
      costOf: call.costOf,
      billedUsage: call.billedUsage,
    })
  }
}
