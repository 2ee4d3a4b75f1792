import type { AnyModelKind } from '../../core/model-kind.ts'
import type { ImageAbilities } from '../model-facts.ts'

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
