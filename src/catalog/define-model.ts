import type {
  CatalogModel,
  ImageAbilities,
  ModelKind,
  ModelLimits,
  ModelRoute,
  SpeechAbilities,
  VideoAbilities,
} from './model.ts'

/** A model that a host adds, or a row of the catalog that it overrides (same `id`). */
export interface ModelDefinition {
  readonly id: string
  readonly kind: ModelKind | readonly ModelKind[]
  /** Id of the vendor: `openai`, or the id given to `openaiCompatible`. */
  readonly vendor: string
  /** The vendor's own id; the public id when absent. */
  readonly upstream?: string | undefined
  /** Several vendors for this one model, instead of `vendor` alone; see {@link ModelRoute}. Not empty. */
  readonly routes?: readonly ModelRoute[] | undefined
  readonly protocol?: string | undefined
  readonly limits?: ModelLimits | undefined
  /** What it can do with pictures; see {@link ImageAbilities}. */
  readonly image?: ImageAbilities | undefined
  /** What it can do with video; see {@link VideoAbilities}. */
  readonly video?: VideoAbilities | undefined
  /** What it can do with speech; see {@link SpeechAbilities}. */
  readonly speech?: SpeechAbilities | undefined
  readonly aliases?: readonly string[] | undefined
  /** Public ids of models that may answer instead, in order. */
  readonly fallbacks?: readonly string[] | undefined
  /** Unix seconds. */
  readonly created?: number | undefined
  readonly displayName?: string | undefined
}

/**
 * Fills in a model definition's defaults.
 * @throws RangeError for an empty list of routes, and for a route whose weight is not a positive number or whose priority is
 *   not a whole number from 0 on.
 */
export function defineModel(definition: ModelDefinition): CatalogModel {
  const kinds = typeof definition.kind === 'string' ? [definition.kind] : definition.kind
  return {
    id: definition.id,
    kinds,
    vendor: definition.vendor,
    upstream: definition.upstream ?? definition.id,
    ...(definition.routes === undefined ? {} : { routes: checkedRoutes(definition.routes) }),
    ...(definition.protocol === undefined ? {} : { protocol: definition.protocol }),
    limits: definition.limits ?? {},
    ...(definition.image === undefined ? {} : { image: definition.image }),
    ...(definition.video === undefined ? {} : { video: definition.video }),
    ...(definition.speech === undefined ? {} : { speech: definition.speech }),
    aliases: definition.aliases ?? [],
    fallbacks: definition.fallbacks ?? [],
    created: definition.created ?? 0,
    displayName: definition.displayName ?? definition.id,
  }
}

function checkedRoutes(routes: readonly ModelRoute[]): readonly ModelRoute[] {
  if (routes.length === 0) throw new RangeError('the routes of a model must not be an empty list')
  for (const { weight = 1, priority = 0 } of routes) {
    if (!(weight > 0 && Number.isFinite(weight)))
      throw new RangeError(`the weight of a route must be positive: ${weight}`)
    if (!(Number.isSafeInteger(priority) && priority >= 0))
      throw new RangeError(`the priority of a route must be a whole number from 0 on: ${priority}`)
  }
  return [...routes]
}
