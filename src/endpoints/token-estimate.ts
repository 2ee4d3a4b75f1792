/**
 * The rule by which text is turned into tokens before a vendor has counted them: one token per three bytes of UTF-8,
 * rounded up, and more for text that {@link denseTokensIn} finds dense. English runs at about four bytes a token, so the estimate
 * is seldom too low; settlement uses the vendor's own count.
 */
export const ESTIMATED_BYTES_PER_TOKEN = 3

/** Output tokens of one answer that a request without a bound is held for, where the model can say as much. */
export const DEFAULT_MAX_OUTPUT_TOKENS = 16_384

/** Largest bound of output that a request may name, far above what any model makes: its price can still be counted. */
export const LARGEST_TOKEN_BOUND = 2 ** 31 - 1

/** A host's own rule: tokens in a request of so many bytes for a model, from above. */
export type TokenEstimator = (
  byteLength: number,
  facts: {
    readonly endpoint: string
    readonly model: string
    /** Tokens that the text may have beyond one per three bytes, such as random characters and rare scripts; 0 for ordinary text. */
    readonly denseTokens?: number
  },
) => number

/** Upper estimate of the tokens in so many bytes of request; at least 1. */
export function estimateTokens(
  byteLength: number,
  { denseTokens = 0 }: { readonly denseTokens?: number } = {},
): number {
  return Math.max(1, Math.ceil(byteLength / ESTIMATED_BYTES_PER_TOKEN)) + denseTokens
}

/** Kinds of bytes in the table below. */
const KINDS = { lower: 0, upper: 1, other: 2, space: 3, json: 4, sign: 5 } as const

const KIND_OF = Uint8Array.from({ length: 256 }, (_none, byte) => {
  const character = String.fromCharCode(byte)
  if (/[a-z]/.test(character)) return KINDS.lower
  if (/[A-Z]/.test(character)) return KINDS.upper
  if (character === ' ') return KINDS.space
  if ('"{}[]:,'.includes(character)) return KINDS.json
  return /[!-/;-@\\^-`|~]/.test(character) ? KINDS.sign : KINDS.other
})

const PARTS_PER_TOKEN = 20

/** Tokens of ids and numbers in a request, which the model does not read. The JSON around a prompt is held for more than that. */
const FRAME_TOKENS = 16

/**
 * Parts of a token for a byte, by the kind before it (row) and its own kind (column), measured with the tokenizers of OpenAI, Anthropic
 * and Llama. A word has a token, a capital within it 1.8, and a letter 0.1. Digits and bytes outside of ASCII have a token each, because
 * no tokenizer makes more of them.
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
 * Tokens that a text may have beyond one per three bytes. 0 for prose and program code. Random base64, digits, emoji and rare scripts
 * have up to one token per byte.
 */
export function denseTokensIn(text: Uint8Array): number {
  let parts = 0
  let before: number = KINDS.space
  for (let index = 0; index < text.length; index++) {
    const kind = KIND_OF[text[index]!]!
    parts += PARTS[(before << 3) | kind]!
    before = kind
  }
  const tokens = Math.min(Math.ceil(parts / PARTS_PER_TOKEN), text.length)
  return Math.max(0, tokens - Math.ceil(text.length / ESTIMATED_BYTES_PER_TOKEN) - FRAME_TOKENS)
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
