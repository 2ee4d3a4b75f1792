import type { AnyModelKind } from '../../core/model-kind.ts'
import type { ImageAbilities } from '../model-facts.ts'
import { GEMINI_IMAGE_FAMILIES } from './gemini-models.ts'
import { OPENAI_IMAGE_FAMILIES } from './openai-models.ts'

/** Image models that have the same abilities, by the form of their vendor's ids. */
export interface ImageFamily {
  /** Matches the vendor's own ids. */
  readonly ids: RegExp
  /** Ids in the snapshot of the vendors that serve every model of the family, also those outside the snapshot. */
  readonly catalogs: readonly string[]
  readonly kinds: readonly AnyModelKind[]
  /** Shape of the request. Abilities hold only at vendors that offer the model in this shape. */
  readonly protocol: string
  readonly image: ImageAbilities
}

/** Returns the family of a vendor's own id, with or without its maker (`openai/gpt-image-2`), or `undefined` if it has none. */
export function imageFamilyOf(upstream: string): ImageFamily | undefined {
  const id = upstream.slice(upstream.lastIndexOf('/') + 1)
  return [...OPENAI_IMAGE_FAMILIES, ...GEMINI_IMAGE_FAMILIES].find(({ ids }) => ids.test(id))
}
