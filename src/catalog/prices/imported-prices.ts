import type { PriceFile } from './price-file.ts'

/** An entry of a foreign price list that gave no price. */
export interface SkippedEntry {
  /** Name of the entry in that list. */
  readonly key: string
  readonly reason: string
}

/** A price of a known model that a price file cannot express, or that was not used for another reason. */
export interface ReportedPrice {
  /** Public id of the model. */
  readonly model: string
  /** Name of the entry in the foreign list. */
  readonly key: string
  /** Field of the entry, as written there. */
  readonly field: string
  readonly reason: string
}

/** What an importer made of a foreign price list. Look through `reported` before you charge by `file`. */
export interface ImportedPrices {
  readonly file: PriceFile
  /** Entries left out: models that the catalog does not have, other providers' offers, entries without a usable price. */
  readonly skipped: readonly SkippedEntry[]
  /** Prices left out of models that stand in `file` or might have. */
  readonly reported: readonly ReportedPrice[]
}
