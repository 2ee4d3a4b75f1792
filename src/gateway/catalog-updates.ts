import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { MAX_CATALOG_AGE_DAYS, parseSnapshot, Snapshot } from '../catalog/vendor-models/snapshot.ts'
import type { Clock, Timer } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { BufferedCall } from '../pipeline/vendor-access.ts'
import { egressRoute } from '../transport/egress.ts'
import type { EgressRoute, Transport } from '../transport/transport.ts'
import { joinChunks } from '../wire/chunks.ts'
import type { CatalogInForce } from './catalog-in-force.ts'
import { type CatalogOptions, type CatalogState, DEFAULT_REFRESH_MS, isAddress } from './catalog-options.ts'

/** Maximum size of a snapshot, in bytes. */
export const MAX_SNAPSHOT_BYTES = 8 * 1024 * 1024

/** Loads newer snapshots into a gateway, on request and at an interval. If a load fails, the catalog in force stays. */
export class CatalogUpdates {
  readonly #context: PipelineContext
  readonly #inForce: CatalogInForce
  readonly #options: Partial<CatalogOptions>
  #error: string | undefined
  /** Hash of the content in force, which is not loaded again. */
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

  /** Loads the configured snapshot, repeats that at the interval, and warns of an old catalog. Never rejects. */
  async start(): Promise<void> {
    await this.#refresh()
    const { date, ageDays, isOld } = this.state()
    if (!isOld || !this.#inForce.isUsed) return
    // Emits no event: hosts compare events in tests, which must not fail because time passed.
    const told = `the catalog of models and list prices is more than ${MAX_CATALOG_AGE_DAYS} days old; update signalbox, or set the option catalog`
    this.#context.logger.warn(told, { date, ageDays })
  }

  async #refresh(): Promise<void> {
    const { from, refreshMs = DEFAULT_REFRESH_MS } = this.#options
    // `#load` has already logged why it failed.
    if (from !== undefined) await this.#load(from).catch(() => undefined)
    if (from === undefined || this.#isClosed) return
    this.#timer?.cancel()
    this.#timer = this.#context.clock.schedule(refreshMs, () => void this.#refresh())
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
}

/** Returns the source without a query, user or password, which may be secret. */
function nameOf(from: string): string {
  if (!isAddress(from) || !URL.canParse(from)) return from
  const { origin, pathname } = new URL(from)
  return `${origin}${pathname}`
}

const FETCH_TIMEOUT_MS = 30_000

/** Options of a download. */
export interface FetchTextOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly egress: EgressRoute | undefined
  readonly maxBytes: number
}

/**
 * Fetches a JSON document for the operator by the transport of calls, which supports proxies. Redirects are not followed.
 * @throws Error for a status other than 2xx, more than `maxBytes`, or no complete answer within 30 seconds.
 */
export async function fetchText(
  address: string,
  { transport, clock, egress, maxBytes }: FetchTextOptions,
): Promise<string> {
  const { origin, pathname, search } = new URL(address)
  const call = new BufferedCall(maxBytes)
  let stop: (fault: Error) => void = () => undefined
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = reject
  })
  const timer = clock.schedule(FETCH_TIMEOUT_MS, () => {
    stop(new Error(`no complete answer within ${FETCH_TIMEOUT_MS} ms`))
    call.abort()
  })
  try {
    call.begin(transport, {
      ...{ origin, path: `${pathname}${search}`, method: 'GET', headers: ['accept', 'application/json'], body: null },
      ...{ firstByteTimeoutMs: FETCH_TIMEOUT_MS, idleTimeoutMs: FETCH_TIMEOUT_MS, egress },
    })
    const outcome = await Promise.race([call.result, stopped])
    if ('failure' in outcome) throw outcome.failure.error
    if ('oversize' in outcome) throw new Error(`it is larger than ${maxBytes} bytes`)
    const { status, chunks } = outcome.answer
    if (status >= 300 && status < 400) throw new Error(`status ${status}; redirects are not followed`)
    if (status < 200 || status >= 300) throw new Error(`status ${status}`)
    return joinChunks(chunks).toString('utf8')
  } finally {
    timer.cancel()
  }
}
