import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import type { CatalogModel, ModelRoute } from '../catalog/model.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { credentialIdOf, type ProvidedCredentials, RouteCandidate, VendorKey } from './candidate.ts'
import { CredentialCache } from './credential-cache.ts'
import type { FallbackPolicy } from './routing-options.ts'

/** Configured vendor with its keys. */
export interface RoutedVendor {
  readonly vendor: Vendor
  readonly keys: readonly VendorKey[]
}

/** Returns the number of calls of a vendor in progress, over all its keys. */
export function callsInFlight({ keys }: RoutedVendor): number {
  return keys.reduce((total, { inFlight }) => total + inFlight, 0)
}

/** Failed refresh of a credential. */
export interface CredentialFailure {
  readonly vendor: string
  readonly credentialId: string
  /** Error message of the provider. */
  readonly message: string
  /** Unix milliseconds of the next attempt to refresh. */
  readonly retryAtMs: number
}

/** Settings of credentials that expire. */
export interface CredentialOptions {
  readonly clock?: Clock
  readonly onFailure?: (failure: CredentialFailure) => void
}

/** Routes of a model. */
interface ModelCandidates {
  /** Routes by priority; equal ones in their given order. */
  readonly all: readonly RouteCandidate[]
  /** Whether some routes serve only certain calls. */
  readonly isConditional: boolean
}

/** Maximum number of models outside the catalog whose routes are cached. */
export const MAX_OPEN_MODELS = 1_000

/** All vendors and keys of the gateway, and the routes of each model. One per gateway. */
export class RouteTable {
  readonly #vendors = new Map<string, RoutedVendor>()
  readonly #byModel = new Map<CatalogModel, ModelCandidates>()
  /** Models outside the catalog, which callers can name in any number, oldest first. */
  readonly #open = new Set<CatalogModel>()
  #turns = 0

  constructor(vendors: Iterable<Vendor>, credentials: CredentialOptions = {}) {
    for (const vendor of vendors) {
      const keys = vendor.apiKeys.map((apiKey, index) => {
        const provided = providedCredentials(vendor, index, credentials)
        return new VendorKey(vendor.id, apiKey, vendor.keyWeights?.[index] ?? 1, provided)
      })
      this.#vendors.set(vendor.id, { vendor, keys })
    }
  }

  /** Vendors in the given order. */
  get vendors(): Iterable<RoutedVendor> {
    return this.#vendors.values()
  }

  /** Returns a vendor by its id; undefined if it is not configured. */
  vendor(id: string): RoutedVendor | undefined {
    return this.#vendors.get(id)
  }

  /** Returns every candidate that a request has used so far. */
  *candidates(): Iterable<RouteCandidate> {
    for (const { all } of this.#byModel.values()) yield* all
  }

  /** Returns the sequence number of the next call. */
  nextTurn(): number {
    this.#turns += 1
    return this.#turns
  }

  /** Returns the candidates for a call of this kind with these billing fields, smallest priority first. */
  candidatesOf(
    model: CatalogModel,
    kind: string,
    billingFields: Readonly<Record<string, string>>,
  ): readonly RouteCandidate[] {
    const known = this.#byModel.get(model) ?? this.#add(model)
    return known.isConditional ? known.all.filter(({ when }) => fits(when, kind, billingFields)) : known.all
  }

  #add(model: CatalogModel): ModelCandidates {
    const routes: readonly ModelRoute[] = model.routes ?? [{ vendor: model.vendor }]
    const all = routes.flatMap((route) => this.#candidatesOn(route, model))
    const candidates = {
      all: all.sort((one, other) => one.priority - other.priority),
      isConditional: all.some(({ when }) => when !== undefined),
    }
    this.#byModel.set(model, candidates)
    if (model.isOpen === true) this.#keepOpen(model)
    return candidates
  }

  #keepOpen(model: CatalogModel): void {
    this.#open.add(model)
    if (this.#open.size <= MAX_OPEN_MODELS) return
    const [oldest] = this.#open
    this.#open.delete(oldest!)
    this.#byModel.delete(oldest!)
  }

  #candidatesOn(route: ModelRoute, model: CatalogModel): RouteCandidate[] {
    const routed = this.#vendors.get(route.vendor)
    if (routed === undefined) return []
    const { vendor, keys } = routed
    const upstream = route.upstream ?? model.upstream
    const isOwn = vendor.id === model.vendor && upstream === model.upstream
    const row = isOwn ? model : { ...model, vendor: vendor.id, upstream, efforts: undefined }
    const sum = keys.reduce((total, { weight }) => total + weight, 0)
    return keys.map(
      (key) =>
        new RouteCandidate({
          model: row,
          vendor,
          key,
          priority: route.priority ?? 0,
          weight: ((route.weight ?? 1) * key.weight) / sum,
          when: route.when,
          seed: hashOfText(`${key.credentialId} ${upstream}`),
        }),
    )
  }
}

