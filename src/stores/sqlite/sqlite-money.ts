import { type CreditTake, type ExpiringCredit, expireCredits, expiryText, spendCredits } from '../expiring-credits.ts'
import type { ChargeDetails, EntryKind } from '../journal.ts'
import { type Account, lesserOf, REPAYMENT, type Reservation } from '../ledger.ts'
import { NOTHING_SPENT, type SpendingCounts, type SpendingOwner } from '../spending.ts'
import { capOf, optionalAmountOf, optionalTimeOf, type SqlRow, spendingCountsOf } from '../sql-rows.ts'
import {
  listOf,
  prepareExact,
  prepareRows,
  type SqliteDatabase,
  type SqliteStatement,
  type SqlValue,
} from './sqlite-database.ts'

/** Changes of a key or an account by the operations of a group. */
interface BufferedOwner extends SpendingOwner {
  counts: SpendingCounts
}

export interface BufferedKey extends BufferedOwner {
  /** Day of its row, or `undefined` if it has none yet. */
  readonly storedPeriod: number | undefined
}

/** State of an account that the operations of a group read and change. */
export interface BufferedAccount extends BufferedOwner {
  balance: bigint
  held: bigint
  owed: bigint
  creditHeld: bigint
  /** Balance and held money after the latest credit. */
  funded: bigint
  /** Time of the newest line. */
  journalAtMs: number
  /** Time at which its first credit expires, or `undefined` for none. Written immediately, not with the rest. */
  firstExpiryMs: number | undefined
  readonly billing: Account['billing']
  readonly creditLimit: bigint | undefined
  readonly isFrozen: boolean
}

/** Line to write to the journal. Omitted members are null. */
export interface NewLine {
  readonly amount: bigint
  readonly description: string
  readonly owed?: bigint
  readonly holdId?: string | null
  readonly creditId?: string
  readonly operationId?: string
  readonly chargeId?: bigint
  readonly due?: bigint
  readonly details?: ChargeDetails | undefined
  /** Key and day of a charge, in which it counts. */
  readonly keyId?: string
  readonly period?: bigint
}

const ENTRY_VALUES = `account_id, kind, amount, owed, hold_id, credit_id, operation_id, charge_id, description,
  created_at_ms, due, balance_after, owed_after, details, key_id, period`

/** Number of {@link ENTRY_VALUES}. */
const ENTRY_WIDTH = 16

/** Columns of the spending of an account or a key. */
export const COUNTS = 'period, charged_day, charged_month, held_day, held_month'

/**
 * Accounts, keys and journal lines after the operations of a group. Each account and key is read once and written once, because a
 * group has exclusive access to the database; expiring credits, which few accounts have, are written immediately.
 */
export class SqliteMoney {
  readonly #selectAccount: SqliteStatement
  readonly #selectKey: SqliteStatement
  readonly #updateAccount: SqliteStatement
  readonly #upsertKey: SqliteStatement
  /** Does not set the day, so that its index is not written again. */
  readonly #updateKey: SqliteStatement
  readonly #insertEntries
  readonly #selectCredits
  readonly #insertCredit
  readonly #takeCredit
  readonly #dropSpent
  readonly #setFirstExpiry
  readonly #selectHeldBefore
  /** Accounts of the group; null if there is no such account. */
  #accounts = new Map<string, BufferedAccount | null>()
  #keys = new Map<string, BufferedKey>()
  #changedAccounts = new Set<string>()
  #changedKeys = new Set<string>()
  /** Lines to write, as a list of their values. */
  #entries: SqlValue[] = []

