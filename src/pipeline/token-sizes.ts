import { GENERATED_BYTES_PER_TOKEN } from '../endpoints/token-estimate.ts'

/** Fewest bytes of text for one token that are believed: what tokenizers make of program code and of most scripts. */
const FEWEST_BYTES_PER_TOKEN = 2.5

/** Reports about fewer tokens say nothing about a model. */
const TOKENS_TO_BELIEVE = 1_000

/** Beyond so many tokens the older half of what is known counts half. */
const TOKENS_KEPT = 200_000

interface Counted {
  bytes: number
  tokens: number
}

/**
 * How many bytes of generated text each model has for a token, as its vendor's reports have told. What nobody reports is charged
 * by it where the model has fewer bytes than the rule; never more than the rule, so that the operator does not lose by it.
 */
export class TokenSizes {
  readonly #counted = new Map<string, Counted>()

  /** Bytes for one token of the densest of these models; 4 while nothing is known. */
  bytesPerToken(models: readonly { readonly id: string }[]): number {
    let fewest = GENERATED_BYTES_PER_TOKEN
    for (let index = 0; index < models.length; index++) {
      const counted = this.#counted.get(models[index]!.id)
      if (counted === undefined || counted.tokens < TOKENS_TO_BELIEVE) continue
      fewest = Math.min(fewest, Math.max(FEWEST_BYTES_PER_TOKEN, counted.bytes / counted.tokens))
    }
    return fewest
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
