import type { Account } from '../ledger.ts'
import { NOTHING_SPENT, type SpendingCounts, type SpendingOwner } from '../spending.ts'
import { capOf, optionalAmountOf, type SqlRow } from '../sql-rows.ts'
import { prepareExact, type SqliteDatabase, type SqliteStatement, type SqlValue } from './sqlite-database.ts'

/** What the operations of a group change about a key. */
export interface BufferedKey extends SpendingOwner {
  counts: SpendingCounts
}

/** What the operations of a group read of an account, and what they change. */
export interface BufferedAccount extends BufferedKey {
  balance: bigint
  held: bigint
  owed: bigint
  creditHeld: bigint
  /** Balance and held money after the latest credit. */
  readonly funded: bigint
  readonly billing: Account['billing']
  readonly creditLimit: bigint | undefined
  readonly isFrozen: boolean
}

const COUNTS = 'period, charged_day, charged_month, held_day, held_month'

/**
 * Accounts and keys as the operations of a group leave them. Each is read once and written once, because a group has the
 * database for itself.
 */
export class SqliteMoney {
  readonly #selectAccount: SqliteStatement
  readonly #selectKey: SqliteStatement
  readonly #updateAccount: SqliteStatement
  readonly #upsertKey: SqliteStatement
  /** Null: no such account. */
  readonly #accounts = new Map<string, BufferedAccount | null>()
  readonly #keys = new Map<string, BufferedKey>()
  readonly #changedAccounts = new Set<string>()
  readonly #changedKeys = new Set<string>()

  constructor(database: SqliteDatabase) {
    this.#selectAccount = prepareExact(
      database,
      `SELECT balance, held, owed, credit_held, funded, billing, credit_limit, frozen_at_ms, cap_amount, cap_period, ${COUNTS}
       FROM signalbox_accounts WHERE id = ?`,
    )
    this.#selectKey = prepareExact(
      database,
      `SELECT cap_amount, cap_period, ${COUNTS} FROM (SELECT ? AS id) AS wanted
       LEFT JOIN signalbox_keys AS keys ON keys.id = wanted.id
       LEFT JOIN signalbox_key_spending AS spending ON spending.key_id = wanted.id`,
    )
    this.#updateAccount = database.prepare(
      `UPDATE signalbox_accounts SET balance = ?, held = ?, owed = ?, credit_held = ?,
         period = ?, charged_day = ?, charged_month = ?, held_day = ?, held_month = ? WHERE id = ?`,
    )
    this.#upsertKey = database.prepare(
      `INSERT INTO signalbox_key_spending (${COUNTS}, key_id) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (key_id) DO UPDATE SET period = excluded.period, charged_day = excluded.charged_day,
         charged_month = excluded.charged_month, held_day = excluded.held_day, held_month = excluded.held_month`,
    )
  }

  /** For reading; undefined for an unknown account. */
  account(accountId: string): Readonly<BufferedAccount> | undefined {
    let account = this.#accounts.get(accountId)
    if (account === undefined) {
      const row = this.#selectAccount.get(accountId) as SqlRow | undefined
      account = row === undefined ? null : bufferedAccountOf(row)
      this.#accounts.set(accountId, account)
    }
    return account ?? undefined
  }

  key(keyId: string): Readonly<BufferedKey> {
    let key = this.#keys.get(keyId)
    if (key === undefined) {
      const row = this.#selectKey.get(keyId) as SqlRow
      key = { cap: capOf(row), counts: row['period'] === null ? NOTHING_SPENT : countsOf(row) }
      this.#keys.set(keyId, key)
    }
    return key
  }

  /** The same for changing. The account exists: a hold refers to it. */
  changing(accountId: string): BufferedAccount {
    this.#changedAccounts.add(accountId)
    return this.account(accountId) as BufferedAccount
  }

  changingKey(keyId: string): BufferedKey {
    this.#changedKeys.add(keyId)
    return this.key(keyId)
  }

  flush(): void {
    for (const accountId of this.#changedAccounts) {
      const { balance, held, owed, creditHeld, counts } = this.account(accountId)!
      this.#updateAccount.run(balance, held, owed, creditHeld, ...countValues(counts), accountId)
    }
    for (const keyId of this.#changedKeys) this.#upsertKey.run(...countValues(this.key(keyId).counts), keyId)
    this.discard()
  }

  discard(): void {
    this.#accounts.clear()
    this.#keys.clear()
    this.#changedAccounts.clear()
    this.#changedKeys.clear()
  }
}

function bufferedAccountOf(row: SqlRow): BufferedAccount {
  return {
    balance: row['balance'] as bigint,
    held: row['held'] as bigint,
    owed: row['owed'] as bigint,
    creditHeld: row['credit_held'] as bigint,
    funded: row['funded'] as bigint,
    billing: (row['billing'] as Account['billing'] | null) ?? undefined,
    creditLimit: optionalAmountOf(row['credit_limit']),
    isFrozen: row['frozen_at_ms'] !== null,
    cap: capOf(row),
    counts: countsOf(row),
  }
}

function countsOf(row: SqlRow): SpendingCounts {
  return {
    period: Number(row['period']),
    chargedDay: row['charged_day'] as bigint,
    chargedMonth: row['charged_month'] as bigint,
    heldDay: row['held_day'] as bigint,
    heldMonth: row['held_month'] as bigint,
  }
}

function countValues({ period, chargedDay, chargedMonth, heldDay, heldMonth }: SpendingCounts): SqlValue[] {
  return [period, chargedDay, chargedMonth, heldDay, heldMonth]
}
