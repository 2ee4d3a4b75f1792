import { renameSync, writeFileSync } from 'node:fs'
import { MODELS_DEV_PROVIDERS } from '../catalog/models/built-in-models.ts'
import { listPriceRows } from '../catalog/prices/list-prices.ts'
import { objectOf } from '../catalog/prices/price-import.ts'
import { modelsFromModelsDev } from '../catalog/vendor-models/from-models-dev.ts'
import { BUILT_IN_SNAPSHOT, parseSnapshot, Snapshot, type SnapshotFile } from '../catalog/vendor-models/snapshot.ts'
import { readVendorModel, type VendorModel, writeVendorModel } from '../catalog/vendor-models/vendor-model.ts'
import { systemClock } from '../core/clock.ts'
import { isSuspicious, priceKey } from './price-moves.ts'
import { naming, readIfThere } from './public-catalog.ts'
import { SettingError } from './setting-values.ts'

/**
 * Writes a snapshot of the models and list prices of all vendors from a public catalog or from another snapshot, and prints the
 * changes. A running gateway never reads half of the file. A model that left the public catalog keeps its line. A price that moves by
 * more than three times keeps its old amount unless `accept` is set.
 * @throws SettingError for a catalog that is malformed, knows none of the vendors, or is older than the snapshot in use.
 */
export function updateSnapshot(
  path: string,
  source: string,
  content: unknown,
  accept: boolean,
  print: (line: string) => void,
): void {
  const nowMs = systemClock.now()
  const own = readIfThere(path, (json) => new Snapshot(parseSnapshot(json, nowMs)))
  const before = own !== undefined && own.date >= BUILT_IN_SNAPSHOT.date ? own : BUILT_IN_SNAPSHOT
  const fresh = naming(source, () => {
    const given = objectOf('the catalog', content)
    return 'date' in given ? parseSnapshot(given, nowMs) : fromModelsDev(given, nowMs)
  })
  if (fresh.date < before.date)
    throw new SettingError(`${source}: is of ${fresh.date}, older than the snapshot in use, of ${before.date}`)
  const models: Record<string, string[]> = {}
  let [added, kept] = [0, 0]
  for (const vendor of new Set([...before.vendors(), ...Object.keys(fresh.models)])) {
    const lines = new Map(before.lines(vendor).map((line) => [readVendorModel(line).id, line]))
    for (const model of (fresh.models[vendor] ?? []).map(readVendorModel)) {
      const old = before.of(vendor).get(model.id)
      const isRefused = old !== undefined && !accept && movesFar(old, model)
      if (old === undefined) print(`+ ${vendor}/${model.id}`)
      if (isRefused)
        print(
          `! ${vendor}/${model.id} keeps its old price: the new one moves by more than three times; give --accept if it is right`,
        )
      added += Number(old === undefined)
      kept += Number(isRefused)
      const prices = isRefused ? { price: old.price, tiers: old.tiers } : {}
      lines.set(model.id, writeVendorModel({ ...old, ...model, ...prices } as VendorModel))
    }
    models[vendor] = [...lines.values()].sort()
  }
  const file = parseSnapshot({ date: fresh.date, models }, nowMs)
  writeFileSync(`${path}.new`, `${JSON.stringify({ source, ...file }, null, 1)}\n`)
  renameSync(`${path}.new`, path)
  print(`${path}: models of ${file.date}, ${added} new, ${kept} with the old price`)
}

function fromModelsDev(providers: Readonly<Record<string, unknown>>, nowMs: number): SnapshotFile {
  const models: Record<string, string[]> = {}
  for (const vendor of BUILT_IN_SNAPSHOT.vendors()) {
    const [provider = vendor] = MODELS_DEV_PROVIDERS[vendor] ?? []
    const listed = providers[provider]
    if (listed !== undefined) models[vendor] = modelsFromModelsDev(provider, listed).map(writeVendorModel)
  }
  if (Object.keys(models).length === 0) throw new TypeError('has no models of a known vendor')
  return parseSnapshot({ date: new Date(nowMs).toISOString().slice(0, 10), models }, nowMs)
}

function movesFar(old: VendorModel, model: VendorModel): boolean {
  const [before = [], after = []] = [old, model].map((one) => listPriceRows(model, one, '1'))
  const rows = new Map(before.map((row) => [priceKey(row), row]))
  return after.some((row) => {
    const earlier = rows.get(priceKey(row))
    return earlier !== undefined && isSuspicious(earlier, row)
  })
}
