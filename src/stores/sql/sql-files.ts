import type { BatchOutcome, BatchStore, FileRecord, FileStore } from '../file-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import {
  allOf,
  changedRows,
  deleteSome,
  isChanged,
  ownedRows,
  places,
  SqlConditions,
  type SqlDialect,
  type SqlStore,
  upsert,
} from './statements.ts'

const FILE_COLUMNS = 'id, account_id, purpose, filename, byte_length, created_at_ms, expires_at_ms, mime_type'

/** Creates the store of callers' files. */
export function sqlFiles(dialect: SqlDialect): SqlStore<FileStore> {
  const table = dialect.table('files')
  const owned = ownedRows(table, dialect.columns(FILE_COLUMNS), fileOf)
  const save = upsert(table, FILE_COLUMNS, 'account_id, id')
  const expired = deleteSome(dialect, table, 'account_id, id', 'expires_at_ms <= $1 LIMIT $2')
  return {
    reads: ['find', 'list'],
    work: {
      ...owned,
      *list(accountId, { limit, order, after, purpose }, nowMs) {
        const last = after === undefined ? undefined : yield* owned.find(accountId, after, nowMs)
        if (after !== undefined && last === undefined) return { files: [], hasMore: false }
        const conditions = new SqlConditions()
          .add('f.account_id = ?', accountId)
          .add('f.expires_at_ms > ?', Math.floor(nowMs))
          .add('f.purpose = ?', purpose)
          .add(`(f.created_at_ms, f.id) ${order === 'asc' ? '>' : '<'} (?, ?)`, last?.createdAtMs, last?.id)
        const files = yield* allOf(
          fileOf,
          `SELECT ${dialect.columns(FILE_COLUMNS, 'f')} FROM ${table} AS f ${conditions.where()}
          ORDER BY f.created_at_ms ${order}, f.id ${order} LIMIT ${conditions.place(limit + 1)}`,
          conditions.parameters,
        )
        return { files: files.slice(0, limit), hasMore: files.length > limit }
      },
      *save({ id, accountId, purpose, filename, byteLength, createdAtMs, expiresAtMs, mimeType = null }) {
        const times = [Math.floor(createdAtMs), Math.floor(expiresAtMs)]
        // A name is JSON text, because it may have characters that no column can hold.
        const values = [id, accountId, purpose, JSON.stringify(filename), byteLength, ...times, mimeType]
        yield [save, values]
      },
      purge: (nowMs, limit) => allOf(({ id }) => id as string, `${expired} RETURNING id`, [Math.floor(nowMs), limit]),
    },
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
export function sqlBatches(dialect: SqlDialect): SqlStore<BatchStore> {
  const table = dialect.table('batch_outcomes')
  const after = `FROM ${table} WHERE batch_id = $1 AND line > $2 ORDER BY line LIMIT $3`
  const add = `INSERT INTO ${table} (${OUTCOME_COLUMNS}) VALUES (${places(7)}) ON CONFLICT DO NOTHING RETURNING line`
  const deleteWhere = (condition: string): string =>
    `${deleteSome(dialect, table, 'batch_id, line', `${condition} LIMIT $2`)} RETURNING line`
  return {
    reads: ['tally', 'page', 'lines'],
    work: {
      *tally(batchId) {
        const rows = yield [
          `SELECT is_answered, CAST(count(*) AS text) AS count FROM ${table} WHERE batch_id = $1 GROUP BY is_answered`,
          [batchId],
        ]
        const countOf = (isAnswered: number): number =>
          Number(rows.find((row) => Number(row['is_answered']) === isAnswered)?.['count'] ?? 0)
        return { answered: countOf(1), failed: countOf(0) }
      },
      page: (batchId, afterLine, limit) =>
        allOf(outcomeOf, `SELECT line, is_answered, text, usage, amount ${after}`, [batchId, afterLine, limit]),
      lines: (batchId, afterLine, limit) =>
        allOf(({ line }) => Number(line), `SELECT line ${after}`, [batchId, afterLine, limit]),
      add(batchId, { line, isAnswered, text, usage, amount }, expiresAtMs) {
        const used = usage === undefined ? null : JSON.stringify(usage)
        const values = [batchId, line, isAnswered ? 1 : 0, text, used, String(amount), Math.floor(expiresAtMs)]
        return isChanged(add, values)
      },
      delete: (batchId, limit) => changedRows(deleteWhere('batch_id = $1'), [batchId, limit]),
      purge: (nowMs, limit) => changedRows(deleteWhere('expires_at_ms <= $1'), [Math.floor(nowMs), limit]),
    },
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
