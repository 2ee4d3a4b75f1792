import {
  assertRowLimit,
  DAY_MS,
  type UsageMismatch,
  type UsageRow,
  type UsageSeriesQuery,
  type UsageStore,
} from '../../usage/usage-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import {
  RECORD_COLUMNS,
  ROLL_UPS,
  recordOf,
  recordValues,
  type SeriesParts,
  SUM_EXPRESSIONS,
  SUM_NAMES,
  seriesParts,
  usageRowOf,
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

/** Prepares the insert of records; the ledger writes its own by it. */
export function sqliteRecordInsert(database: SqliteDatabase): SqliteRecordInsert {
  const row = `(${listOf('?', RECORD_COLUMNS.length)})`
  return prepareRows(
    database,
    (rowCount) => `INSERT INTO signalbox_usage (${RECORD_COLUMNS.join(', ')}) VALUES ${listOf(row, rowCount)}`,
  )
}

/** Rows of the sums that one step of a question reads at most, about: some milliseconds of the event loop. */
const ROWS_PER_STEP = 4_000

/** A place among the sums: in time, and of an account where the sums are by account. */
type Place = readonly [unit: number, account: string]

/** A question that is answered in steps, between which the event loop runs. */
export interface SqliteSeries {
  /** Reads one step; false when there are no more. */
  step(): boolean
  rows(): readonly UsageRow[]
}

/** Records and sums, inside the caller's transaction; questions in steps. */
export interface SqliteUsage extends Omit<Synchronous<UsageStore>, 'series'> {
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
  const addAll = [addTo('hours'), addTo('days')].map((sql) => database.prepare(sql('number > ? AND number <= ?')))
  const remake = (['hours', 'days'] as const).map((source) => ({
    clear: database.prepare(
      `DELETE FROM signalbox_usage_${source} WHERE ${ROLL_UPS[source].keys[0]} >= ? AND ${ROLL_UPS[source].keys[0]} < ?`,
    ),
    add: database.prepare(addTo(source)('ended_at_ms >= ? AND ended_at_ms < ? AND number <= ?')),
    length: ROLL_UPS[source].length,
  }))
  const forgetRecords = database.prepare(
    `DELETE FROM signalbox_usage WHERE number IN (
       SELECT number FROM signalbox_usage WHERE ended_at_ms < ? AND number <= ? ORDER BY ended_at_ms LIMIT ?)`,
  )
  const forgetSums = (['hours', 'days'] as const).map((source) => {
    const keys = ROLL_UPS[source].keys.join(', ')
    return database.prepare(
      `DELETE FROM signalbox_usage_${source} WHERE (${keys}) IN (
         SELECT ${keys} FROM signalbox_usage_${source} WHERE ${ROLL_UPS[source].keys[0]} < ? LIMIT ?)`,
    )
  })
  const selectMismatches = prepareExact(database, MISMATCHES)

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

    records({ accountId, fromMs, untilMs, after, limit }) {
      const place = after === undefined ? '' : 'AND (ended_at_ms, number) < (?, ?)'
      const rows = prepareExact(
        database,
        `SELECT * FROM signalbox_usage WHERE ${accountId === undefined ? '' : 'account_id = ? AND'}
           ended_at_ms >= ? AND ended_at_ms < ? ${place} ORDER BY ended_at_ms DESC, number DESC LIMIT ?`,
      ).all(
        ...(accountId === undefined ? [] : [accountId]),
        Math.ceil(fromMs),
        // The place bounds the time too, because SQLite looks up no pair of a column and the row's number.
        Math.ceil(after === undefined ? untilMs : Math.min(untilMs, after.endedAtMs + 1)),
        ...(after === undefined ? [] : [after.endedAtMs, after.number]),
        limit + 1,
      ) as SqlRow[]
      const last = rows.length > limit ? rows[limit - 1] : undefined
      return {
        records: rows.slice(0, limit).map(recordOf),
        end: last && { endedAtMs: Number(last['ended_at_ms']), number: last['number'] as bigint },
      }
    },

