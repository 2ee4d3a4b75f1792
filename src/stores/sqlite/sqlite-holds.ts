import { formatDollars } from '../../core/money.ts'
import type { Reservation, ReserveResult, Resolution, Settlement } from '../ledger.ts'
import type { SqliteClaims } from './sqlite-claims.ts'
import { prepareExact, type SqliteDatabase } from './sqlite-database.ts'
import type { SqliteSpending } from './sqlite-spending.ts'
import type { sqliteTaskInsert } from './sqlite-task-rows.ts'
import { wholeMilliseconds } from './whole-milliseconds.ts'

interface ReservationFacts {
  readonly is_held: bigint
  readonly status: Exclude<ReserveResult['status'], 'replay'> | null
  readonly counter: string | null
  readonly balance: bigint | null
}

interface HoldRow {
  readonly account_id: string
  readonly amount: bigint
  readonly is_counted: bigint
  readonly claim_account_id: string | null
  readonly claim_key: string | null
  readonly claim_fingerprint: string | null
}

interface Charge {
  readonly charged: bigint
  /** What the balance lacked. */
  readonly shortfall: bigint
}

const UNRESOLVED: Resolution = { resolved: false, charged: 0n, shortfall: 0n }

/** Holds from reservation to end, inside the transaction of whoever calls. */
export interface SqliteHolds {
  reserve(reservation: Reservation, nowMs: number): ReserveResult
  settle(settlement: Settlement, nowMs: number): Resolution
  void(holdId: string, nowMs: number): Resolution
  expire(nowMs: number, limit: number): number
}

/** What a reservation writes besides the hold. */
export interface SqliteHoldsParts {
  readonly claims: SqliteClaims
  readonly spending: SqliteSpending
  readonly insertTask: ReturnType<typeof sqliteTaskInsert>
}

