import type { SqlRow, StoredKind } from '../sql-rows.ts'

/** Parameter of a statement. Lists are for {@link SqlDialect.isIn} and {@link SqlDialect.list}. */
export type SqlParameter = string | number | bigint | boolean | null | Uint8Array | readonly string[]

/** Statement with `$1`, `$2` … for its parameters. */
export type SqlStatement = readonly [text: string, parameters: readonly SqlParameter[]]

/**
 * Work that yields statements and receives their rows. The text is written once, and a driver runs it at once or with `await`.
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

/** Store as work: methods that only read, methods with one change, and methods whose statements need a transaction. */
export interface SqlStore<Store, Reads extends keyof Store, Transactions extends keyof Store = never> {
  readonly reads: WorkOf<Pick<Store, Reads>>
  readonly writes: WorkOf<Omit<Store, Reads | Transactions>>
  readonly transactions: WorkOf<Pick<Store, Transactions>>
}

/** Driver that runs work. The work is created again if a transaction is repeated. */
export type SqlRunner = {
  readonly [Kind in keyof SqlStore<object, never>]: <Value>(create: () => SqlWork<Value>) => Promise<Value>
}

/** Returns the methods of a store that a driver runs. */
export function storeOn<Store, Reads extends keyof Store, Transactions extends keyof Store = never>(
  runner: SqlRunner,
  store: SqlStore<Store, Reads, Transactions>,
): Required<Store> {
  const methods = (['reads', 'writes', 'transactions'] as const).flatMap((kind) =>
    Object.entries<(...parameters: never[]) => SqlWork<unknown>>(store[kind]).map(([name, method]) => [
      name,
      async (...parameters: never[]) => runner[kind](() => method(...parameters)),
    ]),
  )
  return Object.fromEntries(methods) as Required<Store>
}

/** Runs work with a synchronous driver. */
export function runWork<Value>(work: SqlWork<Value>, query: (statement: SqlStatement) => readonly SqlRow[]): Value {
  let step = work.next()
  while (step.done !== true) step = work.next(query(step.value))
  return step.value
}

/** Runs work with an asynchronous driver. A rejected statement ends the work. */
export async function awaitWork<Value>(
  work: SqlWork<Value>,
  query: (statement: SqlStatement) => Promise<readonly SqlRow[]>,
): Promise<Value> {
  let step = work.next()
  while (step.done !== true) step = work.next(await query(step.value))
  return step.value
}

/** Differences between the databases. */
export interface SqlDialect {
  /** Returns the name of a table in statements. */
  table(name: string): string
  /** Returns columns to select, as the mappers of rows read them. `alias` names their table. */
  columns(names: string, alias?: string): string
  /** Returns the condition that a column is in a list of strings. */
  isIn(column: string, list: string): string
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
