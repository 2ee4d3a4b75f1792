/** A function that the model may call. */
export interface PromptTool {
  readonly name: string
  /** JSON Schema of its arguments. */
  readonly schema: Readonly<Record<string, unknown>>
}

/** A chat request of any vendor, as far as the stand-in's model looks at it. */
export interface ChatPrompt {
  /** Every text of the prompt, for counting tokens: instructions, all turns, results of tools. */
  readonly texts: readonly string[]
  /** The text of the last turn in which the user wrote something. */
  readonly lastUserText: string
  /** Pictures in that turn. */
  readonly lastUserImages: number
  /** What tools answered since the model spoke last; empty when the user spoke last. */
  readonly toolResults: readonly string[]
  readonly tools: readonly PromptTool[]
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string }
  readonly parallelToolCalls: boolean
  /** The answer must be JSON, of this schema when there is one. */
  readonly json: { readonly schema: Readonly<Record<string, unknown>> | undefined } | undefined
  /** The model thinks before it answers. */
  readonly reasoning: boolean
  /** Upper bound of generated words, reasoning included. */
  readonly maxTokens: number | undefined
  readonly stop: readonly string[]
  /** Beginning of the answer that the caller gave; the answer goes on from there. */
  readonly prefill: string
}
