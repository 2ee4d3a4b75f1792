import type { CatalogModel, ImageAbilities, ModelKind, ModelLimits, VideoAbilities } from './model.ts'

/** A model that a host adds, or a row of the catalog that it overrides (same `id`). */
export interface ModelDefinition {
  readonly id: string
  readonly kind: ModelKind | readonly ModelKind[]
  /** Id of the vendor: `openai`, or the id given to `openaiCompatible`. */
  readonly vendor: string
  /** The vendor's own id; the public id when absent. */
  readonly upstream?: string | undefined
  readonly protocol?: string | undefined
  readonly limits?: ModelLimits | undefined
  /** What it can do with pictures; see {@link ImageAbilities}. */
  readonly image?: ImageAbilities | undefined
  /** What it can do with video; see {@link VideoAbilities}. */
  readonly video?: VideoAbilities | undefined
  readonly aliases?: readonly string[] | undefined
  /** Public ids of models that may answer instead, in order. */
  readonly fallbacks?: readonly string[] | undefined
  /** Unix seconds. */
  readonly created?: number | undefined
  readonly displayName?: string | undefined
}

/** Fills in a model definition's defaults. */
export function defineModel(definition: ModelDefinition): CatalogModel {
  const kinds = typeof definition.kind === 'string' ? [definition.kind] : definition.kind
  return {
    id: definition.id,
    kinds,
    vendor: definition.vendor,
    upstream: definition.upstream ?? definition.id,
    ...(definition.protocol === undefined ? {} : { protocol: definition.protocol }),
    limits: definition.limits ?? {},
    ...(definition.image === undefined ? {} : { image: definition.image }),
    ...(definition.video === undefined ? {} : { video: definition.video }),
    aliases: definition.aliases ?? [],
    fallbacks: definition.fallbacks ?? [],
    created: definition.created ?? 0,
    displayName: definition.displayName ?? definition.id,
  }
}
