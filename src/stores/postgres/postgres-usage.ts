import { type UsageDraft, type UsageRecord, usageRecord } from '../../usage/usage-record.ts'
import { assertRowLimit, type UsageStore } from '../../usage/usage-store.ts'
import { RECORD_COLUMNS, recordValues, seriesParts, usageRowOf } from '../usage-columns.ts'
import { codeOf, isStorable, type PostgresConnection, timeParameter } from './postgres-connection.ts'

/** Expands a record to one row per tag, or to one row with an empty tag. */
const TAGS = `, unnest(CASE WHEN tags IS NULL THEN ARRAY[''] ELSE string_to_array(tags, ',') END) AS tag(value)`

/** Records and sums in PostgreSQL. Each method is one statement. The migrations create the functions that it calls. */
export function postgresUsage(
  { run }: PostgresConnection,
  schema: string,
): Omit<UsageStore, 'records' | 'verify' | 'forget'> {
  return {
    async write(records) {
      if (records.length === 0) return
      const text = JSON.stringify(records.map(recordRequestOf))
      await run(`SELECT ${schema}.write_usage($1, NULL, NULL, NULL)`, [text])
    },

    async rollUp(limit, nowMs) {
      const values = [Math.max(1, limit), timeParameter(nowMs)]
      const [row] = await run(`SELECT r.added::text, r.as_of::text FROM ${schema}.roll_up_usage($1, $2) AS r`, values)
      return { added: Number(row!['added']), asOfMs: Number(row!['as_of']) }
    },

    async series(query) {
      const { table, unit, from, until, groups, isByTag, filterColumns, filterValues, ...parts } = seriesParts(query)
      if (!filterValues.every(isStorable)) return []
      const sums = parts.sums.map(([name, expression]) => `(${expression})::text AS ${name}`)
      const names = groups.map((group) => group.slice(group.lastIndexOf(' ') + 1))
      const first = parts.sums.filter(
        ([name]) => query.top !== undefined && (name === 'charged' || name === 'requests'),
      )
      // In the sums, the column of charges follows that of calls.
      const order = first.map(([, expression]) => `${expression} DESC`).reverse()
      const filters = filterColumns.map((column, index) => ` AND ${column} = $${index + 4}`).join('')
      const rows = await run(
        `SELECT ${[...groups, ...sums].join(', ')} FROM ${schema}.usage_${table}${isByTag ? TAGS : ''}
        WHERE ${unit} >= $1 AND ${unit} < $2${filters}
        ${names.length === 0 ? 'HAVING count(*) > 0' : `GROUP BY ${names.join(', ')} ORDER BY ${[...order, ...names].join(', ')}`} LIMIT $3`,
        [from, until, query.top ?? query.limit + 1, ...filterValues],
      )
      if (query.top === undefined) assertRowLimit(rows.length, query.limit)
      return rows.map((row) => usageRowOf(row, query))
    },

    async rebuild({ fromMs, untilMs }) {
      await run(`SELECT ${schema}.rebuild_usage($1, $2)`, [timeParameter(fromMs), timeParameter(untilMs)])
    },
  }
}

/** Returns a record as input of the function `write_usage`. Amounts are text, because a JSON number would be a float here. */
function recordRequestOf(record: UsageRecord): object {
  const values = recordValues(record)
  const request: Record<string, string | number | null> = {}
  for (const [index, column] of RECORD_COLUMNS.entries()) {
    const value = values[index]!
    if (value !== null) request[column] = typeof value === 'bigint' ? String(value) : value
  }
  return request
}

/** Returns the record of a settlement as input of a function; the server adds its charge and time. */
export function draftRequestOf(draft: UsageDraft): object {
  return recordRequestOf(usageRecord(draft, { endedAtMs: 0, dueNanoDollars: 0n, chargedNanoDollars: 0n }))
}

/**
 * Runs a statement that writes a record, and again without it if the server rejects the record: data exceptions and integrity
 * violations (PostgreSQL, appendix A, classes 22 and 23). A record must not prevent a charge.
 */
export async function retryWithoutRecord<Value>(
  draft: UsageDraft | undefined,
  send: (record: string | null) => Promise<Value>,
): Promise<{ readonly value: Value; readonly recordFault?: unknown }> {
  if (draft === undefined) return { value: await send(null) }
  try {
    return { value: await send(JSON.stringify(draftRequestOf(draft))) }
  } catch (fault) {
    if (!/^2[23]/.test(String(codeOf(fault)))) throw fault
    return { value: await send(null), recordFault: fault }
  }
}
