import { type Clock, isYoungerThan } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import { probeStore, STORE_TIMEOUT_MS, type StoreOutage, withinTime } from '../pipeline/store-outage.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { CatalogState } from './catalog-options.ts'

/** Can this process take requests? */
export interface GatewayHealth {
  /**
   * `ok`: yes. `starting`: the store is being opened. `unavailable`: the store cannot be opened, does not answer, or takes no changes
   * while calls are billed. `closing`: no more, or, during the `delayMs` of `close`, not for long.
   */
  readonly status: 'ok' | 'starting' | 'unavailable' | 'closing'
  /** The store, as it answered just now. */
  readonly store: {
    readonly status: 'ok' | 'starting' | 'unavailable'
    /** Why it is unavailable, for the operator. */
    readonly error: string | undefined
  }
  /** Requests in progress that call a model. */
  readonly inFlight: number
  /** Catalog of the vendors' models, and its age. An old one does not change `status`. */
  readonly catalog: CatalogState
}

/** An answer of the store holds for so long: probes need no credentials, so their number must not be the store's load. */
const FRESH_MS = 1_000

/** What the state of a gateway is told from. */
export interface HealthParts {
  readonly clock: Clock
  readonly store: GatewayStore
  readonly storeOutage: StoreOutage
  /** Is money held for calls, so that a store that can be read only is of no use? */
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

/** Asks the store whether it answers, once at a time and at most once a second. */
export class Health {
  readonly #parts: HealthParts
  #asking: Promise<StoreHealth> | undefined
  #last: StoreHealth = STARTING
  #askedAtMs = Number.NEGATIVE_INFINITY

  constructor(parts: HealthParts) {
    this.#parts = parts
  }

  /** Never rejects. Opens the store if that was not done: nothing else may reach a process that is not ready. */
  async read(): Promise<GatewayHealth> {
    const { isClosing, inFlight, catalog } = this.#parts
    const store = isClosing() ? this.#last : await this.#store()
    return { status: isClosing() ? 'closing' : store.status, store, inFlight: inFlight(), catalog: catalog() }
  }

  async #store(): Promise<StoreHealth> {
    const { clock, ready } = this.#parts
    if (this.#asking === undefined && isYoungerThan(FRESH_MS, this.#askedAtMs, clock.now())) return this.#last
    const isOpening = ready() !== undefined
    // A call that hangs is not asked again: the next probe waits for the same one.
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

/** Probes get the error in their answer. */
function noLine(): void {}
