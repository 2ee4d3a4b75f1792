import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { checkGivenMembers, checkMembers, memberNames } from '../core/known-members.ts'
import { parseDollars } from '../core/money.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { LedgerEntry } from '../stores/journal.ts'
import {
  type Account,
  type AccountChange,
  assertAmount,
  NEW_ACCOUNT_MEMBERS,
  type NewAccount,
} from '../stores/ledger.ts'
import { type BillingMode, SPENDING_CAP_MEMBERS, type SpendingCap } from '../stores/principal.ts'
import { dayName, type SpendingCounts, spendingAt, spendingPeriod, spentOf } from '../stores/spending.ts'
import { STORED_KINDS, type StoredKind } from '../stores/sql-rows.ts'
import type { AccountStorage } from '../stores/stored-bounds.ts'
import { type AccountBooks, accountBooksOf } from './account-books.ts'
import { administer, checkArgument, checkId, checkReason, checkSpendingCap, noSuchAccount } from './audit.ts'
import { checkPageSize, cursorParts, type PageOptions, pageOf } from './page-cursor.ts'

/** Selects a page of accounts. */
export interface AccountsPageOptions extends PageOptions {
  /** Text that the id must contain. */
  readonly search?: string | undefined
}

const ACCOUNTS_PAGE_OPTIONS = memberNames<AccountsPageOptions>()('search cursor limit')

/** Page of accounts. */
export interface AccountsPage {
  /** Accounts, ordered by id. */
  readonly accounts: readonly Account[]
  /** Cursor of the next page, or `undefined` if there is none. */
  readonly next: string | undefined
}

/** Administration of accounts, for the host's own code. Every method throws a GatewayError, or a TypeError for an unknown member. */
export interface Accounts extends AccountBooks {
  /** Creates an account, or returns the existing account with that id. */
  create(account?: Partial<NewAccount>): Promise<Account>
  /**
   * Changes tier, cap, name, plan, billing or credit limit; `null` removes a value. Takes effect everywhere within 5 seconds. Returns
   * `undefined` if there is no such account.
   * @throws GatewayError `invalid_request` for a plan that `createGateway` does not have, or an amount that no store can store.
   */
  update(accountId: string, change: AccountUpdate): Promise<Account | undefined>
  /**
   * Rejects the account's calls with 403 `account_frozen`, without billing, everywhere within 5 seconds. Calls in progress end and
   * are charged. Freezing again changes the reason and keeps the time. Returns `undefined` if there is no such account.
   */
  freeze(accountId: string, options: { readonly reason: string }): Promise<Account | undefined>
  /** Accepts the account's calls again, everywhere within 5 seconds. Returns `undefined` if there is no such account. */
  unfreeze(accountId: string): Promise<Account | undefined>
  /**
   * Returns an account with its balance, held and owed money in nano-dollars, and its settings, or `undefined` if there is no such
   * account.
   */
  get(accountId: string): Promise<Account | undefined>
  /** Returns the spending of an account and its keys today and in this month (UTC), or `undefined` if there is no such account. */
  spending(accountId: string): Promise<AccountSpending | undefined>
  /**
   * Lists a page of accounts, ordered by id.
   * @throws GatewayError `invalid_request` for an invalid limit or cursor.
   */
  list(options?: AccountsPageOptions): Promise<AccountsPage>
  /**
   * Adds money.
   * @param amount Decimal dollars, such as `"25.00"`.
   * @param options `creditId` makes the credit idempotent, for instance the event id of a payment provider. `expiresAtMs` is the time
   *   in Unix milliseconds after which it cannot be spent; credits that expire first are spent first.
   * @returns false if that `creditId` was credited before.
   * @throws GatewayError `invalid_request` for an invalid amount or id, an unknown account, or an expiry that is not in the future.
   */
  credit(
    accountId: string,
    amount: string,
    options?: {
      readonly creditId?: string | undefined
      readonly description?: string | undefined
      readonly expiresAtMs?: number | undefined
    },
  ): Promise<boolean>
  /** Returns journal lines, newest first. */
  ledger(accountId: string, options?: { readonly limit?: number }): Promise<readonly LedgerEntry[]>
}

/** Members that `update` can change. */
export type AccountUpdate = Omit<AccountChange, 'frozen'>

const { id: _, ...ACCOUNT_UPDATE_MEMBERS } = NEW_ACCOUNT_MEMBERS
const CREDIT_OPTIONS = { creditId: true, description: true, expiresAtMs: true } as const
const FREEZE_OPTIONS = { reason: true } as const
const LEDGER_OPTIONS = { limit: true } as const

