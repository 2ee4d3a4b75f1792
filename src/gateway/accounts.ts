import type { Clock } from '../core/clock.ts'
import type { Ids } from '../core/ids.ts'
import { parseDollars } from '../core/money.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Account, AccountChange, LedgerEntry, NewAccount } from '../stores/ledger.ts'

/** Administration of accounts, for the host's own code. */
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
   * @throws RangeError for a bad amount or an unknown account.
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
    async create(account = {}) {
      await ready()
      return store.ledger.createAccount({ ...account, id: account.id ?? ids.next('acct') }, clock.now())
    },
    async update(accountId, change) {
      await ready()
      return store.ledger.updateAccount(accountId, change)
    },
    async get(accountId) {
      await ready()
      return store.ledger.account(accountId)
    },
    async credit(accountId, amount, options = {}) {
      await ready()
      const creditId = options.creditId ?? ids.next('credit')
      return store.ledger.credit(
        { creditId, accountId, amount: parseDollars(amount), description: options.description ?? 'credit' },
        clock.now(),
      )
    },
    async ledger(accountId, options = {}) {
      await ready()
      return store.ledger.entries(accountId, options.limit ?? 100)
    },
  }
}
