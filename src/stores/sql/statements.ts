import type { SqlRow, StoredKind } from '../sql-rows.ts'

/** Parameter of a statement. Lists are for {@link SqlDialect.isIn} and {@link SqlDialect.list}. */
export type SqlParameter = string | number | bigint | boolean | null | Uint8Array | readonly string[]

/** Statement with `$1`, `$2` … for its parameters. */
export type SqlStatement = readonly [text: string, parameters: readonly SqlParameter[]]

/**
 * Work that yields statements and receives their rows. The text is written once, and a driver runs it synchronously or with `await`.
 * Statements that change rows return only those of `RETURNING`.
 */
export type SqlWork<Value> = Generator<SqlStatement, Value, readonly SqlRow[]>

type WorkOf<Store> = {
  readonly [Method in keyof Store]-?: Store[Method] extends
    | ((...parameters: infer Parameters) => infer Result)
    | undefined
    ? (...parameters: Parameters) => SqlWork<Awaited<Result>>
    : never
}

/** Store whose methods are work. */
export interface SqlStore<Store> {
  readonly work: WorkOf<Store>
  /** Methods that change nothing. */
  readonly reads: readonly (keyof Store)[]
  /** Methods with several statements that change rows. Other methods have at most one. */
  readonly transactions?: readonly (keyof Store)[]
  /** Reads that are tried before a method. They return its result if there is nothing to do, and otherwise `undefined`. */
  readonly idle?: {
    readonly [Method in keyof Store]?: Store[Method] extends
      | ((...parameters: infer Parameters) => infer Result)
      | undefined
      ? (...parameters: Parameters) => SqlWork<Awaited<Result> | undefined>
      : never
  }
}

/** Driver that runs work. The work is created again if a transaction is repeated. */
export type SqlRunner = {
  readonly [Kind in 'read' | 'write' | 'transact']: <Parameters extends readonly unknown[], Value>(
    create: (...parameters: Parameters) => SqlWork<Value>,
    ...parameters: Parameters
  ) => Promise<Value>
}

type AnyWork = (...parameters: never[]) => SqlWork<unknown>

/** Returns the methods of a store that a driver runs. */
export function storeOn<Store>(runner: SqlRunner, store: SqlStore<Store>): Required<Store> {
  const reads = new Set<unknown>(store.reads)
  const transactions = new Set<unknown>(store.transactions)
  const idleWork = new Map(Object.entries<AnyWork | undefined>(store.idle ?? {}))
  const methods = Object.entries<AnyWork>(store.work).map(([name, work]) => {
    const run = reads.has(name) ? runner.read : transactions.has(name) ? runner.transact : runner.write
    const idle = idleWork.get(name)
    const method = async (...parameters: never[]): Promise<unknown> => {
      const result = idle && (await runner.read(idle, ...parameters))
      return result === undefined ? run(work, ...parameters) : result
    }
    return [name, method] as const
  })
  return Object.fromEntries(methods) as Required<Store>
}

/** Differences between the databases. */
export interface SqlDialect {
  /** Returns the name of a table in statements. */
  table(name: string): string
  /** Returns columns to select, as the mappers of rows read them. `alias` names their table. */
  columns(names: string, alias?: string): string
  /** Returns the condition that a column is in a list of strings. */
  isIn(column: string, list: string): string
  /** Returns the condition that a column is in the rows of a query, which runs once. */
  isInQuery(column: string, query: string): string
  /** Returns a source of rows `i` with the column `value`, from a list of strings. */
  list(parameter: string): string
  /** Returns a column of ids that is ordered by bytes, whatever the collation of its table. */
  inOrder(column: string): string
  /** Returns the choice of an index, if the planner of the database would choose another one. */
  index(name: string): string
  /** Ends a SELECT whose rows are changed next. */
  readonly forUpdate: string
  /** Ends a SELECT of rows to delete, which skips those that others are changing. */
  readonly skipLocked: string
  /** Whether a WITH clause may change rows, so that two changes need one round trip. */
  readonly canChangeInWith: boolean
  /** Locks a name until the end of the transaction; empty if transactions cannot overlap. */
  lock(name: string): readonly SqlStatement[]
  /** Returns the columns that name a row within its table, the primary key at the most. */
  rowName(keys: string): string
  /** Returns the condition that the sums up to a mark contain a record. */
  isCounted(mark: string): string
  /** Columns by which items refer to their parents, next to those of the parents. */
  readonly links: Readonly<Record<'conversation' | 'response', SqlLink>>
  /** Attempts of a message: expression that reads them, and expression that adds the parameter `attempt`. */
  readonly attempts: { readonly read: string; add(attempt: string, max: number): string }
  /** Tables of stored data by kind, with the size of a row in bytes. */
  readonly stored: Readonly<Record<StoredKind, readonly [table: string, byteLength: string]>>
}

/** Columns that join items to their parent. */
export interface SqlLink {
  readonly parent: readonly string[]
  readonly item: readonly string[]
}

/** Returns the condition that joins items `i` to their parent. */
export function joined({ parent, item }: SqlLink, alias: string): string {
  return parent.map((column, index) => `i.${item[index]} = ${alias}.${column}`).join(' AND ')
}

