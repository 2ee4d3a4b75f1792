import type { BatchOutcome, BatchStore, FileRecord, FileStore } from '../file-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import {
  deleteSome,
  places,
  SqlConditions,
  type SqlDialect,
  type SqlStore,
  type SqlWork,
  upsert,
} from './statements.ts'

const FILE_COLUMNS = 'id, account_id, purpose, filename, byte_length, created_at_ms, expires_at_ms, mime_type'

/** Creates the store of callers' files. */
export function sqlFiles(dialect: SqlDialect): SqlStore<FileStore, 'find' | 'list'> {
  const table = dialect.table('files')
  const select = `SELECT ${dialect.columns(FILE_COLUMNS, 'f')} FROM ${table} AS f`

  function* find(accountId: string, id: string, nowMs: number): SqlWork<FileRecord | undefined> {
    const [row] = yield [
      `${select} WHERE f.account_id = $1 AND f.id = $2 AND f.expires_at_ms > $3`,
      [accountId, id, Math.floor(nowMs)],
    ]
    return row && fileOf(row)
  }

  return {
    reads: {
      find,
      *list(accountId, { limit, order, after, purpose }, nowMs) {
        const last = after === undefined ? undefined : yield* find(accountId, after, nowMs)
        if (after !== undefined && last === undefined) return { files: [], hasMore: false }
        const conditions = new SqlConditions()
          .add('f.account_id = ?', accountId)
          .add('f.expires_at_ms > ?', Math.floor(nowMs))
          .add('f.purpose = ?', purpose)
          .add(`(f.created_at_ms, f.id) ${order === 'asc' ? '>' : '<'} (?, ?)`, last?.createdAtMs, last?.id)
        const size = conditions.place(limit + 1)
        const rows = yield [
          `${select} ${conditions.where()} ORDER BY f.created_at_ms ${order}, f.id ${order} LIMIT ${size}`,
          conditions.parameters,
        ]
        return { files: rows.slice(0, limit).map(fileOf), hasMore: rows.length > limit }
      },
    },
    writes: {
      *save({ id, accountId, purpose, filename, byteLength, createdAtMs, expiresAtMs, mimeType = null }) {
        const times = [Math.floor(createdAtMs), Math.floor(expiresAtMs)]
        // A name is JSON text, because it may have characters that no column can hold.
        yield [
          upsert(table, FILE_COLUMNS, 'account_id, id'),
          [id, accountId, purpose, JSON.stringify(filename), byteLength, ...times, mimeType],
        ]
      },
      *delete(accountId, id) {
        const rows = yield [`DELETE FROM ${table} WHERE account_id = $1 AND id = $2 RETURNING id`, [accountId, id]]
        return rows.length > 0
      },
      *purge(nowMs, limit) {
        const expired = deleteSome(dialect, table, 'account_id, id', 'expires_at_ms <= $1 LIMIT $2')
        const rows = yield [`${expired} RETURNING id`, [Math.floor(nowMs), limit]]
        return rows.map(({ id }) => id as string)
      },
    },
    transactions: {},
  }
}

function fileOf(row: SqlRow): FileRecord {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    purpose: row['purpose'] as string,
    filename: JSON.parse(row['filename'] as string) as string,
    mimeType: (row['mime_type'] as string | null) ?? undefined,
    byteLength: Number(row['byte_length']),
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
  }
}

const OUTCOME_COLUMNS = 'batch_id, line, is_answered, text, usage, amount, expires_at_ms'

/** Creates the store of the outcomes of batches. */
export function sqlBatches(dialect: SqlDialect): SqlStore<BatchStore, 'tally' | 'page' | 'lines'> {
  const table = dialect.table('batch_outcomes')
  const after = `FROM ${table} WHERE batch_id = $1 AND line > $2 ORDER BY line LIMIT $3`
  const deleteWhere = (condition: string): string =>
    `${deleteSome(dialect, table, 'batch_id, line', `${condition} LIMIT $2`)} RETURNING line`
  return {
    reads: {
      *tally(batchId) {
        const rows = yield [
          `SELECT is_answered, CAST(count(*) AS text) AS count FROM ${table} WHERE batch_id = $1 GROUP BY is_answered`,
          [batchId],
        ]
        const countOf = (isAnswered: number): number =>
          Number(rows.find((row) => Number(row['is_answered']) === isAnswered)?.['count'] ?? 0)
        return { answered: countOf(1), failed: countOf(0) }
      },
      *page(batchId, afterLine, limit) {
        const rows = yield [`SELECT line, is_answered, text, usage, amount ${after}`, [batchId, afterLine, limit]]
        return rows.map(outcomeOf)
      },
      *lines(batchId, afterLine, limit) {
        const rows = yield [`SELECT line ${after}`, [batchId, afterLine, limit]]
        return rows.map(({ line }) => Number(line))
      },
    },
    writes: {
      *add(batchId, { line, isAnswered, text, usage, amount }, expiresAtMs) {
        const used = usage === undefined ? null : JSON.stringify(usage)
        const rows = yield [
          `INSERT INTO ${table} (${OUTCOME_COLUMNS}) VALUES (${places(7)}) ON CONFLICT DO NOTHING RETURNING line`,
          [batchId, line, isAnswered ? 1 : 0, text, used, String(amount), Math.floor(expiresAtMs)],
        ]
        return rows.length > 0
      },
      *delete(batchId, limit) {
        return (yield [deleteWhere('batch_id = $1'), [batchId, limit]]).length
      },
      *purge(nowMs, limit) {
        return (yield [deleteWhere('expires_at_ms <= $1'), [Math.floor(nowMs), limit]]).length
      },
    },
    transactions: {},
  }
}

function outcomeOf(row: SqlRow): BatchOutcome {
  const usage = row['usage'] as string | null
  return {
    line: Number(row['line']),
    isAnswered: Number(row['is_answered']) === 1,
    text: row['text'] as string,
    usage: usage === null ? undefined : (JSON.parse(usage) as BatchOutcome['usage']),
    amount: BigInt(row['amount'] as string),
  }
}
