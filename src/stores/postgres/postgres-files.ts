import { assertBlobId, BLOB_ROW_BYTES, type BlobStore, equalPieces, rangeOfRows } from '../blob-store.ts'
import { FILE_COLUMNS, fileOf, fileValues, OUTCOME_COLUMNS, outcomeOf, outcomeValues } from '../file-rows.ts'
import type { BatchStore, FileStore } from '../file-store.ts'
import { type PostgresConnection, textParameter, timeParameter } from './postgres-connection.ts'

type Run = Pick<PostgresConnection, 'run'>

/** Callers' files in PostgreSQL. */
export function postgresFiles({ run }: Run, schema: string): FileStore {
  const table = `${schema}.files`
  const columns = `id, account_id, purpose, filename, byte_length::text, created_at_ms::text, expires_at_ms::text,
    mime_type`
  const find: FileStore['find'] = async (accountId, id, nowMs) => {
    const [row] = await run(
      `SELECT ${columns} FROM ${table} WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3`,
      [accountId, textParameter(id), timeParameter(nowMs)],
    )
    return row === undefined ? undefined : fileOf(row)
  }
  return {
    async save(file) {
      await run(
        `INSERT INTO ${table} (${FILE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (account_id, id) DO UPDATE SET
           (purpose, filename, byte_length, created_at_ms, expires_at_ms, mime_type) = (excluded.purpose, excluded.filename,
           excluded.byte_length, excluded.created_at_ms, excluded.expires_at_ms, excluded.mime_type)`,
        fileValues(file, timeParameter),
      )
    },
    find,
    async list(accountId, { limit, order, after, purpose }, nowMs) {
      const behind = after === undefined ? undefined : await find(accountId, after, nowMs)
      if (after !== undefined && behind === undefined) return { files: [], hasMore: false }
      const rows = await run(
        `SELECT ${columns} FROM ${table}
         WHERE account_id = $1 AND expires_at_ms > $2 AND ($3::text IS NULL OR purpose = $3)
           AND ($4::bigint IS NULL OR (created_at_ms, id) ${order === 'asc' ? '>' : '<'} ($4::bigint, $5::text))
         ORDER BY files.created_at_ms ${order}, files.id ${order} LIMIT $6`,
        [
          accountId,
          timeParameter(nowMs),
          purpose ?? null,
          behind === undefined ? null : timeParameter(behind.createdAtMs),
          behind?.id ?? null,
          limit + 1,
        ],
      )
      return { files: rows.slice(0, limit).map(fileOf), hasMore: rows.length > limit }
    },
    async delete(accountId, id) {
      const rows = await run(`DELETE FROM ${table} WHERE account_id = $1 AND id = $2 RETURNING id`, [
        accountId,
        textParameter(id),
      ])
      return rows.length > 0
    },
    async purge(nowMs, limit) {
      const rows = await run(
        `DELETE FROM ${table} WHERE (account_id, id) IN (SELECT account_id, id FROM ${table}
           WHERE expires_at_ms <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`,
        [timeParameter(nowMs), limit],
      )
      return rows.map(({ id }) => id as string)
    },
  }
}

/** Outcomes of batches in PostgreSQL. */
export function postgresBatches({ run }: Run, schema: string): BatchStore {
  const table = `${schema}.batch_outcomes`
  const deleteSome = async (condition: string, value: string | null, limit: number): Promise<number> => {
    const rows = await run(
      `DELETE FROM ${table} WHERE (batch_id, line) IN (SELECT batch_id, line FROM ${table}
         WHERE ${condition} LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING line`,
      [value, limit],
    )
    return rows.length
  }
  const behind = 'WHERE batch_id = $1 AND line > $2 ORDER BY line LIMIT $3'
  return {
    async add(batchId, outcome, expiresAtMs) {
      const rows = await run(
        `INSERT INTO ${table} (${OUTCOME_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT DO NOTHING RETURNING line`,
        outcomeValues(batchId, outcome, timeParameter(expiresAtMs)),
      )
      return rows.length > 0
    },
    async tally(batchId) {
      const [row] = await run(
        `SELECT (count(*) FILTER (WHERE is_answered = 1))::text AS answered,
           (count(*) FILTER (WHERE is_answered = 0))::text AS failed FROM ${table} WHERE batch_id = $1`,
        [textParameter(batchId)],
      )
      return { answered: Number(row?.['answered'] ?? 0), failed: Number(row?.['failed'] ?? 0) }
    },
    async page(batchId, afterLine, limit) {
      const rows = await run(`SELECT line, is_answered, text, usage, amount FROM ${table} ${behind}`, [
        textParameter(batchId),
        afterLine,
        limit,
      ])
      return rows.map(outcomeOf)
    },
    async lines(batchId, afterLine, limit) {
      const rows = await run(`SELECT line FROM ${table} ${behind}`, [textParameter(batchId), afterLine, limit])
      return rows.map(({ line }) => Number(line))
    },
    delete: (batchId, limit) => deleteSome('batch_id = $1', textParameter(batchId), limit),
    purge: (nowMs, limit) => deleteSome('expires_at_ms <= $1', timeParameter(nowMs), limit),
  }
}

/** Content in PostgreSQL, in rows of half a mebibyte. */
export function postgresBlobs({ run, transaction }: PostgresConnection, schema: string): BlobStore {
  const table = `${schema}.blobs`
  return {
    async put({ id, expiresAtMs }, content) {
      assertBlobId(id)
      const [begun] = await run(
        `INSERT INTO ${table} (id, expires_at_ms) VALUES ($1, $2) RETURNING number::text AS number`,
        [id, timeParameter(expiresAtMs)],
      )
      const number = begun!['number'] as string
      let byteLength = 0
      try {
        let place = 0
        for await (const bytes of equalPieces(content, BLOB_ROW_BYTES)) {
          // Some clients accept bytes only as a Buffer.
          const row = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
          await run(`INSERT INTO ${schema}.blob_rows (blob, place, bytes) VALUES ($1, $2, $3)`, [number, place++, row])
          byteLength += bytes.byteLength
        }
        const size = byteLength
        await transaction(async (session) => {
          // Concurrent writers of the same id take turns.
          await session.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [`${schema}:${id}`])
          await session.query(`DELETE FROM ${table} WHERE id = $1 AND is_whole`, [id])
          const { rows } = await session.query(
            `UPDATE ${table} SET is_whole = true, byte_length = $2 WHERE number = $1 RETURNING number::text`,
            [number, size],
          )
          if (rows.length === 0) throw new Error('the blob expired while it was written')
        })
      } catch (error) {
        await run(`DELETE FROM ${table} WHERE number = $1`, [number])
        throw error
      }
      return byteLength
    },
    async get(id, range = { start: 0 }) {
      const [found] = await run(
        `SELECT number::text AS number, byte_length::text AS byte_length FROM ${table} WHERE id = $1 AND is_whole`,
        [textParameter(id)],
      )
      if (found === undefined) return undefined
      const byteLength = Number(found['byte_length'])
      const content = rangeOfRows(byteLength, range, async (place) => {
        const [row] = await run(`SELECT bytes FROM ${schema}.blob_rows WHERE blob = $1 AND place = $2`, [
          found['number'],
          place,
        ])
        return row?.['bytes'] as Uint8Array | undefined
      })
      return { byteLength, content }
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
  }
}
