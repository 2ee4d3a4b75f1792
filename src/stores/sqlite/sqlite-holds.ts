import { usageRecord } from '../../usage/usage-record.ts'
import type { StoredAnswer } from '../idempotency-store.ts'
import {
  lesserOf,
  REPAYMENT,
  type Reservation,
  type ReserveResult,
  type Resolution,
  type Settlement,
} from '../ledger.ts'
import type { TaskRecord } from '../task-store.ts'
import { recordValues } from '../usage-columns.ts'
import type { WriteBuffer } from './group-commit.ts'
import {
  listOf,
  prepareExact,
  prepareRows,
  type SqliteDatabase,
  type SqliteStatement,
  type SqlValue,
  wholeMilliseconds,
} from './sqlite-database.ts'
import type { SqliteClaims, SqliteSpending } from './sqlite-expiring.ts'
import type { SqliteRecordInsert } from './sqlite-usage.ts'

/** What the buffered operations do to one account. */
interface AccountChange {
  /** What the database has, once it was read; null: no such account. */
  stored: StoredMoney | null | undefined
  addedBalance: bigint
  addedHeld: bigint
  addedOwed: bigint
}

interface StoredMoney {
  readonly balance: bigint
  readonly owed: bigint
}

type HoldEnd = NonNullable<Resolution['endedBy']>

interface HoldRow {
  readonly account_id: string
  readonly amount: bigint
  readonly has_parts: bigint
}

interface EndedRow extends HoldRow {
  readonly ended_by: HoldEnd | null
}

interface HoldPartsRow {
  readonly is_counted: bigint
  readonly claim_account_id: string | null
  readonly claim_key: string
  readonly claim_fingerprint: string
}

interface KnownRow {
  readonly is_held: bigint
  readonly status: Exclude<ReserveResult['status'], 'replay'> | null
  readonly counter: string | null
}

/** What a reservation writes besides the hold. */
export interface SqliteHoldsParts {
  readonly claims: SqliteClaims
  readonly spending: SqliteSpending
  readonly insertTask: (task: TaskRecord) => void
  readonly insertRecords: SqliteRecordInsert
  /** The time by which holds expire, when a caller's clock says `callerMs`. */
  readonly timeOf: (callerMs: number) => number
}

const HOLD_ENDS: readonly HoldEnd[] = ['settled', 'voided', 'expired']
const HELD: ReserveResult = { status: 'held' }
const UNRESOLVED: Resolution = { resolved: false, charged: 0n, shortfall: 0n }

/**
 * Holds from reservation to end, inside the transaction of a group. Each operation is decided at once, by what the database
 * holds and what the group has done before it. A hold is written at once, with its claim, counters and task; ends of holds,
 * journal lines and changes of accounts are buffered, so that a few calls write many of them.
 */