/** Runs a deletion and then a statement with the same parameters: in one round trip if the database can. */
export function* deleteBefore(
  { canChangeInWith }: SqlDialect,
  [deletion, text]: readonly [string, string],
  parameters: readonly SqlParameter[],
): SqlWork<readonly SqlRow[]> {
  if (canChangeInWith) return yield [`WITH deleted AS (${deletion}) ${text}`, parameters]
  yield [deletion, parameters]
  return yield [text, parameters]
}

/** Returns the first row of a query, if any. */
export function* firstOf<Value>(
  of: (row: SqlRow) => Value,
  text: string,
  parameters: readonly SqlParameter[],
): SqlWork<Value | undefined> {
  const [row] = yield [text, parameters]
  return row && of(row)
}

/** Returns all rows of a query. */
export function* allOf<Value>(
  of: (row: SqlRow) => Value,
  text: string,
  parameters: readonly SqlParameter[],
): SqlWork<Value[]> {
  return (yield [text, parameters]).map(of)
}

/** Runs a change with `RETURNING` and returns the number of changed rows. */
export function* changedRows(text: string, parameters: readonly SqlParameter[]): SqlWork<number> {
  return (yield [text, parameters]).length
}

/** Runs a change with `RETURNING` and returns whether it changed a row. */
export function* isChanged(text: string, parameters: readonly SqlParameter[]): SqlWork<boolean> {
  return (yield* changedRows(text, parameters)) > 0
}

/** Returns the methods that find and delete rows of accounts by id. Expired rows are not found. */
export function ownedRows<Value>(table: string, columns: string, of: (row: SqlRow) => Value) {
  const select = `SELECT ${columns} FROM ${table} WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3`
  const remove = `DELETE FROM ${table} WHERE account_id = $1 AND id = $2 RETURNING id`
  return {
    find: (accountId: string, id: string, nowMs: number) => firstOf(of, select, [accountId, id, Math.floor(nowMs)]),
    delete: (accountId: string, id: string) => isChanged(remove, [accountId, id]),
  }
}

/** Returns an insert that replaces the row with the same keys. */
export function upsert(table: string, columns: string, keys: string): string {
  const names = columns.split(', ')
  const replaced = names.filter((name) => !keys.split(', ').includes(name)).map((name) => `${name} = excluded.${name}`)
  return `INSERT INTO ${table} (${columns}) VALUES (${places(names.length)})
    ON CONFLICT (${keys}) DO UPDATE SET ${replaced.join(', ')}`
}

/** Returns a deletion of rows that the condition and the limit choose. */
export function deleteSome({ skipLocked }: SqlDialect, table: string, keys: string, condition: string): string {
  return `DELETE FROM ${table} WHERE (${keys}) IN (SELECT ${keys} FROM ${table} WHERE ${condition} ${skipLocked})`
}

/**
 * Returns the deletion of some rows of accounts that have expired, except of the one that is saved next. Each save runs it, so no
 * separate job is needed.
 */
export function purgeOwned(dialect: SqlDialect, table: string, nowMs: string): string {
  const others = `expires_at_ms <= ${nowMs} AND (account_id, id) <> ($1, $2)`
  return deleteSome(dialect, table, 'account_id, id', `${others} ORDER BY expires_at_ms LIMIT 2`)
}

/** Returns `$1, $2` … for this many parameters, after `before` others. */
export function places(count: number, before = 0): string {
  return Array.from({ length: count }, (_, index) => `$${before + index + 1}`).join(', ')
}

/** Maximum number of rows of one insert, within the limit of parameters of every database. */
const MAX_INSERTED_ROWS = 100

/** Inserts any number of rows. */
export function* insertRows(
  table: string,
  columns: readonly string[],
  rows: readonly (readonly SqlParameter[])[],
): SqlWork<void> {
  for (let start = 0; start < rows.length; start += MAX_INSERTED_ROWS) {
    const part = rows.slice(start, start + MAX_INSERTED_ROWS)
    const lists = part.map((_, index) => `(${places(columns.length, index * columns.length)})`)
    yield [`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${lists.join(', ')}`, part.flat()]
  }
}

/** Conditions and parameters of a query that is composed. */
export class SqlConditions {
  readonly parameters: SqlParameter[] = []
  readonly #conditions: string[] = []

  /** Adds a condition whose parameters are written `?`, unless one of them is undefined. */
  add(condition: string, ...parameters: (SqlParameter | undefined)[]): this {
    const given = parameters.filter((parameter) => parameter !== undefined)
    if (given.length < parameters.length) return this
    this.#conditions.push(condition.replaceAll('?', () => this.place(given.shift()!)))
    return this
  }

  /** Adds a parameter and returns its place. */
  place(parameter: SqlParameter): string {
    return `$${this.parameters.push(parameter)}`
  }

  /** Returns the WHERE clause. */
  where(): string {
    return this.#conditions.length === 0 ? '' : `WHERE ${this.#conditions.join(' AND ')}`
  }
}
