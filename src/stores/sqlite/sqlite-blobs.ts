import { type BlobStore, blobsInRows } from '../blob-store.ts'
import type { SqlRunner, SqlWork } from '../sql/statements.ts'

/** Rows that one transaction removes: four megabytes, so that other writers and the event loop wait for only some milliseconds. */
const DELETE_BATCH_SIZE = 8

/** Creates a store of content on SQLite: one transaction for few rows, so that other writers run in between. */
export function sqliteBlobs({ read, write }: SqlRunner): BlobStore {
  async function remove(number: number): Promise<void> {
    while (!(await write(() => removeRows(number))));
  }

  return blobsInRows<number>({
    begin: ({ id, expiresAtMs }) =>
      write(function* () {
        // Random, because the engine would reuse a number, and readers or removers of deleted content would find other content.
        const [row] = yield [
          'INSERT INTO signalbox_blobs (number, id, expires_at_ms) VALUES (abs(random() >> 12), $1, $2) RETURNING number',
          [id, Math.floor(expiresAtMs)],
        ]
        return Number(row!['number'])
      }),
    addRow: (number, place, bytes) =>
      write(function* () {
        yield ['INSERT INTO signalbox_blob_rows (blob, place, bytes) VALUES ($1, $2, $3)', [number, place, bytes]]
      }),
    finish: (number, id, byteLength) =>
      write(function* () {
        yield* discard(id)
        const rows = yield [
          'UPDATE signalbox_blobs SET is_whole = 1, byte_length = $2 WHERE number = $1 AND expires_at_ms > 0 RETURNING id',
          [number, byteLength],
        ]
        if (rows.length === 0) throw new Error('the blob expired while it was written')
      }),
    remove,
    find: (id) =>
      read(function* () {
        const [row] = yield ['SELECT number, byte_length FROM signalbox_blobs WHERE id = $1 AND is_whole = 1', [id]]
        return row && { handle: Number(row['number']), byteLength: Number(row['byte_length']) }
      }),
    row: (number, place) =>
      read(function* () {
        const [row] = yield ['SELECT bytes FROM signalbox_blob_rows WHERE blob = $1 AND place = $2', [number, place]]
        return row?.['bytes'] as Uint8Array | undefined
      }),
    async delete(id) {
      const [number] = await write(() => discard(id))
      if (number !== undefined) await remove(number)
      return number !== undefined
    },
    async purge(nowMs, limit) {
      const numbers = await write(() => discardExpired(nowMs, limit))
      for (const number of numbers) await remove(number)
      return numbers.length
    },
  })
}

const DISCARD = 'UPDATE signalbox_blobs SET is_whole = 0, expires_at_ms = 0 WHERE'

/** Makes a blob unreachable and returns the number by which its rows are removed. */
function* discard(id: string): SqlWork<number[]> {
  const rows = yield [`${DISCARD} id = $1 AND is_whole = 1 RETURNING number`, [id]]
  return rows.map(({ number }) => Number(number))
}

/** Makes expired blobs unreachable, and returns their numbers and those that were not removed completely yet. */
function* discardExpired(nowMs: number, limit: number): SqlWork<number[]> {
  const rows = yield [
    `${DISCARD} number IN (SELECT number FROM signalbox_blobs WHERE expires_at_ms <= $1 LIMIT $2) RETURNING number`,
    [nowMs, limit],
  ]
  return rows.map(({ number }) => Number(number))
}

/** Removes some rows of an unreachable blob. Returns true if they were the last, and the blob is gone. */
function* removeRows(number: number): SqlWork<boolean> {
  const rows = yield [
    `DELETE FROM signalbox_blob_rows WHERE rowid IN
       (SELECT rowid FROM signalbox_blob_rows WHERE blob = $1 LIMIT ${DELETE_BATCH_SIZE}) RETURNING place`,
    [number],
  ]
  if (rows.length === DELETE_BATCH_SIZE) return false
  yield ['DELETE FROM signalbox_blobs WHERE number = $1', [number]]
  return true
}
