import type { ImageFamily } from '../model-facts.ts'
import { GEMINI_IMAGE_FAMILIES } from './gemini-models.ts'
import { OPENAI_IMAGE_FAMILIES } from './openai-models.ts'

/** Returns the family of a vendor's own id, with or without its maker (`openai/gpt-image-2`), or `undefined` if it has none. */
export function imageFamilyOf(upstream: string): ImageFamily | undefined {
  const id = upstream.slice(upstream.lastIndexOf('/') + 1)
  return [...OPENAI_IMAGE_FAMILIES, ...GEMINI_IMAGE_FAMILIES].find(({ ids }) => ids.test(id))
}
