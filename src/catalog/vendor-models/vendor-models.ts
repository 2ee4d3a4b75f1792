import type { AnyModelKind } from '../../core/model-kind.ts'
import type { ModelSource } from '../catalog.ts'
import {
  type CatalogModel,
  defineModel,
  familyWords,
  hasDotSegment,
  isClaimedBy,
  type ModelDefinition,
  newerFirst,
  withoutDate,
} from '../model.ts'
import { imageFamilyOf } from '../models/image-families.ts'
import { BUILT_IN_SNAPSHOT, PUBLIC_ID, type Snapshot } from './snapshot.ts'
import { effortsOf, readVendorModel, type VendorModel } from './vendor-model.ts'

/** Facts of a vendor that determine its models. */
export interface ModelVendor {
  readonly id: string
  /** Id of the vendor in the snapshot. Defaults to its own id. */
  readonly catalogId?: string | undefined
  /** Returns the ids under which the snapshot may list a model, with the id of its price first. Defaults to the model's own id. */
  readonly catalogIds?: ((upstream: string) => readonly string[]) | undefined
  /** Whether the vendor has a key. Models of vendors without a key are found but not listed, and come last. */
  readonly isConfigured: boolean
  /** Kinds that it can serve, and the protocol of kinds with several protocols. */
  readonly kinds: ReadonlyMap<AnyModelKind, string | undefined>
  /** Patterns of the vendor's ids for its own models. */
  readonly claims?: readonly string[]
  /** Whether the vendor receives ids that no catalog knows and no vendor claims. */
  readonly passUnknownModels: boolean
  /** Snapshot that lists its models. Default: the built-in one. */
  readonly snapshot?: Snapshot | undefined
}

/** Maximum number of cached ids outside the catalog. Callers may invent any number of them. */
export const MAX_UNKNOWN_MODELS = 1_000

/** Returns what the vendor's snapshot lists for it. */
function snapshotOf({ id, catalogId = id, snapshot = BUILT_IN_SNAPSHOT }: ModelVendor): ReturnType<Snapshot['of']> {
  return snapshot.of(catalogId)
}

/** Parses the vendor's list without keeping it, for callers that read each list once. */
function readModels({ id, catalogId = id, snapshot = BUILT_IN_SNAPSHOT }: ModelVendor): readonly VendorModel[] {
  return snapshot.lines(catalogId).map(readVendorModel)
}

/**
 * Models that vendors offer under their own ids, without rows: `gpt-4o` or `openai/gpt-4o`. If several vendors offer a bare id,
 * the first one with a key is used, in the order of the vendors. An unknown id goes to the vendor it names, otherwise to the
 * vendor that claims it by the longest pattern, otherwise to the first vendor that passes unknown models.
 */
export class VendorModels implements ModelSource {
  readonly #vendors: readonly ModelVendor[]
  readonly #refusesUnknown: boolean
  readonly #found = new Map<string, CatalogModel>()
  readonly #unknown = new Map<string, CatalogModel>()
  #listed: readonly CatalogModel[] | undefined

  /** @param given.refusesUnknown Whether claims are ignored, so that unknown ids are found only at vendors that pass them. */
  constructor(vendors: readonly ModelVendor[], given: { readonly refusesUnknown?: boolean } = {}) {
    this.#refusesUnknown = given.refusesUnknown === true
    this.#vendors = [...vendors].sort((one, other) => Number(other.isConfigured) - Number(one.isConfigured))
  }

  find(name: string): CatalogModel | undefined {
    return this.#found.get(name) ?? this.#unknown.get(name) ?? this.#look(name)
  }

