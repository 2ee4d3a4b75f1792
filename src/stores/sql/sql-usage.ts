import { DAY_MS, type UsageStore } from '../../usage/usage-store.ts'
import { RECORD_COLUMNS, recordOf } from '../usage-columns.ts'
import { SqlConditions, type SqlDialect, type SqlStore } from './statements.ts'

/** Creates the queries of usage records that need no sums. */
export function sqlUsage(dialect: SqlDialect): SqlStore<Pick<UsageStore, 'records' | 'verify'>> {
  const table = dialect.table('usage_records')
  const columns = dialect.columns(['number', ...RECORD_COLUMNS].join(', '), 'u')
  const mismatches = `SELECT account_id, CAST(sum(records) AS text) AS records, CAST(sum(days) AS text) AS days,
      CAST(sum(journal) AS text) AS journal
    FROM (
      SELECT account_id, charged AS records, 0 AS days, 0 AS journal FROM ${table}
        WHERE ended_at_ms >= $1 AND ended_at_ms < $2
      UNION ALL SELECT account_id, 0, charged, 0 FROM ${dialect.table('usage_days')} WHERE day >= $3 AND day < $4
      UNION ALL SELECT account_id, 0, 0, -amount FROM ${dialect.table('entries')}
        WHERE created_at_ms >= $1 AND created_at_ms < $2 AND kind = 'charge' AND hold_id IS NOT NULL
    ) AS parts
    GROUP BY account_id HAVING sum(records) <> sum(days) OR sum(records) <> sum(journal) ORDER BY account_id`
  return {
    reads: ['records', 'verify'],
    work: {
      *records({ accountId, fromMs, untilMs, after, limit }) {
        // The place also limits the time, because some planners cannot search for a pair of a column and the row's number.
        const endMs = after === undefined ? untilMs : Math.min(untilMs, after.endedAtMs + 1)
        const conditions = new SqlConditions()
          .add('u.account_id = ?', accountId)
          .add('u.ended_at_ms >= ?', Math.ceil(fromMs))
          .add('u.ended_at_ms < ?', Math.ceil(endMs))
          .add('(u.ended_at_ms, u.number) < (?, ?)', after?.endedAtMs, after?.number)
        const rows = yield [
          `SELECT ${columns} FROM ${table} AS u ${conditions.where()}
          ORDER BY u.ended_at_ms DESC, u.number DESC LIMIT ${conditions.place(limit + 1)}`,
          conditions.parameters,
        ]
        const last = rows.length > limit ? rows[limit - 1] : undefined
        return {
          records: rows.slice(0, limit).map(recordOf),
          end: last && { endedAtMs: Number(last['ended_at_ms']), number: BigInt(last['number'] as string | bigint) },
        }
      },
      *verify({ fromMs, untilMs }) {
        const days = [Math.floor(fromMs / DAY_MS), Math.ceil(untilMs / DAY_MS)]
        const rows = yield [mismatches, [Math.floor(fromMs), Math.floor(untilMs), ...days]]
        return rows.map((row) => ({
          accountId: row['account_id'] as string,
          records: BigInt(row['records'] as string),
          days: BigInt(row['days'] as string),
          journal: BigInt(row['journal'] as string),
        }))
      },
    },
  }
}
