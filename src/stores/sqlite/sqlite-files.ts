import { assertBlobId, BLOB_ROW_BYTES, type BlobStore, equalPieces, rangeOfRows } from '../blob-store.ts'
import { FILE_COLUMNS, fileOf, fileValues, OUTCOME_COLUMNS, outcomeOf, outcomeValues } from '../file-rows.ts'
import type { BatchStore, FileStore } from '../file-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import { listOf, type SqliteDatabase, type SqlValue, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'

/** Callers' files, inside the caller's transaction. */
export type SqliteFiles = Synchronous<FileStore>

/** Prepares the statements of {@link SqliteFiles}. */
export function sqliteFiles(database: SqliteDatabase): SqliteFiles {
  const save = database.prepare(`INSERT OR REPLACE INTO signalbox_files (${FILE_COLUMNS}) VALUES (${listOf('?', 8)})`)
  const select = database.prepare('SELECT * FROM signalbox_files WHERE account_id = ? AND id = ? AND expires_at_ms > ?')
  const remove = database.prepare('DELETE FROM signalbox_files WHERE account_id = ? AND id = ?')
  const purge = database.prepare(
    `DELETE FROM signalbox_files WHERE (account_id, id) IN
       (SELECT account_id, id FROM signalbox_files WHERE expires_at_ms <= ? LIMIT ?) RETURNING id`,
  )
  const find: SqliteFiles['find'] = (accountId, id, nowMs) => {
    const row = select.get(accountId, id, nowMs) as SqlRow | undefined
    return row === undefined ? undefined : fileOf(row)
  }
  return {
    save: (file) => void save.run(...fileValues(file, wholeMilliseconds)),
    find,
    list(accountId, { limit, order, after, purpose }, nowMs) {
      const conditions = ['account_id = ?', 'expires_at_ms > ?']
      const values: SqlValue[] = [accountId, nowMs]
      if (purpose !== undefined) {
        conditions.push('purpose = ?')
        values.push(purpose)
      }
      if (after !== undefined) {
        const file = find(accountId, after, nowMs)
        if (file === undefined) return { files: [], hasMore: false }
        conditions.push(`(created_at_ms, id) ${order === 'asc' ? '>' : '<'} (?, ?)`)
        values.push(wholeMilliseconds(file.createdAtMs), file.id)
      }
      const statement = database.prepare(
        `SELECT * FROM signalbox_files WHERE ${conditions.join(' AND ')}
         ORDER BY created_at_ms ${order}, id ${order} LIMIT ?`,
      )
      const rows = statement.all(...values, limit + 1) as SqlRow[]
      return { files: rows.slice(0, limit).map(fileOf), hasMore: rows.length > limit }
    },
    delete: (accountId, id) => Number(remove.run(accountId, id).changes) > 0,
    purge: (nowMs, limit) => (purge.all(nowMs, limit) as SqlRow[]).map(({ id }) => id as string),
  }
}

/** Outcomes of batches, inside the caller's transaction. */
export type SqliteBatches = Synchronous<BatchStore>

/** Prepares the statements of {@link SqliteBatches}. */
export function sqliteBatches(database: SqliteDatabase): SqliteBatches {
  const table = 'signalbox_batch_outcomes'
  const add = database.prepare(
    `INSERT INTO ${table} (${OUTCOME_COLUMNS}) VALUES (${listOf('?', 7)}) ON CONFLICT DO NOTHING`,
  )
  const tally = database.prepare(`SELECT count(*) AS count FROM ${table} WHERE batch_id = ? AND is_answered = ?`)
  const behind = 'WHERE batch_id = ? AND line > ? ORDER BY line LIMIT ?'
  const page = database.prepare(`SELECT * FROM ${table} ${behind}`)
  const lines = database.prepare(`SELECT line FROM ${table} ${behind}`)
  const deleteSome = (condition: string) =>
    database.prepare(
      `DELETE FROM ${table} WHERE (batch_id, line) IN (SELECT batch_id, line FROM ${table} WHERE ${condition} LIMIT ?)`,
    )
  const remove = deleteSome('batch_id = ?')
  const purge = deleteSome('expires_at_ms <= ?')
  const countOf = (batchId: string, isAnswered: number): number =>
    Number((tally.get(batchId, isAnswered) as SqlRow)['count'])
  return {
    add: (batchId, outcome, expiresAtMs) =>
      Number(add.run(...outcomeValues(batchId, outcome, wholeMilliseconds(expiresAtMs))).changes) > 0,
    tally: (batchId) => ({ answered: countOf(batchId, 1), failed: countOf(batchId, 0) }),
    page: (batchId, afterLine, limit) => (page.all(batchId, afterLine, limit) as SqlRow[]).map(outcomeOf),
    lines: (batchId, afterLine, limit) =>
      (lines.all(batchId, afterLine, limit) as SqlRow[]).map(({ line }) => Number(line)),
    delete: (batchId, limit) => Number(remove.run(batchId, limit).changes),
    purge: (nowMs, limit) => Number(purge.run(nowMs, limit).changes),
  }
}