/** Facts about accounts that the store does not have. */
export interface AccountsSetting {
  /** Names of the plans. If omitted, every name is accepted. */
  readonly plans?: Pick<ReadonlySet<string>, 'has'>
  readonly onFrozen?: (accountId: string, reason: string) => void
  /** Billing mode of accounts without their own. Default prepaid. */
  readonly billing?: BillingMode
}

/** Creates the administration of a store's accounts. `ready` resolves once the store can be used. */
export function accountsOf(
  store: GatewayStore,
  clock: Clock,
  ids: Ids,
  ready: () => Promise<void>,
  { plans, onFrozen, billing }: AccountsSetting = {},
): Accounts {
  const check = ({ tier, billing: mode, spendingCap, creditLimit, plan }: AccountUpdate) => {
    checkSpendingCap(spendingCap)
    if (tier !== undefined && tier !== 'free' && tier !== 'paid')
      throw new GatewayError('invalid_request', { message: 'tier must be free or paid', param: 'tier' })
    if (mode != null && mode !== 'prepaid' && mode !== 'metered')
      throw new GatewayError('invalid_request', { message: 'billing must be prepaid or metered', param: 'billing' })
    if (creditLimit != null) checkArgument('creditLimit', () => assertAmount(creditLimit))
    if (plan == null || plans === undefined || plans.has(plan)) return
    const message = `there is no plan ${JSON.stringify(plan)} in createGateway({ plans })`
    throw new GatewayError('invalid_request', { message, param: 'plan' })
  }
  return {
    async create(account = {}) {
      checkMembers(account, NEW_ACCOUNT_MEMBERS, 'accounts.create')
      checkMembers(account.spendingCap, SPENDING_CAP_MEMBERS, 'accounts.create', 'spendingCap')
      return administer(ready, () => {
        const id = account.id ?? ids.next('acct')
        if (typeof id !== 'string' || id === '')
          throw new GatewayError('invalid_request', { message: 'id must be a non-empty string', param: 'id' })
        check(account)
        return store.ledger.createAccount({ ...account, id }, clock.now())
      })
    },
    async update(accountId, change) {
      checkGivenMembers(change, ACCOUNT_UPDATE_MEMBERS, 'accounts.update')
      checkMembers(change.spendingCap, SPENDING_CAP_MEMBERS, 'accounts.update', 'spendingCap')
      return administer(ready, () => {
        check(change)
        const { tier, spendingCap, name, plan, billing, creditLimit } = change
        return store.ledger.updateAccount(accountId, { tier, spendingCap, name, plan, billing, creditLimit })
      })
    },
    async freeze(accountId, options) {
      checkGivenMembers(options, FREEZE_OPTIONS, 'accounts.freeze')
      const { reason } = options
      return administer(ready, async () => {
        checkReason(reason)
        const frozen = (await store.ledger.account(accountId))?.frozen
        const atMs = frozen?.atMs ?? clock.now()
        const account = await store.ledger.updateAccount(accountId, { frozen: { reason, atMs } })
        if (account !== undefined && frozen === undefined) onFrozen?.(accountId, reason)
        return account
      })
    },
    unfreeze: (accountId) => administer(ready, () => store.ledger.updateAccount(accountId, { frozen: null })),
    get: (accountId) => administer(ready, () => store.ledger.account(accountId)),
    spending: (accountId) => readSpending(store, clock, ready, accountId),
    async list(options = {}) {
      checkMembers(options, ACCOUNTS_PAGE_OPTIONS, 'accounts.list')
      const { search, cursor, limit = 100 } = options
      return administer(ready, async () => {
        checkPageSize(limit)
        const [after] = cursorParts(cursor, 1) ?? []
        const rows = await store.ledger.listAccounts({ search, after, limit: limit + 1 })
        const page = pageOf(rows, limit, ({ id }) => [id])
        return { accounts: page.rows, next: page.next }
      })
    },
    async credit(accountId, amount, options = {}) {
      checkMembers(options, CREDIT_OPTIONS, 'accounts.credit')
      const { creditId = ids.next('credit'), description = 'credit', expiresAtMs } = options
      return administer(ready, async () => {
        const nanoDollars = checkArgument('amount', () => amountOf(amount))
        checkId('creditId', creditId)
        checkArgument('expiresAtMs', () => assertFuture(expiresAtMs, clock.now()))
        const credit = { creditId, accountId, amount: nanoDollars, description, expiresAtMs }
        try {
          return await store.ledger.credit(credit, clock.now())
        } catch (cause) {
          if (!(cause instanceof RangeError)) throw cause
          if ((await store.ledger.account(accountId)) === undefined) throw noSuchAccount(accountId, cause)
          throw new GatewayError('invalid_request', { message: cause.message, param: 'amount', cause })
        }
      })
    },
    async ledger(accountId, options = {}) {
      checkMembers(options, LEDGER_OPTIONS, 'accounts.ledger')
      const { limit = 100 } = options
      return administer(ready, () => store.ledger.entries(accountId, limit))
    },
    ...accountBooksOf(store, clock, ids, ready, billing),
  }
}

