import { assertRowLimit, type UsageRow, type UsageSeriesQuery, type UsageStore } from '../../usage/usage-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import {
  addToSums,
  RECORD_COLUMNS,
  ROLL_UP_TABLES,
  ROLL_UPS,
  type RollUp,
  recordValues,
  type SeriesParts,
  seriesParts,
  usageRowOf,
  valueName,
} from '../usage-columns.ts'
import {
  listOf,
  prepareExact,
  prepareRows,
  type SqliteDatabase,
  type SqlValue,
  type Synchronous,
} from './sqlite-database.ts'

/** Writes rows of records, inside the caller's transaction. */
export type SqliteRecordInsert = (rows: readonly (readonly SqlValue[])[]) => void

/** Maximum number of column sets with their own statements; other rows are written with every column. */
const MAX_COLUMN_SETS = 32

/**
 * Prepares the insert of records, which the ledger uses too. Half the columns of most records are null, and binding a value costs
 * as much as the engine's work for it, so each set of columns has its own statement.
 */
export function sqliteRecordInsert(database: SqliteDatabase): SqliteRecordInsert {
  const inserts = new Map<number, ReturnType<typeof prepareRows>>()
  const insertFor = (set: number): ReturnType<typeof prepareRows> => {
    const columns = RECORD_COLUMNS.filter((_, index) => isInSet(set, index))
    const row = `(${listOf('?', columns.length)})`
    return prepareRows(
      database,
      columns.length,
      (rowCount) => `INSERT INTO signalbox_usage (${columns.join(', ')}) VALUES ${listOf(row, rowCount)}`,
    )
  }
  return (rows) => {
    const values = new Map<number, SqlValue[]>()
    for (const row of rows) {
      let set = setOf(row)
      if (!inserts.has(set)) {
        if (inserts.size >= MAX_COLUMN_SETS) set = ALL_COLUMNS
        if (!inserts.has(set)) inserts.set(set, insertFor(set))
      }
      const given = values.get(set) ?? []
      values.set(set, given)
      for (let index = 0; index < row.length; index++)
        if (set === ALL_COLUMNS || row[index] !== null) given.push(row[index]!)
    }
    for (const [set, given] of values) inserts.get(set)!(given)
  }
}

/** Encodes a set of columns as a sum of powers of two, which a number holds exactly for 53 of them. */
const POWERS = RECORD_COLUMNS.map((_, index) => 2 ** index)
const ALL_COLUMNS = POWERS.reduce((sum, power) => sum + power, 0)

function setOf(row: readonly SqlValue[]): number {
  let set = 0
  for (let index = 0; index < row.length; index++) if (row[index] !== null) set += POWERS[index]!
  return set
}

function isInSet(set: number, index: number): boolean {
  return Math.floor(set / POWERS[index]!) % 2 === 1
}

/** Approximate number of rows of the first step of a query. Later steps read as many as fit into the time of a step. */
const FIRST_ROWS = 500
const MIN_ROWS = 100
const MAX_ROWS = 4_000
/** Approximate time for which a step may block the event loop, in milliseconds. */
const STEP_MS = 5

/** Place among the sums: a time, and an account if the sums are by account. */
type Place = readonly [unit: number, account: string]

/** Query that runs in steps, between which the event loop runs. */
export interface SqliteSeries {
  /** Reads one step. Returns false if there are no more. */
  step(): boolean
  rows(): readonly UsageRow[]
}

/** Sums of records, inside the caller's transaction; queries run in steps. */
export interface SqliteUsage extends Synchronous<Omit<UsageStore, 'series' | 'records' | 'verify' | 'forget'>> {
  series(query: UsageSeriesQuery): SqliteSeries
}

