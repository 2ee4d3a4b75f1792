import type { ModelFacts } from '../../model-facts.ts'

// For models that say nothing: the dearest picture that the vendor documents.
const MOST_PICTURE_TOKENS = 2520

/** Output tokens of one picture of this size, from above (Gemini API, "Image generation", table of tokens). */
export function pictureTokens(model: ModelFacts, size: string): number {
  const table = model.image?.outputTokens ?? {}
  return (Object.hasOwn(table, size) ? table[size] : table['default']) ?? MOST_PICTURE_TOKENS
}
