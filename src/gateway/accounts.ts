import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { parseDollars } from '../core/money.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { LedgerEntry } from '../stores/journal.ts'
import { type Account, type AccountChange, assertAmount, type NewAccount } from '../stores/ledger.ts'
import { administer, checkArgument, checkSpendingCap, noSuchAccount } from './administer.ts'

/** Administration of accounts, for the host's own code. Every method throws a GatewayError. */
export interface Accounts {
  /** Makes an account, or gives the existing one of that id. */
  create(account?: Partial<NewAccount>): Promise<Account>
  /** Changes tier or spending cap; undefined when there is no such account. In force everywhere within 5 seconds. */
  update(accountId: string, change: AccountChange): Promise<Account | undefined>
  get(accountId: string): Promise<Account | undefined>
  /**
   * Adds money.
   * @param amount decimal dollars, such as `"25.00"`.
   * @param options `creditId` makes it idempotent: a payment provider's event id, for instance.
   * @returns false when that `creditId` was credited before.
   * @throws GatewayError `invalid_request` for a bad amount or an unknown account.
   */
  credit(
    accountId: string,
    amount: string,
    options?: { readonly creditId?: string; readonly description?: string },
  ): Promise<boolean>
  /** Journal lines, newest first. */
  ledger(accountId: string, options?: { readonly limit?: number }): Promise<readonly LedgerEntry[]>
}

/** Makes the administration of a store's accounts. `ready` resolves once the store can be used. */
export function accountsOf(store: GatewayStore, clock: Clock, ids: Ids, ready: () => Promise<void>): Accounts {
  return {
    create(account = {}) {
      return administer(ready, () => {
        checkSpendingCap(account.spendingCap)
        return store.ledger.createAccount({ ...account, id: account.id ?? ids.next('acct') }, clock.now())
      })
    },
    update(accountId, change) {
      return administer(ready, () => {
        checkSpendingCap(change.spendingCap)
        return store.ledger.updateAccount(accountId, change)
      })
    },
    get: (accountId) => administer(ready, () => store.ledger.account(accountId)),
    credit(accountId, amount, { creditId = ids.next('credit'), description = 'credit' } = {}) {
      return administer(ready, async () => {
        const nanoDollars = checkArgument('amount', () => amountOf(amount))
        try {
          return await store.ledger.credit({ creditId, accountId, amount: nanoDollars, description }, clock.now())
        } catch (cause) {
          if (!(cause instanceof RangeError)) throw cause
          if ((await store.ledger.account(accountId)) === undefined) throw noSuchAccount(accountId, cause)
          throw new GatewayError('invalid_request', { message: cause.message, param: 'amount', cause })
        }
      })
    },
    ledger: (accountId, { limit = 100 } = {}) => administer(ready, () => store.ledger.entries(accountId, limit)),
  }
}

/** @throws RangeError for what no account can be credited with. */
function amountOf(amount: string): bigint {
  const nanoDollars = parseDollars(amount)
  assertAmount(nanoDollars)
  if (nanoDollars === 0n) throw new RangeError('a credit must be above zero')
  return nanoDollars
}
