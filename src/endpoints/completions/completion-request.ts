import * as z from 'zod'
import { onDemand } from '../../core/on-demand.ts'
import { listOf } from '../schema.ts'
import { LARGEST_TOKEN_BOUND } from '../token-estimate.ts'

/** Request for a text completion (OpenAI API, "Create completion"). */
export interface CompletionRequest {
  model: string
  /** A text, several texts, or token ids of one or several texts. Each text is completed by itself. */
  prompt: string | string[] | number[] | number[][]
  /** Text after the gap that the model fills. */
  suffix?: string | null
  /** Maximum number of tokens of one completion. */
  max_tokens?: number | null
  /** Number of completions of each prompt. Default 1. */
  n?: number | null
  /** Number of completions that the vendor makes of each prompt, of which it returns the best `n`. Default `n`. */
  best_of?: number | null
  stream?: boolean | null
  stream_options?: { include_usage?: boolean | null; [field: string]: unknown } | null
  temperature?: number | null
  [field: string]: unknown
}

/** Maximum number of prompts of one request. */
export const MAX_PROMPTS = 2_048

const text = onDemand(() => z.string())
const tokens = onDemand(() => listOf(z.int().min(0)).min(1))
const count = onDemand(() => z.int().min(1).max(128).nullish())

/** Rules of the request; unknown fields pass. */
export const completionSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    prompt: z.union([text(), listOf(text(), MAX_PROMPTS).min(1), tokens(), listOf(tokens(), MAX_PROMPTS).min(1)]),
    suffix: z.string().nullish(),
    max_tokens: z.int().min(0).max(LARGEST_TOKEN_BOUND).nullish(),
    n: count(),
    best_of: count(),
    echo: z.boolean().nullish(),
    logprobs: z.int().min(0).nullish(),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
  }),
)

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
