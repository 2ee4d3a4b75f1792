import { type CreditTake, type ExpiringCredit, expireCredits, expiryText, spendCredits } from '../expiring-credits.ts'
import type { ChargeDetails, EntryKind } from '../journal.ts'
import { lesserOf, REPAYMENT } from '../ledger.ts'
import { listOf, prepareExact, prepareRows, type SqliteDatabase, type SqlValue } from './sqlite-database.ts'

/** Money of one account, with what is buffered. */
export interface SqliteBalance {
  readonly balance: bigint
  readonly held: bigint
  readonly owed: bigint
  /** When the first of its credits expires; null: none does. */
  readonly firstExpiryMs: number | null
}

/** A line to write to the journal. What is absent is null. */
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
  /** Numbers of the counters that a charge counts in, separated by commas. */
  readonly counters?: string | null
}

interface StoredMoney {
  readonly balance: bigint
  readonly held: bigint
  readonly owed: bigint
  readonly journal_at_ms: bigint
  first_expiry_ms: bigint | null
}

/** What the buffered operations do to one account. */
interface AccountChange {
  /** What the database has, once it was read; null: no such account. */
  stored: StoredMoney | null | undefined
  addedBalance: bigint
  addedHeld: bigint
  addedOwed: bigint
  /** Time of the newest line; 0: none was added. */
  journalAtMs: number
}

const ENTRY_VALUES = `account_id, kind, amount, owed, hold_id, credit_id, operation_id, charge_id, description,
  created_at_ms, due, balance_after, owed_after, details, counters`

/**
 * Balances, journal lines and expiring credits, inside the transaction of a group. Changes of accounts and lines are
 * buffered, so that a few calls write many of them; credits that expire, which few accounts have, are written at once.
 */
export class SqliteMoney {
  readonly #select
  readonly #changeAccount
  readonly #insertEntries
  readonly #selectCredits
  readonly #insertCredit
  readonly #takeCredit
  readonly #dropSpent
  readonly #setFirstExpiry
  readonly #selectHeldBefore
  readonly #accounts = new Map<string, AccountChange>()
  #entries: SqlValue[][] = []

