/**
 * Bytes of UTF-8 per token, to estimate a prompt before a vendor has counted it. The result is rounded up, and {@link
 * denseTokensIn} adds tokens for dense text. English has about four bytes per token, so the estimate is seldom too low; settlement
 * uses the vendor's own count.
 */
export const ESTIMATED_BYTES_PER_TOKEN = 3

/** Output tokens to hold for a request without a limit, if the model can generate that many. */
export const DEFAULT_MAX_OUTPUT_TOKENS = 16_384

/** Largest output limit that a request may set, far above the output of any model: its price can still be computed. */
export const LARGEST_TOKEN_BOUND = 2 ** 31 - 1

/** A host's own rule: upper bound of the tokens in a request of `byteLength` bytes for a model. */
export type TokenEstimator = (
  byteLength: number,
  facts: {
    readonly endpoint: string
    readonly model: string
    /** Tokens that the text may have beyond one per three bytes, such as random characters and rare scripts; 0 for ordinary text. */
    readonly denseTokens?: number
  },
) => number

/** Returns an upper estimate of the tokens in a request of `byteLength` bytes; at least 1. */
export function estimateTokens(
  byteLength: number,
  { denseTokens = 0 }: { readonly denseTokens?: number } = {},
): number {
  return Math.max(1, Math.ceil(byteLength / ESTIMATED_BYTES_PER_TOKEN)) + denseTokens
}

/** Returns where the parts of a list begin, each within the limits. An item above the limit of tokens is a part of its own. */
export function partStarts(
  tokensOfItems: readonly number[],
  { maxItems, maxTokens }: { readonly maxItems: number; readonly maxTokens: number },
): readonly number[] {
  const starts = [0]
  let [start, total] = [0, 0]
  for (const [index, tokens] of tokensOfItems.entries()) {
    if (index > start && (index - start === maxItems || total + tokens > maxTokens)) {
      starts.push(index)
      start = index
      total = 0
    }
    total += tokens
  }
  return starts
}

/** Kinds of bytes in the table below. */
const KINDS = { lower: 0, upper: 1, other: 2, space: 3, json: 4, sign: 5 } as const

const BYTE_KINDS = Uint8Array.from({ length: 256 }, (_none, byte) => {
  const character = String.fromCharCode(byte)
  if (/[a-z]/.test(character)) return KINDS.lower
  if (/[A-Z]/.test(character)) return KINDS.upper
  if (character === ' ') return KINDS.space
  if ('"{}[]:,'.includes(character)) return KINDS.json
  return /[!-/;-@\\^-`|~]/.test(character) ? KINDS.sign : KINDS.other
})

const PARTS_PER_TOKEN = 20

/** Tokens of ids and numbers, which the model does not read. The JSON around a prompt counts for more than that. */
const FRAME_TOKENS = 16

/**
 * Fractions of a token per byte, by the kind of the previous byte (row) and its own kind (column), measured with the tokenizers of
 * OpenAI, Anthropic and Llama. A word counts one token, an inner capital 1.8, and a letter 0.1. Digits and bytes outside of ASCII
 * count one token each, the maximum of all tokenizers.
 */
const PARTS = Uint8Array.of(
  ...[2, 36, 20, 0, 6, 18, 0, 0],
  ...[6, 15, 20, 0, 6, 18, 0, 0],
  ...[30, 30, 20, 0, 6, 18, 0, 0],
  ...[20, 20, 20, 0, 6, 18, 0, 0],
  ...[20, 20, 20, 0, 6, 18, 0, 0],
  ...[20, 20, 20, 0, 6, 18, 0, 0],
)

/**
 * Returns the tokens that a text may have beyond one per three bytes. 0 for prose and program code. Random base64, digits, emoji
 * and rare scripts have up to one token per byte.
 */
export function denseTokensIn(text: Uint8Array): number {
  let parts = 0
  let before: number = KINDS.space
  for (let index = 0; index < text.length; index++) {
    const kind = BYTE_KINDS[text[index]!]!
    parts += PARTS[(before << 3) | kind]!
    before = kind
  }
  const tokens = Math.min(Math.ceil(parts / PARTS_PER_TOKEN), text.length)
  return Math.max(0, tokens - Math.ceil(text.length / ESTIMATED_BYTES_PER_TOKEN) - FRAME_TOKENS)
}

/**
 * Bytes of generated text per token, in the middle of vendors' tokenizers for English prose (3.3 to 4.7), so that the estimate
 * stays within 25 % of their counts. Unlike the estimate of a prompt, it is not an upper bound.
 */
export const GENERATED_BYTES_PER_TOKEN = 4

/** Estimates the tokens of a generated text without reported usage. */
export function estimateGeneratedTokens(byteLength: number, bytesPerToken = GENERATED_BYTES_PER_TOKEN): number {
  return Math.ceil(byteLength / bytesPerToken)
}
