import type { ModelKind } from '../core/model-kind.ts'
import type { ImageAbilities, ModelFacts, ModelLimits, VideoAbilities } from '../endpoints/model-facts.ts'

export type { ImageAbilities, ModelKind, ModelLimits, VideoAbilities }

/** One row of the catalog. Its id is the public one that callers use, verbatim. */
export interface CatalogModel extends ModelFacts {
  /** Every kind the model serves; most have one. */
  readonly kinds: readonly ModelKind[]
  /** Id of the vendor that serves it. */
  readonly vendor: string
  /** The vendor's own id of the model. */
  readonly upstream: string
  /** Other ids callers may use for it. */
  readonly aliases: readonly string[]
  /** Public ids of models that may answer instead when this one cannot, in order. They bill at their own price. */
  readonly fallbacks: readonly string[]
  /** Unix seconds; informational, as OpenAI's model list has it. */
  readonly created: number
  /** Name for people. */
  readonly displayName: string
}