    verify({ fromMs, untilMs }) {
      const days = [Math.floor(fromMs / DAY_MS), Math.ceil(untilMs / DAY_MS)]
      const rows = selectMismatches.all(fromMs, untilMs, ...days, fromMs, untilMs) as SqlRow[]
      return rows.map(mismatchOf)
    },

    rebuild({ fromMs, untilMs }) {
      for (const { clear, add, length } of remake) {
        clear.run(Math.floor(fromMs / length), Math.ceil(untilMs / length))
        add.run(fromMs, untilMs, mark().mark)
      }
    },

    forget({ recordsUntilMs, hoursUntilMs, daysUntilMs, limit }) {
      let count = 0
      if (recordsUntilMs !== undefined) count += Number(forgetRecords.run(recordsUntilMs, mark().mark, limit).changes)
      for (const [index, untilMs] of [hoursUntilMs, daysUntilMs].entries()) {
        const { length } = remake[index]!
        if (untilMs !== undefined) count += Number(forgetSums[index]!.run(Math.floor(untilMs / length), limit).changes)
      }
      return count
    },
  }
}

/** Adds records to the sums. `condition` chooses the records. */
function addTo(source: 'hours' | 'days'): (condition: string) => string {
  const { keys, expressions } = ROLL_UPS[source]
  const added = SUM_NAMES.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')
  const places = keys.map((_, index) => index + 1).join(', ')
  return (condition) => `INSERT INTO signalbox_usage_${source} (${[...keys, ...SUM_NAMES].join(', ')})
    SELECT ${expressions.join(', ')}, ${SUM_EXPRESSIONS} FROM signalbox_usage WHERE ${condition} GROUP BY ${places}
    ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${added}`
}

const MISMATCHES = `
SELECT account_id, sum(records) AS records, sum(days) AS days, sum(journal) AS journal FROM (
  SELECT account_id, charged AS records, 0 AS days, 0 AS journal FROM signalbox_usage
    WHERE ended_at_ms >= ? AND ended_at_ms < ?
  UNION ALL
  SELECT account_id, 0, charged, 0 FROM signalbox_usage_days WHERE day >= ? AND day < ?
  UNION ALL
  SELECT account_id, 0, 0, -amount FROM signalbox_entries
    WHERE created_at_ms >= ? AND created_at_ms < ? AND kind = 'charge' AND hold_id IS NOT NULL
) GROUP BY account_id HAVING sum(records) <> sum(days) OR sum(records) <> sum(journal) ORDER BY account_id`

function mismatchOf(row: SqlRow): UsageMismatch {
  return {
    accountId: row['account_id'] as string,
    records: row['records'] as bigint,
    days: row['days'] as bigint,
    journal: row['journal'] as bigint,
  }
}

/** Adds up groups of rows in steps of bounded length, so that no question keeps the event loop for long. */
class SeriesSteps implements SqliteSeries {
  readonly #query: UsageSeriesQuery
  readonly #parts: SeriesParts
  readonly #database: SqliteDatabase
  readonly #groups = new Map<string, SqlRow>()
  #place: Place | undefined

  constructor(database: SqliteDatabase, query: UsageSeriesQuery) {
    this.#database = database
    this.#query = query
    this.#parts = seriesParts(query)
    this.#place = [this.#parts.from, '']
  }

