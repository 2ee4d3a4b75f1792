// See docs/decisions/0011-sqlite.md.

import { TransientMap } from '../../core/maps.ts'
import { type ChargedEnd, type UsageDraft, usageRecord } from '../../usage/usage-record.ts'
import type { CreditTake, ExpiringCredit } from '../expiring-credits.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import { type Account, heldResult, type Reservation, type ReserveResult, type Settlement } from '../ledger.ts'
import type {
  ChargeLine,
  HoldEnd,
  MadeOperation,
  MoneyAccount,
  MoneyBooks,
  MoneyHold,
  MoneyOwner,
  MoneyRules,
  NewLine,
} from '../money-rules.ts'
import type { Resolution } from '../resolution.ts'
import { crossingsOf, NOTHING_SPENT, Spending, type SpendingCounts, type SpendingThresholds } from '../spending.ts'
import { accountOf, capOf, optionalAmountOf, optionalTimeOf, type SqlRow, spendingCountsOf } from '../sql-rows.ts'
import type { TaskRecord } from '../task-store.ts'
import { recordValues } from '../usage-columns.ts'
import type { WriteBuffer } from './group-commit.ts'
import {
  listOf,
  prepareExact,
  prepareRows,
  type SqliteDatabase,
  type SqlValue,
  wholeMilliseconds,
} from './sqlite-database.ts'
import type { ClaimName, SqliteClaims } from './sqlite-expiring.ts'
import type { SqliteRecordInsert } from './sqlite-usage.ts'

/** Parts that a reservation writes in addition to the hold. */
export interface SqliteBooksParts {
  readonly claims: SqliteClaims
  readonly insertTask: (task: TaskRecord) => void
  readonly insertRecords: SqliteRecordInsert
  /** Returns the time for expiry and for the journal, given the caller's time `callerMs`. */
  readonly timeOf: (callerMs: number) => number
}

/** Hold as its end needs it. The columns of a claim are read if it has one. */
interface SqliteHold extends MoneyHold {
  readonly expiresAtMs: number
  readonly hasClaim: boolean
}

/** Account with the money that the operations of a group have changed. */
interface SqliteAccount extends Omit<Account, keyof MoneyAccount>, MoneyAccount {
  firstExpiryMs: number | undefined
}

interface SqliteKey extends MoneyOwner {
  /** Day of its row, or `undefined` if it has none yet. */
  readonly storedPeriod: number | undefined
}

/** Rules of money on an open database. */
export type SqliteMoney = MoneyRules<SqliteHold>

/** Maximum number of cached holds: more than are in flight at a time. */
const MAX_PLACED = 10_000

const HOLD_ENDS: readonly HoldEnd[] = ['settled', 'voided', 'expired']
const UNRESOLVED: Resolution = { resolved: false, charged: 0n, shortfall: 0n }

/** Columns of {@link holdOf}: few, because settlements read them. */
const HOLD_COLUMNS =
  'id, account_id, key_id, amount, is_metered, period, created_at_ms, expires_at_ms, claim_key IS NOT NULL AS has_claim'

const ENTRY_VALUES = `account_id, kind, amount, owed, hold_id, credit_id, operation_id, charge_id, description,
  created_at_ms, due, balance_after, owed_after, details, key_id, period`

/** Number of {@link ENTRY_VALUES}. */
const ENTRY_WIDTH = 16

/** Columns of the spending of an account or a key. */
export const COUNTS = 'period, charged_day, charged_month, held_day, held_month'

/**
 * Accounts, holds and journal lines, inside the transaction of a group. Each operation is decided immediately, by the content of
 * the database and the earlier operations of the group. A hold is written immediately, with its claim, counters and task; ends of
 * holds, journal lines and changes of accounts are buffered, so that a few calls write many of them. Each account and key is read
 * once and written once, because a group has exclusive access to the database; expiring credits, which few accounts have, are
 * written immediately.
 */