  list(): readonly CatalogModel[] {
    if (this.#listed === undefined) {
      const byId = new Map<string, CatalogModel>()
      for (const vendor of this.#vendors) {
        if (!vendor.isConfigured) continue
        for (const id of snapshotOf(vendor).ids()) {
          if (this.#offered(vendor, id) === undefined) continue
          const model = this.find(byId.has(id) ? `${vendor.id}/${id}` : id)
          if (model !== undefined && !byId.has(model.id)) byId.set(model.id, model)
        }
      }
      this.#listed = [...byId.values()]
    }
    return this.#listed
  }

  isConfigured(vendorId: string): boolean {
    return this.#vendors.some(({ id, isConfigured }) => id === vendorId && isConfigured)
  }

  *names(): Iterable<Pick<CatalogModel, 'id' | 'kinds' | 'vendor' | 'upstream'>> {
    const ids = new Set<string>()
    for (const vendor of this.#vendors) {
      if (!vendor.isConfigured) continue
      for (const known of readModels(vendor)) {
        if (definitionOf(known, vendor) === undefined) continue
        const id = ids.has(known.id) ? `${vendor.id}/${known.id}` : known.id
        ids.add(id)
        yield { id, kinds: known.kinds, vendor: vendor.id, upstream: known.id }
      }
    }
  }

  facts(vendorId: string, upstream: string): VendorModel | undefined {
    const vendor = this.#vendors.find(({ id }) => id === vendorId)
    return vendor === undefined ? undefined : (factsOf(vendor, upstream) ?? factsOf(vendor, withoutDate(upstream)))
  }

  vendorNames(): readonly string[] {
    const snapshot = this.#vendors[0]?.snapshot ?? BUILT_IN_SNAPSHOT
    const listed = snapshot
      .vendors()
      .flatMap((vendor) => [vendor, ...snapshot.lines(vendor).flatMap((line) => line.match(/^[^/|]+(?=\/)/) ?? [])])
    return [...this.#vendors.map(({ id }) => id), ...listed]
  }

  claims(vendorId: string, upstream: string): boolean {
    return this.#vendors.some((vendor) => vendor.id === vendorId && claimLength(vendor, upstream) > 0)
  }

  chatProtocol(vendorId: string): string | undefined {
    return this.#vendors.find(({ id }) => id === vendorId)?.kinds.get('chat')
  }

  #look(name: string): CatalogModel | undefined {
    for (const vendor of this.#vendors) {
      const model = this.#offered(vendor, name)
      if (model !== undefined) return this.#keep(model)
    }
    for (const vendor of this.#vendors) {
      if (!name.startsWith(`${vendor.id}/`)) continue
      const id = name.slice(vendor.id.length + 1)
      const bare = this.find(id)
      if (bare?.vendor === vendor.id && bare.upstream === id && !this.#unknown.has(id)) return bare
      const model = this.#offered(vendor, id)
      if (model !== undefined) return this.#keep({ ...model, id: name, aliases: [] })
    }
    return PUBLIC_ID.test(name) && !hasDotSegment(name) ? this.#passed(name) : undefined
  }

  #offered(vendor: ModelVendor, id: string): CatalogModel | undefined {
    const known = factsOf(vendor, id) ?? imageOf(vendor, id)
    const definition = known === undefined ? undefined : definitionOf({ ...known, id }, vendor)
    if (definition === undefined) return undefined
    const model = { ...defineModel(definition), efforts: known && effortsOf(known) }
    return isListed(vendor, id) ? model : { ...model, isOpen: true }
  }

  #passed(name: string): CatalogModel | undefined {
    const claimOf = (vendor: ModelVendor, id: string): number => (this.#refusesUnknown ? 0 : claimLength(vendor, id))
    const bareId = ({ id }: ModelVendor): string => (name.startsWith(`${id}/`) ? name.slice(id.length + 1) : '')
    const named = this.#vendors.find(
      (vendor) => bareId(vendor) !== '' && (vendor.passUnknownModels || claimOf(vendor, bareId(vendor)) > 0),
    )
    // Sorting is stable: among equal claims the first vendor counts, and vendors with a key come first.
    const claiming = this.#vendors
      .filter((vendor) => claimOf(vendor, name) > 0)
      .sort((one, other) => claimOf(other, name) - claimOf(one, name))
    const passing = this.#vendors.find(({ passUnknownModels }) => passUnknownModels)
    const vendor = named ?? claiming.find(({ isConfigured }) => isConfigured) ?? passing ?? claiming[0]
    if (vendor === undefined) return undefined
    const upstream = named === undefined ? name : bareId(named)
    const family = familyOf(vendor, upstream)
    const relative = family[0] === undefined ? undefined : definitionOf(family[0], vendor)
    const kind = claimLength(vendor, upstream) > 0 && relative !== undefined ? relative.kind : [...vendor.kinds.keys()]
    const protocol = kind === relative?.kind ? relative.protocol : vendor.kinds.get('chat')
    const model = defineModel({ id: name, kind, vendor: vendor.id, upstream, protocol })
    return this.#keep({ ...model, isOpen: true, family: family.map(({ id }) => id) })
  }

