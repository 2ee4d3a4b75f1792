/** Request for a text completion (OpenAI API, "Create completion"). Members of the model's vendor pass. */
export interface CompletionRequest {
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
  readonly stream?: boolean | null
  readonly stream_options?: { readonly include_usage?: boolean | null } | null
  readonly [field: string]: unknown
}

/** Returns the number of prompts. */
export function promptCount({ prompt }: Pick<CompletionRequest, 'prompt'>): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1
}

/** Returns the number of choices in the answer. */
export function choiceCount(request: Pick<CompletionRequest, 'prompt' | 'n'>): number {
  return promptCount(request) * (request.n ?? 1)
}

/** Returns the number of completions that the vendor makes and bills. */
export function madeCount(request: Pick<CompletionRequest, 'prompt' | 'n' | 'best_of'>): number {
  return promptCount(request) * Math.max(request.n ?? 1, request.best_of ?? 1)
}

/** Returns the number of token ids in the prompts; 0 for texts. */
export function promptTokens({ prompt }: Pick<CompletionRequest, 'prompt'>): number {
  return Array.isArray(prompt) ? prompt.flat().filter((entry) => typeof entry === 'number').length : 0
}
