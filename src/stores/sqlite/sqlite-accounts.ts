import type { Journal } from '../journal.ts'
import type { Account, Ledger } from '../ledger.ts'
import { NOTHING_SPENT } from '../spending.ts'
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
import { COUNTS } from './sqlite-books.ts'
import { listOf, prepareExact, type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'

/** Accounts, their journal, open holds and spending, inside the caller's transaction. */
export type SqliteAccounts = Synchronous<
  Pick<Ledger, 'account' | 'createAccount' | 'entries' | 'listAccounts' | 'updateAccount'> &
    Pick<Journal, 'lines' | 'openHolds' | 'spending' | 'sums'>
>

/** Prepares the statements of {@link SqliteAccounts}. */
export function sqliteAccounts(database: SqliteDatabase): SqliteAccounts {
  const select = prepareExact(database, 'SELECT * FROM signalbox_accounts WHERE id = ?')
  const selectPage = prepareExact(
    database,
    `SELECT * FROM signalbox_accounts WHERE id > ? AND instr(id, ?) > 0 ORDER BY id LIMIT ?`,
  )
  const insert = database.prepare(
    `INSERT INTO signalbox_accounts (${ACCOUNT_COLUMNS}) VALUES (${listOf('?', 9)}) ON CONFLICT (id) DO NOTHING`,
  )
  const selectEntries = prepareExact(
    database,
    'SELECT * FROM signalbox_entries WHERE account_id = ? ORDER BY created_at_ms DESC, id DESC LIMIT ?',
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
  const selectSums = prepareExact(
    database,
    `SELECT * FROM (
       SELECT 'opening' AS kind, 0 AS lines, balance_after AS amount, owed_after AS owed FROM signalbox_entries
       WHERE account_id = ? AND created_at_ms < ? ORDER BY created_at_ms DESC, id DESC LIMIT 1
     ) UNION ALL
     SELECT kind, count(*), sum(amount), sum(owed) FROM signalbox_entries
     WHERE account_id = ? AND created_at_ms >= ? AND created_at_ms < ? GROUP BY kind`,
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
      return journalSumsOf(selectSums.all(...opening, ...range) as SqlRow[])
    },

    openHolds({ accountId, after, limit }) {
      const rows = selectHolds.all(accountId ?? null, after?.createdAtMs ?? -1, after?.id ?? '', Math.max(0, limit))
      return (rows as SqlRow[]).map(openHoldOf)
    },

    spending(accountId, keyIds) {
      const account = selectAccountSpending.get(accountId) as SqlRow | undefined
      if (account === undefined) return undefined
      const keys = keyIds.map((keyId) => {
        const row = selectKeySpending.get(keyId) as SqlRow | undefined
        return row === undefined ? NOTHING_SPENT : spendingCountsOf(row)
      })
      return { account: spendingCountsOf(account), keys }
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
