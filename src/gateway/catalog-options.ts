import { checkMembers, type MemberNames } from '../core/known-members.ts'
import { egressRoute } from '../transport/egress-route.ts'

/** Source of newer models and list prices than those of the package. */
export interface CatalogOptions {
  /**
   * Path, or http(s) URL, of a snapshot that `signalbox catalog update --snapshot` wrote. It is read at start, before the first
   * request, and at every interval of `refreshMs`.
   */
  readonly from: string
  /** Interval of the search for a newer snapshot, in milliseconds. Default 600,000. */
  readonly refreshMs?: number | undefined
  /** URL of an HTTP proxy for an address. If omitted, the connection is direct. */
  readonly proxy?: string | undefined
}

const CATALOG_OPTIONS = { from: true, refreshMs: true, proxy: true } satisfies MemberNames<CatalogOptions>

/** Catalog in force. */
export interface CatalogState {
  /** Date of the vendors' models and list prices: `2026-07-02`. */
  readonly date: string
  readonly ageDays: number
  /** Whether the catalog is older than 60 days. */
  readonly isOld: boolean
  /** Reason why the last load failed, or `undefined` if it succeeded. */
  readonly error: string | undefined
}

/** Default of `refreshMs`. */
export const DEFAULT_REFRESH_MS = 600_000

/**
 * Checks the option `catalog`.
 * @throws TypeError naming the member.
 */
export function checkCatalog(options: CatalogOptions | undefined, owner: string): void {
  if (options === undefined) return
  checkMembers(options, CATALOG_OPTIONS, owner, 'catalog')
  const { from, refreshMs = DEFAULT_REFRESH_MS, proxy } = options
  if (typeof from !== 'string' || from === '')
    throw new TypeError(`${owner}: catalog.from must be the path or the http(s) address of a snapshot`)
  if (!(Number.isFinite(refreshMs) && refreshMs > 0))
    throw new TypeError(`${owner}: catalog.refreshMs must be a positive number`)
  egressRoute({ proxy })
}

/** Whether a source is a URL, and not a path. */
export function isAddress(from: string): boolean {
  return /^https?:\/\//i.test(from)
}
