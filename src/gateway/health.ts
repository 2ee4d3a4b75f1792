import { type Clock, isYoungerThan } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import { checkMembers } from '../core/known-members.ts'
import { probeStore, STORE_TIMEOUT_MS, type StoreOutage, withinTime } from '../pipeline/store-health.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { CatalogState } from './catalog-options.ts'

/** Health of this process: whether it can serve requests. */
export interface GatewayHealth {
  /**
   * `ok` if it can. `starting` while the store is being opened. `unavailable` if the store cannot be opened, does not answer, or
   * accepts no changes while calls are billed. `closing` if it serves no more requests, or will stop soon, during the `delayMs` of
   * `close`.
   */
  readonly status: 'ok' | 'starting' | 'unavailable' | 'closing'
  /** State of the store, as it answered just now. */
  readonly store: {
    readonly status: 'ok' | 'starting' | 'unavailable'
    /** Reason for the operator if it is unavailable. */
    readonly error: string | undefined
  }
  /** Requests in progress that call a model. */
  readonly inFlight: number
  /** Catalog of the vendors' models, and its age. An old one does not change `status`. */
  readonly catalog: CatalogState
}

/** How long an answer of the store is reused, in milliseconds. Probes need no credentials, so their number must not load the store. */
const FRESH_MS = 1_000

/** Parts of a gateway that its health depends on. */
export interface HealthParts {
  readonly clock: Clock
  readonly store: GatewayStore
  readonly storeOutage: StoreOutage
  /** Whether money is held for calls, so that a read-only store is not sufficient. */
  readonly isBilled: boolean
  /** Opens the store; undefined once it is open. */
  readonly ready: () => (() => Promise<void>) | undefined
  readonly isClosing: () => boolean
  readonly inFlight: () => number
  readonly catalog: () => CatalogState
}

type StoreHealth = GatewayHealth['store']

const OK: StoreHealth = { status: 'ok', error: undefined }
const STARTING: StoreHealth = { status: 'starting', error: undefined }

/** Checks the store, one check at a time and at most once a second. */
export class Health {
  readonly #parts: HealthParts
  #asking: Promise<StoreHealth> | undefined
  #last: StoreHealth = STARTING
  #askedAtMs = Number.NEGATIVE_INFINITY

  constructor(parts: HealthParts) {
    this.#parts = parts
  }

  /** Returns the health. Never rejects. Opens the store if necessary: a process that is not ready may get no other requests. */
  async read(): Promise<GatewayHealth> {
    const { isClosing, inFlight, catalog } = this.#parts
    const store = isClosing() ? this.#last : await this.#store()
    return { status: isClosing() ? 'closing' : store.status, store, inFlight: inFlight(), catalog: catalog() }
  }

  async #store(): Promise<StoreHealth> {
    const { clock, ready } = this.#parts
    if (this.#asking === undefined && isYoungerThan(FRESH_MS, this.#askedAtMs, clock.now())) return this.#last
    const isOpening = ready() !== undefined
    // A hanging call is not repeated: the next probe waits for the same one.
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
      this.#askedAtMs = clock.now()
    })
    const late: StoreHealth = isOpening
      ? STARTING
      : { status: 'unavailable', error: `no answer within ${STORE_TIMEOUT_MS} ms` }
    this.#last = await withinTime(this.#asking, late, clock)
    return this.#last
  }

  async #ask(): Promise<StoreHealth> {
    try {
      const { ready, store, isBilled } = this.#parts
      await ready()?.()
      await probeStore(store, isBilled)
      return OK
    } catch (error) {
      this.#parts.storeOutage.failed(error, noLine)
      const fault = GatewayError.isInstance(error) && error.cause !== undefined ? error.cause : error
      return { status: 'unavailable', error: textOfError(fault) }
    }
  }
}

/** Discards log lines, because probes get the error in their answer. */
function noLine(): void {}

/** Times of `close`, in milliseconds. */
export interface CloseTimes {
  readonly drainMs?: number
  readonly delayMs?: number
}

const CLOSE_OPTIONS = { drainMs: true, delayMs: true } as const
const MAX_INTERVAL_MS = 2 ** 31 - 1

/** @throws TypeError for an unknown option, or an invalid time. */
export function closeTimes(given: CloseTimes): Required<CloseTimes> {
  checkMembers(given, CLOSE_OPTIONS, 'gateway.close')
  for (const [name, ms = 0] of Object.entries(given))
    if (typeof ms !== 'number' || !(ms >= 0)) throw new TypeError(`gateway.close: ${name} must be a number from 0 on`)
  const { drainMs = 30_000, delayMs = 0 } = given
  return { drainMs, delayMs }
}

/**
 * Keeps the process alive until work has ended. The clock's timers do not, and a process that ends while a settlement waits for the
 * store has lost its charge.
 */
export async function keepingAlive(work: () => Promise<void>): Promise<void> {
  const handle = setInterval(() => undefined, MAX_INTERVAL_MS)
  try {
    await work()
  } finally {
    clearInterval(handle)
  }
}
