import * as z from 'zod'
import type { CatalogState } from '../../gateway/catalog-options.ts'

/** Age of the catalog in force; `error` is the reason why a newer one cannot be loaded. */
export const catalogSchema = z.strictObject({
  date: z.string(),
  age_days: z.int(),
  is_old: z.boolean(),
  error: z.string().nullable(),
})

export function catalogObject({ date, ageDays, isOld, error }: CatalogState): z.infer<typeof catalogSchema> {
  return { date, age_days: ageDays, is_old: isOld, error: error ?? null }
}
