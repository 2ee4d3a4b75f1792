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
  /** Bytes of text by tokens. */
  readonly #text = new ModelRatios(TOKENS_KEPT)
  /** Reasoning tokens by reports. */
  readonly #reasoning = new ModelRatios(REPORTS_KEPT)
  /** Milliseconds by tokens. */
  readonly #time = new ModelRatios(TOKENS_KEPT)

  habitsOf(models: readonly { readonly id: string }[]): ModelHabits {
    let bytesPerToken = GENERATED_BYTES_PER_TOKEN
    let reasoningTokens: number | undefined
    let tokensPerSecond = 0
    for (let index = 0; index < models.length; index++) {
      const { id } = models[index]!
      const text = this.#text.of(id)
      if (text !== undefined && text.count >= MIN_TRUSTED_TOKENS)
        bytesPerToken = Math.min(bytesPerToken, Math.max(MIN_BYTES_PER_TOKEN, text.amount / text.count))
      tokensPerSecond = Math.max(tokensPerSecond, this.#speedOf(id))
      const reasoning = this.#reasoning.of(id)
      if (reasoning !== undefined && reasoning.count >= MIN_TRUSTED_REPORTS)
        reasoningTokens = Math.max(
          reasoningTokens ?? 0,
          Math.ceil((REASONING_MARGIN * reasoning.amount) / reasoning.count),
        )
    }
    return { bytesPerToken, reasoningTokens, tokensPerSecond }
  }

  #speedOf(model: string): number {
    const time = this.#time.of(model)
    if (time === undefined || time.count < MIN_TRUSTED_TOKENS) return DEFAULT_TOKENS_PER_SECOND
    return (time.count * 1_000) / Math.max(1, time.amount)
  }

  /** Notes the output tokens of an answered call, and the time from the request to the end of its answer. */
  noteSpeed(model: string, tokens: number, durationMs: number): void {
    this.#time.add(model, durationMs, tokens)
  }

  /** Notes the reasoning tokens that a vendor reported for a call. Ignores 0, because the call may not have requested reasoning. */
  noteReasoning(model: string, tokens: number): void {
    if (tokens > 0) this.#reasoning.add(model, tokens, 1)
  }

  /** Notes the tokens that a vendor reported for a text of this many bytes. */
  note(model: string, bytes: number, tokens: number): void {
    if (bytes > 0 && tokens > 0) this.#text.add(model, bytes, tokens)
  }
}

/** Amounts by counts of each model. Both are halved if the count exceeds a maximum, so that newer reports weigh more. */
class ModelRatios {
  readonly #maxCount: number
  readonly #ratios = new Map<string, { amount: number; count: number }>()

  constructor(maxCount: number) {
    this.#maxCount = maxCount
  }

  of(model: string): { readonly amount: number; readonly count: number } | undefined {
    return this.#ratios.get(model)
  }

  add(model: string, amount: number, count: number): void {
    const ratio = this.#ratios.get(model)
    if (ratio === undefined) {
      this.#ratios.set(model, { amount, count })
      return
    }
    ratio.amount += amount
    ratio.count += count
    if (ratio.count <= this.#maxCount) return
    ratio.amount /= 2
    ratio.count /= 2
  }
}
