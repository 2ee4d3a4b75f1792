import type { AnyModelKind } from '../../core/model-kind.ts'
import type { ImageAbilities } from '../model-facts.ts'

/** Image models with the same abilities, identified by the form of their vendors' ids. */
export interface ImageFamily {
  /** Matches the vendor's own ids. */
  readonly ids: RegExp
  /** Snapshot ids of the vendors that serve every model of the family, including models outside the snapshot. */
  readonly catalogs: readonly string[]
  readonly kinds: readonly AnyModelKind[]
  /** Shape of the request. The abilities apply only at vendors that offer the model in this shape. */
  readonly protocol: string
  readonly image: ImageAbilities
}
