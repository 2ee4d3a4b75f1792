import { GroupCommit, whenUnlocked } from './group-commit.ts'
import { type SqliteAccounts, sqliteAccounts } from './sqlite-accounts.ts'
import { type SqliteClaims, sqliteClaims } from './sqlite-claims.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import { sqliteForgetting } from './sqlite-forgetting.ts'
import { type SqliteHolds, sqliteHolds } from './sqlite-holds.ts'
import { type SqliteKeyTable, sqliteKeyTable } from './sqlite-key-table.ts'
import { sqliteSpending } from './sqlite-spending.ts'

/** Every table of an open database, by synchronous calls. */
export interface SqliteTables {
  readonly accounts: SqliteAccounts
  readonly holds: SqliteHolds
  readonly claims: SqliteClaims
  readonly keys: SqliteKeyTable
  readonly forgetting: ReturnType<typeof sqliteForgetting>
}

/** An open database whose schema is up to date. */
export interface SqliteSession {
  /** Runs in the next group; resolves once it is durable. */
  write<Value>(operation: (tables: SqliteTables) => Value): Promise<Value>
  /** Reads what is committed. */
  read<Value>(operation: (tables: SqliteTables) => Value): Promise<Value>
  /** Resolves once nothing waits to be written any more. */
  drained(): Promise<void>
}

/** How a session behaves, and what its errors call the database. */
export interface SqliteSessionOptions {
  readonly label: string
  readonly busyTimeoutMs: number
}

/** Prepares all statements on a database that is open and migrated. */
export function sqliteSession(database: SqliteDatabase, { label, busyTimeoutMs }: SqliteSessionOptions): SqliteSession {
  const claims = sqliteClaims(database)
  const tables: SqliteTables = {
    accounts: sqliteAccounts(database),
    holds: sqliteHolds(database, claims, sqliteSpending(database)),
    claims,
    keys: sqliteKeyTable(database),
    forgetting: sqliteForgetting(database),
  }
  const group = new GroupCommit(database, label, busyTimeoutMs)
  return {
    write: (operation) => group.write(() => operation(tables)),
    read: (operation) => whenUnlocked(() => operation(tables), label, busyTimeoutMs),
    drained: () => group.drained(),
  }
}
