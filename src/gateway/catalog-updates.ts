import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { MAX_CATALOG_AGE_DAYS, parseSnapshot, Snapshot } from '../catalog/vendor-models/snapshot.ts'
import type { Timer } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { egressRoute } from '../transport/egress-route.ts'
import type { CatalogInForce } from './catalog-in-force.ts'
import { fetchText } from './fetch-text.ts'

/** Where a gateway finds newer models and list prices than those of the package. */
export interface CatalogOptions {
  /**
   * Path, or http(s) address, of a snapshot that `signalbox catalog update --snapshot` wrote. It is read at start, before the first
   * request, and every `refreshMs`.
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
  /** Day of the vendors' models and list prices: `2026-07-02`. */
  readonly date: string
  readonly ageDays: number
  /** Whether the catalog is older than 60 days. */
  readonly isOld: boolean
  /** Why the last load failed; `undefined` if it did not. */
  readonly error: string | undefined
}

/** Largest snapshot, in bytes. */
export const MAX_SNAPSHOT_BYTES = 8 * 1024 * 1024

const DEFAULT_REFRESH_MS = 600_000

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

/** Loads newer snapshots into a gateway, on request and at an interval. If a load fails, the catalog in force stays. */
export class CatalogUpdates {
  readonly #context: PipelineContext
  readonly #inForce: CatalogInForce
  readonly #options: Partial<CatalogOptions>
  #error: string | undefined
  /** Hash of the content in force, which is not taken again. */
  #taken: string | undefined
  #timer: Timer | undefined
  #isClosed = false

  constructor(context: PipelineContext, inForce: CatalogInForce, options: CatalogOptions | undefined) {
    this.#context = context
    this.#inForce = inForce
    this.#options = options ?? {}
  }

  /** Returns the date and age of the catalog in force. */
  state(): CatalogState {
    const { date } = this.#inForce.snapshot
    const ageDays = this.#inForce.snapshot.ageDays(this.#context.clock.now())
    return { date, ageDays, isOld: ageDays > MAX_CATALOG_AGE_DAYS, error: this.#error }
  }

  /** Loads the configured snapshot, then repeats at the interval. Never rejects. */
  async start(): Promise<void> {
    const { from, refreshMs = DEFAULT_REFRESH_MS } = this.#options
    // A warning has reported why it failed.
    if (from !== undefined) await this.#load(from).catch(() => undefined)
    this.#warnOfAge()
    if (from === undefined || this.#isClosed) return
    this.#timer?.cancel()
    this.#timer = this.#context.clock.schedule(refreshMs, () => void this.start())
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  /**
   * Loads a snapshot; the configured one if `from` is omitted.
   * @throws TypeError with the reason. The catalog in force stays then.
   */
  async load(from = this.#options.from): Promise<CatalogState> {
    if (this.#isClosed) throw new GatewayError('gateway_closing')
    if (from === undefined)
      throw new TypeError('gateway: loadCatalog needs a path or an address, or the option catalog')
    await this.#load(from)
    return this.state()
  }

  async #load(from: string): Promise<void> {
    const { clock, logger, warnings } = this.#context
    try {
      const text = await this.#read(from)
      const hash = createHash('sha256').update(text).digest('base64')
      const isTaken = hash === this.#taken
      if (!isTaken) this.#inForce.take(new Snapshot(parseSnapshot(JSON.parse(text), clock.now())))
      this.#taken = hash
      this.#error = undefined
      if (!isTaken) logger.info('a newer catalog was loaded', { from: nameOf(from), ...this.state() })
    } catch (error) {
      this.#error = `${nameOf(from)}: ${textOfError(error)}`
      const message = `The catalog of ${this.#inForce.snapshot.date} stays, because a newer one cannot be loaded from ${this.#error}`
      if (!this.#isClosed) warnings.warn({ code: 'catalog-refused', message })
      throw new TypeError(message, { cause: error })
    }
  }

  async #read(from: string): Promise<string> {
    if (isAddress(from)) {
      const { transport, clock } = this.#context
      const egress = egressRoute({ proxy: this.#options.proxy })
      return await fetchText(from, { transport, clock, egress, maxBytes: MAX_SNAPSHOT_BYTES })
    }
    const { size } = await stat(from)
    if (size > MAX_SNAPSHOT_BYTES) throw new TypeError(`it is larger than ${MAX_SNAPSHOT_BYTES} bytes`)
    return await readFile(from, 'utf8')
  }

  #warnOfAge(): void {
    const { date, isOld } = this.state()
    if (!isOld || !this.#inForce.isUsed) return
    const message = `The catalog is of ${date}, more than ${MAX_CATALOG_AGE_DAYS} days ago: newer models and prices are missing. Update signalbox, or set the option catalog to a newer snapshot.`
    this.#context.warnings.warn({ code: 'catalog-old', message })
  }
}

/** Whether a source is an address, and not a path. */
export function isAddress(from: string): boolean {
  return /^https?:\/\//i.test(from)
}

/** The source without a query, user or password, which may be secret. */
function nameOf(from: string): string {
  if (!isAddress(from) || !URL.canParse(from)) return from
  const { origin, pathname } = new URL(from)
  return `${origin}${pathname}`
}