export class SqliteBooks implements MoneyBooks<SqliteHold>, WriteBuffer {
  readonly #parts: SqliteBooksParts
  readonly #statements: ReturnType<typeof statementsOf>
  /**
   * Holds that this process has placed and not ended, so that their ends need not read them: the row of a hold does not change
   * before its end. If another process has ended one, or its transaction was undone, the write of its end changes no row; see
   * {@link HoldEndedByOtherProcess}.
   */
  readonly #placed = new TransientMap<string, SqliteHold>()
  /** Accounts of the group; null if there is no such account. */
  #accounts = new Map<string, SqliteAccount | null>()
  #keys = new Map<string, SqliteKey>()
  #changedAccounts = new Set<MoneyAccount>()
  #changedKeys = new Set<MoneyOwner>()
  /** Lines to write, as a list of their values. */
  #entries: SqlValue[] = []
  #records: SqlValue[][] = []
  #ended = noneEnded()
  #endedAtMs = 0

  constructor(database: SqliteDatabase, parts: SqliteBooksParts) {
    this.#parts = parts
    this.#statements = statementsOf(database)
  }

  timeOf(callerMs: number): number {
    return wholeMilliseconds(this.#parts.timeOf(callerMs))
  }

  account(accountId: string): SqliteAccount | undefined {
    let account = this.#accounts.get(accountId)
    if (account === undefined) {
      const row = this.#statements.account.get(accountId) as SqlRow | undefined
      account = row === undefined ? null : moneyAccountOf(row)
      this.#accounts.set(accountId, account)
    }
    return account ?? undefined
  }

  key(keyId: string): SqliteKey {
    let key = this.#keys.get(keyId)
    if (key === undefined) {
      const row = this.#statements.key.get(keyId) as SqlRow
      const counts = row['period'] === null ? undefined : spendingCountsOf(row)
      key = { id: keyId, spendingCap: capOf(row), spending: new Spending(counts), storedPeriod: counts?.period }
      this.#keys.set(keyId, key)
    }
    return key
  }

  noteChange(account: MoneyAccount, key: MoneyOwner): void {
    this.#changedAccounts.add(account)
    this.#changedKeys.add(key)
  }

  append(account: MoneyAccount, line: NewLine): void {
    const { kind, operationId = null } = line
    const isCredit = kind === 'credit'
    this.#changedAccounts.add(account)
    this.#entries.push(
      account.id,
      kind,
      line.amount,
      line.owed ?? 0n,
      line.holdId ?? null,
      isCredit ? operationId : null,
      isCredit ? null : operationId,
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

  addRecord(draft: UsageDraft, ended: ChargedEnd): void {
    this.#records.push(recordValues(usageRecord(draft, ended)))
  }

  credits(account: MoneyAccount): ExpiringCredit[] {
    const rows = this.#statements.credits.all(account.id) as SqlRow[]
    return rows.map((row) => ({
      creditId: row['credit_id'] as string,
      remaining: row['remaining'] as bigint,
      expiresAtMs: Number(row['expires_at_ms']),
    }))
  }

  addCredit(account: SqliteAccount, { creditId, remaining, expiresAtMs }: ExpiringCredit): void {
    this.#statements.insertCredit.run(account.id, creditId, remaining, wholeMilliseconds(expiresAtMs))
    this.#noteFirstExpiry(account)
  }

  takeCredits(account: SqliteAccount, takes: readonly CreditTake[]): void {
    for (const { creditId, amount } of takes) this.#statements.takeCredit.run(amount, account.id, creditId)
    this.#statements.dropSpent.run(account.id)
    this.#noteFirstExpiry(account)
  }

  #noteFirstExpiry(account: SqliteAccount): void {
    const row = this.#statements.setFirstExpiry.get(account.id) as SqlRow
    account.firstExpiryMs = optionalTimeOf(row['first_expiry_ms'])
  }

  accountsWithExpired(timeMs: number, limit: number): SqliteAccount[] {
    const due = this.#statements.expiredCredits.all(timeMs, limit) as { readonly id: string }[]
    return due.map(({ id }) => this.account(id)!)
  }

  heldBefore(account: MoneyAccount, timeMs: number): bigint {
    this.#flushEnds()
    return (this.#statements.heldBefore.get(account.id, timeMs) as { readonly held: bigint }).held
  }

  peekClaim(claim: IdempotencyClaim, nowMs: number): ClaimResult {
    return this.#parts.claims.peek(claim, nowMs)
  }

  place(hold: MoneyHold, { expiresAtMs, claim, task }: Reservation, nowMs: number): boolean {
    const { id, accountId, keyId, amount, isMetered, period, createdAtMs } = hold
    const endMs = wholeMilliseconds(this.#parts.timeOf(nowMs) + (expiresAtMs - nowMs))
    const metered = isMetered ? 1 : 0
    const { insertHold } = this.#statements
    const { changes } = insertHold.run(id, id, accountId, keyId, amount, metered, period, createdAtMs, endMs)
    if (Number(changes) === 0) return false
    if (claim !== undefined) {
      this.#parts.claims.claim({ ...claim, claimedBy: id }, nowMs)
      this.#statements.linkClaim.run(claim.accountId, claim.key, claim.fingerprint, id)
    }
    // The hold of a task ends much later, and possibly in another process.
    if (task !== undefined) this.#parts.insertTask(task)
    else {
      const hasClaim = claim !== undefined
      this.#cache({ id, accountId, keyId, amount, isMetered, period, createdAtMs, expiresAtMs: endMs, hasClaim })
    }
    return true
  }

  #cache(hold: SqliteHold): void {
    const [oldest] = this.#placed.size >= MAX_PLACED ? this.#placed.keys() : []
    if (oldest !== undefined) this.#placed.delete(oldest)
    this.#placed.set(hold.id, hold)
  }

  firstOutcome(reservation: Reservation): ReserveResult | undefined {
    const { amount, status, counter } = this.#statements.known.get(reservation.holdId) as KnownRow
    if (amount !== null) return heldResult(reservation, amount)
    if (status === null) return undefined
    return status === 'spending_limit' ? { status, counter: counter ?? '' } : { status }
  }

  refuse({ holdId, expiresAtMs }: Reservation, outcome: ReserveResult): void {
    const counter = outcome.status === 'spending_limit' ? outcome.counter : null
    this.#statements.insertRefusal.run(holdId, outcome.status, counter, wholeMilliseconds(expiresAtMs))
  }

  openHold(holdId: string, timeMs: number): SqliteHold | undefined {
    if (HOLD_ENDS.some((end) => this.#ended[end].has(holdId))) return undefined
    const placed = this.#placed.get(holdId)
    // After its expiry, the id may belong to another hold.
    if (placed !== undefined && placed.expiresAtMs > timeMs) return placed
    return holdOf(this.#statements.openHold.get(holdId))
  }

  expiredHold(holdId: string): SqliteHold | undefined {
    this.#flushEnds()
    const row = this.#statements.endedHold.get(holdId) as EndedRow | undefined
    return row?.ended_by === 'expired' ? holdOf(row) : undefined
  }

  overdueHolds(timeMs: number, limit: number): SqliteHold[] {
    this.#flushEnds()
    return this.#statements.overdue.all(timeMs, limit).map((row) => holdOf(row)!)
  }

  enlarge({ id }: SqliteHold, amount: bigint): void {
    this.#statements.addToHold.run(amount, id)
    // The cached row has the old amount.
    this.#placed.delete(id)
  }

  end({ id, hasClaim }: SqliteHold, end: HoldEnd, timeMs: number, answer?: StoredAnswer): void {
    // One call writes only one time.
    if (this.#endedAtMs !== timeMs) this.#flushEnds()
    this.#endedAtMs = timeMs
    this.#ended[end].add(id)
    this.#placed.delete(id)
    if (!hasClaim) return
    const claim = this.#statements.claim.get(id) as ClaimName
    if (answer === undefined) this.#parts.claims.release(claim)
    else this.#parts.claims.complete(claim, answer)
  }

  endExpired({ id }: SqliteHold): void {
    this.#statements.setEnd.run('settled', id)
  }

  endedBefore(holdId: string, thresholds?: Settlement['thresholds']): Resolution {
    this.#flushEnds()
    const row = this.#statements.endedHold.get(holdId) as EndedRow | undefined
    const endedBy = row?.ended_by ?? undefined
    if (row === undefined || endedBy === undefined) return UNRESOLVED
    if (endedBy !== 'settled' || thresholds === undefined) return { ...UNRESOLVED, endedBy }
    this.flush()
    return { ...UNRESOLVED, endedBy, earlier: this.#earlierCharge(holdOf(row)!, thresholds) }
  }

  creditedAccount(creditId: string): string | undefined {
    const row = this.#statements.credit.get(creditId) as { readonly account_id: string } | undefined
    return row?.account_id
  }

  operation(kind: 'adjustment' | 'refund', id: string): MadeOperation | undefined {
    const row = this.#statements.operation.get(kind, id) as SqlRow | undefined
    return (
      row && {
        accountId: row['account_id'] as string,
        amount: row['amount'] as bigint,
        owed: row['owed'] as bigint,
        chargeId: optionalAmountOf(row['charge_id']),
      }
    )
  }

  charge(number: bigint): ChargeLine | undefined {
    const row = this.#statements.charge.get(number) as SqlRow | undefined
    return (
      row && {
        accountId: row['account_id'] as string,
        keyId: row['key_id'] as string,
        period: Number(row['period']),
        holdId: row['hold_id'] as string,
        due: row['due'] as bigint,
      }
    )
  }

  refunded(number: bigint): bigint {
    return (this.#statements.refunded.get(number) as { readonly refunded: bigint }).refunded
  }

  flush(): void {
    this.#flushEnds()
    if (this.#records.length > 0) this.#parts.insertRecords(this.#records)
    if (this.#entries.length > 0) this.#statements.insertEntries(this.#entries)
    for (const account of this.#changedAccounts) {
      const { balance, held, owed, creditHeld, funded, journalAtMs, spending } = account
      const money = [balance, held, owed, creditHeld, funded, journalAtMs]
      this.#statements.updateAccount.run(...money, ...countValues(spending), account.id)
    }
    for (const { id, spending } of this.#changedKeys) {
      const [period, ...sums] = countValues(spending)
      if (spending.period === this.key(id).storedPeriod) this.#statements.updateKey.run(...sums, id)
      else this.#statements.upsertKey.run(period!, ...sums, id)
    }
    this.#forgetGroup()
  }

  discard(): void {
    this.#ended = noneEnded()
    this.#placed.clear()
    this.#forgetGroup()
  }

  #forgetGroup(): void {
    this.#entries = []
    this.#records = []
    // New ones, for the reason described at `TransientMap`: a cleared map also keeps a chain of its tables.
    this.#accounts = new Map()
    this.#keys = new Map()
    this.#changedAccounts = new Set()
    this.#changedKeys = new Set()
  }

  #flushEnds(): void {
    for (const end of HOLD_ENDS) {
      const ids = this.#ended[end]
      if (ids.size === 0) continue
      const changed = this.#statements.endHolds([...ids], [this.#endedAtMs, end])
      if (changed !== ids.size) throw new HoldEndedByOtherProcess()
      this.#ended[end] = new Set()
    }
  }

  /** Reads the result of an earlier charge from the journal; see {@link Resolution.earlier}. The buffer was flushed. */
  #earlierCharge(hold: SqliteHold, thresholds: SpendingThresholds): Resolution['earlier'] {
    const { accountId, keyId, period, isMetered } = hold
    const charge = this.#statements.earlierCharge.get(accountId, hold.createdAtMs, hold.id) as SqlRow | undefined
    const account = this.account(accountId)
    if (charge === undefined || account === undefined) return undefined
    const amount = charge['due'] as bigint
    const paid = -(charge['amount'] as bigint)
    const place = [accountId, charge['created_at_ms'] as bigint, charge['id'] as bigint] as const
    const later = this.#statements.laterCharges.all(period, ...place, period) as LaterRow[]
    const isCredited = this.#statements.laterCredit.get(...place) !== undefined
    const key = this.key(keyId)
    const laterOfKey = later.filter((row) => row.key_id === keyId)
    const then = {
      ...account,
      spending: countsWithout(account.spending, later),
      balance: charge['balance_after'] as bigint,
      held: 0n,
      // If there was a later credit, the latest credit of that time is not known, so no balance threshold is reported.
      funded: isCredited ? 0n : account.funded,
      owed: (charge['owed_after'] as bigint) + amount - paid,
    }
    const keyThen = { spendingCap: key.spendingCap, spending: countsWithout(key.spending, laterOfKey) }
    const facts = { amount, paid, period, isMetered, account: then, key: keyThen }
    const charged = isMetered ? amount : paid
    return { charged, shortfall: amount - charged, crossings: crossingsOf(facts, thresholds) }
  }
}

/** Prepares the statements of {@link SqliteBooks}. */
function statementsOf(database: SqliteDatabase) {
  const exact = (sql: string) => prepareExact(database, sql)
  return {
    account: exact('SELECT * FROM signalbox_accounts WHERE id = ?'),
    key: exact(
      `SELECT cap_amount, cap_period, ${COUNTS} FROM (SELECT ? AS id) AS wanted
       LEFT JOIN signalbox_keys AS keys ON keys.id = wanted.id
       LEFT JOIN signalbox_key_spending AS spending ON spending.key_id = wanted.id`,
    ),
    updateAccount: database.prepare(
      `UPDATE signalbox_accounts SET balance = ?, held = ?, owed = ?, credit_held = ?, funded = ?,
         journal_at_ms = ?, period = ?, charged_day = ?, charged_month = ?, held_day = ?, held_month = ? WHERE id = ?`,
    ),
    upsertKey: database.prepare(
      `INSERT INTO signalbox_key_spending (${COUNTS}, key_id) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (key_id) DO UPDATE SET period = excluded.period, charged_day = excluded.charged_day,
         charged_month = excluded.charged_month, held_day = excluded.held_day, held_month = excluded.held_month`,
    ),
    // Does not set the day, so that its index is not written again.
    updateKey: database.prepare(
      `UPDATE signalbox_key_spending SET charged_day = ?, charged_month = ?, held_day = ?, held_month = ?
       WHERE key_id = ?`,
    ),
    insertEntries: prepareRows(
      database,
      ENTRY_WIDTH,
      (rowCount) =>
        `INSERT INTO signalbox_entries (${ENTRY_VALUES}) VALUES ${listOf(`(${listOf('?', ENTRY_WIDTH)})`, rowCount)}`,
    ),
    credit: database.prepare('SELECT account_id FROM signalbox_entries WHERE credit_id = ?'),
    operation: exact(
      `SELECT account_id, amount, owed, charge_id FROM signalbox_entries
       WHERE kind IN ('adjustment', 'refund') AND kind = ? AND operation_id = ?`,
    ),
    charge: exact(
      `SELECT account_id, hold_id, due, key_id, period FROM signalbox_entries WHERE id = ? AND kind = 'charge'`,
    ),
    refunded: exact('SELECT ifnull(sum(amount), 0) AS refunded FROM signalbox_entries WHERE charge_id = ?'),

    credits: exact(
      `SELECT credit_id, remaining, expires_at_ms FROM signalbox_expiring_credits
       WHERE account_id = ? ORDER BY expires_at_ms, rowid`,
    ),
    insertCredit: database.prepare(
      'INSERT INTO signalbox_expiring_credits (account_id, credit_id, remaining, expires_at_ms) VALUES (?, ?, ?, ?)',
    ),
    takeCredit: database.prepare(
      'UPDATE signalbox_expiring_credits SET remaining = remaining - ? WHERE account_id = ? AND credit_id = ?',
    ),
    dropSpent: database.prepare('DELETE FROM signalbox_expiring_credits WHERE account_id = ? AND remaining = 0'),
    setFirstExpiry: exact(
      `UPDATE signalbox_accounts SET first_expiry_ms =
         (SELECT min(expires_at_ms) FROM signalbox_expiring_credits WHERE account_id = signalbox_accounts.id)
       WHERE id = ? RETURNING first_expiry_ms`,
    ),
    expiredCredits: database.prepare(
      'SELECT id FROM signalbox_accounts WHERE first_expiry_ms <= ? ORDER BY first_expiry_ms LIMIT ?',
    ),
    heldBefore: exact(
      `SELECT ifnull(sum(amount), 0) AS held FROM signalbox_holds
       WHERE ended_at_ms IS NULL AND is_metered = 0 AND account_id = ? AND created_at_ms < ?`,
    ),

    known: exact(
      `SELECT holds.amount, refusals.status, refusals.counter FROM (SELECT ? AS id) AS wanted
       LEFT JOIN signalbox_holds AS holds ON holds.id = wanted.id
       LEFT JOIN signalbox_refusals AS refusals ON refusals.hold_id = wanted.id`,
    ),
    // Changes nothing for an id that is held (a conflict) or was rejected (a null id). One row per call: an INSERT of several
    // rows, or from a SELECT, may have to be undone alone, so SQLite copies each page it modifies, and random ids modify one
    // each. Measured, 64 reservations took 0.7 ms with one row per call and 1.04 ms with sixteen.
    insertHold: database.prepare(
      `INSERT OR IGNORE INTO signalbox_holds (id, account_id, key_id, amount, is_metered, period, created_at_ms, expires_at_ms)
       VALUES (iif(EXISTS (SELECT 1 FROM signalbox_refusals WHERE hold_id = ?), NULL, ?), ?, ?, ?, ?, ?, ?, ?)`,
    ),
    linkClaim: database.prepare(
      'UPDATE signalbox_holds SET claim_account_id = ?, claim_key = ?, claim_fingerprint = ? WHERE id = ?',
    ),
    insertRefusal: database.prepare(
      'INSERT INTO signalbox_refusals (hold_id, status, counter, expires_at_ms) VALUES (?, ?, ?, ?)',
    ),
    openHold: exact(`SELECT ${HOLD_COLUMNS} FROM signalbox_holds WHERE id = ? AND ended_at_ms IS NULL`),
    endedHold: exact(`SELECT ${HOLD_COLUMNS}, ended_by FROM signalbox_holds WHERE id = ?`),
    // The hold of an open task ends with its task, however long that takes.
    overdue: exact(
      `SELECT ${HOLD_COLUMNS} FROM signalbox_holds AS holds WHERE ended_at_ms IS NULL AND expires_at_ms <= ?
         AND NOT EXISTS (SELECT 1 FROM signalbox_tasks WHERE hold_id = holds.id
           AND state IN ('submitting', 'unknown', 'queued', 'in_progress'))
       ORDER BY expires_at_ms LIMIT ?`,
    ),
    claim: exact(
      `SELECT claim_account_id AS accountId, claim_key AS key, claim_fingerprint AS fingerprint, id AS claimedBy
       FROM signalbox_holds WHERE id = ?`,
    ),
    addToHold: database.prepare('UPDATE signalbox_holds SET amount = amount + ? WHERE id = ? AND ended_at_ms IS NULL'),
    setEnd: database.prepare('UPDATE signalbox_holds SET ended_by = ? WHERE id = ?'),
    endHolds: prepareRows(
      database,
      1,
      (rowCount) =>
        `UPDATE signalbox_holds SET ended_at_ms = ?, ended_by = ?
         WHERE id IN (${listOf('?', rowCount)}) AND ended_at_ms IS NULL`,
    ),

    // By the index of account and time: the journal has no index of holds, and few lines are younger than a hold.
    earlierCharge: exact(
      `SELECT id, amount, due, balance_after, owed_after, created_at_ms FROM signalbox_entries
       WHERE account_id = ? AND created_at_ms >= ? AND kind = 'charge' AND hold_id = ?`,
    ),
    laterCharges: exact(
      `SELECT key_id, ifnull(sum(due) FILTER (WHERE period = ?), 0) AS day, ifnull(sum(due), 0) AS month
       FROM signalbox_entries
       WHERE account_id = ? AND (created_at_ms, id) > (?, ?) AND kind = 'charge' AND period / 100 = ? / 100 GROUP BY key_id`,
    ),
    laterCredit: database.prepare(
      'SELECT 1 FROM signalbox_entries WHERE account_id = ? AND (created_at_ms, id) > (?, ?) AND amount > 0 LIMIT 1',
    ),
  }
}

interface KnownRow {
  readonly amount: bigint | null
  readonly status: Exclude<ReserveResult['status'], 'replay'> | null
  readonly counter: string | null
}

interface EndedRow extends SqlRow {
  readonly ended_by: HoldEnd | null
}

interface LaterRow {
  readonly key_id: string | null
  readonly day: bigint
  readonly month: bigint
}

function holdOf(found: unknown): SqliteHold | undefined {
  const row = found as SqlRow | undefined
  return (
    row && {
      id: row['id'] as string,
      accountId: row['account_id'] as string,
      keyId: row['key_id'] as string,
      amount: row['amount'] as bigint,
      isMetered: row['is_metered'] === 1n,
      period: Number(row['period']),
      createdAtMs: Number(row['created_at_ms']),
      expiresAtMs: Number(row['expires_at_ms']),
      hasClaim: row['has_claim'] === 1n,
    }
  )
}

function moneyAccountOf(row: SqlRow): SqliteAccount {
  return {
    ...accountOf(row),
    funded: row['funded'] as bigint,
    journalAtMs: Number(row['journal_at_ms']),
    firstExpiryMs: optionalTimeOf(row['first_expiry_ms']),
    spending: new Spending(spendingCountsOf(row)),
  }
}

function countValues({ period, chargedDay, chargedMonth, heldDay, heldMonth }: SpendingCounts): SqlValue[] {
  return [period, chargedDay, chargedMonth, heldDay, heldMonth]
}

/** Returns the spending without later charges of the same day and month. */
function countsWithout(spending: Spending, later: readonly LaterRow[]): SpendingCounts {
  const sumOf = (member: 'day' | 'month') => later.reduce((sum, row) => sum + row[member], 0n)
  const { period, chargedDay, chargedMonth } = spending
  return {
    ...NOTHING_SPENT,
    period,
    chargedDay: chargedDay - sumOf('day'),
    chargedMonth: chargedMonth - sumOf('month'),
  }
}

/** Created again instead of cleared, for the reason described at `TransientMap`. */
function noneEnded(): Record<HoldEnd, Set<string>> {
  return { settled: new Set(), voided: new Set(), expired: new Set() }
}

/** Thrown if a cached hold has ended, so that the decisions of the group are undone and repeated with the data of the database. */
class HoldEndedByOtherProcess extends Error {
  override readonly name = 'HoldEndedByOtherProcess'
}
