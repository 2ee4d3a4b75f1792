import type { Usage } from '../../core/usage.ts'
import type { VendorFailure } from '../stream-transform.ts'
import type { ChatAnnotation, FinishReason } from './chat-completion.ts'
import type { ExtraContent, ThinkingBlock } from './chat-request.ts'

/**
 * What a translating vendor decoder calls as it reads the vendor's events. One implementation writes OpenAI chunks,
 * another writes Anthropic events; a decoder does not know which. Calls are synchronous and in the vendor's order.
 * `choice` counts from 0 and is 0 unless the caller requested several answers.
 */
export interface ChatStreamWriter {
  /** Opens the answer; `id` is the vendor's, kept for support. Called once, before everything else. */
  start(id: string): void
  /** A chunk of visible text; empty ones are ignored. `logprobs` are those of its tokens, as `content` of a choice's logprobs. */
  text(text: string, choice?: number, logprobs?: readonly unknown[]): void
  /** Sources of the text so far, as `annotations` of a chat message. Absent where the dialect has no place for them. */
  annotations?(annotations: readonly ChatAnnotation[], choice?: number): void
  /** A chunk of the model's refusal text. */
  refusal(text: string, choice?: number): void
  /** A chunk of reasoning text. */
  reasoning(text: string, choice?: number): void
  /** A complete reasoning block with the signature that must be sent back next turn. Its text came through `reasoning`. */
  thinkingBlock(block: ThinkingBlock, choice?: number): void
  /** Vendor state to carry on the message itself, such as the thought signature of a text part. */
  extraContent(extra: ExtraContent, choice?: number): void
  /**
   * Opens a tool call. `index` counts tool calls from 0, in the order of opening. `isCustom` marks a custom tool of a chat, whose
   * arguments are its input as plain text.
   */
  toolCall(
    call: { index: number; id: string; name: string; extra?: ExtraContent; isCustom?: boolean },
    choice?: number,
  ): void
  /** A chunk of the JSON text of an open tool call's arguments. */
  toolCallArguments(index: number, json: string, choice?: number): void
  /** The reason why this choice stopped. Called once a choice. */
  finish(reason: FinishReason, choice?: number): void
}

/** A vendor's stream decoder for chat: vendor bytes in, calls on a {@link ChatStreamWriter} out. Pure and synchronous. */
export interface ChatStreamDecoder {
  /** As of a stream's transform. */
  readonly takes?: ((mediaType: string) => boolean) | undefined
  push(chunk: Uint8Array): void
  /** The vendor's body ended without a network fault. */
  end(): void
  /** True once the vendor's own end was read (`message_stop`, a finish reason). */
  readonly isComplete: boolean
  /** An error event inside the stream. */
  readonly failure: VendorFailure | undefined
  /** The vendor's final usage. */
  readonly usage: Usage | undefined
  /** Tier of service that the vendor has named; see {@link StreamTransform.serviceTier}. */
  readonly serviceTier?: string | undefined
  /** True where the vendor reports usage with every event, unseen reasoning included. Absent: it reports at the end. */
  readonly hasRunningUsage?: boolean
  /** True while it keeps nothing of the bytes that it was given. Absent: it may. */
  readonly holdsNoBytes?: boolean
}
