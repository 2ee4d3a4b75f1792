import type { ModelSource } from './catalog.ts'
import type { CatalogModel } from './model.ts'

/** Time before its retirement from which calls to a model announce it, in milliseconds. */
const NOTICE_MS = 60 * 24 * 60 * 60_000

/**
 * Returns the day on which a model retires, such as `2026-12-31`: the day of its row, or the last day of its routes according to
 * the catalog. Returns `undefined` if there is none, or if one of the routes does not retire.
 */
export function retirementOf(
  {
    vendor,
    upstream,
    routes = [{ vendor }],
    retires,
  }: Pick<CatalogModel, 'vendor' | 'upstream' | 'routes' | 'retires'>,
  source: Pick<ModelSource, 'facts'>,
): string | undefined {
  if (retires !== undefined) return retires
  const days = routes.map((route) => source.facts?.(route.vendor, route.upstream ?? upstream)?.retires)
  const last = Math.max(...days.map((seconds) => seconds ?? Number.POSITIVE_INFINITY))
  return Number.isFinite(last) ? new Date(last * 1000).toISOString().slice(0, 10) : undefined
}

/** Returns the time from which calls announce a retirement, in Unix milliseconds: 60 days before a day of {@link retirementOf}. */
export function noticeStartMs(day: string): number {
  return Date.parse(day) - NOTICE_MS
}