/** Steps of content, each inside the caller's transaction. */
export interface SqliteBlobSteps {
  /** Creates a blob and returns the number under which its rows are written. */
  begin(id: string, expiresAtMs: number): number
  addRow(number: number, place: number, bytes: Uint8Array): void
  /** Completes a blob. An earlier blob with the same id is gone. */
  finish(number: number, id: string, byteLength: number): void
  find(id: string): { readonly number: number; readonly byteLength: number } | undefined
  row(number: number, place: number): Uint8Array | undefined
  /** Makes a blob unreachable and returns the number by which its rows are removed. */
  discard(id: string): number | undefined
  /** Makes expired blobs unreachable, and returns their numbers and those that were not removed completely yet. */
  discardExpired(nowMs: number, limit: number): readonly number[]
  /** Removes some rows of an unreachable blob. Returns true if they were the last, and the blob is gone. */
  remove(number: number): boolean
}

/** Rows that one transaction removes: four megabytes, so that other writers and the event loop wait for only some milliseconds. */
const DELETE_BATCH_SIZE = 8

/** Prepares the statements of {@link SqliteBlobSteps}. */
export function sqliteBlobSteps(database: SqliteDatabase): SqliteBlobSteps {
  // Random, because the engine would reuse a number, and readers or removers of deleted content would find other content.
  const begin = database.prepare(
    'INSERT INTO signalbox_blobs (number, id, expires_at_ms) VALUES (abs(random() >> 12), ?, ?) RETURNING number',
  )
  const addRow = database.prepare('INSERT INTO signalbox_blob_rows (blob, place, bytes) VALUES (?, ?, ?)')
  const discarded = 'UPDATE signalbox_blobs SET is_whole = 0, expires_at_ms = 0 WHERE'
  const discard = database.prepare(`${discarded} id = ? AND is_whole = 1 RETURNING number`)
  const discardExpired = database.prepare(
    `${discarded} number IN (SELECT number FROM signalbox_blobs WHERE expires_at_ms <= ? LIMIT ?) RETURNING number`,
  )
  const finish = database.prepare(
    'UPDATE signalbox_blobs SET is_whole = 1, byte_length = ? WHERE number = ? AND expires_at_ms > 0',
  )
  const removeRows = database.prepare(
    `DELETE FROM signalbox_blob_rows WHERE rowid IN
       (SELECT rowid FROM signalbox_blob_rows WHERE blob = ? LIMIT ${DELETE_BATCH_SIZE})`,
  )
  const remove = database.prepare('DELETE FROM signalbox_blobs WHERE number = ?')
  const find = database.prepare('SELECT number, byte_length FROM signalbox_blobs WHERE id = ? AND is_whole = 1')
  const row = database.prepare('SELECT bytes FROM signalbox_blob_rows WHERE blob = ? AND place = ?')
  return {
    begin: (id, expiresAtMs) => Number((begin.get(id, wholeMilliseconds(expiresAtMs)) as SqlRow)['number']),
    addRow: (number, place, bytes) => void addRow.run(number, place, bytes),
    finish(number, id, byteLength) {
      discard.get(id)
      if (Number(finish.run(byteLength, number).changes) === 0) throw new Error('the blob expired while it was written')
    },
    find(id) {
      const found = find.get(id) as SqlRow | undefined
      return found && { number: Number(found['number']), byteLength: Number(found['byte_length']) }
    },
    row: (number, place) => (row.get(number, place) as { readonly bytes: Uint8Array } | undefined)?.bytes,
    discard(id) {
      const found = discard.get(id) as SqlRow | undefined
      return found && Number(found['number'])
    },
    discardExpired: (nowMs, limit) =>
      (discardExpired.all(nowMs, limit) as SqlRow[]).map((row) => Number(row['number'])),
    remove(number) {
      if (Number(removeRows.run(number).changes) === DELETE_BATCH_SIZE) return false
      remove.run(number)
      return true
    },
  }
}

/** Runs one step in a transaction, or as a read. */
type RunStep = <Value>(step: (blobs: SqliteBlobSteps) => Value) => Promise<Value>

/** Implements the contract by steps: one transaction for few rows, so that other writers run in between. */
export function sqliteBlobs(write: RunStep, read: RunStep): BlobStore {
  async function remove(number: number): Promise<void> {
    while (!(await write((blobs) => blobs.remove(number))));
  }

  return {
    async put({ id, expiresAtMs }, content) {
      assertBlobId(id)
      const number = await write((blobs) => blobs.begin(id, expiresAtMs))
      let byteLength = 0
      try {
        let place = 0
        for await (const bytes of equalPieces(content, BLOB_ROW_BYTES)) {
          const at = place++
          await write((blobs) => blobs.addRow(number, at, bytes))
          byteLength += bytes.byteLength
        }
        await write((blobs) => blobs.finish(number, id, byteLength))
      } catch (error) {
        await remove(number)
        throw error
      }
      return byteLength
    },
    async get(id, range = { start: 0 }) {
      const found = await read((blobs) => blobs.find(id))
      if (found === undefined) return undefined
      const { number, byteLength } = found
      return {
        byteLength,
        content: rangeOfRows(byteLength, range, (place) => read((blobs) => blobs.row(number, place))),
      }
    },
    async delete(id) {
      const number = await write((blobs) => blobs.discard(id))
      if (number !== undefined) await remove(number)
      return number !== undefined
    },
    async purge(nowMs, limit) {
      const numbers = await write((blobs) => blobs.discardExpired(nowMs, limit))
      for (const number of numbers) await remove(number)
      return numbers.length
    },
  }
}
