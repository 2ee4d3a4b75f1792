import { type BlobStore, blobsInRows } from '../blob-store.ts'
import { type PostgresConnection, textParameter, timeParameter } from './postgres-connection.ts'

/** Content in PostgreSQL, in rows of half a mebibyte. */
export function postgresBlobs({ run, transaction }: PostgresConnection, schema: string): BlobStore {
  const table = `${schema}.blobs`
  return blobsInRows<string>({
    async begin({ id, expiresAtMs }) {
      const [begun] = await run(
        `INSERT INTO ${table} (id, expires_at_ms) VALUES ($1, $2) RETURNING number::text AS number`,
        [id, timeParameter(expiresAtMs)],
      )
      return begun!['number'] as string
    },
    addRow(number, place, bytes) {
      // Some clients accept bytes only as a Buffer.
      const row = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      return run(`INSERT INTO ${schema}.blob_rows (blob, place, bytes) VALUES ($1, $2, $3)`, [number, place, row])
    },
    finish: (number, id, byteLength) =>
      transaction(async (session) => {
        // Concurrent writers of the same id take turns.
        await session.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [`${schema}:${id}`])
        await session.query(`DELETE FROM ${table} WHERE id = $1 AND is_whole`, [id])
        const { rows } = await session.query(
          `UPDATE ${table} SET is_whole = true, byte_length = $2 WHERE number = $1 RETURNING number::text`,
          [number, byteLength],
        )
        if (rows.length === 0) throw new Error('the blob expired while it was written')
      }),
    remove: (number) => run(`DELETE FROM ${table} WHERE number = $1`, [number]),
    async find(id) {
      const [row] = await run(
        `SELECT number::text AS number, byte_length::text AS byte_length FROM ${table} WHERE id = $1 AND is_whole`,
        [textParameter(id)],
      )
      return row && { handle: row['number'] as string, byteLength: Number(row['byte_length']) }
    },
    async row(number, place) {
      const [row] = await run(`SELECT bytes FROM ${schema}.blob_rows WHERE blob = $1 AND place = $2`, [number, place])
      return row?.['bytes'] as Uint8Array | undefined
    },
    async delete(id) {
      const rows = await run(`DELETE FROM ${table} WHERE id = $1 AND is_whole RETURNING id`, [textParameter(id)])
      return rows.length > 0
    },
    async purge(nowMs, limit) {
      // One after the other, because content may be large, and a statement has a time limit.
      for (let count = 0; count < limit; count++) {
        const rows = await run(
          `DELETE FROM ${table} WHERE number IN (SELECT number FROM ${table} WHERE expires_at_ms <= $1
             LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id`,
          [timeParameter(nowMs)],
        )
        if (rows.length === 0) return count
      }
      return limit
    },
  })
}
