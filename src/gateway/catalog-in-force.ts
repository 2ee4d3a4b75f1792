import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import { type CatalogModel, type ModelDefinition, servingVendors } from '../catalog/model.ts'
import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { withKnownVendors, withUnknownModels } from '../catalog/prices/check-prices.ts'
import type { CatalogPrices } from '../catalog/prices/list-prices.ts'
import { definePrices, type PriceFile, type Prices } from '../catalog/prices/prices.ts'
import { BUILT_IN_SNAPSHOT, type Snapshot } from '../catalog/vendor-models/snapshot.ts'
import { type ModelVendor, VendorModels } from '../catalog/vendor-models/vendor-models.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { EndpointTable } from '../pipeline/pipeline-context.ts'
import { catalogForRoutes } from '../routing/candidate.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { GatewayOptions } from './options.ts'

/**
 * Catalog of a gateway, and the prices made for it. Both are replaced at the same time. Requests in flight keep the models and
 * prices that they began with.
 */
export class CatalogInForce {
  readonly endpoints: EndpointTable
  /** Reads from the catalog in force, so that it can be kept. */
  readonly catalog: Catalog
  /** Reads from the prices in force; `undefined` if billing is off. */
  readonly prices: Prices | undefined
  readonly #options: GatewayOptions
  readonly #ofCatalog: CatalogPrices | undefined
  #snapshot = BUILT_IN_SNAPSHOT
  #catalog: Catalog
  #prices: Required<Prices> | undefined

  /** @throws TypeError for models or prices that cannot be used. */
  constructor(options: GatewayOptions) {
    this.#options = options
    this.endpoints = new EndpointTable([...ENDPOINTS, ...(options.endpoints ?? [])])
    const { vendors, models = [] } = options
    checkProtocols([...vendors.flatMap((vendor) => vendor.models), ...models], vendors, this.endpoints.all)
    this.#catalog = this.#catalogOf(BUILT_IN_SNAPSHOT)
    this.catalog = new CurrentCatalog(() => this.#catalog)
    const { prices } = options
    this.#ofCatalog = typeof prices === 'object' && 'forCatalog' in prices ? prices : undefined
    this.#prices = this.#ofCatalog?.forCatalog(this.#catalog)
    const given = this.#prices === undefined ? this.#fixedPrices() : new CurrentPrices(() => this.#prices!)
    this.prices = withUnknownModels(given, this.catalog, options.unknownModels)
  }

  get snapshot(): Snapshot {
    return this.#snapshot
  }

  /** Whether the snapshot lists models of a vendor that has a key. */
  get isUsed(): boolean {
    const { vendors } = this.#options
    return vendors.some(
      ({ id, catalogId = id, apiKeys }) => apiKeys.length > 0 && this.#snapshot.lines(catalogId).length > 0,
    )
  }

  /**
   * Replaces the snapshot.
   * @throws TypeError if the snapshot is older than the one in force, or yields no catalog or prices. Nothing changes then.
   */
  take(snapshot: Snapshot): void {
    if (snapshot.date < this.#snapshot.date)
      throw new TypeError(
        `date: ${snapshot.date} is older than ${this.#snapshot.date}, the date of the catalog in force`,
      )
    const catalog = this.#catalogOf(snapshot)
    // Every model is read here, so that an error occurs before anything is replaced.
    catalog.list()
    this.#prices = this.#ofCatalog?.forCatalog(catalog)
    this.#catalog = catalog
    this.#snapshot = snapshot
  }

  /** Returns the prices of the options that do not depend on the catalog. */
  #fixedPrices(): Prices | undefined {
    const { prices } = this.#options
    if (prices === undefined) return undefined
    const fixed = typeof prices === 'object' && 'quote' in prices ? prices : definePrices(prices as PriceFile)
    return withKnownVendors(fixed, this.#catalog)
  }

  #catalogOf(snapshot: Snapshot): Catalog {
    const { vendors, models = [], routing, unknownModels, billing } = this.#options
    const { all } = this.endpoints
    const catalog = createCatalog(
      [...BUILT_IN_MODELS, ...vendors.flatMap((vendor) => vendor.models), ...models],
      new VendorModels(
        vendors.map((vendor) => modelVendor(vendor, all, snapshot)),
        { refusesUnknown: billing === 'off' && unknownModels === 'refuse' },
      ),
    )
    checkKinds(catalog, this.endpoints)
    const byId = new Map(vendors.map((vendor) => [vendor.id, vendor]))
    return catalogForRoutes(catalog, byId, routing?.fallback ?? 'on-failure')
  }
}

/** Catalog that reads each answer from the one in force. */
class CurrentCatalog implements Catalog {
  readonly #current: () => Catalog

