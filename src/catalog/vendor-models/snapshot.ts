// See docs/decisions/0019-catalog-snapshot.md.

import { hasDotSegment } from '../model.ts'
import { objectOf } from '../prices/price-import.ts'
import snapshot from './snapshot.json' with { type: 'json' }
import { dateSeconds, readVendorModel, type VendorModel, writeVendorModel } from './vendor-model.ts'

/** Content of a snapshot file. */
export interface SnapshotFile {
  /** Day of the data: `2026-07-02`. */
  readonly date: string
  /** Lines in the format of `writeVendorModel`, keyed by the vendor's id. */
  readonly models: Readonly<Record<string, readonly string[]>>
}

/** Catalog age, in days, above which the operator is warned. */
export const MAX_CATALOG_AGE_DAYS = 60

const DAY_MS = 86_400_000
const AMOUNT = /^\d{1,12}(?:\.\d{1,18})?$/

/** Pattern of the ids that a gateway passes to a vendor. */
export const PUBLIC_ID = /^[\x21-\x7e]{1,200}$/

/** Models of all vendors on one day. A vendor without a list of its own keeps its built-in list. */
export class Snapshot {
  readonly date: string
  readonly #lists: SnapshotFile['models']
  readonly #read = new Map<string, ListedModels>()

  constructor({ date, models }: SnapshotFile) {
    this.date = date
    this.#lists = models
  }

  /** Returns the models of a vendor by the vendor's own ids; empty for an unknown vendor. */
  of(catalogId: string): ListedModels {
    let models = this.#read.get(catalogId)
    if (models === undefined) {
      models = new ListedModels(this.lines(catalogId))
      this.#read.set(catalogId, models)
    }
    return models
  }

  /** Returns the ids of the vendors that have a list. */
  vendors(): readonly string[] {
    return Object.keys(this.#lists)
  }

  /** Returns the lines of a vendor without caching them. */
  lines(catalogId: string): readonly string[] {
    if (Object.hasOwn(this.#lists, catalogId)) return this.#lists[catalogId]!
    return this === BUILT_IN_SNAPSHOT ? [] : BUILT_IN_SNAPSHOT.lines(catalogId)
  }

  /** Returns the whole days since the date of the data; 0 for a clock that is behind it. */
  ageDays(nowMs: number): number {
    return Math.max(0, Math.floor((nowMs - dateSeconds(this.date) * 1000) / DAY_MS))
  }
}

/** Models of one vendor. A line is parsed when its model is first used, because few of them are. */
class ListedModels {
  readonly #lines: ReadonlyMap<string, string>
  readonly #read = new Map<string, VendorModel>()

  constructor(lines: readonly string[]) {
    this.#lines = new Map(lines.map((line) => [line.slice(0, line.indexOf('|')), line]))
  }

  get size(): number {
    return this.#lines.size
  }

  has(id: string): boolean {
    return this.#lines.has(id)
  }

  ids(): Iterable<string> {
    return this.#lines.keys()
  }

  get(id: string): VendorModel | undefined {
    let model = this.#read.get(id)
    if (model !== undefined) return model
    const line = this.#lines.get(id)
    if (line === undefined) return undefined
    model = readVendorModel(line)
    this.#read.set(id, model)
    return model
  }
}

/**
 * Snapshot in the package. The build creates each vendor's list when it is first read (`tsup.config.ts`).
 */
export const BUILT_IN_SNAPSHOT = new Snapshot(snapshot)

/**
 * Checks a parsed snapshot file.
 * @throws TypeError that names the faulty member: a bad date, a date after `nowMs`, no models, a line that is malformed or repeats
 *   an id.
 */
export function parseSnapshot(json: unknown, nowMs: number): SnapshotFile {
  const { date, models } = objectOf('the snapshot', json)
  const seconds = typeof date === 'string' ? dateSeconds(date) : 0
  if (seconds === 0 || new Date(seconds * 1000).toISOString().slice(0, 10) !== date)
    throw new TypeError(`date: must be a day such as "2026-07-02", not ${JSON.stringify(date)}`)
  // The clocks of two machines may differ by a time zone.
  if (seconds * 1000 > nowMs + DAY_MS) throw new TypeError(`date: ${date} is in the future`)
  const lists = Object.entries(objectOf('models', models))
  if (lists.length === 0) throw new TypeError('models: must list at least one vendor')
  for (const [vendor, lines] of lists) {
    if (!Array.isArray(lines)) throw new TypeError(`models.${vendor}: must be a list of lines`)
    const ids = new Set<string>()
    for (const [index, line] of lines.entries()) {
      const id = idOfLine(line)
      if (id === undefined || ids.has(id)) {
        const fault = id === undefined ? 'is not a well-formed model line' : 'repeats an id'
        throw new TypeError(`models.${vendor}[${index}]: ${fault}: ${JSON.stringify(String(line).slice(0, 80))}`)
      }
      ids.add(id)
    }
  }
  return { date, models: models as SnapshotFile['models'] }
}

/** Returns the id of a line, or `undefined` if the line is malformed: writing its model must produce the same line. */
function idOfLine(line: unknown): string | undefined {
  if (typeof line !== 'string') return undefined
  const model = readVendorModel(line)
  const { id, kinds, limits, price, tiers, batchPrice, batchTiers = [], laterPrice } = model
  const priced = [...tiers, ...batchTiers].map(({ inputTokensAbove: _size, ...amounts }) => amounts)
  const { from: laterFrom = 0, ...later } = laterPrice ?? {}
  const sizes = [...Object.values(limits), ...[...tiers, ...batchTiers].map((tier) => tier.inputTokensAbove)]
  const amounts = [price ?? {}, batchPrice ?? {}, later, ...priced].flatMap((one) => Object.values(one))
  const days = [model.created, model.retires ?? 0, laterFrom]
  const isWellFormed =
    PUBLIC_ID.test(id) &&
    !hasDotSegment(id) &&
    kinds.length > 0 &&
    days.every(Number.isFinite) &&
    sizes.every((size) => Number.isSafeInteger(size) && size > 0) &&
    amounts.every((amount) => AMOUNT.test(String(amount))) &&
    writeVendorModel(model) === line
  return isWellFormed ? id : undefined
}