  constructor(database: SqliteDatabase) {
    this.#select = prepareExact(
      database,
      'SELECT balance, held, owed, journal_at_ms, first_expiry_ms FROM signalbox_accounts WHERE id = ?',
    )
    this.#changeAccount = database.prepare(
      `UPDATE signalbox_accounts SET balance = balance + ?, held = held + ?, owed = owed + ?,
         journal_at_ms = max(journal_at_ms, ?) WHERE id = ?`,
    )
    this.#insertEntries = prepareRows(
      database,
      (rowCount) =>
        `INSERT INTO signalbox_entries (${ENTRY_VALUES}) VALUES ${listOf(`(${listOf('?', 15)})`, rowCount)}`,
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
       WHERE ended_at_ms IS NULL AND account_id = ? AND created_at_ms < ?`,
    )
  }

  /** Undefined for an unknown account. */
  of(accountId: string): SqliteBalance | undefined {
    const { stored, addedBalance, addedHeld, addedOwed } = this.#read(accountId)
    if (stored === null || stored === undefined) return undefined
    return {
      balance: stored.balance + addedBalance,
      held: stored.held + addedHeld,
      owed: stored.owed + addedOwed,
      firstExpiryMs: stored.first_expiry_ms === null ? null : Number(stored.first_expiry_ms),
    }
  }

  change(accountId: string, added: { balance: bigint; held?: bigint; owed?: bigint }): void {
    const change = this.#changeOf(accountId)
    change.addedBalance += added.balance
    change.addedHeld += added.held ?? 0n
    change.addedOwed += added.owed ?? 0n
  }

  /** Writes a line after the change of money that it tells of. Times of an account's lines never go back. */
  append(accountId: string, kind: EntryKind, line: NewLine, nowMs: number): void {
    const change = this.#read(accountId)
    const { balance, held, owed } = this.of(accountId)!
    change.journalAtMs = Math.max(nowMs, change.journalAtMs, Number(change.stored!.journal_at_ms))
    this.#entries.push([
      accountId,
      kind,
      line.amount,
      line.owed ?? 0n,
      line.holdId ?? null,
      line.creditId ?? null,
      line.operationId ?? null,
      line.chargeId ?? null,
      line.description,
      change.journalAtMs,
      line.due ?? null,
      balance + held,
      owed,
      line.details === undefined ? null : JSON.stringify(line.details),
      line.counters ?? null,
    ])
  }

  /** Pays what an account owes from its balance, as far as that goes. */
  repay(accountId: string, nowMs: number): void {
    const { balance, owed } = this.of(accountId)!
    const paid = lesserOf(owed, balance)
    if (paid === 0n) return
    this.change(accountId, { balance: -paid, owed: -paid })
    this.spend(accountId, paid, nowMs)
    this.append(accountId, 'repayment', { amount: -paid, owed: -paid, description: REPAYMENT }, nowMs)
  }

  addCredit(accountId: string, { creditId, remaining, expiresAtMs }: ExpiringCredit): void {
    this.#insertCredit.run(accountId, creditId, remaining, expiresAtMs)
    this.#noteFirstExpiry(accountId)
  }

  /** Takes spent money out of the credits that expire; see {@link spendCredits}. */
  spend(accountId: string, amount: bigint, atMs: number): void {
    if (amount > 0n && this.#read(accountId).stored?.first_expiry_ms !== null)
      this.#take(accountId, spendCredits(this.#creditsOf(accountId), amount, atMs))
  }

  /** Has a credit of the account expired that has money left? */
  isExpiryDue(accountId: string, nowMs: number): boolean {
    const firstExpiryMs = this.#read(accountId).stored?.first_expiry_ms ?? null
    return firstExpiryMs !== null && firstExpiryMs <= nowMs
  }

  /** Takes what has expired; see {@link expireCredits}. No end of a hold may be buffered. */
  expireDue(accountId: string, nowMs: number): void {
    if (!this.isExpiryDue(accountId, nowMs)) return
    const heldBefore = (timeMs: number): bigint =>
      (this.#selectHeldBefore.get(accountId, timeMs) as { readonly held: bigint }).held
    const { balance } = this.of(accountId)!
    const takes = expireCredits(this.#creditsOf(accountId), { nowMs, balance, heldBefore })
    for (const { creditId, amount } of takes) {
      this.change(accountId, { balance: -amount })
      const line = { amount: -amount, operationId: creditId, description: expiryText(creditId) }
      this.append(accountId, 'expiry', line, nowMs)
    }
    this.#take(accountId, takes)
  }

  flush(): void {
    if (this.#entries.length > 0) this.#insertEntries(this.#entries)
    for (const [accountId, { addedBalance, addedHeld, addedOwed, journalAtMs }] of this.#accounts) {
      if (addedBalance !== 0n || addedHeld !== 0n || addedOwed !== 0n || journalAtMs !== 0)
        this.#changeAccount.run(addedBalance, addedHeld, addedOwed, journalAtMs, accountId)
    }
    this.discard()
  }

  discard(): void {
    this.#entries = []
    this.#accounts.clear()
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
    const row = this.#setFirstExpiry.get(accountId) as Pick<StoredMoney, 'first_expiry_ms'>
    const { stored } = this.#read(accountId)
    if (stored !== null && stored !== undefined) stored.first_expiry_ms = row.first_expiry_ms
  }

  #read(accountId: string): AccountChange {
    const change = this.#changeOf(accountId)
    if (change.stored === undefined) change.stored = (this.#select.get(accountId) as StoredMoney | undefined) ?? null
    return change
  }

  #changeOf(accountId: string): AccountChange {
    let change = this.#accounts.get(accountId)
    if (change === undefined) {
      change = { stored: undefined, addedBalance: 0n, addedHeld: 0n, addedOwed: 0n, journalAtMs: 0 }
      this.#accounts.set(accountId, change)
    }
    return change
  }
}
