import { GENERATED_BYTES_PER_TOKEN } from '../endpoints/token-estimate.ts'

/** Fewest bytes of text for one token that are believed: what tokenizers make of program code and of most scripts. */
const FEWEST_BYTES_PER_TOKEN = 2.5

/** Reports about fewer tokens say nothing about a model. */
const TOKENS_TO_BELIEVE = 1_000

/** Beyond so many tokens the older half of what is known counts half. */
const TOKENS_KEPT = 200_000

/** So many reports must have told how much a model reasons unseen. */
const REPORTS_TO_BELIEVE = 20

/** Beyond so many reports the older half of them counts half. */
const REPORTS_KEPT = 1_000

/** Of what a model reasons on average so much more is charged, because single calls lie on both sides of it. */
const REASONING_MARGIN = 1.2

/** Output tokens per second of a model whose speed is not known yet. Most models of today write 50 to 150. */
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

/** What is known of the models that may answer a call. */
export interface ModelHabits {
  /** Bytes of generated text for one token of the densest of them; 4 while nothing is known. */
  readonly bytesPerToken: number
  /** A fifth more than the one that reasons most spends on it on average; undefined while too few reports have told. */
  readonly reasoningTokens: number | undefined
  /** Output tokens per second of whole calls of the fastest of them, or the default while nothing is known. */
  readonly tokensPerSecond: number
}

/**
 * How many bytes of generated text each model has for a token, and how much it reasons unseen, as its vendor's reports have told.
 * Output without a report is charged by it: by the bytes only where the model has fewer than the rule, so that the operator does not
 * lose by it.
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
      if (counted !== undefined && counted.tokens >= TOKENS_TO_BELIEVE)
        bytesPerToken = Math.min(bytesPerToken, Math.max(FEWEST_BYTES_PER_TOKEN, counted.bytes / counted.tokens))
      tokensPerSecond = Math.max(tokensPerSecond, this.#speedOf(id))
      const reasoned = this.#reasoned.get(id)
      if (reasoned !== undefined && reasoned.reports >= REPORTS_TO_BELIEVE)
        reasoningTokens = Math.max(
          reasoningTokens ?? 0,
          Math.ceil((REASONING_MARGIN * reasoned.tokens) / reasoned.reports),
        )
    }
    return { bytesPerToken, reasoningTokens, tokensPerSecond }
  }

  #speedOf(model: string): number {
    const timed = this.#timed.get(model)
    if (timed === undefined || timed.tokens < TOKENS_TO_BELIEVE) return DEFAULT_TOKENS_PER_SECOND
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

  /** A vendor has reported so many tokens of reasoning for a call; none says nothing: it may not have been asked to reason. */
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

  /** A vendor has reported so many tokens for a text of so many bytes. */
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
