import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import type { InteractionRecord, InteractionStore } from '../interaction-store.ts'
import type { SpendingLimit } from '../ledger.ts'
import { prepareExact, type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'

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

/** Counters of spending limits, inside the transaction of whoever calls. */
export interface SqliteSpending {
  /** Name of the first counter that an amount would take beyond its limit. Nothing is counted. Zero always fits. */
  exceeded(limits: readonly SpendingLimit[], amount: bigint, nowMs: number): string | undefined
  /** Counts a hold in all of the counters. */
  count(holdId: string, limits: readonly SpendingLimit[], amount: bigint, nowMs: number): void
  /** Corrects the counters of a hold that ends by the difference between charge and hold. */
  correct(holdId: string, difference: bigint): void
}

/** Prepares the statements of {@link SqliteSpending}. */
export function sqliteSpending(database: SqliteDatabase): SqliteSpending {
  const selectSpent = prepareExact(
    database,
    'SELECT spent FROM signalbox_counters WHERE name = ? AND expires_at_ms > ?',
  )
  const purge = database.prepare('DELETE FROM signalbox_counters WHERE name = ? AND expires_at_ms <= ?')
  const add = prepareExact(
    database,
    `INSERT INTO signalbox_counters (name, spent, expires_at_ms) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET spent = spent + excluded.spent,
       expires_at_ms = max(expires_at_ms, excluded.expires_at_ms)
     RETURNING id`,
  )
  const link = database.prepare('INSERT OR IGNORE INTO signalbox_hold_counters (hold_id, counter_id) VALUES (?, ?)')
  const correct = database.prepare(
    `UPDATE signalbox_counters SET spent = spent + ?
     WHERE id IN (SELECT counter_id FROM signalbox_hold_counters WHERE hold_id = ?)`,
  )

  return {
    exceeded(limits, amount, nowMs) {
      if (amount === 0n) return undefined
      return limits.find(({ counter, limit }) => {
        const row = selectSpent.get(counter, nowMs) as { readonly spent: bigint } | undefined
        return (row?.spent ?? 0n) + amount > limit
      })?.counter
    },
    count(holdId, limits, amount, nowMs) {
      const counters = new Map(limits.map((limit) => [limit.counter, limit.expiresAtMs]))
      for (const [counter, expiresAtMs] of counters) {
        purge.run(counter, nowMs)
        const row = add.get(counter, amount, wholeMilliseconds(expiresAtMs)) as { readonly id: bigint }
        link.run(holdId, row.id)
      }
    },
    correct(holdId, difference) {
      if (difference !== 0n) correct.run(difference, holdId)
    },
  }
}

interface InteractionRow {
  readonly account_id: string
  readonly id: string
  readonly vendor: string
  readonly vendor_key: string
  readonly upstream_id: string
  readonly model: string
  readonly created_at_ms: number
  readonly expires_at_ms: number
}

const PURGED_PER_SAVE = 2

/** Owners of conversations, inside the transaction of whoever calls. */
export type SqliteInteractions = Synchronous<InteractionStore>

/** Prepares the statements of {@link SqliteInteractions}. */
export function sqliteInteractions(database: SqliteDatabase): SqliteInteractions {
  const replace = database.prepare(
    `INSERT OR REPLACE INTO signalbox_interactions
       (account_id, id, vendor, vendor_key, upstream_id, model, created_at_ms, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const purge = database.prepare(
    `DELETE FROM signalbox_interactions WHERE (account_id, id) IN
       (SELECT account_id, id FROM signalbox_interactions WHERE expires_at_ms <= ? LIMIT ${PURGED_PER_SAVE})`,
  )
  const select = database.prepare(
    'SELECT * FROM signalbox_interactions WHERE account_id = ? AND id = ? AND expires_at_ms > ?',
  )

  return {
    save(record) {
      // What has expired goes as new comes, so that nothing else need run for it.
      purge.run(record.createdAtMs)
      replace.run(
        record.accountId,
        record.id,
        record.vendor,
        record.vendorKey,
        record.upstreamId,
        record.model,
        wholeMilliseconds(record.createdAtMs),
        wholeMilliseconds(record.expiresAtMs),
      )
    },
    find(accountId, id, nowMs) {
      const row = select.get(accountId, id, nowMs) as InteractionRow | undefined
      return row === undefined ? undefined : recordOf(row)
    },
  }
}

function recordOf(row: InteractionRow): InteractionRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    vendor: row.vendor,
    vendorKey: row.vendor_key,
    upstreamId: row.upstream_id,
    model: row.model,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}

/** Rows of each kind that one step deletes at most. */
const ROWS_PER_STEP = 500

/** The outcome of a reservation is remembered for an hour after its deadline, so that reserving it again is seen. */
const OUTCOME_RETENTION_MS = 60 * 60 * 1000

/**
 * Prepares the deletion of rows that nobody needs any more: one bounded step, in the transaction of whoever calls.
 *
 * @returns a function that gives true once nothing is left to delete.
 */
export function sqlitePurge(database: SqliteDatabase): (nowMs: number) => boolean {
  const byKey = [
    ['signalbox_holds', 'id', 'ended_at_ms IS NOT NULL AND expires_at_ms <= ?'],
    ['signalbox_refusals', 'hold_id', 'expires_at_ms <= ?'],
    ['signalbox_counters', 'rowid', 'expires_at_ms <= ?'],
    ['signalbox_idempotency', 'rowid', 'expires_at_ms <= ?'],
  ].map(([table, key, condition]) =>
    database.prepare(
      `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${condition} LIMIT ${ROWS_PER_STEP})`,
    ),
  )
  return (nowMs) => {
    const outcomesUntilMs = nowMs - OUTCOME_RETENTION_MS
    const untilMs = [outcomesUntilMs, outcomesUntilMs, nowMs, nowMs]
    const deleted = byKey.map((statement, index) => Number(statement.run(untilMs[index]!).changes))
    return deleted.every((count) => count < ROWS_PER_STEP)
  }
}
