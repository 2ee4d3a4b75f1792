import type { ModelKind } from '../core/model-kind.ts'

export type { ModelKind }

/** Bounds of a model that the gateway itself needs. Absent means unknown. */
export interface ModelLimits {
  /** Most input tokens. */
  readonly contextTokens?: number
  /** Most output tokens of one answer; used to reserve money when a request sets no bound. */
  readonly maxOutputTokens?: number
  /** Size of an embedding vector when the request does not ask for one. */
  readonly dimensions?: number
  /** Vector sizes the vendor can make itself; a list of exact sizes, or a range. */
  readonly nativeDimensions?: readonly number[] | { readonly min: number; readonly max: number }
  /** May a vector be cut to sizes the vendor does not make? False for models whose sizes are closed by the specification. */
  readonly truncatesDimensions?: boolean
}

/** One row of the catalog. */
export interface CatalogModel {
  /** The public id callers use, verbatim. */
  readonly id: string
  /** Every kind the model serves; most have one. */
  readonly kinds: readonly ModelKind[]
  /** Id of the vendor that serves it. */
  readonly vendor: string
  /** The vendor's own id of the model. */
  readonly upstream: string
  /** Wire protocol where a vendor has several for one kind: `multimodal`, `interactions`, `wan-2-6`, … */
  readonly protocol?: string
  readonly limits: ModelLimits
  /** Other ids callers may use for it. */
  readonly aliases: readonly string[]
  /** Public ids of models that may answer instead when this one cannot, in order. They bill at their own price. */
  readonly fallbacks: readonly string[]
  /** Unix seconds; informational, as OpenAI's model list has it. */
  readonly created: number
  /** Name for people. */
  readonly displayName: string
}