  step(): boolean {
    const begin = this.#place
    if (begin === undefined) return false
    this.#place = this.#endOf(begin)
    for (const row of this.#read(begin, this.#place)) this.#add(row)
    assertRowLimit(this.#groups.size, this.#query.limit)
    return this.#place !== undefined
  }

  rows(): readonly UsageRow[] {
    const names = this.#names()
    const order = (one: SqlRow, other: SqlRow): number => {
      for (const name of names) {
        const [left, right] = [one[name] as bigint | string, other[name] as bigint | string]
        if (left !== right) return left < right ? -1 : 1
      }
      return 0
    }
    return [...this.#groups.values()].sort(order).map((row) => usageRowOf(row, this.#query))
  }

  /** The end of a step, which begins the next one; undefined: the range ends with it. */
  #endOf([unit, account]: Place): Place | undefined {
    const { unit: column, until, filterColumns, filterValues } = this.#parts
    if (column === 'hour') {
      const [row] = this.#all(
        'SELECT hour FROM signalbox_usage_hours WHERE hour >= ? AND hour < ? ORDER BY hour LIMIT 1 OFFSET ?',
        [unit, until, ROWS_PER_STEP],
      )
      if (row === undefined) return undefined
      // A whole hour at least.
      return [Math.max(Number(row['hour']), unit + 1), '']
    }
    const one = filterColumns.indexOf('account_id')
    // Of one account a day is one look-up and few rows.
    if (one !== -1) return unit + DAYS_PER_STEP < until ? [unit + DAYS_PER_STEP, filterValues[one]!] : undefined
    const place = 'SELECT day, account_id FROM signalbox_usage_days WHERE'
    const order = 'ORDER BY day, account_id LIMIT 1'
    const [far] = this.#all(`${place} (day, account_id) >= (?, ?) AND day < ? ${order} OFFSET ?`, [
      unit,
      account,
      until,
      ROWS_PER_STEP,
    ])
    if (far === undefined) return undefined
    if (far['day'] !== BigInt(unit) || far['account_id'] !== account) return placeOf(far)
    const [next] = this.#all(`${place} (day, account_id) > (?, ?) AND day < ? ${order}`, [unit, account, until])
    return next && placeOf(next)
  }

  #read([unit, account]: Place, end: Place | undefined): readonly SqlRow[] {
    const { unit: column, until, groups, filterColumns, filterValues } = this.#parts
    const isByAccount = column === 'day' && !filterColumns.includes('account_id')
    const conditions = [`${column} >= ? AND ${column} < ?`]
    const values: SqlValue[] = [unit, end === undefined ? until : isByAccount ? end[0] + 1 : end[0]]
    if (isByAccount) {
      conditions.push('(day, account_id) >= (?, ?)')
      values.push(unit, account)
    }
    if (isByAccount && end !== undefined) {
      conditions.push('(day, account_id) < (?, ?)')
      values.push(...end)
    }
    for (const [index, name] of filterColumns.entries()) {
      conditions.push(`${name} = ?`)
      values.push(filterValues[index]!)
    }
    const sums = SUM_NAMES.map((name) => `sum(${name}) AS ${name}`)
    const names = this.#names()
    return this.#all(
      `SELECT ${[...groups, ...sums].join(', ')} FROM signalbox_usage_${this.#query.source}
       WHERE ${conditions.join(' AND ')} ${names.length === 0 ? 'HAVING count(*) > 0' : `GROUP BY ${names.join(', ')}`}`,
      values,
    )
  }

  #names(): readonly string[] {
    const { step, groupBy } = this.#query
    return [...(step === undefined ? [] : ['at']), ...groupBy.map((dimension) => `${dimension}_value`)]
  }

  #all(sql: string, values: readonly SqlValue[]): readonly SqlRow[] {
    return prepareExact(this.#database, sql).all(...values) as SqlRow[]
  }

  #add(row: SqlRow): void {
    const group = JSON.stringify(this.#names().map((name) => String(row[name])))
    const known = this.#groups.get(group)
    if (known === undefined) {
      this.#groups.set(group, row)
      return
    }
    const sums = SUM_NAMES.map((name) => [name, (known[name] as bigint) + (row[name] as bigint)] as const)
    this.#groups.set(group, { ...known, ...Object.fromEntries(sums) })
  }
}

/** Days of one account that are read in one step. */
const DAYS_PER_STEP = 100

function placeOf(row: SqlRow): Place {
  return [Number(row['day']), row['account_id'] as string]
}