function providedCredentials(
  { id, credentialProviders }: Vendor,
  index: number,
  { clock = systemClock, onFailure }: CredentialOptions,
): ProvidedCredentials | undefined {
  const provider = credentialProviders?.[index]
  if (provider === undefined) return undefined
  const slot = `slot ${provider.slot ?? index}`
  return {
    slot,
    cache: new CredentialCache(provider, {
      clock,
      onFailure: (failure) => onFailure?.({ ...failure, vendor: id, credentialId: credentialIdOf(id, slot) }),
    }),
  }
}

function fits(
  when: Readonly<Record<string, string>> | undefined,
  kind: string,
  billingFields: Readonly<Record<string, string>>,
): boolean {
  for (const name in when) {
    const value = name === 'kind' ? kind : Object.hasOwn(billingFields, name) ? billingFields[name] : undefined
    if (value !== when[name]) return false
  }
  return true
}

/**
 * Returns the catalog under the routing policy and the configured vendors. A model whose routes lead to vendors other than its own is
 * served by the first of them with a key. Under the policy `never` no model has fallbacks, so no money is reserved for them.
 */
export function catalogForRoutes(
  catalog: Catalog,
  vendors: ReadonlyMap<string, Vendor>,
  fallback: FallbackPolicy,
): Catalog {
  const { rows } = catalog
  const fitted = rows.map((model) => {
    const served = servedBy(model, vendors)
    return fallback === 'never' && served.fallbacks.length > 0 ? { ...served, fallbacks: [] } : served
  })
  return fitted.every((model, index) => model === rows[index]) ? catalog : createCatalog(fitted, catalog.source)
}

function servedBy(model: CatalogModel, vendors: ReadonlyMap<string, Vendor>): CatalogModel {
  const { routes } = model
  if (routes === undefined) return model
  const isConfigured = (vendorId: string): boolean => (vendors.get(vendorId)?.apiKeys.length ?? 0) > 0
  const usable = routes.filter(({ vendor }) => isConfigured(vendor))
  const first = usable[0] ?? routes[0]
  const isRight = first === undefined || usable.some(({ vendor }) => vendor === model.vendor)
  return isRight ? model : { ...model, vendor: first.vendor }
}

/** Entry that receives a share of the keys by weight. */
export interface RendezvousEntry {
  /** Stable identifier. */
  readonly seed: number
  /** Positive weight. */
  readonly weight: number
}

/** Returns a 32-bit hash of a text (FNV-1a). Not for secrets. */
function hashOfText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/**
 * Picks the same entry for the same key as long as it is among the entries. If one is removed, only its keys move, and they
 * spread over the others by weight (highest random weight hashing).
 */
export function pickByKey<Entry extends RendezvousEntry>(entries: readonly [Entry, ...Entry[]], key: string): Entry {
  const hash = hashOfText(key)
  let picked: Entry = entries[0]
  let highest = Number.NEGATIVE_INFINITY
  for (const entry of entries) {
    const score = -entry.weight / Math.log(fractionOf(hash ^ entry.seed))
    if (score > highest) {
      highest = score
      picked = entry
    }
  }
  return picked
}

/** Maps a hash to the open interval from 0 to 1 (the finalizer of MurmurHash3). */
function fractionOf(hash: number): number {
  let mixed = hash
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  mixed ^= mixed >>> 16
  return ((mixed >>> 0) + 0.5) / 2 ** 32
}
