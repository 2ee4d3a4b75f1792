import type { ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
import type {
  ChatMessage as UnmarkedMessage,
  ChatContentPart as UnmarkedPart,
  ChatTool as UnmarkedTool,
} from '../endpoints/chat/chat-request.ts'
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

/** Request for a text completion (OpenAI API, "Create completion"). Members of the model's vendor pass. */
export interface TextCompletionRequest {
  readonly model: string
  /** A text, several texts, or token ids of one or several texts. Each text is completed by itself. */
  readonly prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[]
  /** Text after the gap that the model fills. */
  readonly suffix?: string | null
  /** Maximum number of tokens of one completion. */
  readonly max_tokens?: number | null
  /** Number of completions of each prompt. Default 1. */
  readonly n?: number | null
  /** Number of completions that the vendor makes and bills for each prompt. The best `n` are returned. Default `n`. */
  readonly best_of?: number | null
  /** Whether the prompt comes before its completion in the text. Default false. */
  readonly echo?: boolean | null
  /** Number of alternatives whose log probabilities are returned for each token. */
  readonly logprobs?: number | null
  readonly temperature?: number | null
  readonly top_p?: number | null
  readonly stop?: string | readonly string[] | null
  readonly stream_options?: { readonly include_usage?: boolean } | null
  readonly [field: string]: unknown
}

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
