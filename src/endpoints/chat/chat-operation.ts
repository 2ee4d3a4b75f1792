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
  /** Reads a complete 2xx answer. Returns `undefined` if it is malformed. */
  fromWire(
    answer: WireAnswer,
    call: VendorCall<ChatRequest>,
  ): { completion: ChatCompletion; usage: Usage | undefined } | undefined
  /**
   * Reads a complete 2xx answer that {@link fromWire} cannot use. Returns the reason and the usage that the vendor
   * reports, or `undefined` if the vendor's `errorFrom` gives the reason. If omitted, it always does.
   */
  brokenAnswer?(answer: WireAnswer, call: VendorCall<ChatRequest>): BrokenChat | undefined
  /** Returns the bytes of generated text in an answer that was cut. By default or if `undefined`, all count. */
  cutBytes?(chunks: readonly Uint8Array[], call: VendorCall<ChatRequest>): number | undefined
  /** Reads a streamed 2xx answer. */
  decoder(call: VendorCall<ChatRequest>, writer: ChatStreamWriter): ChatStreamDecoder
  /** Present if the vendor accepts the dialect itself. */
  readonly passThrough?: PassThrough<ChatRequest>
  /** `protocol` of all models, if the vendor has only one. If omitted, the rows of the models name it. */
  readonly protocol?: string
  /** Values of `protocol` that rows of its models may have. If omitted, they have none. */
  readonly protocols?: readonly string[]
  /** Whether the model reasons in this call without showing it. Default false. */
  reasonsUnseen?(call: VendorCall<ChatRequest>): boolean
  /** Billing fields of surcharges that never reach the vendor, because the translation drops their request fields. */
  readonly leavesOut?: ReadonlySet<string>
  /** Whether the vendor fetches images given as https URLs. Default true. If false, the gateway sends bytes. */
  takesImageUrls?(model: CatalogModel): boolean
  /** Whether the vendor fetches files of Responses given as https URLs. Default false: such a request is rejected. */
  takesFileUrls?(model: CatalogModel): boolean
  /** Whether the model reads the text of its reasoning in later turns. Default false. */
  replaysReasoning?(model: CatalogModel): boolean
  /** Maximum output tokens to request; higher bounds are lowered. No maximum by default or if `undefined`. */
  mostOutputTokens?(model: CatalogModel): number | undefined
  /** Returns which fields written by translations the model accepts. If omitted, all are sent. */
  abilities?(model: CatalogModel): ChatAbilities
  /** Whether `cache_control` of message parts and tools is supported and sent. Default false. */
  takesCacheControl?(model: CatalogModel): boolean
  /**
   * Whether `response_format` also works at models without structured output, through a tool or an instruction. If
   * omitted, the catalog entry of the model decides.
   */
  makesAnswerFormats?(model: CatalogModel): boolean
}

/** A billed answer of a vendor that the gateway cannot pass on. */
export interface BrokenChat {
  readonly failure: VendorFailure
  /** Usage that the vendor reports, if any. */
  readonly usage: Usage | undefined
  /** Bytes of text that the model generated. Defaults to the bytes of the answer. */
  readonly outputBytes?: number
}

/** Part of a vendor that handles chat. */
export interface ChatOffer {
  readonly chat?: ChatOperation
}

/** Creates the chat operation of a vendor: pass-through if it accepts the caller's dialect, else translation. */
export function createChatOperation(chat: ChatOperation, call: VendorCall<ChatRequest>): Operation {
  const wire = chat.toWire(call)
  if (chat.passThrough?.applies(call) === true) return passThrough(wire, chat.passThrough, call)
  return new TranslatedChat([wire], chat, call)
}

/** Whether the model reasons invisibly. The row of the model takes precedence over the vendor. */
export function reasonsUnseen(chat: ChatOperation, call: VendorCall<ChatRequest>): boolean {
  return call.model.reasonsUnseen ?? chat.reasonsUnseen?.(call) ?? false
}

/**
 * Returns the request of a translated call. Reports reasoning text of the history that is neither read by the model nor
 * carried as vendor state.
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

/** Returns the body of an answer that a vendor's translator cannot use, or `undefined` if it is unknown. */
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
