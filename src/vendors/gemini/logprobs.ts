import { isJsonObject } from '../../core/json.ts'

/** One token with its probability, as OpenAI's API has it. */
interface TokenLogprob {
  token: string
  logprob: number
  /** The token's UTF-8 bytes. */
  bytes: number[]
}

/** The `logprobs` of a choice. */
export interface ChoiceLogprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[]
  refusal: null
}

/** Reads a candidate's `logprobsResult` (Gemini API, "LogprobsResult"); null when it has none. */
export function logprobsFrom(candidate: unknown): ChoiceLogprobs | null {
  const result = isJsonObject(candidate) ? candidate['logprobsResult'] : undefined
  const chosen = isJsonObject(result) ? result['chosenCandidates'] : undefined
  if (!isJsonObject(result) || !Array.isArray(chosen)) return null
  const steps = Array.isArray(result['topCandidates']) ? result['topCandidates'] : []
  const content = chosen.flatMap((token, index) =>
    tokenLogprobs(token).map((one) => ({ ...one, top_logprobs: topOf(steps[index]) })),
  )
  return { content, refusal: null }
}

function topOf(step: unknown): TokenLogprob[] {
  const candidates = isJsonObject(step) ? step['candidates'] : undefined
  return Array.isArray(candidates) ? candidates.flatMap(tokenLogprobs) : []
}

function tokenLogprobs(value: unknown): TokenLogprob[] {
  if (!isJsonObject(value)) return []
  const { token, logProbability } = value
  if (typeof token !== 'string' || typeof logProbability !== 'number') return []
  return [{ token, logprob: logProbability, bytes: [...new TextEncoder().encode(token)] }]
}
