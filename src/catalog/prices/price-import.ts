import type { Catalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import { decimalAmount } from './decimal-amount.ts'
import type { ImportedPrices, ReportedPrice, SkippedEntry } from './imported-prices.ts'
import type { Meter } from './meter.ts'
import type { PriceRow } from './price-file.ts'
import { priceError } from './price-json.ts'

/** A price of an entry, not yet of a model. */
export interface EntryPrice {
  readonly field: string
  readonly meter: Meter
  /** Dollars. */
  readonly dollars: number
  readonly when?: Readonly<Record<string, string>> | undefined
}

/** An entry of a foreign list, for one model of the catalog. */
export interface PriceEntry {
  readonly key: string
  readonly prices: readonly EntryPrice[]
  /** Fields that are no usable prices, and why. */
  readonly unused: readonly { readonly field: string; readonly reason: string }[]
}

interface Candidate {
  readonly key: string
  readonly isExact: boolean
  readonly rows: readonly PriceRow[]
}

// People read and write prices of tokens and characters by the million.
const MILLION_DIGITS = 6

/** Gathers the entries of a foreign price list, model by model. */
export class PriceImport {
  readonly #catalog: Catalog
  readonly #candidates = new Map<string, Candidate[]>()
  readonly #skipped: SkippedEntry[] = []
  readonly #reported: ReportedPrice[] = []
  /** Power of ten of the units that the list's prices of tokens are for. */
  readonly #tokenDigits: number

  constructor(catalog: Catalog, tokenDigits: number) {
    this.#catalog = catalog
    this.#tokenDigits = tokenDigits
  }

  /** Models that one of these vendors serves under this id. */
  models(vendors: readonly string[], id: string): CatalogModel[] {
    const names = (model: CatalogModel) => model.upstream === id || model.id === id || model.aliases.includes(id)
    return this.#catalog.list().filter((model) => vendors.includes(model.vendor) && names(model))
  }

  skip(key: string, reason: string): void {
    this.#skipped.push({ key, reason })
  }

  /**
   * Adds an entry for a model.
   * @param id the model's name in the list, without provider. An entry under the vendor's own id of a model goes before
   *   entries under its other names.
   * @throws TypeError naming entry and field of a price that is no amount of dollars.
   */
  add(model: CatalogModel, id: string, entry: PriceEntry): void {
    for (const { field, reason } of entry.unused) this.#report(model.id, entry.key, field, reason)
    const fault = faultOf(model, entry.prices)
    if (fault !== undefined) {
      this.skip(entry.key, fault)
      return
    }
    const rows = entry.prices.map((price) => this.#row(model.id, entry.key, price))
    const candidates = this.#candidates.get(model.id) ?? []
    candidates.push({ key: entry.key, isExact: model.upstream === id, rows })
    this.#candidates.set(model.id, candidates)
  }

  /** The price file, models in the catalog's order. */
  finish(comment: string): ImportedPrices {
    const prices = this.#catalog.list().flatMap(({ id }) => this.#chosen(id, this.#candidates.get(id) ?? []))
    return { file: { currency: 'USD', comment, prices }, skipped: this.#skipped, reported: this.#reported }
  }

  #chosen(model: string, candidates: readonly Candidate[]): readonly PriceRow[] {
    const exact = candidates.filter(({ isExact }) => isExact)
    const [first, ...others] = exact.length > 0 ? exact : candidates
    if (first === undefined) return []
    const rows = JSON.stringify(first.rows)
    const rival = others.find((other) => JSON.stringify(other.rows) !== rows)
    if (rival === undefined) return first.rows
    for (const { key } of [first, ...others]) {
      this.#report(model, key, '', `${first.key} and ${rival.key} differ, so neither was taken`)
    }
    return []
  }

  #row(model: string, key: string, { field, meter, dollars, when }: EntryPrice): PriceRow {
    const isSmall = meter.endsWith('_token') || meter === 'character'
    const from = meter.endsWith('_token') ? this.#tokenDigits : 0
    try {
      const { amount, per } = decimalAmount(dollars, from, isSmall ? MILLION_DIGITS : 0)
      return { model, meter, amount, ...(per === 1 ? {} : { per }), ...(when === undefined ? {} : { when }) }
    } catch {
      throw priceError(key, field, dollars)
    }
  }

  #report(model: string, key: string, field: string, reason: string): void {
    this.#reported.push({ model, key, field, reason })
  }
}

/** Why these prices cannot be charged by; undefined when they can. */
function faultOf(model: CatalogModel, prices: readonly EntryPrice[]): string | undefined {
  if (prices.length === 0) return `no price that can be used for ${model.id}`
  // Lists write 0 for what their authors do not know, too.
  if (prices.every(({ dollars }) => dollars === 0))
    return `every price is 0; write down yourself that ${model.id} is free, if it is`
  const has = (meter: Meter) => prices.some((price) => price.meter === meter)
  if (!model.kinds.includes('chat') || has('request') || (has('input_token') && has('output_token'))) return undefined
  return `${model.id} needs a price of input and of output`
}