/** Prepares the statements of {@link SqliteHolds}. */
export function sqliteHolds(database: SqliteDatabase, { claims, spending, insertTask }: SqliteHoldsParts): SqliteHolds {
  // One statement for all that a reservation asks first: the hold may exist, may have been refused, or be new.
  const selectFacts = prepareExact(
    database,
    `SELECT holds.id IS NOT NULL AS is_held, refusals.status, refusals.counter, accounts.balance
     FROM (SELECT ? AS hold_id, ? AS account_id) AS wanted
     LEFT JOIN signalbox_holds AS holds ON holds.id = wanted.hold_id
     LEFT JOIN signalbox_refusals AS refusals ON refusals.hold_id = wanted.hold_id
     LEFT JOIN signalbox_accounts AS accounts ON accounts.id = wanted.account_id`,
  )
  const takeMoney = database.prepare(
    'UPDATE signalbox_accounts SET balance = balance - ?, held = held + ? WHERE id = ?',
  )
  const insertHold = database.prepare(
    `INSERT INTO signalbox_holds (id, account_id, key_id, amount, is_counted, created_at_ms, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  )
  const linkClaim = database.prepare(
    'UPDATE signalbox_holds SET claim_account_id = ?, claim_key = ?, claim_fingerprint = ? WHERE id = ?',
  )
  const insertRefusal = database.prepare(
    'INSERT INTO signalbox_refusals (hold_id, status, counter, expires_at_ms) VALUES (?, ?, ?, ?)',
  )
  const endHold = prepareExact(
    database,
    `UPDATE signalbox_holds SET ended_at_ms = ? WHERE id = ? AND ended_at_ms IS NULL
     RETURNING account_id, amount, is_counted, claim_account_id, claim_key, claim_fingerprint`,
  )
  const selectBalance = prepareExact(database, 'SELECT balance FROM signalbox_accounts WHERE id = ?')
  const returnMoney = database.prepare(
    'UPDATE signalbox_accounts SET balance = balance + ?, held = held - ? WHERE id = ?',
  )
  const insertEntry = database.prepare(
    `INSERT INTO signalbox_entries (account_id, kind, amount, hold_id, description, created_at_ms)
     VALUES (?, ?, ?, ?, ?, ?)`,
  )
  // The hold of an open task ends with its task, however long that takes.
  const selectOverdue = database.prepare(
    `SELECT id FROM signalbox_holds AS holds WHERE ended_at_ms IS NULL AND expires_at_ms <= ?
       AND NOT EXISTS (SELECT 1 FROM signalbox_tasks WHERE hold_id = holds.id
         AND state IN ('submitting', 'unknown', 'queued', 'in_progress'))
     ORDER BY expires_at_ms LIMIT ?`,
  )

  function decide(reservation: Reservation, balance: bigint | null, nowMs: number): ReserveResult {
    const { holdId, accountId, keyId, amount, expiresAtMs, claim, spendingLimits = [], task } = reservation
    if (balance === null) return { status: 'unknown_account' }
    if (claim !== undefined) {
      const found = claims.peek(claim, nowMs)
      if (found.status !== 'claimed') return found
    }
    if (balance < amount) return { status: 'insufficient_balance' }
    const counter = spending.exceeded(spendingLimits, amount, nowMs)
    if (counter !== undefined) return { status: 'spending_limit', counter }

    takeMoney.run(amount, amount, accountId)
    insertHold.run(
      holdId,
      accountId,
      keyId,
      amount,
      spendingLimits.length > 0 ? 1 : 0,
      wholeMilliseconds(nowMs),
      wholeMilliseconds(expiresAtMs),
    )
    if (claim !== undefined) {
      claims.claim(claim, nowMs)
      linkClaim.run(claim.accountId, claim.key, claim.fingerprint, holdId)
    }
    if (spendingLimits.length > 0) spending.count(holdId, spendingLimits, amount, nowMs)
    if (task !== undefined) insertTask(task)
    return { status: 'held' }
  }

  /** Ends a hold that is open and charges it; undefined when there is none. */
  function end(holdId: string, amount: bigint, nowMs: number): (Charge & { readonly hold: HoldRow }) | undefined {
    const hold = endHold.get(wholeMilliseconds(nowMs), holdId) as HoldRow | undefined
    if (hold === undefined) return undefined
    const { charged, shortfall } = chargeOf(hold, amount)
    returnMoney.run(hold.amount - charged, hold.amount, hold.account_id)
    if (hold.is_counted !== 0n) spending.correct(holdId, charged - hold.amount)
    return { hold, charged, shortfall }
  }

  function chargeOf(hold: HoldRow, amount: bigint): Charge {
    if (amount <= hold.amount) return { charged: amount, shortfall: 0n }
    const { balance } = selectBalance.get(hold.account_id) as { readonly balance: bigint }
    const available = balance + hold.amount
    return amount <= available
      ? { charged: amount, shortfall: 0n }
      : { charged: available, shortfall: amount - available }
  }

  function voidHold(holdId: string, nowMs: number): Resolution {
    const ended = end(holdId, 0n, nowMs)
    if (ended === undefined) return UNRESOLVED
    const claim = claimOf(ended.hold)
    if (claim !== undefined) claims.release(claim)
    return { resolved: true, charged: 0n, shortfall: 0n }
  }

  return {
    reserve(reservation, nowMs) {
      const facts = selectFacts.get(reservation.holdId, reservation.accountId) as ReservationFacts
      if (facts.is_held !== 0n) return { status: 'held' }
      if (facts.status !== null) return refusalOf(facts.status, facts.counter)
      const result = decide(reservation, facts.balance, nowMs)
      // A replay is found again through its key.
      if (result.status !== 'held' && result.status !== 'replay') {
        const counter = result.status === 'spending_limit' ? result.counter : null
        insertRefusal.run(reservation.holdId, result.status, counter, wholeMilliseconds(reservation.expiresAtMs))
      }
      return result
    },

    settle({ holdId, amount, description, answer }, nowMs) {
      const ended = end(holdId, amount, nowMs)
      if (ended === undefined) return UNRESOLVED
      const { hold, charged, shortfall } = ended
      insertEntry.run(hold.account_id, 'charge', -charged, holdId, description, wholeMilliseconds(nowMs))
      if (shortfall > 0n) {
        const missing = `${formatDollars(shortfall)} USD not covered: ${description}`
        insertEntry.run(hold.account_id, 'shortfall', 0n, holdId, missing, wholeMilliseconds(nowMs))
      }
      const claim = claimOf(hold)
      if (claim !== undefined) {
        if (answer === undefined) claims.release(claim)
        else claims.complete(claim, answer)
      }
      return { resolved: true, charged, shortfall }
    },

    void: voidHold,

    expire(nowMs, limit) {
      const overdue = selectOverdue.all(nowMs, Math.max(0, limit)) as { readonly id: string }[]
      for (const { id } of overdue) voidHold(id, nowMs)
      return overdue.length
    },
  }
}

function refusalOf(status: NonNullable<ReservationFacts['status']>, counter: string | null): ReserveResult {
  return status === 'spending_limit' ? { status, counter: counter ?? '' } : { status }
}

function claimOf(hold: HoldRow): { accountId: string; key: string; fingerprint: string } | undefined {
  const { claim_account_id: accountId, claim_key: key, claim_fingerprint: fingerprint } = hold
  return accountId === null || key === null || fingerprint === null ? undefined : { accountId, key, fingerprint }
}
