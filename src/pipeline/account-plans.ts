import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { RecentMap } from '../core/recent-map.ts'
import type { Ledger } from '../stores/ledger.ts'

/** Lifetime of a cached plan. */
const CACHE_MS = 5_000
const MAX_CACHED = 10_000

/** Plans of accounts for principals that the host created, because the gateway has not read these accounts itself. */
export class AccountPlans {
  readonly #ledger: Pick<Ledger, 'account'>
  readonly #clock: Clock
  /** Plans by account; null if the account has none. */
  readonly #cache = new RecentMap<string | null>(MAX_CACHED)

  constructor(ledger: Pick<Ledger, 'account'>, clock: Clock) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /**
   * Returns the plan of an account, or `undefined` if it has none or does not exist.
   * @throws GatewayError `store_unavailable`.
   */
  planOf(accountId: string): MaybePromise<string | undefined> {
    const plan = this.#cache.get(accountId, this.#clock.now())
    return plan === undefined ? this.#lookUp(accountId) : (plan ?? undefined)
  }

  async #lookUp(accountId: string): Promise<string | undefined> {
    try {
      const plan = (await this.#ledger.account(accountId))?.plan
      this.#cache.set(accountId, plan ?? null, this.#clock.now(), CACHE_MS)
      return plan
    } catch (cause) {
      throw new GatewayError('store_unavailable', { cause })
    }
  }
}
