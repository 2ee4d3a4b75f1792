/** A function that a scripted reply calls. */
export interface ScriptedToolCall {
  readonly name: string
  /** Arguments of the call. Default: none. */
  readonly arguments?: Readonly<Record<string, unknown>>
}

/** Tokens that a scripted reply reports. Omitted counts are computed as for any other answer. */
export interface ScriptedUsage {
  /** Input tokens, including tokens read from or written to a cache. */
  readonly inputTokens?: number
  readonly cachedInputTokens?: number
  readonly cacheWriteTokens?: number
  /** Output tokens, including reasoning. */
  readonly outputTokens?: number
  readonly reasoningTokens?: number
}

/** Output of the model, without a vendor's format: each stand-in writes it as its vendor would. */
export interface ScriptedTurn {
  /** Text of the answer, streamed word by word. */
  readonly text?: string
  /** Text in the chunks of a stream, in place of `text`. */
  readonly chunks?: readonly string[]
  /** Functions that the model calls, after the text if there is one. */
  readonly toolCalls?: readonly ScriptedToolCall[]
  /** Reasoning of the model before its answer. */
  readonly reasoning?: string
  /**
   * Why the answer ends. Default `tool_calls` with calls, else `stop`. With `content_filter`, the vendor's filter blocks the
   * answer, in this vendor's form.
   */
  readonly finishReason?: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  readonly usage?: ScriptedUsage
  /** Scores of categories in a moderation answer, 0 to 1. Scores from 0.5 on are flagged. Others are as usual. */
  readonly scores?: Readonly<Record<string, number>>
}

/** Whether a script sets the model's answer, rather than only its report. */
export function hasContent({ text, chunks, toolCalls, reasoning, finishReason }: ScriptedTurn): boolean {
  return [text, chunks, toolCalls, reasoning, finishReason].some((member) => member !== undefined)
}
