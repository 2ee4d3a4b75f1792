import type { MemberNames } from '../core/known-members.ts'
import type { AnyModelKind, ModelKind } from '../core/model-kind.ts'
import type {
  ImageAbilities,
  ModelFacts,
  ModelLimits,
  SpeechAbilities,
  TranscriptionAbilities,
  VideoAbilities,
} from './model-facts.ts'
import type { Ability, Modality } from './vendor-models/vendor-model.ts'

export type { ImageAbilities, ModelKind, ModelLimits, SpeechAbilities, TranscriptionAbilities, VideoAbilities }

/** Are prompts marked for a vendor's cache? */
export type PromptCaching = 'auto' | 'off'

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
   * Only for calls whose billing fields have these values, such as `{ resolution: '720p' }`. `kind` is the kind of the
   * call: `{ kind: 'image_edit' }`. Absent: for every call.
   */
  readonly when?: Readonly<Record<string, string>> | undefined
}

export const ROUTE_MEMBERS = {
  vendor: true,
  upstream: true,
  weight: true,
  priority: true,
  when: true,
} satisfies MemberNames<ModelRoute>

/** One row of the catalog. Callers use its public id verbatim. */
export interface CatalogModel extends ModelFacts {
  /** Every kind the model serves; most have one. */
  readonly kinds: readonly AnyModelKind[]
  /** Id of the vendor that serves it: `openai`, or the id given to `openaiCompatible`. */
  readonly vendor: string
  /** The vendor's own id of the model. Default: the public id. */
  readonly upstream: string
  /** Vendors that serve it, instead of the row's own `vendor` and `upstream`. Absent: only those. Not empty. */
  readonly routes?: readonly ModelRoute[]
  /** Other ids callers may use for it. */
  readonly aliases: readonly string[]
  /** Public ids of models that may answer instead when this one cannot, in order. They bill at their own price. */
  readonly fallbacks: readonly string[]
  /** Unix seconds; informational, as OpenAI's model list has it. */
  readonly created: number
  /** Day on which its vendor ends it, such as `2026-12-31`. If omitted, the catalog's day of the vendor's model counts. */
  readonly retires?: string
  /** Name for people. Default: the public id. */
  readonly displayName: string
  /** Modalities that it reads, for lists. If omitted, those that the catalog lists for the vendor's model, otherwise what follows from its kinds. */
  readonly inputModalities?: readonly Modality[]
  /** Modalities that it writes, for lists. If omitted, as with `inputModalities`. */
  readonly outputModalities?: readonly Modality[]
  /**
   * Abilities of a chat model, for `supported_parameters` of lists. If omitted, what the catalog knows of the vendor's model,
   * otherwise all but `reasoning`.
   */
  readonly abilities?: readonly Ability[]
  /** Names of groups that it belongs to, for key scopes such as `group:cheap`. Absent: none. */
  readonly groups?: readonly string[]
  /**
   * `auto`: prompts without marks of their callers are marked for the vendor's prompt cache, at vendors that cache by marks. `off`: they
   * are not. Absent: as the gateway's option says.
   */
  readonly promptCaching?: PromptCaching
  /**
   * Reasoning efforts that the model of `vendor` and `upstream` accepts, as the public catalog lists them, from least to most. Empty if
   * it does not reason; `undefined` if the catalog does not say.
   */
  readonly efforts?: readonly string[] | undefined
  /** True for one of any number of ids: a match of a pattern, or an id that no catalog knows. Not listed. */
  readonly isOpen?: boolean
  /** Set for an id that no catalog knows only: ids at its vendor of known models of the same family, newest first. */
  readonly family?: readonly string[]
}

/** The same members, each of which may be absent or undefined. */
type Optional<Row> = { readonly [Name in keyof Row]?: Row[Name] | undefined }

/** A model that a host adds, or a row of the catalog that it overrides (same `id`). */
export interface ModelDefinition
  extends Optional<Omit<CatalogModel, 'id' | 'kinds' | 'vendor' | 'isOpen' | 'family' | 'efforts'>> {
  /** What callers write. May have one `*`, for a pattern. */
  readonly id: string
  /** What it does; a list where it does several things. */
  readonly kind: AnyModelKind | readonly AnyModelKind[]
  /** Id of the vendor that serves it: `openai`, or the id given to `openaiCompatible`. Required without `routes`. */
  readonly vendor?: string | undefined
}

export const MODEL_MEMBERS = {
  id: true,
  kind: true,
  vendor: true,
  upstream: true,
  routes: true,
  aliases: true,
  fallbacks: true,
  created: true,
  retires: true,
  displayName: true,
  inputModalities: true,
  outputModalities: true,
  abilities: true,
  groups: true,
  promptCaching: true,
  protocol: true,
  limits: true,
  reasonsUnseen: true,
  image: true,
  video: true,
  speech: true,
  transcription: true,
} satisfies MemberNames<ModelDefinition>

/** Ids of the vendors that serve a row: those of its routes, or its own vendor. */
export function servingVendors({ vendor, routes }: Pick<ModelDefinition, 'vendor' | 'routes'>): readonly string[] {
  return routes?.map((route) => route.vendor) ?? (vendor === undefined ? [] : [vendor])
}

/**
 * Fills in a model definition's defaults.
 * @throws TypeError for a row without `vendor` and `routes`.
 * @throws RangeError for an empty list of routes, for a `retires` that is not a date, for a `promptCaching` that is neither `auto` nor `off`, and for a route whose weight is not a positive number or whose priority is
 *   not a whole number from 0 on.
 */
export function defineModel({ kind, ...members }: ModelDefinition): CatalogModel {
  const { promptCaching, retires } = members
  if (promptCaching !== undefined && promptCaching !== 'auto' && promptCaching !== 'off')
    throw new RangeError(`promptCaching of a model must be auto or off: ${String(promptCaching)}`)
  if (retires !== undefined && new Date(retires).toJSON()?.slice(0, 10) !== retires)
    throw new RangeError(`retires of a model must be a date such as 2026-12-31: ${String(retires)}`)
  const vendor = members.vendor ?? servingVendors(members)[0]
  if (vendor === undefined) throw new TypeError(`model ${JSON.stringify(members.id)}: set vendor or routes`)
  const given = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
  return {
    upstream: members.id,
    limits: {},
    aliases: [],
    fallbacks: [],
    created: 0,
    displayName: members.id,
    ...(given as Partial<CatalogModel> & Pick<CatalogModel, 'id'>),
    vendor,
    ...(members.routes === undefined ? {} : { routes: checkedRoutes(members.routes) }),
    kinds: typeof kind === 'string' ? [kind] : kind,
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
