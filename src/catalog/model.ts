import type { ModelKind } from '../core/model-kind.ts'
import type {
  ImageAbilities,
  ModelFacts,
  ModelLimits,
  SpeechAbilities,
  VideoAbilities,
} from '../endpoints/model-facts.ts'

export type { ImageAbilities, ModelKind, ModelLimits, SpeechAbilities, VideoAbilities }

/** One way to reach a public model: a vendor, and what the vendor calls it. */
export interface ModelRoute {
  /** Id of the vendor. */
  readonly vendor: string
  /** The vendor's own id of the model; that of the row when absent. */
  readonly upstream?: string | undefined
  /** Share of the calls among routes of equal priority; 1 when absent. Any positive number. */
  readonly weight?: number | undefined
  /** Routes of the smallest number are used while one of them is healthy; 0 when absent. A whole number. */
  readonly priority?: number | undefined
  /**
   * Only for calls whose billing fields have these values, such as `{ resolution: '720p' }`. `kind` stands for the kind of the
   * call: `{ kind: 'image_edit' }`. Absent: for every call.
   */
  readonly when?: Readonly<Record<string, string>> | undefined
}

/** One row of the catalog. Its id is the public one that callers use, verbatim. */
export interface CatalogModel extends ModelFacts {
  /** Every kind the model serves; most have one. */
  readonly kinds: readonly ModelKind[]
  /** Id of the vendor that serves it. */
  readonly vendor: string
  /** The vendor's own id of the model. */
  readonly upstream: string
  /** Vendors that serve it, in place of the row's own `vendor` and `upstream`. Absent: those alone. */
  readonly routes?: readonly ModelRoute[]
  /** Other ids callers may use for it. */
  readonly aliases: readonly string[]
  /** Public ids of models that may answer instead when this one cannot, in order. They bill at their own price. */
  readonly fallbacks: readonly string[]
  /** Unix seconds; informational, as OpenAI's model list has it. */
  readonly created: number
  /** Name for people. */
  readonly displayName: string
}
