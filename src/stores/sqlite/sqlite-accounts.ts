import type { KeyRecord, KeyStore } from '../key-store.ts'
import { type Account, assertAmount, type Ledger, type LedgerEntry, MAX_AMOUNT } from '../ledger.ts'
import type { SpendingCap } from '../principal.ts'
import {
  prepareExact,
  type SqliteDatabase,
  type Synchronous,
  wholeMilliseconds,
  wholeMillisecondsOrNull,
} from './sqlite-database.ts'

interface AccountRow {
  readonly id: string
  readonly balance: bigint
  readonly held: bigint
  readonly tier: Account['tier']
  readonly cap_amount: bigint | null
  readonly cap_period: SpendingCap['period'] | null
  readonly created_at_ms: bigint
}

interface EntryRow {
  readonly id: bigint
  readonly account_id: string
  readonly kind: LedgerEntry['kind']
  readonly amount: bigint
  readonly hold_id: string | null
  readonly description: string
  readonly created_at_ms: bigint
}

/** Accounts, credits and journal, inside the transaction of whoever calls. */
export type SqliteAccounts = Synchronous<
  Pick<Ledger, 'account' | 'createAccount' | 'credit' | 'entries' | 'updateAccount'>
>

/** Prepares the statements of {@link SqliteAccounts}. */
export function sqliteAccounts(database: SqliteDatabase): SqliteAccounts {
  const select = prepareExact(
    database,
    'SELECT id, balance, held, tier, cap_amount, cap_period, created_at_ms FROM signalbox_accounts WHERE id = ?',
  )
  const insert = database.prepare(
    `INSERT INTO signalbox_accounts (id, tier, cap_amount, cap_period, created_at_ms) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO NOTHING`,
  )
  const setTier = database.prepare('UPDATE signalbox_accounts SET tier = ? WHERE id = ?')
  const setCap = database.prepare('UPDATE signalbox_accounts SET cap_amount = ?, cap_period = ? WHERE id = ?')
  const addMoney = database.prepare('UPDATE signalbox_accounts SET balance = balance + ? WHERE id = ?')
  const selectCredit = database.prepare('SELECT id FROM signalbox_entries WHERE credit_id = ?')
  const insertCredit = database.prepare(
    `INSERT INTO signalbox_entries (account_id, kind, amount, credit_id, description, created_at_ms)
     VALUES (?, 'credit', ?, ?, ?, ?)`,
  )
  const selectEntries = prepareExact(
    database,
    `SELECT id, account_id, kind, amount, hold_id, description, created_at_ms FROM signalbox_entries
     WHERE account_id = ? ORDER BY id DESC LIMIT ?`,
  )

  function account(accountId: string): Account | undefined {
    const row = select.get(accountId) as AccountRow | undefined
    return row === undefined ? undefined : accountOf(row)
  }

  return {
    account,
    createAccount({ id, tier = 'paid', spendingCap }, nowMs) {
      insert.run(id, tier, spendingCap?.amount ?? null, spendingCap?.period ?? null, wholeMilliseconds(nowMs))
      return account(id)!
    },
    updateAccount(accountId, { tier, spendingCap }) {
      if (tier !== undefined) setTier.run(tier, accountId)
      if (spendingCap !== undefined) setCap.run(spendingCap?.amount ?? null, spendingCap?.period ?? null, accountId)
      return account(accountId)
    },
    credit({ creditId, accountId, amount, description }, nowMs) {
      const found = account(accountId)
      if (found === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      assertAmount(amount)
      if (amount === 0n) throw new RangeError('a credit must be above zero')
      if (selectCredit.get(creditId) !== undefined) return false
      if (found.balance + found.held + amount > MAX_AMOUNT)
        throw new RangeError('the account cannot hold more than 2^63 - 1 nano-dollars')
      addMoney.run(amount, accountId)
      insertCredit.run(accountId, amount, creditId, description, wholeMilliseconds(nowMs))
      return true
    },
    entries: (accountId, limit) => (selectEntries.all(accountId, Math.max(0, limit)) as EntryRow[]).map(entryOf),
  }
}

function accountOf(row: AccountRow): Account {
  return {
    id: row.id,
    balance: row.balance,
    held: row.held,
    tier: row.tier,
    spendingCap: spendingCapOf(row),
    createdAtMs: Number(row.created_at_ms),
  }
}

/** The cap in two columns that are null together. */
function spendingCapOf(row: Pick<AccountRow, 'cap_amount' | 'cap_period'>): SpendingCap | undefined {
  return row.cap_amount === null || row.cap_period === null
    ? undefined
    : { amount: row.cap_amount, period: row.cap_period }
}

function entryOf(row: EntryRow): LedgerEntry {
  return {
    id: `entry_${row.id}`,
    accountId: row.account_id,
    kind: row.kind,
    amount: row.amount,
    holdId: row.hold_id ?? undefined,
    description: row.description,
    createdAtMs: Number(row.created_at_ms),
  }
}

interface KeyRow {
  readonly id: string
  readonly account_id: string
  readonly hash: string
  readonly label: string
  readonly scopes: string
  readonly limits: string | null
  readonly cap_amount: bigint | null
  readonly cap_period: 'day' | 'month' | null
  readonly created_at_ms: bigint
  readonly expires_at_ms: bigint | null
  readonly revoked_at_ms: bigint | null
}

/** API keys, inside the transaction of whoever calls. */
export type SqliteKeys = Synchronous<KeyStore>

/** Prepares the statements of {@link SqliteKeys}. */
export function sqliteKeys(database: SqliteDatabase): SqliteKeys {
  const selectByHash = prepareExact(database, 'SELECT * FROM signalbox_keys WHERE hash = ?')
  const selectAll = prepareExact(database, 'SELECT * FROM signalbox_keys ORDER BY created_at_ms, rowid')
  const selectByAccount = prepareExact(
    database,
    'SELECT * FROM signalbox_keys WHERE account_id = ? ORDER BY created_at_ms, rowid',
  )
  const insert = database.prepare(
    `INSERT INTO signalbox_keys (id, account_id, hash, label, scopes, limits, cap_amount, cap_period,
       created_at_ms, expires_at_ms, revoked_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (hash) DO NOTHING`,
  )
  const revoke = database.prepare('UPDATE signalbox_keys SET revoked_at_ms = ifnull(revoked_at_ms, ?) WHERE id = ?')
  const expire = database.prepare(
    'UPDATE signalbox_keys SET expires_at_ms = min(ifnull(expires_at_ms, ?), ?) WHERE id = ?',
  )

  return {
    findByHash(hash) {
      const row = selectByHash.get(hash) as KeyRow | undefined
      return row === undefined ? undefined : keyOf(row)
    },
    insert(record) {
      insert.run(
        record.id,
        record.accountId,
        record.hash,
        record.label,
        JSON.stringify(record.scopes),
        record.limits === undefined ? null : JSON.stringify(record.limits),
        record.spendingCap?.amount ?? null,
        record.spendingCap?.period ?? null,
        wholeMilliseconds(record.createdAtMs),
        wholeMillisecondsOrNull(record.expiresAtMs),
        wholeMillisecondsOrNull(record.revokedAtMs),
      )
    },
    list(accountId) {
      const rows = accountId === undefined ? selectAll.all() : selectByAccount.all(accountId)
      return (rows as KeyRow[]).map(keyOf)
    },
    revoke: (keyId, nowMs) => Number(revoke.run(wholeMilliseconds(nowMs), keyId).changes) > 0,
    expire(keyId, expiresAtMs) {
      const timeMs = wholeMilliseconds(expiresAtMs)
      return Number(expire.run(timeMs, timeMs, keyId).changes) > 0
    },
  }
}

function keyOf(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    hash: row.hash,
    label: row.label,
    scopes: JSON.parse(row.scopes) as KeyRecord['scopes'],
    limits: row.limits === null ? undefined : (JSON.parse(row.limits) as KeyRecord['limits']),
    spendingCap: spendingCapOf(row),
    createdAtMs: Number(row.created_at_ms),
    expiresAtMs: row.expires_at_ms === null ? undefined : Number(row.expires_at_ms),
    revokedAtMs: row.revoked_at_ms === null ? undefined : Number(row.revoked_at_ms),
  }
}