  constructor(database: SqliteDatabase) {
    this.#selectAccount = prepareExact(
      database,
      `SELECT balance, held, owed, credit_held, funded, journal_at_ms, first_expiry_ms, billing, credit_limit, frozen_at_ms,
         cap_amount, cap_period, ${COUNTS} FROM signalbox_accounts WHERE id = ?`,
    )
    this.#selectKey = prepareExact(
      database,
      `SELECT cap_amount, cap_period, ${COUNTS} FROM (SELECT ? AS id) AS wanted
       LEFT JOIN signalbox_keys AS keys ON keys.id = wanted.id
       LEFT JOIN signalbox_key_spending AS spending ON spending.key_id = wanted.id`,
    )
    this.#updateAccount = database.prepare(
      `UPDATE signalbox_accounts SET balance = ?, held = ?, owed = ?, credit_held = ?, funded = ?,
         journal_at_ms = ?, period = ?, charged_day = ?, charged_month = ?, held_day = ?, held_month = ? WHERE id = ?`,
    )
    this.#upsertKey = database.prepare(
      `INSERT INTO signalbox_key_spending (${COUNTS}, key_id) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (key_id) DO UPDATE SET period = excluded.period, charged_day = excluded.charged_day,
         charged_month = excluded.charged_month, held_day = excluded.held_day, held_month = excluded.held_month`,
    )
    this.#updateKey = database.prepare(
      `UPDATE signalbox_key_spending SET charged_day = ?, charged_month = ?, held_day = ?, held_month = ?
       WHERE key_id = ?`,
    )
    const row = `(${listOf('?', ENTRY_WIDTH)})`
    this.#insertEntries = prepareRows(
      database,
      ENTRY_WIDTH,
      (rowCount) => `INSERT INTO signalbox_entries (${ENTRY_VALUES}) VALUES ${listOf(row, rowCount)}`,
    )
    this.#selectCredits = prepareExact(
      database,
      `SELECT credit_id, remaining, expires_at_ms FROM signalbox_expiring_credits
       WHERE account_id = ? ORDER BY expires_at_ms, rowid`,
    )
    this.#insertCredit = database.prepare(
      'INSERT INTO signalbox_expiring_credits (account_id, credit_id, remaining, expires_at_ms) VALUES (?, ?, ?, ?)',
    )
    this.#takeCredit = database.prepare(
      'UPDATE signalbox_expiring_credits SET remaining = remaining - ? WHERE account_id = ? AND credit_id = ?',
    )
    this.#dropSpent = database.prepare('DELETE FROM signalbox_expiring_credits WHERE account_id = ? AND remaining = 0')
    this.#setFirstExpiry = prepareExact(
      database,
      `UPDATE signalbox_accounts SET first_expiry_ms =
         (SELECT min(expires_at_ms) FROM signalbox_expiring_credits WHERE account_id = signalbox_accounts.id)
       WHERE id = ? RETURNING first_expiry_ms`,
    )
    this.#selectHeldBefore = prepareExact(
      database,
      `SELECT ifnull(sum(amount), 0) AS held FROM signalbox_holds
       WHERE ended_at_ms IS NULL AND is_metered = 0 AND account_id = ? AND created_at_ms < ?`,
    )
  }

  /** Returns an account for reading; undefined for an unknown one. */
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
      const counts = row['period'] === null ? undefined : spendingCountsOf(row)
      key = { cap: capOf(row), counts: counts ?? NOTHING_SPENT, storedPeriod: counts?.period }
      this.#keys.set(keyId, key)
    }
    return key
  }

  /** Returns an account for a change. It exists, because a hold refers to it. */
  changing(accountId: string): BufferedAccount {
    this.#changedAccounts.add(accountId)
    return this.account(accountId) as BufferedAccount
  }

  changingKey(keyId: string): BufferedKey {
    this.#changedKeys.add(keyId)
    return this.key(keyId)
  }

  /** Writes a line after its change of money. Times of an account's lines never decrease. */
  append(accountId: string, kind: EntryKind, line: NewLine, nowMs: number): void {
    const account = this.changing(accountId)
    account.journalAtMs = Math.max(nowMs, account.journalAtMs)
    this.#entries.push(
      accountId,
      kind,
      line.amount,
      line.owed ?? 0n,
      line.holdId ?? null,
      line.creditId ?? null,
      line.operationId ?? null,
      line.chargeId ?? null,
      line.description,
      account.journalAtMs,
      line.due ?? null,
      account.balance + account.held,
      account.owed,
      line.details === undefined ? null : JSON.stringify(line.details),
      line.keyId ?? null,
      line.period ?? null,
    )
  }

  /** Pays an account's debt from its balance, as far as possible. */
  repay(accountId: string, nowMs: number): void {
    const { balance, owed } = this.account(accountId)!
    const paid = lesserOf(owed, balance)
    if (paid === 0n) return
    const account = this.changing(accountId)
    account.balance -= paid
    account.owed -= paid
    this.spend(accountId, paid, nowMs)
    this.append(accountId, 'repayment', { amount: -paid, owed: -paid, description: REPAYMENT }, nowMs)
  }

  addCredit(accountId: string, { creditId, remaining, expiresAtMs }: ExpiringCredit): void {
    this.#insertCredit.run(accountId, creditId, remaining, expiresAtMs)
    this.#noteFirstExpiry(accountId)
  }

  /** Takes spent money out of expiring credits; see {@link spendCredits}. */
  spend(accountId: string, amount: bigint, atMs: number): void {
    if (amount > 0n && this.account(accountId)?.firstExpiryMs !== undefined)
      this.#take(accountId, spendCredits(this.#creditsOf(accountId), amount, atMs))
  }

  /** Whether an expired credit of the account has money left. */
  isExpiryDue(accountId: string, nowMs: number): boolean {
    const firstExpiryMs = this.account(accountId)?.firstExpiryMs
    return firstExpiryMs !== undefined && firstExpiryMs <= nowMs
  }

  /** Removes expired credits; see {@link expireCredits}. No end of a hold may be buffered. */
  expireDue(accountId: string, nowMs: number): void {
    if (!this.isExpiryDue(accountId, nowMs)) return
    const heldBefore = (timeMs: number): bigint =>
      (this.#selectHeldBefore.get(accountId, timeMs) as { readonly held: bigint }).held
    const account = this.changing(accountId)
    const takes = expireCredits(this.#creditsOf(accountId), { nowMs, account, heldBefore })
    for (const { creditId, amount } of takes) {
      account.balance -= amount
      const line = { amount: -amount, operationId: creditId, description: expiryText(creditId) }
      this.append(accountId, 'expiry', line, nowMs)
    }
    this.#take(accountId, takes)
  }

  flush(): void {
    if (this.#entries.length > 0) this.#insertEntries(this.#entries)
    for (const accountId of this.#changedAccounts) {
      const { balance, held, owed, creditHeld, funded, journalAtMs, counts } = this.account(accountId)!
      const money = [balance, held, owed, creditHeld, funded, journalAtMs]
      this.#updateAccount.run(...money, ...countValues(counts), accountId)
    }
    for (const keyId of this.#changedKeys) {
      const { counts, storedPeriod } = this.key(keyId)
      const [period, ...sums] = countValues(counts)
      if (counts.period === storedPeriod) this.#updateKey.run(...sums, keyId)
      else this.#upsertKey.run(period!, ...sums, keyId)
    }
    this.discard()
  }

  discard(): void {
    this.#entries = []
    // New ones, for the reason described at `TransientMap`: a cleared map also keeps a chain of its tables.
    this.#accounts = new Map()
    this.#keys = new Map()
    this.#changedAccounts = new Set()
    this.#changedKeys = new Set()
  }

  #creditsOf(accountId: string): ExpiringCredit[] {
    const rows = this.#selectCredits.all(accountId) as { credit_id: string; remaining: bigint; expires_at_ms: bigint }[]
    return rows.map((row) => ({
      creditId: row.credit_id,
      remaining: row.remaining,
      expiresAtMs: Number(row.expires_at_ms),
    }))
  }

  #take(accountId: string, takes: readonly CreditTake[]): void {
    if (takes.length === 0) return
    for (const { creditId, amount } of takes) this.#takeCredit.run(amount, accountId, creditId)
    this.#dropSpent.run(accountId)
    this.#noteFirstExpiry(accountId)
  }

  #noteFirstExpiry(accountId: string): void {
    const row = this.#setFirstExpiry.get(accountId) as SqlRow
    this.changing(accountId).firstExpiryMs = optionalTimeOf(row['first_expiry_ms'])
  }
}

/** Whether an account pays for a reservation later. */
export function isMeteredFor({ billing }: Pick<Reservation, 'billing'>, account: Readonly<BufferedAccount>): boolean {
  return (account.billing ?? billing) === 'metered'
}

function bufferedAccountOf(row: SqlRow): BufferedAccount {
  return {
    balance: row['balance'] as bigint,
    held: row['held'] as bigint,
    owed: row['owed'] as bigint,
    creditHeld: row['credit_held'] as bigint,
    funded: row['funded'] as bigint,
    journalAtMs: Number(row['journal_at_ms']),
    firstExpiryMs: optionalTimeOf(row['first_expiry_ms']),
    billing: (row['billing'] as Account['billing'] | null) ?? undefined,
    creditLimit: optionalAmountOf(row['credit_limit']),
    isFrozen: row['frozen_at_ms'] !== null,
    cap: capOf(row),
    counts: spendingCountsOf(row),
  }
}

function countValues({ period, chargedDay, chargedMonth, heldDay, heldMonth }: SpendingCounts): SqlValue[] {
  return [period, chargedDay, chargedMonth, heldDay, heldMonth]
}
