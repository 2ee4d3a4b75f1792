import type { KeyStore } from '../api-keys.ts'
import {
  AUDIT_DELETE_BATCH,
  AUDIT_RETENTION_MS,
  type AuditEntry,
  type AuditQuery,
  auditDetails,
  auditEntryOf,
} from '../audit-store.ts'
import type { Journal } from '../journal.ts'
import type { Account, Ledger } from '../ledger.ts'
import type { SettingStore, Settings } from '../retention.ts'
import { NOTHING_SPENT } from '../spending.ts'
import {
  ACCOUNT_COLUMNS,
  accountChanges,
  accountOf,
  accountValues,
  capValues,
  entryOf,
  journalSumsOf,
  KEY_COLUMNS,
  keyOf,
  keyValues,
  limitsValue,
  openHoldOf,
  type SqlRow,
  type StoredKind,
  type StoredUsage,
  spendingCountsOf,
} from '../sql-rows.ts'
import { COUNTS } from './sqlite-books.ts'
import {
  listOf,
  prepareExact,
  type SqliteDatabase,
  type SqlValue,
  type Synchronous,
  wholeMilliseconds,
} from './sqlite-database.ts'

/** Journal, open holds and spending, inside the caller's transaction. */
export type SqliteJournal = Synchronous<Pick<Journal, 'lines' | 'openHolds' | 'spending' | 'sums'>>

/** Prepares the statements of {@link SqliteJournal}. */
export function sqliteJournal(database: SqliteDatabase): SqliteJournal {
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

  return {
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

/** Accounts and their newest lines, inside the caller's transaction. */
export type SqliteAccounts = Synchronous<
  Pick<Ledger, 'account' | 'createAccount' | 'entries' | 'listAccounts' | 'updateAccount'>
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

/** Synchronous audit of an open database. */
export interface SqliteAudit {
  add(entry: AuditEntry): void
  list(query: AuditQuery): readonly AuditEntry[]
}

/** Prepares the statements of the audit. */
export function sqliteAudit(database: SqliteDatabase): SqliteAudit {
  const insert = database.prepare(
    'INSERT INTO signalbox_audit (id, created_at_ms, subject, details) VALUES (?, ?, ?, ?)',
  )
  const deleteOld = database.prepare(
    `DELETE FROM signalbox_audit WHERE id IN (
       SELECT id FROM signalbox_audit WHERE created_at_ms <= ? ORDER BY created_at_ms LIMIT ${AUDIT_DELETE_BATCH})`,
  )
  return {
    add(entry) {
      insert.run(entry.id, wholeMilliseconds(entry.createdAtMs), entry.subject ?? null, auditDetails(entry))
      deleteOld.run(wholeMilliseconds(entry.createdAtMs - AUDIT_RETENTION_MS))
    },
    // Prepared at each call, because only operators list entries.
    list({ subject, fromMs, untilMs, after, limit }) {
      const conditions: string[] = ['true']
      const values: SqlValue[] = []
      const add = (condition: string, ...given: SqlValue[]): void => {
        conditions.push(condition)
        values.push(...given)
      }
      if (subject !== undefined) add('subject = ?', subject)
      if (fromMs !== undefined) add('created_at_ms >= ?', wholeMilliseconds(fromMs))
      if (untilMs !== undefined) add('created_at_ms < ?', wholeMilliseconds(untilMs))
      if (after !== undefined) add('(created_at_ms, id) < (?, ?)', wholeMilliseconds(after.createdAtMs), after.id)
      const select = database.prepare(
        `SELECT * FROM signalbox_audit WHERE ${conditions.join(' AND ')} ORDER BY created_at_ms DESC, id DESC LIMIT ?`,
      )
      return (select.all(...values, Math.max(0, limit)) as SqlRow[]).map(auditEntryOf)
    },
  }
}

/** Settings of an open database, by synchronous calls. */
export type SqliteSettings = Synchronous<SettingStore>

/** Prepares the statements of the settings. */
export function sqliteSettings(database: SqliteDatabase): SqliteSettings {
  const select = database.prepare('SELECT name, value FROM signalbox_settings')
  const upsert = database.prepare(
    'INSERT INTO signalbox_settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
    read: () =>
      Object.fromEntries((select.all() as { name: string; value: number }[]).map(({ name, value }) => [name, value])),
    write(settings: Settings) {
      for (const [name, value] of Object.entries(settings)) upsert.run(name, value)
    },
  }
}

/** Tables of the kinds, the condition for rows that have not expired, and the size of a row if it is not `byte_length`. */
const TABLES: Readonly<Record<StoredKind, readonly [table: string, isLive: string, byteLength?: string]>> = {
  idempotencyKeys: ['signalbox_idempotency INDEXED BY signalbox_idempotency_stored', 'expires_at_ms > ?'],
  responses: ['signalbox_responses INDEXED BY signalbox_responses_stored', 'expires_at_ms > ?'],
  conversations: ['signalbox_conversations INDEXED BY signalbox_conversations_stored', 'expires_at_ms > ?'],
  files: ['signalbox_files', 'expires_at_ms > ?'],
  tasks: ['signalbox_tasks INDEXED BY signalbox_tasks_stored', '? IS NOT NULL'],
  webhookSecrets: ['signalbox_webhook_secrets', 'ifnull(expires_at_ms > ?, 1)', 'length(secret)'],
}

/** Returns how much an account has stored. */
export type SqliteStored = (accountId: string, kind: StoredKind, nowMs: number) => StoredUsage

/** Prepares the statements of {@link SqliteStored}. */
export function sqliteStored(database: SqliteDatabase): SqliteStored {
  const count = ([table, isLive, byteLength = 'byte_length']: (typeof TABLES)[StoredKind]) =>
    database.prepare(
      `SELECT count(*) AS count, ifnull(sum(${byteLength}), 0) AS byteLength FROM ${table} WHERE account_id = ? AND ${isLive}`,
    )
  const counts = Object.fromEntries(Object.entries(TABLES).map(([kind, table]) => [kind, count(table)]))
  return (accountId, kind, nowMs) => {
    const row = counts[kind]!.get(accountId, nowMs) as Record<keyof StoredUsage, number | bigint>
    return { count: Number(row.count), byteLength: Number(row.byteLength) }
  }
}
