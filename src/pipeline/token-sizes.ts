import { GENERATED_BYTES_PER_TOKEN } from '../endpoints/token-estimate.ts'

/** Minimum plausible bytes of text per token: the ratio of tokenizers for program code and most scripts. */
const MIN_BYTES_PER_TOKEN = 2.5

/** Number of tokens below which reports are not used. */
const MIN_TRUSTED_TOKENS = 1_000

/** Number of tokens above which earlier counts are halved, so that newer reports weigh more. */
const TOKENS_KEPT = 200_000

/** Minimum number of reports about hidden reasoning before they are used. */
const MIN_TRUSTED_REPORTS = 20

/** Number of reports above which earlier counts are halved. */
const REPORTS_KEPT = 1_000

/** Factor of a model's average reasoning that is charged, because single calls vary in both directions. */
const REASONING_MARGIN = 1.2

/** Output tokens per second of a model whose speed is not known yet. Typical: 50 to 150. */
export const DEFAULT_TOKENS_PER_SECOND = 100

interface Timed {
  tokens: number
  durationMs: number
}

interface Counted {
  bytes: number
  tokens: number
}

interface Reasoned {
  reports: number
  tokens: number
}

/** Measured properties of the models that may answer a call. */
export interface ModelHabits {
  /** Bytes of generated text per token of the densest model; 4 while nothing is known. */
  readonly bytesPerToken: number
  /** Average reasoning tokens of the model that reasons most, plus a fifth; undefined while there are too few reports. */
  readonly reasoningTokens: number | undefined
  /** Output tokens per second of whole calls of the fastest model, or the default while nothing is known. */
  readonly tokensPerSecond: number
}

/**
 * Bytes of generated text per token of each model, and the amount of its hidden reasoning, from its vendor's reports. Output
 * without a report is charged by these values. The bytes apply only if the model has fewer than the default, so that the operator
 * does not lose money.
 */
export class TokenSizes {
  readonly #counted = new Map<string, Counted>()
  readonly #reasoned = new Map<string, Reasoned>()
  readonly #timed = new Map<string, Timed>()

  habitsOf(models: readonly { readonly id: string }[]): ModelHabits {
    let bytesPerToken = GENERATED_BYTES_PER_TOKEN
    let reasoningTokens: number | undefined
    let tokensPerSecond = 0
    for (let index = 0; index < models.length; index++) {
      const { id } = models[index]!
      const counted = this.#counted.get(id)
      if (counted !== undefined && counted.tokens >= MIN_TRUSTED_TOKENS)
        bytesPerToken = Math.min(bytesPerToken, Math.max(MIN_BYTES_PER_TOKEN, counted.bytes / counted.tokens))
      tokensPerSecond = Math.max(tokensPerSecond, this.#speedOf(id))
      const reasoned = this.#reasoned.get(id)
      if (reasoned !== undefined && reasoned.reports >= MIN_TRUSTED_REPORTS)
        reasoningTokens = Math.max(
          reasoningTokens ?? 0,
          Math.ceil((REASONING_MARGIN * reasoned.tokens) / reasoned.reports),
        )
    }
    return { bytesPerToken, reasoningTokens, tokensPerSecond }
  }

  #speedOf(model: string): number {
    const timed = this.#timed.get(model)
    if (timed === undefined || timed.tokens < MIN_TRUSTED_TOKENS) return DEFAULT_TOKENS_PER_SECOND
    return (timed.tokens * 1_000) / Math.max(1, timed.durationMs)
  }

  /** Notes the output tokens of an answered call, and the time from the request to the end of its answer. */
  noteSpeed(model: string, tokens: number, durationMs: number): void {
    const timed = this.#timed.get(model)
    if (timed === undefined) {
      this.#timed.set(model, { tokens, durationMs })
      return
    }
    timed.tokens += tokens
    timed.durationMs += durationMs
    if (timed.tokens <= TOKENS_KEPT) return
    timed.tokens /= 2
    timed.durationMs /= 2
  }

  /** Notes the reasoning tokens that a vendor reported for a call. Ignores 0, because the call may not have requested reasoning. */
  noteReasoning(model: string, tokens: number): void {
    if (tokens <= 0) return
    const reasoned = this.#reasoned.get(model)
    if (reasoned === undefined) {
      this.#reasoned.set(model, { reports: 1, tokens })
      return
    }
    reasoned.reports += 1
    reasoned.tokens += tokens
    if (reasoned.reports <= REPORTS_KEPT) return
    reasoned.reports /= 2
    reasoned.tokens /= 2
  }

  /** Notes the tokens that a vendor reported for a text of this many bytes. */
  note(model: string, bytes: number, tokens: number): void {
    if (bytes <= 0 || tokens <= 0) return
    const counted = this.#counted.get(model)
    if (counted === undefined) {
      this.#counted.set(model, { bytes, tokens })
      return
    }
    counted.bytes += bytes
    counted.tokens += tokens
    if (counted.tokens <= TOKENS_KEPT) return
    counted.bytes /= 2
    counted.tokens /= 2
  }
}