  #keep(model: CatalogModel): CatalogModel {
    const kept = model.isOpen === true ? this.#unknown : this.#found
    if (kept === this.#unknown && kept.size >= MAX_UNKNOWN_MODELS) kept.clear()
    for (const name of [model.id, ...model.aliases]) kept.set(name, model)
    return model
  }
}

/** Returns the length of the longest pattern by which a vendor claims an id; 0 if it does not. */
function claimLength({ claims = [] }: ModelVendor, id: string): number {
  return Math.max(0, ...claims.filter((pattern) => isClaimedBy(pattern, id)).map((pattern) => pattern.length))
}

/**
 * Returns the known models of a vendor that have the words of an id, newest first, whatever their versions. If there are none, it
 * drops the last word and repeats the search: `gpt-7-nova` belongs to the family of `gpt-5`, unless there is another nova.
 */
function familyOf(vendor: ModelVendor, id: string): VendorModel[] {
  const known = snapshotOf(vendor)
  const listed = Array.from(known.ids(), (other) => [familyWords(other).join(' '), other] as const)
  for (const words = familyWords(id); words.length > 0; words.pop()) {
    const found = listed
      .flatMap(([text, other]) => (text === words.join(' ') ? [known.get(other)!] : []))
      .filter((model) => model.kinds.some((kind) => vendor.kinds.has(kind)))
    if (found.length > 0) return found.sort((one, other) => newerFirst(one.id, other.id))
  }
  return []
}

function isListed(vendor: ModelVendor, modelId: string): boolean {
  return snapshotOf(vendor).has(modelId)
}

/** Returns the snapshot's facts of a model under any of its ids. A price applies only to that id. */
function factsOf(vendor: ModelVendor, modelId: string): VendorModel | undefined {
  const { catalogIds } = vendor
  const listed = snapshotOf(vendor)
  if (catalogIds === undefined) return listed.get(modelId)
  const [priced = '', ...others] = catalogIds(modelId)
  const known = listed.get(priced)
  if (known !== undefined) return known
  const other = others.map((one) => listed.get(one)).find((one) => one !== undefined)
  if (other === undefined) return undefined
  const { price: _price, ...facts } = other
  return { ...facts, tiers: [] }
}

/** Returns an image model that the snapshot lacks, if the vendor serves its whole family. */
function imageOf({ id, catalogId = id }: ModelVendor, modelId: string): VendorModel | undefined {
  const family = modelId.includes('/') ? undefined : imageFamilyOf(modelId)
  if (family?.catalogs.includes(catalogId) !== true) return undefined
  const { kinds } = family
  const unknown = { limits: {}, inputModalities: [], outputModalities: [], abilities: [], created: 0, tiers: [] }
  return { ...unknown, id: modelId, displayName: modelId, kinds }
}

/** Returns the row of a public model, or undefined if the gateway does not serve it at this vendor. */
export function definitionOf(known: VendorModel, vendor: ModelVendor): ModelDefinition | undefined {
  const kinds = known.kinds.filter((kind) => vendor.kinds.has(kind))
  const [kind] = kinds
  if (kind === undefined) return undefined
  const protocol = known.protocol ?? vendor.kinds.get(kind)
  const family = kind === 'image' ? imageFamilyOf(vendor.catalogIds?.(known.id)[0] ?? known.id) : undefined
  return {
    id: known.id,
    kind: kinds,
    vendor: vendor.id,
    ...(protocol === undefined ? {} : { protocol }),
    limits: known.limits,
    ...(family === undefined || family.protocol !== protocol ? {} : { image: family.image }),
    aliases: [`${vendor.id}/${known.id}`],
    created: known.created,
    displayName: known.displayName,
  }
}