/** Prepares the statements of {@link SqliteUsage}. */
export function sqliteUsage(database: SqliteDatabase, insertRecords: SqliteRecordInsert): SqliteUsage {
  const selectMark = prepareExact(database, 'SELECT mark, as_of_ms FROM signalbox_usage_mark')
  const setMark = database.prepare('UPDATE signalbox_usage_mark SET mark = ?, as_of_ms = max(as_of_ms, ?)')
  const selectEnd = prepareExact(
    database,
    'SELECT number FROM signalbox_usage WHERE number > ? ORDER BY number LIMIT 1 OFFSET ?',
  )
  const selectLast = prepareExact(database, 'SELECT max(number) AS number FROM signalbox_usage')
  const selectTime = database.prepare('SELECT ended_at_ms FROM signalbox_usage WHERE number = ?')
  const addAll = ROLL_UP_TABLES.map((table) => database.prepare(addTo(table, 'number > ? AND number <= ?')))
  const remake = ROLL_UP_TABLES.map((table) => ({
    clear: database.prepare(
      `DELETE FROM signalbox_usage_${table} WHERE ${ROLL_UPS[table].keys[0]} >= ? AND ${ROLL_UPS[table].keys[0]} < ?`,
    ),
    add: database.prepare(addTo(table, 'ended_at_ms >= ? AND ended_at_ms < ? AND number <= ?')),
    length: ROLL_UPS[table].length,
  }))

  function mark(): { readonly mark: bigint; readonly as_of_ms: bigint } {
    return selectMark.get() as { readonly mark: bigint; readonly as_of_ms: bigint }
  }

  return {
    write: (records) => insertRecords(records.map((record) => recordValues(record))),

    rollUp(limit, nowMs) {
      const begin = mark().mark
      const size = Math.max(1, limit)
      const full = selectEnd.get(begin, size - 1) as { readonly number: bigint } | undefined
      const { number: last } = selectLast.get() as { readonly number: bigint | null }
      const end = full?.number ?? last ?? begin
      if (end <= begin) {
        setMark.run(begin, Math.floor(nowMs))
        return { added: 0, asOfMs: Number(mark().as_of_ms) }
      }
      for (const add of addAll) add.run(begin, end)
      const isLast = end === last
      const endedAtMs = Number((selectTime.get(end) as { readonly ended_at_ms: number | bigint }).ended_at_ms)
      setMark.run(end, isLast ? Math.floor(nowMs) : endedAtMs)
      return { added: Number(end - begin), asOfMs: Number(mark().as_of_ms) }
    },

    series: (query) => new SeriesSteps(database, query),

    rebuild({ fromMs, untilMs }) {
      for (const { clear, add, length } of remake) {
        clear.run(Math.floor(fromMs / length), Math.ceil(untilMs / length))
        add.run(fromMs, untilMs, mark().mark)
      }
    },
  }
}

function addTo(table: RollUp, condition: string): string {
  return addToSums(table, 'signalbox_usage', `signalbox_usage_${table}`, condition)
}

/** Adds up groups of rows in limited steps, so that no query blocks the event loop for long. */
class SeriesSteps implements SqliteSeries {
  readonly #query: UsageSeriesQuery
  readonly #parts: SeriesParts
  readonly #database: SqliteDatabase
  readonly #sums: readonly string[]
  /** Columns that distinguish the groups. */
  readonly #groupNames: readonly string[]
  readonly #groups = new Map<string, Record<string, unknown>>()
  #place: Place | undefined
  #rowsPerStep = FIRST_ROWS

  constructor(database: SqliteDatabase, query: UsageSeriesQuery) {
    this.#database = database
    this.#query = query
    this.#parts = seriesParts(query)
    this.#sums = this.#parts.sums.map(([name]) => name)
    this.#groupNames = [...(query.step === undefined ? [] : ['at']), ...query.groupBy.map(valueName)]
    this.#place = [this.#parts.from, '']
  }

