import {
  assertAdjustment,
  assertRefund,
  assertRepeated,
  entryNumber,
  type Journal,
  type RefundResult,
} from '../journal.ts'
import { type Account, assertAmount, assertCreditOf, assertOwable, assertRoom, type Ledger } from '../ledger.ts'
import { NOTHING_SPENT, spendingChanged } from '../spending.ts'
import {
  ACCOUNT_COLUMNS,
  accountChanges,
  accountOf,
  accountValues,
  entryOf,
  journalSumsOf,
  openHoldOf,
  type SqlRow,
  spendingCountsOf,
} from '../sql-rows.ts'
import { listOf, prepareExact, type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'
import { type BufferedAccount, COUNTS, type SqliteMoney } from './sqlite-money.ts'

/** Credits, manual changes, and the journal, inside the caller's transaction. */
export type SqliteByHand = Synchronous<Journal & Pick<Ledger, 'credit'>>

interface ByHandParts {
  readonly money: SqliteMoney
  readonly timeOf: (callerMs: number) => number
}

interface ChargeRow {
  readonly account_id: string
  readonly hold_id: string | null
  readonly amount: bigint
  readonly due: bigint | null
  readonly key_id: string | null
  readonly period: bigint | null
}

/** Prepares the statements of {@link SqliteByHand}. */
export function sqliteByHand(database: SqliteDatabase, { money, timeOf }: ByHandParts): SqliteByHand {
  const selectCredit = database.prepare('SELECT account_id FROM signalbox_entries WHERE credit_id = ?')
  const selectOperation = prepareExact(
    database,
    `SELECT account_id, amount, owed, charge_id FROM signalbox_entries
     WHERE kind IN ('adjustment', 'refund') AND kind = ? AND operation_id = ?`,
  )
  const selectCharge = prepareExact(
    database,
    `SELECT account_id, hold_id, amount, due, key_id, period FROM signalbox_entries WHERE id = ? AND kind = 'charge'
       AND hold_id IS NOT NULL`,
  )
  const selectRefunded = prepareExact(
    database,
    'SELECT ifnull(sum(amount), 0) AS refunded FROM signalbox_entries WHERE charge_id = ?',
  )
  const selectDue = database.prepare(
    'SELECT id FROM signalbox_accounts WHERE first_expiry_ms <= ? ORDER BY first_expiry_ms LIMIT ?',
  )
  const selectHolds = prepareExact(
    database,
    `SELECT id, account_id, key_id, amount, created_at_ms, expires_at_ms FROM signalbox_holds
     WHERE ended_at_ms IS NULL AND ifnull(account_id = ?, 1) AND (created_at_ms, id) > (?, ?)
     ORDER BY created_at_ms, id LIMIT ?`,
  )
  const selectAccountSpending = prepareExact(database, `SELECT ${COUNTS} FROM signalbox_accounts WHERE id = ?`)
  const selectKeySpending = prepareExact(database, `SELECT ${COUNTS} FROM signalbox_key_spending WHERE key_id = ?`)
  const selectLines = { newest: linesOf(database, 'DESC', '<'), oldest: linesOf(database, 'ASC', '>') }
  const before = 'FROM signalbox_entries WHERE account_id = ? AND created_at_ms < ?'
  const selectSums = prepareExact(
    database,
    `SELECT * FROM (
       SELECT 'opening' AS kind, 0 AS lines, ifnull(balance_after, (SELECT sum(amount) ${before})) AS amount,
         ifnull(owed_after, (SELECT sum(owed) ${before})) AS owed
       ${before} ORDER BY created_at_ms DESC, id DESC LIMIT 1
     ) UNION ALL
     SELECT kind, count(*), sum(amount), sum(owed) FROM signalbox_entries
     WHERE account_id = ? AND created_at_ms >= ? AND created_at_ms < ? GROUP BY kind`,
  )

  function knownAccount(accountId: string): Readonly<BufferedAccount> {
    const known = money.account(accountId)
    if (known === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
    return known
  }

  /** Called after money was added. */
  function settleDebt(accountId: string, nowMs: number): void {
    // Remove expired credits first, so that they cannot repay the debt.
    money.expireDue(accountId, nowMs)
    money.repay(accountId, nowMs)
    const account = money.changing(accountId)
    account.funded = account.balance + account.held
  }

  function refunded(refundId: string): (RefundResult & { readonly chargeId: bigint }) | undefined {
    const row = selectOperation.get('refund', refundId) as
      | { readonly account_id: string; readonly amount: bigint; readonly charge_id: bigint }
      | undefined
    if (row === undefined) return undefined
    return { status: 'repeated', accountId: row.account_id, amount: row.amount, chargeId: row.charge_id }
  }

  return {
    credit({ creditId, accountId, amount, description, expiresAtMs }, nowMs) {
      const account = knownAccount(accountId)
      assertAmount(amount)
      if (amount === 0n) throw new RangeError('a credit must be above zero')
      const credited = selectCredit.get(creditId) as { readonly account_id: string } | undefined
      if (credited !== undefined) {
        assertCreditOf(accountId, { id: creditId, accountId: credited.account_id })
        return false
      }
      assertRoom(account, amount)
      const timeMs = wholeMilliseconds(timeOf(nowMs))
      money.changing(accountId).balance += amount
      money.append(accountId, 'credit', { amount, creditId, description }, timeMs)
      if (expiresAtMs !== undefined)
        money.addCredit(accountId, { creditId, remaining: amount, expiresAtMs: wholeMilliseconds(expiresAtMs) })
      settleDebt(accountId, timeMs)
      return true
    },

    adjust({ adjustmentId, accountId, amount, description, billing }, nowMs) {
      assertAdjustment(amount)
      knownAccount(accountId)
      const made = selectOperation.get('adjustment', adjustmentId) as
        | { readonly account_id: string; readonly amount: bigint; readonly owed: bigint }
        | undefined
      if (made !== undefined) {
        const isSame = made.account_id === accountId && made.amount - made.owed === amount
        assertRepeated('adjustment', adjustmentId, isSame)
        return 'repeated'
      }
      const timeMs = wholeMilliseconds(timeOf(nowMs))
      money.expireDue(accountId, timeMs)
      const known = knownAccount(accountId)
      const left = known.balance + amount
      const isMetered = (known.billing ?? billing) === 'metered'
      if (left < 0n && !isMetered) return 'insufficient_balance'
      const owed = left < 0n ? -left : 0n
      assertRoom(known, amount)
      assertOwable(known, owed)
      const account = money.changing(accountId)
      const moved = amount + owed
      account.balance += moved
      account.owed += owed
      if (moved < 0n) money.spend(accountId, -moved, timeMs)
      money.append(accountId, 'adjustment', { amount: moved, owed, operationId: adjustmentId, description }, timeMs)
      if (amount > 0n) settleDebt(accountId, timeMs)
      return 'adjusted'
    },

    refund({ refundId, chargeId, amount: wanted, description }, nowMs) {
      assertRefund(wanted)
      const number = entryNumber(chargeId)
      const made = refunded(refundId)
      if (made !== undefined && 'amount' in made) {
        assertRepeated('refund', refundId, made.chargeId === number && (wanted ?? made.amount) === made.amount)
        return { status: 'repeated', accountId: made.accountId, amount: made.amount }
      }
      const charge = number === undefined ? undefined : (selectCharge.get(number) as ChargeRow | undefined)
      if (charge === undefined || number === undefined) return { status: 'unknown_charge' }
      const { refunded: before } = selectRefunded.get(number) as { readonly refunded: bigint }
      const left = (charge.due ?? -charge.amount) - before
      const amount = wanted ?? left
      if (amount > left || left === 0n) return { status: 'above_charge', left }
      const { account_id: accountId, hold_id: holdId, key_id: keyId, period } = charge
      assertRoom(knownAccount(accountId), amount)
      const timeMs = wholeMilliseconds(timeOf(nowMs))
      money.changing(accountId).balance += amount
      if (keyId !== null && period !== null) {
        const change = { charged: -amount, held: 0n }
        for (const owner of [money.changing(accountId), money.changingKey(keyId)])
          owner.counts = spendingChanged(owner.counts, Number(period), change)
      }
      const line = { amount, holdId, operationId: refundId, chargeId: number, description }
      money.append(accountId, 'refund', line, timeMs)
      settleDebt(accountId, timeMs)
      return { status: 'refunded', accountId, amount }
    },

    lines({ accountId, fromMs, untilMs, order, after, limit }) {
      const select = selectLines[order]
      // There is no line beyond the ends of the range.
      const place = after ?? {
        createdAtMs: order === 'newest' ? untilMs : fromMs,
        number: order === 'newest' ? 0n : -1n,
      }
      const bounds = [accountId, wholeMilliseconds(fromMs), wholeMilliseconds(untilMs)] as const
      const rows = select.all(...bounds, wholeMilliseconds(place.createdAtMs), place.number, Math.max(0, limit))
      return (rows as SqlRow[]).map(entryOf)
    },

    sums({ accountId, fromMs, untilMs }) {
      const opening = [accountId, wholeMilliseconds(fromMs)] as const
      const range = [...opening, wholeMilliseconds(untilMs)] as const
      return journalSumsOf(selectSums.all(...opening, ...opening, ...opening, ...range) as SqlRow[])
    },

    openHolds({ accountId, after, limit }) {
      const rows = selectHolds.all(accountId ?? null, after?.createdAtMs ?? -1, after?.id ?? '', Math.max(0, limit))
      return (rows as SqlRow[]).map(openHoldOf)
    },

    // Not from `money`, whose data may have changed before the next group.
    spending(accountId, keyIds) {
      const account = selectAccountSpending.get(accountId) as SqlRow | undefined
      if (account === undefined) return undefined
      const keys = keyIds.map((keyId) => {
        const row = selectKeySpending.get(keyId) as SqlRow | undefined
        return row === undefined ? NOTHING_SPENT : spendingCountsOf(row)
      })
      return { account: spendingCountsOf(account), keys }
    },

    expireCredits(nowMs, limit) {
      const timeMs = wholeMilliseconds(timeOf(nowMs))
      const due = selectDue.all(timeMs, Math.max(0, limit)) as { readonly id: string }[]
      for (const { id } of due) money.expireDue(id, timeMs)
      return due.length
    },
  }
}

/** Prepares reading lines of a range after a place, in one order. */
function linesOf(database: SqliteDatabase, direction: 'ASC' | 'DESC', behind: '<' | '>') {
  return prepareExact(
    database,
    `SELECT * FROM signalbox_entries WHERE account_id = ? AND created_at_ms >= ? AND created_at_ms < ?
       AND (created_at_ms, id) ${behind} (?, ?) ORDER BY created_at_ms ${direction}, id ${direction} LIMIT ?`,
  )
}

/** Accounts and their newest lines, inside the caller's transaction. */
export type SqliteAccounts = Synchronous<
  Pick<Ledger, 'account' | 'createAccount' | 'entries' | 'listAccounts' | 'updateAccount'>
>

const SELECTED = `balance, held, owed, credit_held, frozen_at_ms, frozen_reason, ${ACCOUNT_COLUMNS}`

/** Prepares the statements of {@link SqliteAccounts}. */
export function sqliteAccounts(database: SqliteDatabase): SqliteAccounts {
  const select = prepareExact(database, `SELECT ${SELECTED} FROM signalbox_accounts WHERE id = ?`)
  const selectPage = prepareExact(
    database,
    `SELECT ${SELECTED} FROM signalbox_accounts WHERE id > ? AND instr(id, ?) > 0 ORDER BY id LIMIT ?`,
  )
  const insert = database.prepare(
    `INSERT INTO signalbox_accounts (${ACCOUNT_COLUMNS}) VALUES (${listOf('?', 9)}) ON CONFLICT (id) DO NOTHING`,
  )
  const selectEntries = prepareExact(
    database,
    'SELECT * FROM signalbox_entries WHERE account_id = ? ORDER BY created_at_ms DESC, id DESC LIMIT ?',
  )

  function account(accountId: string): Account | undefined {
    const row = select.get(accountId) as SqlRow | undefined
    return row === undefined ? undefined : accountOf(row)
  }

  return {
    account,
    createAccount(wanted, nowMs) {
      insert.run(...accountValues(wanted, wholeMilliseconds(nowMs)))
      return account(wanted.id)!
    },
    updateAccount(accountId, change) {
      const changes = accountChanges(change, wholeMilliseconds)
      if (changes.length > 0) {
        const set = changes.map(([column]) => `${column} = ?`).join(', ')
        database
          .prepare(`UPDATE signalbox_accounts SET ${set} WHERE id = ?`)
          .run(...changes.map(([, value]) => value), accountId)
      }
      return account(accountId)
    },
    listAccounts: ({ search = '', after = '', limit }) =>
      (selectPage.all(after, search, Math.max(0, limit)) as SqlRow[]).map(accountOf),
    entries: (accountId, limit) => (selectEntries.all(accountId, Math.max(0, limit)) as SqlRow[]).map(entryOf),
  }
}
