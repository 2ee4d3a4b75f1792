import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import { prepareExact, type SqliteDatabase } from './sqlite-database.ts'
import { wholeMilliseconds } from './whole-milliseconds.ts'

interface ClaimRow {
  readonly fingerprint: string
  readonly answer_status: bigint | null
  readonly answer_headers: string | null
  readonly answer_body: Uint8Array | null
}

/** Idempotency keys, inside the transaction of whoever calls. */
export interface SqliteClaims {
  /** What claiming would find, without claiming. */
  peek(claim: IdempotencyClaim, nowMs: number): ClaimResult
  claim(claim: IdempotencyClaim, nowMs: number): ClaimResult
  complete(claim: Omit<IdempotencyClaim, 'expiresAtMs'>, answer: StoredAnswer): void
  release(claim: Omit<IdempotencyClaim, 'expiresAtMs'>): void
}

/** Prepares the statements of {@link SqliteClaims}. */
export function sqliteClaims(database: SqliteDatabase): SqliteClaims {
  const select = prepareExact(
    database,
    `SELECT fingerprint, answer_status, answer_headers, answer_body FROM signalbox_idempotency
     WHERE account_id = ? AND key = ? AND expires_at_ms > ?`,
  )
  // What is replaced has expired: the caller has looked before.
  const insert = database.prepare(
    'INSERT OR REPLACE INTO signalbox_idempotency (account_id, key, fingerprint, expires_at_ms) VALUES (?, ?, ?, ?)',
  )
  const complete = database.prepare(
    `UPDATE signalbox_idempotency SET answer_status = ?, answer_headers = ?, answer_body = ?
     WHERE account_id = ? AND key = ? AND fingerprint = ? AND answer_status IS NULL`,
  )
  const release = database.prepare(
    `DELETE FROM signalbox_idempotency
     WHERE account_id = ? AND key = ? AND fingerprint = ? AND answer_status IS NULL`,
  )

  function peek({ accountId, key, fingerprint }: IdempotencyClaim, nowMs: number): ClaimResult {
    const row = select.get(accountId, key, nowMs) as ClaimRow | undefined
    if (row === undefined) return { status: 'claimed' }
    if (row.fingerprint !== fingerprint) return { status: 'mismatch' }
    return row.answer_status === null ? { status: 'in_flight' } : { status: 'replay', answer: answerOf(row) }
  }

  return {
    peek,
    claim(claim, nowMs) {
      const found = peek(claim, nowMs)
      if (found.status === 'claimed')
        insert.run(claim.accountId, claim.key, claim.fingerprint, wholeMilliseconds(claim.expiresAtMs))
      return found
    },
    complete({ accountId, key, fingerprint }, { status, headers, body }) {
      complete.run(status, JSON.stringify(headers), bufferOf(body), accountId, key, fingerprint)
    },
    release({ accountId, key, fingerprint }) {
      release.run(accountId, key, fingerprint)
    },
  }
}

function answerOf(row: ClaimRow): StoredAnswer {
  return {
    status: Number(row.answer_status),
    headers: JSON.parse(row.answer_headers ?? '[]') as string[],
    body: row.answer_body ?? new Uint8Array(),
  }
}

/** The same bytes as a Buffer, which is the one byte array that every engine binds. */
function bufferOf(bytes: Uint8Array): Uint8Array {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