  step(): boolean {
    const begin = this.#place
    if (begin === undefined) return false
    const startedAtMs = performance.now()
    this.#place = this.#endOf(begin)
    for (const row of this.#read(begin, this.#place)) this.#add(row)
    if (this.#query.top === undefined) assertRowLimit(this.#groups.size, this.#query.limit)
    const wanted = (this.#rowsPerStep * STEP_MS) / Math.max(0.1, performance.now() - startedAtMs)
    // At most twice as many as before, because the next rows may be on disk.
    this.#rowsPerStep = Math.round(Math.max(MIN_ROWS, Math.min(MAX_ROWS, 2 * this.#rowsPerStep, wanted)))
    return this.#place !== undefined
  }

  rows(): readonly UsageRow[] {
    const names = this.#groupNames
    const order = (one: SqlRow, other: SqlRow): number => {
      for (const name of names) {
        const [left, right] = [one[name] as bigint | string, other[name] as bigint | string]
        if (left !== right) return left < right ? -1 : 1
      }
      return 0
    }
    const { top } = this.#query
    const sorted = [...this.#groups.values()].sort(order)
    const rows = top === undefined ? sorted : sorted.sort(byChargeColumn).slice(0, top)
    return rows.map((row) => usageRowOf(row, this.#query))
  }

  /** Returns the end of a step, which begins the next one, or `undefined` if the range ends with it. */
  #endOf([unit, account]: Place): Place | undefined {
    const { table, unit: column, until, filterColumns, filterValues } = this.#parts
    const one = filterColumns.indexOf('account_id')
    if (table === 'records') {
      const account = one === -1 ? '' : 'account_id = ? AND'
      const [row] = this.#all(
        `SELECT ended_at_ms FROM signalbox_usage WHERE ${account} ended_at_ms >= ? AND ended_at_ms < ?
         ORDER BY ended_at_ms LIMIT 1 OFFSET ?`,
        [...(one === -1 ? [] : [filterValues[one]!]), unit, until, this.#rowsPerStep],
      )
      // At least one millisecond.
      return row && [Math.max(Number(row['ended_at_ms']), unit + 1), '']
    }
    if (table !== 'days') {
      const [row] = this.#all(
        `SELECT ${column} AS unit FROM signalbox_usage_${table} WHERE ${column} >= ? AND ${column} < ?
         ORDER BY ${column} LIMIT 1 OFFSET ?`,
        [unit, until, this.#rowsPerStep],
      )
      if (row === undefined) return undefined
      // At least one hour or day.
      return [Math.max(Number(row['unit']), unit + 1), '']
    }
    // For one account, a day is one lookup and few rows.
    if (one !== -1) return unit + DAYS_PER_STEP < until ? [unit + DAYS_PER_STEP, filterValues[one]!] : undefined
    const place = 'SELECT day, account_id FROM signalbox_usage_days WHERE'
    const order = 'ORDER BY day, account_id LIMIT 1'
    const [far] = this.#all(`${place} (day, account_id) >= (?, ?) AND day < ? ${order} OFFSET ?`, [
      unit,
      account,
      until,
      this.#rowsPerStep,
    ])
    if (far === undefined) return undefined
    if (far['day'] !== BigInt(unit) || far['account_id'] !== account) return placeOf(far)
    const [next] = this.#all(`${place} (day, account_id) > (?, ?) AND day < ? ${order}`, [unit, account, until])
    return next && placeOf(next)
  }

  #read([unit, account]: Place, end: Place | undefined): readonly SqlRow[] {
    const { table, unit: column, until, groups, isByTag, filterColumns, filterValues } = this.#parts
    const isOfAccount = filterColumns.includes('account_id')
    const conditions: string[] = []
    const values: SqlValue[] = []
    if (table === 'days' && isOfAccount) {
      // Each day is looked up with the account, because a range of days would read those of all accounts.
      conditions.push(
        `day IN (${Array.from({ length: (end?.[0] ?? until) - unit }, (_, index) => unit + index).join()})`,
      )
    } else if (table === 'days') {
      // As one place of the key, so that a step reads only its own rows.
      conditions.push('(day, account_id) >= (?, ?) AND (day, account_id) < (?, ?)')
      values.push(unit, account, ...(end ?? [until, '']))
    } else {
      conditions.push(`${column} >= ? AND ${column} < ?`)
      values.push(unit, end?.[0] ?? until)
    }
    for (const [index, name] of filterColumns.entries()) {
      conditions.push(`${name} = ?`)
      values.push(filterValues[index]!)
    }
    const sums = this.#parts.sums.map(([name, expression]) => `${expression} AS ${name}`)
    const from = table === 'records' ? `signalbox_usage${isByTag ? TAGS : ''}` : `signalbox_usage_${table}`
    const names = this.#groupNames
    return this.#all(
      `SELECT ${[...groups, ...sums].join(', ')} FROM ${from}
       WHERE ${conditions.join(' AND ')} ${names.length === 0 ? 'HAVING count(*) > 0' : `GROUP BY ${names.join(', ')}`}`,
      values,
    )
  }

  #all(sql: string, values: readonly SqlValue[]): readonly SqlRow[] {
    return prepareExact(this.#database, sql).all(...values) as SqlRow[]
  }

  #add(row: SqlRow): void {
    let group = ''
    // No text of a record contains U+0000.
    for (const name of this.#groupNames) group += `${row[name]}\u0000`
    const known = this.#groups.get(group)
    if (known === undefined) this.#groups.set(group, row)
    else for (const name of this.#sums) known[name] = (known[name] as bigint) + (row[name] as bigint)
  }
}

/** Orders top rows before they are parsed, because there may be many more of them. */
function byChargeColumn(one: SqlRow, other: SqlRow): number {
  for (const name of ['charged', 'requests'] as const)
    if (one[name] !== other[name]) return (one[name] as bigint) < (other[name] as bigint) ? 1 : -1
  return 0
}

/** Expands a record to one row per tag, or to one row with an empty tag. Tags contain neither commas nor quotes. */
const TAGS = `, json_each('["' || replace(coalesce(tags, ''), ',', '","') || '"]') AS tag`

/** Number of days of one account that are read in one step. */
const DAYS_PER_STEP = 100

function placeOf(row: SqlRow): Place {
  return [Number(row['day']), row['account_id'] as string]
}
