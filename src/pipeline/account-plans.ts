import { type Clock, isYoungerThan } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Ledger } from '../stores/ledger.ts'

/** How long a plan that was looked up is used. */
const CACHE_MS = 5_000
const MAX_CACHED = 10_000

interface CachedPlan {
  readonly plan: string | undefined
  readonly fromMs: number
}

/** Plans of accounts whose callers the gateway did not look up itself: of principals that the host made. */
export class AccountPlans {
  readonly #ledger: Pick<Ledger, 'account'>
  readonly #clock: Clock
  readonly #cache = new Map<string, CachedPlan>()

  constructor(ledger: Pick<Ledger, 'account'>, clock: Clock) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /**
   * Undefined: none, or no such account.
   * @throws GatewayError `store_unavailable`.
   */
  planOf(accountId: string): MaybePromise<string | undefined> {
    const cached = this.#cache.get(accountId)
    const isCurrent = cached !== undefined && isYoungerThan(CACHE_MS, cached.fromMs, this.#clock.now())
    return isCurrent ? cached.plan : this.#lookUp(accountId)
  }

  async #lookUp(accountId: string): Promise<string | undefined> {
    try {
      const plan = (await this.#ledger.account(accountId))?.plan
      if (this.#cache.size >= MAX_CACHED) this.#cache.clear()
      this.#cache.set(accountId, { plan, fromMs: this.#clock.now() })
      return plan
    } catch (cause) {
      throw new GatewayError('store_unavailable', { cause })
    }
  }
}
