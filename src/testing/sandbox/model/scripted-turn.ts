/** A function that a scripted reply calls. */
export interface ScriptedToolCall {
  readonly name: string
  /** Default: none. */
  readonly arguments?: Readonly<Record<string, unknown>>
}

/** Tokens that a scripted reply reports. What is left out is counted as for any other answer. */
export interface ScriptedUsage {
  /** With those that were read from or written to a cache. */
  readonly inputTokens?: number
  readonly cachedInputTokens?: number
  readonly cacheWriteTokens?: number
  /** With those of reasoning. */
  readonly outputTokens?: number
  readonly reasoningTokens?: number
}

/** What the model says, without a vendor's format: each stand-in writes it as its vendor would. */
export interface ScriptedTurn {
  /** The text of the answer, streamed word by word. */
  readonly text?: string
  /** The text in the pieces in which a stream brings it; in place of `text`. */
  readonly chunks?: readonly string[]
  /** Functions that the model calls, after the text if there is one. */
  readonly toolCalls?: readonly ScriptedToolCall[]
  /** What the model thinks before it answers. */
  readonly reasoning?: string
  /**
   * Why the answer ends. Default: `tool_calls` with calls, else `stop`. `content_filter`: the vendor's filter blocks the answer, in this
   * vendor's form.
   */
  readonly finishReason?: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  readonly usage?: ScriptedUsage
  /** Scores of categories in an answer of moderation, 0 to 1; what is 0.5 or more is flagged. The others are as for any other input. */
  readonly scores?: Readonly<Record<string, number>>
}

/** Does a script say what the model answers, or only what is reported? */
export function hasContent({ text, chunks, toolCalls, reasoning, finishReason }: ScriptedTurn): boolean {
  return [text, chunks, toolCalls, reasoning, finishReason].some((member) => member !== undefined)
}