/** @throws RangeError for an expiry that is in the past or invalid. */
function assertFuture(expiresAtMs: number | undefined, nowMs: number): void {
  if (expiresAtMs === undefined || (expiresAtMs > nowMs && expiresAtMs <= 8_640_000_000_000_000)) return
  throw new RangeError(`a credit must expire in the future, not at ${expiresAtMs}`)
}

/** @throws RangeError for an invalid amount of a credit. */
function amountOf(amount: string): bigint {
  const nanoDollars = parseDollars(amount)
  assertAmount(nanoDollars)
  if (nanoDollars === 0n) throw new RangeError('a credit must be above zero')
  return nanoDollars
}

/** Amounts that count against caps, in nano-dollars: charges minus refunds, plus open holds. */
export interface Spent {
  /** Amount of the UTC day. */
  readonly day: bigint
  /** Amount of the UTC month. */
  readonly month: bigint
  /** Spending cap, if any. */
  readonly cap: SpendingCap | undefined
  /** Rest of the cap, never negative; `undefined` without a cap. */
  readonly left: bigint | undefined
}

/** Spending of an account and its keys today and in this month, with the rest of their caps. */
export interface AccountSpending extends Spent {
  readonly accountId: string
  /** Date in UTC: `2026-11-22`. */
  readonly date: string
  /** Keys of the account, oldest first, revoked ones included. */
  readonly keys: readonly (Spent & { readonly keyId: string; readonly label: string })[]
}

/** Returns the amounts that count against the caps of an account and its keys, or `undefined` if there is no such account. */
function readSpending(
  store: GatewayStore,
  clock: Clock,
  ready: () => Promise<void>,
  accountId: string,
): Promise<AccountSpending | undefined> {
  return administer(ready, async () => {
    const account = await store.ledger.account(accountId)
    if (account === undefined) return undefined
    const keys = await store.keys.list(accountId)
    const stored = await store.ledger.spending(
      accountId,
      keys.map(({ id }) => id),
    )
    if (stored === undefined) return undefined
    // Clocks may differ. A day has begun if anything was counted in it.
    const period = Math.max(spendingPeriod(clock.now()), stored.account.period)
    return {
      accountId,
      date: dayName(period),
      ...spent(stored.account, account.spendingCap, period),
      keys: keys.map(({ id, label, spendingCap }, index) => {
        return { keyId: id, label, ...spent(stored.keys[index]!, spendingCap, period) }
      }),
    }
  })
}

function spent(counts: SpendingCounts, cap: SpendingCap | undefined, period: number): Spent {
  const current = spendingAt(counts, period)
  const [day, month] = [spentOf(current, 'day'), spentOf(current, 'month')]
  if (cap === undefined) return { day, month, cap, left: undefined }
  const left = cap.amount - (cap.period === 'day' ? day : month)
  return { day, month, cap, left: left < 0n ? 0n : left }
}

/** Limits of one account's stored objects of a kind. */
export interface StoredBound {
  /** Maximum number of objects. */
  readonly count?: number | undefined
  /** Maximum size of all objects together, in bytes. */
  readonly byteLength?: number | undefined
}

/** Limits of one account's stored objects. An omitted kind or limit has its default. */
export type AccountStorageOptions = { readonly [Kind in StoredKind]?: StoredBound | undefined }

/** Returns the limits with the defaults filled in. */
export function accountStorageOf(options: AccountStorageOptions | undefined): AccountStorage {
  return Object.fromEntries(
    Object.entries(STORED_KINDS).map(([kind, { count, byteLength }]) => {
      const given = options?.[kind as StoredKind]
      return [kind, { count: given?.count ?? count, byteLength: given?.byteLength ?? byteLength }]
    }),
  ) as unknown as AccountStorage
}
