import type { KeyStore } from '../key-store.ts'
import type { Account, Ledger } from '../ledger.ts'
import {
  ACCOUNT_COLUMNS,
  accountChanges,
  accountOf,
  accountValues,
  capValues,
  entryOf,
  KEY_COLUMNS,
  keyOf,
  keyValues,
  limitsValue,
  type SqlRow,
} from '../sql-rows.ts'
import { listOf, prepareExact, type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'

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

/** API keys, inside the caller's transaction. */
export type SqliteKeys = Synchronous<Required<KeyStore>>

/** Prepares the statements of {@link SqliteKeys}. */
export function sqliteKeys(database: SqliteDatabase): SqliteKeys {
  const selectByHash = prepareExact(database, 'SELECT * FROM signalbox_keys WHERE hash = ?')
  const selectById = prepareExact(database, 'SELECT * FROM signalbox_keys WHERE id = ?')
  const selectAll = prepareExact(database, 'SELECT * FROM signalbox_keys ORDER BY created_at_ms, id')
  const selectByAccount = prepareExact(
    database,
    'SELECT * FROM signalbox_keys WHERE account_id = ? ORDER BY created_at_ms, id',
  )
  const behind = '(created_at_ms, id) > (?, ?) ORDER BY created_at_ms, id LIMIT ?'
  const selectPage = prepareExact(database, `SELECT * FROM signalbox_keys WHERE ${behind}`)
  const selectPageOf = prepareExact(database, `SELECT * FROM signalbox_keys WHERE account_id = ? AND ${behind}`)
  const insert = database.prepare(
    `INSERT INTO signalbox_keys (${KEY_COLUMNS}) VALUES (${listOf('?', 14)}) ON CONFLICT (hash) DO NOTHING`,
  )
  const update = database.prepare(
    `UPDATE signalbox_keys SET account_id = ifnull(?, account_id), limits = iif(?, ?, limits),
       cap_amount = iif(?, ?, cap_amount), cap_period = iif(?, ?, cap_period),
       names_end_users = ifnull(?, names_end_users) WHERE id = ?`,
  )
  const revoke = database.prepare('UPDATE signalbox_keys SET revoked_at_ms = ifnull(revoked_at_ms, ?) WHERE id = ?')
  const expire = database.prepare(
    'UPDATE signalbox_keys SET expires_at_ms = min(ifnull(expires_at_ms, ?), ?) WHERE id = ?',
  )

  return {
    findByHash(hash) {
      const row = selectByHash.get(hash) as SqlRow | undefined
      return row === undefined ? undefined : keyOf(row)
    },
    find(keyId) {
      const row = selectById.get(keyId) as SqlRow | undefined
      return row === undefined ? undefined : keyOf(row)
    },
    insert: (record) => void insert.run(...keyValues(record, wholeMilliseconds)),
    list(accountId) {
      const rows = accountId === undefined ? selectAll.all() : selectByAccount.all(accountId)
      return (rows as SqlRow[]).map(keyOf)
    },
    page({ accountId, after, limit }) {
      const place = [
        after === undefined ? -1 : wholeMilliseconds(after.createdAtMs),
        after?.id ?? '',
        Math.max(0, limit),
      ]
      const rows = accountId === undefined ? selectPage.all(...place) : selectPageOf.all(accountId, ...place)
      return (rows as SqlRow[]).map(keyOf)
    },
    update(keyId, { accountId, limits, spendingCap, namesEndUsers }) {
      const setsCap = spendingCap === undefined ? 0 : 1
      const [capAmount, capPeriod] = capValues(spendingCap)
      const { changes } = update.run(
        accountId ?? null,
        limits === undefined ? 0 : 1,
        limitsValue(limits),
        setsCap,
        capAmount,
        setsCap,
        capPeriod,
        namesEndUsers === undefined ? null : Number(namesEndUsers),
        keyId,
      )
      return Number(changes) > 0
    },
    revoke: (keyId, nowMs) => Number(revoke.run(wholeMilliseconds(nowMs), keyId).changes) > 0,
    expire(keyId, expiresAtMs) {
      const timeMs = wholeMilliseconds(expiresAtMs)
      return Number(expire.run(timeMs, timeMs, keyId).changes) > 0
    },
  }
}
