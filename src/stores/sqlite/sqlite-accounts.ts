import { assertAmount, MAX_AMOUNT } from '../amount.ts'
import type { Account, Ledger, LedgerEntry } from '../ledger.ts'
import type { SpendingCap } from '../principal.ts'
import { prepareExact, type SqliteDatabase } from './sqlite-database.ts'
import { wholeMilliseconds } from './whole-milliseconds.ts'

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
export interface SqliteAccounts {
  create(...parameters: Parameters<Ledger['createAccount']>): Account
  update(...parameters: Parameters<Ledger['updateAccount']>): Account | undefined
  find(accountId: string): Account | undefined
  credit(...parameters: Parameters<Ledger['credit']>): boolean
  entries(accountId: string, limit: number): readonly LedgerEntry[]
}

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

  function find(accountId: string): Account | undefined {
    const row = select.get(accountId) as AccountRow | undefined
    return row === undefined ? undefined : accountOf(row)
  }

  return {
    find,
    create({ id, tier = 'paid', spendingCap }, nowMs) {
      insert.run(id, tier, spendingCap?.amount ?? null, spendingCap?.period ?? null, wholeMilliseconds(nowMs))
      return find(id)!
    },
    update(accountId, { tier, spendingCap }) {
      if (tier !== undefined) setTier.run(tier, accountId)
      if (spendingCap !== undefined) setCap.run(spendingCap?.amount ?? null, spendingCap?.period ?? null, accountId)
      return find(accountId)
    },
    credit({ creditId, accountId, amount, description }, nowMs) {
      const account = find(accountId)
      if (account === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      assertAmount(amount)
      if (amount === 0n) throw new RangeError('a credit must be above zero')
      if (selectCredit.get(creditId) !== undefined) return false
      if (account.balance + account.held + amount > MAX_AMOUNT)
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
export function spendingCapOf(row: Pick<AccountRow, 'cap_amount' | 'cap_period'>): SpendingCap | undefined {
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
