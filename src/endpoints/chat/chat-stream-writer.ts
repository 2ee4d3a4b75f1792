import type { GatewayError } from '../../core/errors.ts'
import { assertFittingTexts } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { VendorFailure } from '../stream-transform.ts'
import type { ChatAnnotation, FinishReason } from './chat-completion.ts'
import type { ChatMessage, ExtraContent, ThinkingBlock } from './chat-request.ts'

/**
 * Receives the events that a translating decoder reads from the vendor. One implementation writes OpenAI chunks,
 * another Anthropic events; a decoder does not know which. Calls are synchronous and in the vendor's order. `choice`
 * counts from 0 and is 0 unless the caller requested several answers.
 */
export interface ChatStreamWriter {
  /** Opens the answer. `id` is the vendor's id, kept for support. Called once, before everything else. */
  start(id: string): void
  /** Writes a chunk of visible text; empty ones are ignored. `logprobs` has the form of `logprobs.content`. */
  text(text: string, choice?: number, logprobs?: readonly unknown[]): void
  /** Writes the sources of the text so far as `annotations`. Absent if the dialect has no place for them. */
  annotations?(annotations: readonly ChatAnnotation[], choice?: number): void
  /** Writes a chunk of the model's refusal text. */
  refusal(text: string, choice?: number): void
  /** Writes a chunk of reasoning text. */
  reasoning(text: string, choice?: number): void
  /** Writes a complete reasoning block and its signature, after `reasoning` received its text. */
  thinkingBlock(block: ThinkingBlock, choice?: number): void
  /** Writes vendor state of the message itself, such as the thought signature of a text part. */
  extraContent(extra: ExtraContent, choice?: number): void
  /**
   * Opens a tool call. `index` counts tool calls from 0, in the order of opening. `isCustom` marks a custom tool of a
   * chat, whose arguments are its input as plain text.
   */
  toolCall(
    call: { index: number; id: string; name: string; extra?: ExtraContent; isCustom?: boolean },
    choice?: number,
  ): void
  /** Writes a chunk of the JSON text of an open tool call's arguments. */
  toolCallArguments(index: number, json: string, choice?: number): void
  /** Sets the reason why this choice stopped. Called once per choice. */
  finish(reason: FinishReason, choice?: number): void
}

/** End of an answer in a caller's dialect. */
export interface AnswerEnd {
  /** The whole answer. */
  readonly response: Record<string, unknown>
  /** Last event of a stream, sent once the answer is stored. Absent if the dialect stores no answers. */
  readonly lastEvent?: string
}

/** Writes an answer in a caller's dialect. */
export interface AnswerWriter extends ChatStreamWriter {
  /** Whether something was written that a caller keeps. */
  readonly hasContent: boolean
  /** Bytes of text, reasoning and arguments of tool calls so far, including those that are not shown. */
  readonly outputBytesSeen: number
  /** Whether all text has ended. */
  readonly hasTextEnded: boolean
  /** Whether the caller reads the usage. Default true. */
  readonly showsUsage?: boolean
  /** Returns the events written since the last call, or an empty string. @param usage Reported so far. */
  take(usage: Usage | undefined): string
  /** Ends the answer. Returns its end if the dialect stores answers, or the writer writes whole ones. */
  done(usage: Usage | undefined, cost?: string): AnswerEnd | undefined
  /** Returns bytes that keep a silent stream open. Defaults to a comment line. */
  keepAlive?(): string
  /** Returns the end of a stream that broke. Defaults to the dialect's error. */
  fail?(error: GatewayError): string
}

/** A vendor's stream decoder for chat: vendor bytes in, calls on a {@link ChatStreamWriter} out. Pure and synchronous. */
export interface ChatStreamDecoder {
  /** Whether the decoder accepts a media type; see {@link StreamTransform}. */
  readonly takes?: ((mediaType: string) => boolean) | undefined
  push(chunk: Uint8Array): void
  /** Called if the vendor's body ended without a network fault. */
  end(): void
  /** Whether the vendor's own end mark was read (`message_stop`, a finish reason). */
  readonly isComplete: boolean
  /** Failure that an error event inside the stream reported. */
  readonly failure: VendorFailure | undefined
  /** The vendor's final usage. */
  readonly usage: Usage | undefined
  /** Service tier that the vendor has named; see {@link StreamTransform.serviceTier}. */
  readonly serviceTier?: string | undefined
  /** Whether the vendor reports usage (with unseen reasoning) in every event. By default, only at the end. */
  readonly hasRunningUsage?: boolean
  /** Whether the decoder currently stores none of the bytes it was passed. If omitted, it may store some. */
  readonly holdsNoBytes?: boolean
}

/** Detects when the chunked JSON text of an object or array is complete. Reads every character once. */
export class JsonTextEnd {
  #depth = 0
  #isInString = false
  #isEscaped = false
  #isWhole = false

  /** True once the outermost bracket was closed. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Reads the next chunk. */
  push(text: string): void {
    for (let index = 0; index < text.length && !this.#isWhole; index++) this.#take(text[index]!)
  }

  #take(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isInString) {
      if (character === '\\') this.#isEscaped = true
      else if (character === '"') this.#isInString = false
    } else if (character === '"') this.#isInString = true
    else if (character === '{' || character === '[') this.#depth += 1
    else if (character === '}' || character === ']') {
      this.#depth -= 1
      this.#isWhole = this.#depth <= 0
    }
  }
}

/**
 * Checks the texts that a translation parses as JSON: the arguments of tool calls and, at some vendors, tool results.
 * @throws GatewayError `invalid_request` if it has more values than a request may have.
 */
export function assertFittingJsonTexts(
  messages: readonly ChatMessage[],
  { readsAnswers }: { readsAnswers: boolean },
): void {
  const texts: string[] = []
  for (const message of messages) {
    if (message.tool_calls) for (const call of message.tool_calls) texts.push(call.function?.arguments ?? '')
    if (!readsAnswers || message.role !== 'tool') continue
    const answer = answerOf(message)
    // Others are not parsed: dumps and tables have more colons and commas than JSON.
    if (answer.trimStart().startsWith('{')) texts.push(answer)
  }
  assertFittingTexts(texts)
}

/** The text of a message; that of its parts is read as one. */
function answerOf({ content }: ChatMessage): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}