export class SqliteHolds implements WriteBuffer {
  readonly #parts: SqliteHoldsParts
  readonly #selectKnown: SqliteStatement
  readonly #insertHold: SqliteStatement
  readonly #linkClaim: SqliteStatement
  readonly #insertRefusal: SqliteStatement
  readonly #selectOpen: SqliteStatement
  readonly #selectParts: SqliteStatement
  readonly #selectEnded: SqliteStatement
  readonly #setEnd: SqliteStatement
  readonly #selectExpired: SqliteStatement
  readonly #endHolds: ReturnType<typeof prepareRows>
  readonly #insertEntries: ReturnType<typeof prepareRows>
  readonly #selectMoney: SqliteStatement
  readonly #changeAccount: SqliteStatement
  readonly #accounts = new Map<string, AccountChange>()
  readonly #ended: Readonly<Record<HoldEnd, Set<string>>> = {
    settled: new Set(),
    voided: new Set(),
    expired: new Set(),
  }
  #endedAtMs = 0
  #entries: SqlValue[][] = []
  #records: SqlValue[][] = []

  constructor(database: SqliteDatabase, parts: SqliteHoldsParts) {
    this.#parts = parts
    this.#selectKnown = prepareExact(
      database,
      `SELECT holds.id IS NOT NULL AS is_held, refusals.status, refusals.counter FROM (SELECT ? AS id) AS wanted
       LEFT JOIN signalbox_holds AS holds ON holds.id = wanted.id
       LEFT JOIN signalbox_refusals AS refusals ON refusals.hold_id = wanted.id`,
    )
    // Changes nothing for an id that is held (a conflict) or was refused (a null id). One row a call: an INSERT of several
    // rows, or from a SELECT, may have to be undone alone, so SQLite copies each page it touches, and random ids touch one
    // each. Measured, 64 reservations took 0.7 ms by one row a call and 1.04 ms by sixteen.
    this.#insertHold = database.prepare(
      `INSERT OR IGNORE INTO signalbox_holds (id, account_id, key_id, amount, is_counted, created_at_ms, expires_at_ms)
       VALUES (iif(EXISTS (SELECT 1 FROM signalbox_refusals WHERE hold_id = ?), NULL, ?), ?, ?, ?, ?, ?, ?)`,
    )
    this.#linkClaim = database.prepare(
      'UPDATE signalbox_holds SET claim_account_id = ?, claim_key = ?, claim_fingerprint = ? WHERE id = ?',
    )
    this.#insertRefusal = database.prepare(
      'INSERT INTO signalbox_refusals (hold_id, status, counter, expires_at_ms) VALUES (?, ?, ?, ?)',
    )
    // Few columns, because every settlement reads them; the others are read when there is anything in them.
    this.#selectOpen = prepareExact(
      database,
      `SELECT account_id, amount, is_counted OR claim_key IS NOT NULL AS has_parts FROM signalbox_holds
       WHERE id = ? AND ended_at_ms IS NULL`,
    )
    this.#selectParts = prepareExact(
      database,
      'SELECT is_counted, claim_account_id, claim_key, claim_fingerprint FROM signalbox_holds WHERE id = ?',
    )
    this.#selectEnded = prepareExact(
      database,
      'SELECT account_id, amount, is_counted AS has_parts, ended_by FROM signalbox_holds WHERE id = ?',
    )
    this.#setEnd = database.prepare('UPDATE signalbox_holds SET ended_by = ? WHERE id = ?')
    // The hold of an open task ends with its task, however long that takes.
    this.#selectExpired = database.prepare(
      `SELECT id FROM signalbox_holds AS holds WHERE ended_at_ms IS NULL AND expires_at_ms <= ?
         AND NOT EXISTS (SELECT 1 FROM signalbox_tasks WHERE hold_id = holds.id
           AND state IN ('submitting', 'unknown', 'queued', 'in_progress'))
       ORDER BY expires_at_ms LIMIT ?`,
    )
    this.#endHolds = prepareRows(
      database,
      (rowCount) => `UPDATE signalbox_holds SET ended_at_ms = ?, ended_by = ? WHERE id IN (${listOf('?', rowCount)})`,
    )
    this.#insertEntries = prepareRows(
      database,
      (rowCount) =>
        `INSERT INTO signalbox_entries (account_id, kind, amount, owed, hold_id, description, created_at_ms)
         VALUES ${listOf('(?, ?, ?, ?, ?, ?, ?)', rowCount)}`,
    )
    this.#selectMoney = prepareExact(database, 'SELECT balance, owed FROM signalbox_accounts WHERE id = ?')
    this.#changeAccount = database.prepare(
      'UPDATE signalbox_accounts SET balance = balance + ?, held = held + ?, owed = owed + ? WHERE id = ?',
    )
  }

  reserve(reservation: Reservation, nowMs: number): ReserveResult {
    const { holdId, accountId, keyId, amount, expiresAtMs, claim, spendingLimits = [], task } = reservation
    const result = this.#judge(reservation, nowMs)
    if (result.status !== 'held') return this.#knownResult(holdId) ?? this.#refuse(reservation, result)
    const { changes } = this.#insertHold.run(
      holdId,
      holdId,
      accountId,
      keyId,
      amount,
      spendingLimits.length > 0 ? 1 : 0,
      wholeMilliseconds(nowMs),
      wholeMilliseconds(this.#parts.timeOf(nowMs) + (expiresAtMs - nowMs)),
    )
    if (Number(changes) === 0) {
      const known = this.#knownResult(holdId)
      if (known === undefined) throw new TypeError('a reservation lacks a value')
      return known
    }
    this.#changeMoney(accountId, { balance: -amount, held: amount })
    if (claim !== undefined) {
      this.#parts.claims.claim(claim, nowMs)
      this.#linkClaim.run(claim.accountId, claim.key, claim.fingerprint, holdId)
    }
    if (spendingLimits.length > 0) this.#parts.spending.count(holdId, spendingLimits, amount, nowMs)
    if (task !== undefined) this.#parts.insertTask(task)
    return result
  }

  settle({ holdId, amount, description, answer, record }: Settlement, nowMs: number): Resolution {
    const open = this.#findOpen(holdId)
    const late = open === undefined ? this.#findExpired(holdId) : undefined
    const hold = open ?? late
    if (hold === undefined) return this.#endedBefore(holdId)
    const accountId = hold.account_id
    const endedAtMs = wholeMilliseconds(nowMs)
    const held = open === undefined ? 0n : hold.amount
    const available = amount <= held ? amount : this.#moneyOf(accountId)!.balance + held
    const charged = lesserOf(amount, available)
    const shortfall = amount - charged
    if (open === undefined) this.#setEnd.run('settled', holdId)
    else this.#end(holdId, 'settled', endedAtMs)
    this.#changeMoney(accountId, { balance: held - charged, held: -held, owed: shortfall })
    this.#endParts(holdId, hold, amount - held, open === undefined ? 'keep' : answer)
    this.#entries.push([accountId, 'charge', -charged, 0n, holdId, description, endedAtMs])
    // The kinds are those of old, because the column takes no new ones; what they are, the change of what is owed tells.
    if (shortfall > 0n) this.#entries.push([accountId, 'shortfall', 0n, shortfall, holdId, description, endedAtMs])
    if (record !== undefined) {
      const ended = { endedAtMs, dueNanoDollars: amount, chargedNanoDollars: charged }
      this.#records.push(recordValues(usageRecord(record, ended)))
    }
    this.#repay(accountId, endedAtMs)
    return { resolved: true, charged, shortfall }
  }

  void(holdId: string, nowMs: number): Resolution {
    return this.#release(holdId, 'voided', nowMs)
  }

  expire(nowMs: number, limit: number): number {
    this.flush()
    const dueMs = this.#parts.timeOf(nowMs)
    const expired = this.#selectExpired.all(dueMs, Math.max(0, limit)) as { readonly id: string }[]
    for (const { id } of expired) this.#release(id, 'expired', nowMs)
    return expired.length
  }

  flush(): void {
    this.#flushEnds()
    if (this.#entries.length > 0) this.#insertEntries(this.#entries)
    if (this.#records.length > 0) this.#parts.insertRecords(this.#records)
    for (const [accountId, { addedBalance, addedHeld, addedOwed }] of this.#accounts) {
      if (addedBalance !== 0n || addedHeld !== 0n || addedOwed !== 0n)
        this.#changeAccount.run(addedBalance, addedHeld, addedOwed, accountId)
    }
    this.discard()
  }

  discard(): void {
    for (const ids of Object.values(this.#ended)) ids.clear()
    this.#entries = []
    this.#records = []
    this.#accounts.clear()
  }

  /** The result of a reservation whose id is new. */
  #judge({ accountId, amount, claim, spendingLimits = [] }: Reservation, nowMs: number): ReserveResult {
    const money = this.#moneyOf(accountId)
    if (money === undefined) return { status: 'unknown_account' }
    if (claim !== undefined) {
      const found = this.#parts.claims.peek(claim, nowMs)
      if (found.status !== 'claimed') return found
    }
    if (money.owed > 0n) return { status: 'in_arrears' }
    if (money.balance < amount) return { status: 'insufficient_balance' }
    const counter = this.#parts.spending.exceeded(spendingLimits, amount, nowMs)
    return counter === undefined ? HELD : { status: 'spending_limit', counter }
  }

  /** The first result of an id that was reserved before. */
  #knownResult(holdId: string): ReserveResult | undefined {
    const { is_held: isHeld, status, counter } = this.#selectKnown.get(holdId) as KnownRow
    if (isHeld !== 0n) return HELD
    if (status === null) return undefined
    return status === 'spending_limit' ? { status, counter: counter ?? '' } : { status }
  }

  #refuse({ holdId, expiresAtMs }: Reservation, result: ReserveResult): ReserveResult {
    // A replay is found again through its key.
    if (result.status === 'replay') return result
    const counter = result.status === 'spending_limit' ? result.counter : null
    this.#insertRefusal.run(holdId, result.status, counter, wholeMilliseconds(expiresAtMs))
    return result
  }

  #findOpen(holdId: string): HoldRow | undefined {
    return this.#bufferedEnd(holdId) === undefined ? (this.#selectOpen.get(holdId) as HoldRow | undefined) : undefined
  }

  /** A hold that has expired and was not charged since. */
  #findExpired(holdId: string): HoldRow | undefined {
    const row = this.#selectEnd(holdId)
    return row?.ended_by === 'expired' ? row : undefined
  }

  #selectEnd(holdId: string): EndedRow | undefined {
    if (this.#bufferedEnd(holdId) !== undefined) this.#flushEnds()
    return this.#selectEnded.get(holdId) as EndedRow | undefined
  }

  #endedBefore(holdId: string): Resolution {
    const endedBy = this.#selectEnd(holdId)?.ended_by ?? undefined
    return endedBy === undefined ? UNRESOLVED : { ...UNRESOLVED, endedBy }
  }

  /** Ends a hold without a charge. */
  #release(holdId: string, end: HoldEnd, nowMs: number): Resolution {
    const hold = this.#findOpen(holdId)
    if (hold === undefined) return this.#endedBefore(holdId)
    const endedAtMs = wholeMilliseconds(nowMs)
    this.#end(holdId, end, endedAtMs)
    this.#changeMoney(hold.account_id, { balance: hold.amount, held: -hold.amount })
    this.#endParts(holdId, hold, -hold.amount)
    this.#repay(hold.account_id, endedAtMs)
    return { resolved: true, charged: 0n, shortfall: 0n }
  }

  #bufferedEnd(holdId: string): HoldEnd | undefined {
    return HOLD_ENDS.find((end) => this.#ended[end].has(holdId))
  }

  #end(holdId: string, end: HoldEnd, endedAtMs: number): void {
    // One call writes one time.
    if (this.#endedAtMs !== endedAtMs) this.#flushEnds()
    this.#endedAtMs = endedAtMs
    this.#ended[end].add(holdId)
  }

  /** Corrects the counters of a hold by what it was charged above it, and ends its claim; `keep`: it has none any more. */
  #endParts(holdId: string, hold: HoldRow, difference: bigint, answer?: StoredAnswer | 'keep'): void {
    if (hold.has_parts === 0n) return
    const { claims, spending } = this.#parts
    const parts = this.#selectParts.get(holdId) as HoldPartsRow
    if (parts.is_counted !== 0n) spending.correct(holdId, difference)
    if (parts.claim_account_id === null || answer === 'keep') return
    const claim = { accountId: parts.claim_account_id, key: parts.claim_key, fingerprint: parts.claim_fingerprint }
    if (answer === undefined) claims.release(claim)
    else claims.complete(claim, answer)
  }

  #flushEnds(): void {
    for (const end of HOLD_ENDS) {
      const ids = this.#ended[end]
      if (ids.size === 0) continue
      const rows = [...ids].map((holdId) => [holdId])
      this.#endHolds(rows, [this.#endedAtMs, end])
      ids.clear()
    }
  }

  /** Pays what an account owes from its balance, as far as that goes. */
  #repay(accountId: string, nowMs: number): void {
    const { balance, owed } = this.#moneyOf(accountId)!
    const paid = lesserOf(owed, balance)
    if (paid === 0n) return
    this.#changeMoney(accountId, { balance: -paid, owed: -paid })
    this.#entries.push([accountId, 'charge', -paid, -paid, null, REPAYMENT, nowMs])
  }

  /** Balance and debt after what is buffered; undefined for an unknown account. */
  #moneyOf(accountId: string): StoredMoney | undefined {
    const change = this.#changeOf(accountId)
    if (change.stored === undefined)
      change.stored = (this.#selectMoney.get(accountId) as StoredMoney | undefined) ?? null
    if (change.stored === null) return undefined
    return { balance: change.stored.balance + change.addedBalance, owed: change.stored.owed + change.addedOwed }
  }

  #changeMoney(accountId: string, added: { balance: bigint; held?: bigint; owed?: bigint }): void {
    const change = this.#changeOf(accountId)
    change.addedBalance += added.balance
    change.addedHeld += added.held ?? 0n
    change.addedOwed += added.owed ?? 0n
  }

  #changeOf(accountId: string): AccountChange {
    let change = this.#accounts.get(accountId)
    if (change === undefined) {
      change = { stored: undefined, addedBalance: 0n, addedHeld: 0n, addedOwed: 0n }
      this.#accounts.set(accountId, change)
    }
    return change
  }
}
