/**
 * The rule by which text is turned into tokens before a vendor has counted them: one token per three bytes of UTF-8,
 * rounded up. English runs at about four bytes a token and CJK text at about three, so the estimate is seldom too low;
 * settlement uses the vendor's own count.
 */
export const ESTIMATED_BYTES_PER_TOKEN = 3

/** Output tokens of one answer that a request without a bound is held for, where the model can say as much. */
export const DEFAULT_MAX_OUTPUT_TOKENS = 16_384

/** Largest bound of output that a request may name, far above what any model makes: its price can still be counted. */
export const LARGEST_TOKEN_BOUND = 2 ** 31 - 1

/** A host's own rule: tokens in a request of so many bytes for a model, from above. */
export type TokenEstimator = (
  byteLength: number,
  facts: { readonly endpoint: string; readonly model: string },
) => number

/** Upper estimate of the tokens in so many bytes of request; at least 1. */
export function estimateTokens(byteLength: number): number {
  return Math.max(1, Math.ceil(byteLength / ESTIMATED_BYTES_PER_TOKEN))
}

/**
 * Bytes of generated text for one token, in the middle of what vendors' tokenizers make of English prose (3.3 to 4.7), so that
 * the estimate stays within 25 % of their counts. Unlike the estimate of a prompt it is no upper bound.
 */
export const GENERATED_BYTES_PER_TOKEN = 4

/** Tokens of a generated text whose usage nobody reported. */
export function estimateGeneratedTokens(byteLength: number, bytesPerToken = GENERATED_BYTES_PER_TOKEN): number {
  return Math.ceil(byteLength / bytesPerToken)
}
