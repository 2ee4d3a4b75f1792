import { GroupCommit, whenUnlocked } from './group-commit.ts'
import { type SqliteAccounts, sqliteAccounts } from './sqlite-accounts.ts'
import { type SqliteClaims, sqliteClaims } from './sqlite-claims.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import { sqliteForgetting } from './sqlite-forgetting.ts'
import { SqliteHoldBatch } from './sqlite-hold-batch.ts'
import { type SqliteHolds, sqliteHolds } from './sqlite-holds.ts'
import { type SqliteInteractions, sqliteInteractions } from './sqlite-interactions.ts'
import { type SqliteKeyTable, sqliteKeyTable } from './sqlite-key-table.ts'
import { sqliteSpending } from './sqlite-spending.ts'
import { sqliteTaskInsert } from './sqlite-task-rows.ts'
import { type SqliteTaskTaking, sqliteTaskTaking } from './sqlite-task-taking.ts'
import { type SqliteTasks, sqliteTasks } from './sqlite-tasks.ts'
import { type SqliteWebhooks, sqliteWebhooks } from './sqlite-webhooks.ts'

/** Every table of an open database but that of holds, by synchronous calls. */
export interface SqliteTables {
  readonly accounts: SqliteAccounts
  readonly claims: SqliteClaims
  readonly keys: SqliteKeyTable
  readonly forgetting: ReturnType<typeof sqliteForgetting>
  readonly interactions: SqliteInteractions
  readonly insertTask: ReturnType<typeof sqliteTaskInsert>
  readonly tasks: SqliteTasks
  readonly taskTaking: SqliteTaskTaking
  readonly webhooks: SqliteWebhooks
}

/** An open database whose schema is up to date. */
export interface SqliteSession {
  /** Runs in the next group; resolves once it is durable. */
  write<Value>(operation: (tables: SqliteTables) => Value): Promise<Value>
  /** The same for holds, which several operations of a group may write together. */
  writeHolds<Value>(operation: (holds: SqliteHolds) => Value): Promise<Value>
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
  const insertTask = sqliteTaskInsert(database)
  const webhooks = sqliteWebhooks(database)
  const eachHold = sqliteHolds(database, { claims, spending: sqliteSpending(database), insertTask })
  const tables: SqliteTables = {
    accounts: sqliteAccounts(database),
    claims,
    keys: sqliteKeyTable(database),
    forgetting: sqliteForgetting(database),
    interactions: sqliteInteractions(database),
    insertTask,
    tasks: sqliteTasks(database, { holds: eachHold, claims, webhooks }),
    taskTaking: sqliteTaskTaking(database),
    webhooks,
  }
  const holds = new SqliteHoldBatch(database, eachHold)
  const group = new GroupCommit(database, { label, busyTimeoutMs }, holds)
  return {
    write: (operation) =>
      group.write(() => {
        // In the order of the calls: it may read what earlier operations of the group have kept back.
        holds.flush()
        return operation(tables)
      }),
    writeHolds: (operation) => group.write(() => operation(holds)),
    read: (operation) => whenUnlocked(() => operation(tables), label, busyTimeoutMs),
    drained: () => group.drained(),
  }
}
