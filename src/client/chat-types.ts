import type { ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
import type {
  ChatMessage as UnmarkedMessage,
  ChatContentPart as UnmarkedPart,
  ChatTool as UnmarkedTool,
} from '../endpoints/chat/chat-request.ts'

export type { CompletionRequest as TextCompletionRequest } from '../endpoints/completions/completion-request.ts'

import type { OpenResponse } from './connection.ts'
import type { CacheMarks } from './message-types.ts'
import { type EventStream, eventStream } from './streams.ts'

/** Part of a message's content. Unknown types are passed to vendors of the same dialect. */
export type ChatContentPart = UnmarkedPart & CacheMarks

/** One message of a chat. */
export interface ChatMessage extends Omit<UnmarkedMessage, 'content'> {
  content?: string | ChatContentPart[] | null
}

/** Function that the model may call; `parameters` is a JSON Schema. */
export interface ChatTool extends UnmarkedTool, CacheMarks {}

/** Completions of texts, whole or one piece of a stream. */
export interface TextCompletion<Finish = FinishReason> {
  readonly id: string
  readonly object: 'text_completion'
  /** Unix seconds. */
  readonly created: number
  readonly model: string
  /** Prompt by prompt, `n` for each. Empty in the last piece of a stream, which has the usage if it was requested. */
  readonly choices: readonly {
    readonly index: number
    readonly text: string
    readonly logprobs: unknown
    readonly finish_reason: Finish
  }[]
  readonly usage?: ChatUsage | null
}

/** A streamed completion: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type TextCompletionStream = EventStream<TextCompletion<FinishReason | null>>

/** Reads a streamed completion, which ends with `[DONE]`. */
export function completionStream(answer: OpenResponse): TextCompletionStream {
  return eventStream<TextCompletion<FinishReason | null>>(answer)
}