  constructor(current: () => Catalog) {
    this.#current = current
  }

  get rows(): Catalog['rows'] {
    return this.#current().rows
  }

  get source(): Catalog['source'] {
    return this.#current().source
  }

  find(idOrAlias: string): ReturnType<Catalog['find']> {
    return this.#current().find(idOrAlias)
  }

  list(): ReturnType<Catalog['list']> {
    return this.#current().list()
  }
}

/** Prices that read each answer from those in force. */
class CurrentPrices implements Required<Prices> {
  readonly #current: () => Required<Prices>

  constructor(current: () => Required<Prices>) {
    this.#current = current
  }

  quote(...question: Parameters<Prices['quote']>): ReturnType<Prices['quote']> {
    return this.#current().quote(...question)
  }

  rows(): ReturnType<Required<Prices>['rows']> {
    return this.#current().rows()
  }
}

/** @throws TypeError for a model that no endpoint could serve. */
function checkKinds(catalog: Catalog, endpoints: EndpointTable): void {
  const served = new Set<string>(endpoints.all.map(({ kind }) => kind))
  for (const { id, kinds } of catalog.rows) {
    const unknown = kinds.find((kind) => !served.has(kind))
    if (unknown === undefined) continue
    const known = [...served].join(', ')
    throw new TypeError(
      `model ${JSON.stringify(id)}: no endpoint serves the kind ${JSON.stringify(unknown)}; the kinds are ${known}`,
    )
  }
}

/**
 * Checks the `protocol` of rows. Rows are not checked if none of their vendors is listed.
 * @throws TypeError with the known values if no endpoint of the row's kinds has such a protocol at a vendor of the row.
 */
function checkProtocols(
  rows: readonly (ModelDefinition | CatalogModel)[],
  vendors: readonly Vendor[],
  endpoints: readonly Endpoint[],
): void {
  for (const row of rows) {
    const { id, protocol } = row
    if (protocol === undefined) continue
    const names = servingVendors(row)
    const listed = vendors.filter((candidate) => names.includes(candidate.id))
    const kinds: readonly string[] = ['kinds' in row ? row.kinds : row.kind].flat()
    const serving = endpoints.filter(({ kind }) => kinds.includes(kind))
    const known = new Set(
      listed.flatMap((candidate) => serving.flatMap((endpoint) => protocolsOf(endpoint, candidate))),
    )
    if (listed.length === 0 || known.has(protocol)) continue
    const place = `${kinds.join(' and ')} models of ${listed.map((candidate) => candidate.id).join(' and ')}`
    const remedy = known.size === 0 ? `Remove it: ${place} have none` : `${place} have ${[...known].join(', ')}`
    throw new TypeError(`model ${JSON.stringify(id)}: the protocol ${JSON.stringify(protocol)} is unknown. ${remedy}.`)
  }
}

function protocolsOf(endpoint: Endpoint, vendor: Vendor): readonly string[] {
  return endpoint.protocols?.(vendor) ?? [...(endpoint.shapes?.keys() ?? [])]
}

/**
 * Models that a vendor serves without rows, as the endpoints determine them.
 * @throws TypeError if two endpoints of one kind name different protocols for them.
 */
export function modelVendor(vendor: Vendor, endpoints: readonly Endpoint[], snapshot?: Snapshot): ModelVendor {
  const kinds = new Map<string, string | undefined>()
  for (const { id, kind, servesUnlisted } of endpoints) {
    const served = servesUnlisted?.(vendor) ?? false
    if (served === false) continue
    const protocol = served === true ? undefined : served
    if (kinds.has(kind) && kinds.get(kind) !== protocol)
      throw new TypeError(
        `endpoint ${JSON.stringify(id)}: servesUnlisted names another protocol for ${kind} models of ` +
          `${JSON.stringify(vendor.id)} than an earlier endpoint. Omit it, or return the same protocol.`,
      )
    kinds.set(kind, protocol)
  }
  const { id, catalogId, apiKeys, claims = [], passUnknownModels = false } = vendor
  const catalogIds = vendor.catalogIds?.bind(vendor)
  return { id, catalogId, catalogIds, isConfigured: apiKeys.length > 0, kinds, claims, passUnknownModels, snapshot }
}
