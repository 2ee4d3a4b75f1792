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

/** Whether prompts are marked for a vendor's cache. */
export type PromptCaching = 'auto' | 'off'

/** Route to a public model: a vendor, and the vendor's own id of the model. */
export interface ModelRoute {
  /** Id of the vendor. */
  readonly vendor: string
  /** The vendor's own id of the model. Defaults to `upstream` of the row. */
  readonly upstream?: string | undefined
  /** Share of the calls among routes of equal priority. Any positive number. Default 1. */
  readonly weight?: number | undefined
  /** Priority as a whole number; routes with the smallest number are used while one of them is healthy. Default 0. */
  readonly priority?: number | undefined
  /**
   * Values of billing fields to which the route is limited, such as `{ resolution: '720p' }`. `kind` is the kind of the call: `{
   * kind: 'image_edit' }`. If omitted, the route serves every call.
   */
  readonly when?: Readonly<Record<string, string>> | undefined
}

/** Row of the catalog. Callers use its public id verbatim. */
export interface CatalogModel extends ModelFacts {
  /** Every kind that the model serves; usually one. */
  readonly kinds: readonly AnyModelKind[]
  /** Id of the vendor that serves it: `openai`, or the id given to `openaiCompatible`. */
  readonly vendor: string
  /** The vendor's own id of the model. Defaults to the public id. */
  readonly upstream: string
  /** Vendors that serve the model instead of the row's own `vendor` and `upstream`. Must not be empty. */
  readonly routes?: readonly ModelRoute[]
  /** Other ids that callers may use for the model. */
  readonly aliases: readonly string[]
  /** Public ids of models that answer if this one cannot, in order. They are billed at their own price. */
  readonly fallbacks: readonly string[]
  /** Time of creation in Unix seconds. Informational, as in OpenAI's model list. */
  readonly created: number
  /** Day on which its vendor retires it, such as `2026-12-31`. Defaults to the catalog's day for the vendor's model. */
  readonly retires?: string
  /** Display name. Defaults to the public id. */
  readonly displayName: string
  /** Input modalities, for lists. Default to the catalog's modalities of the vendor's model, otherwise derived from the model's kinds. */
  readonly inputModalities?: readonly Modality[]
  /** Output modalities, for lists. Defaults as for `inputModalities`. */
  readonly outputModalities?: readonly Modality[]
  /**
   * Abilities of a chat model, for `supported_parameters` of lists. Default to the catalog's abilities of the vendor's model,
   * otherwise to all except `reasoning`.
   */
  readonly abilities?: readonly Ability[]
  /** Names of the model's groups, for key scopes such as `group:cheap`. Default none. */
  readonly groups?: readonly string[]
  /**
   * Whether the gateway marks prompts without caller's marks for the vendor's prompt cache (`auto`) or not (`off`), at vendors
   * that cache by marks. Defaults to the gateway's option.
   */
  readonly promptCaching?: PromptCaching
  /**
   * Reasoning efforts that the model of `vendor` and `upstream` accepts according to the public catalog, from least to most.
   * Empty if it does not reason; `undefined` if the catalog does not list them.
   */
  readonly efforts?: readonly string[] | undefined
  /** Whether the model is a match of a pattern, or an id that no catalog knows. Such models are not listed. */
  readonly isOpen?: boolean
  /** Ids of known models of the same family at its vendor, newest first. Set only for ids that no catalog knows. */
  readonly family?: readonly string[]
}

/** The members of a row, each of which may be omitted or undefined. */
type Optional<Row> = { readonly [Name in keyof Row]?: Row[Name] | undefined }

/** Model that a host adds, or that replaces a row of the catalog with the same `id`. */
export interface ModelDefinition
  extends Optional<Omit<CatalogModel, 'id' | 'kinds' | 'vendor' | 'isOpen' | 'family' | 'efforts'>> {
  /** Id that callers write. May contain one `*` for a pattern. */
  readonly id: string
  /** Kind of the model, or a list of several kinds. */
  readonly kind: AnyModelKind | readonly AnyModelKind[]
  /** Id of the vendor that serves it: `openai`, or the id given to `openaiCompatible`. Required without `routes`. */
  readonly vendor?: string | undefined
}

/** Returns the ids of the vendors that serve a row: those of its routes, or its own vendor. */
export function servingVendors({ vendor, routes }: Pick<ModelDefinition, 'vendor' | 'routes'>): readonly string[] {
  return routes?.map((route) => route.vendor) ?? (vendor === undefined ? [] : [vendor])
}

/**
 * Adds the defaults to a model definition.
 * @throws TypeError for a row without `vendor` and `routes`.
 * @throws RangeError for an empty list of routes, for a `retires` that is not a date, for a `promptCaching` that is neither
 *   `auto` nor `off`, and for a route whose weight is not a positive number or whose priority is not a whole number from 0 on.
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

/** Whether the id of a row is a pattern. */
export function isPattern(id: string): boolean {
  return id.includes('*')
}

/** Returns the text that the star of a pattern matches in a name, possibly empty; undefined if the name does not match. */
export function starOf(pattern: string, name: string): string | undefined {
  const at = pattern.indexOf('*')
  const [before, after] = [pattern.slice(0, at), pattern.slice(at + 1)]
  const isMatch = name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after)
  return isMatch ? name.slice(before.length, name.length - after.length) : undefined
}

/** Returns whether a vendor claims an id; see `Vendor.claims`. */
export function isClaimedBy(pattern: string, id: string): boolean {
  return starOf(pattern, id) !== undefined && !id.includes('/') && (pattern.includes(':') || !id.includes(':'))
}

/** Removes the date of a version: `-2025-08-07`, `-20250807`, or `@20250807`. */
export function withoutDate(id: string): string {
  return id.replace(
    /[-@]20\d\d(?:-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))$/,
    '',
  )
}

/** Returns the words of an id without numbers, dates and versions: `claude haiku` for `claude-haiku-4-5-20251001`. */
export function familyWords(id: string): string[] {
  return (
    withoutDate(id)
      .toLowerCase()
      .replace(/[\d.]+/g, '')
      .match(/[a-z]+/g) ?? []
  )
}

/** Returns the numbers of a version, such as `[4, 5]` for `claude-haiku-4-5-20251001`, without sizes such as `8b`. */
export function versionOf(id: string): number[] {
  return Array.from(withoutDate(id).matchAll(/(?<!\d)\d{1,3}(?!\d|b\b)/g), ([number]) => Number(number))
}

/** Orders ids by their versions, the newest first. */
export function newerFirst(one: string, other: string): number {
  const [left, right] = [versionOf(one), versionOf(other)]
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const difference = (right[index] ?? -1) - (left[index] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}

const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/

/** Whether a name has `.` or `..` between slashes. Some vendors use the model id in the path, where these segments change the target. */
export function hasDotSegment(name: string): boolean {
  return DOT_SEGMENT.test(name)
}
