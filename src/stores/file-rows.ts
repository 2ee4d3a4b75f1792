import type { BatchOutcome } from './batch-store.ts'
import type { FileRecord } from './file-store.ts'
import type { SqlRow } from './sql-rows.ts'

export const FILE_COLUMNS = 'id, account_id, purpose, filename, byte_length, created_at_ms, expires_at_ms'
export const OUTCOME_COLUMNS = 'batch_id, line, is_answered, text, usage, amount, expires_at_ms'

/** Returns the values of {@link FILE_COLUMNS}. Names are JSON text, because they may contain characters that no column can store. */
export function fileValues<Time>(file: FileRecord, toTime: (timeMs: number) => Time): (string | number | Time)[] {
  const { id, accountId, purpose, filename, byteLength, createdAtMs, expiresAtMs } = file
  return [id, accountId, purpose, JSON.stringify(filename), byteLength, toTime(createdAtMs), toTime(expiresAtMs)]
}

export function fileOf(row: SqlRow): FileRecord {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    purpose: row['purpose'] as string,
    filename: JSON.parse(row['filename'] as string) as string,
    byteLength: Number(row['byte_length']),
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
  }
}

/** Values of {@link OUTCOME_COLUMNS}. */
export function outcomeValues<Time>(
  batchId: string,
  { line, isAnswered, text, usage, amount }: BatchOutcome,
  expiresAtMs: Time,
): (string | number | null | Time)[] {
  const used = usage === undefined ? null : JSON.stringify(usage)
  return [batchId, line, isAnswered ? 1 : 0, text, used, amount.toString(), expiresAtMs]
}

export function outcomeOf(row: SqlRow): BatchOutcome {
  const usage = row['usage'] as string | null
  return {
    line: Number(row['line']),
    isAnswered: Number(row['is_answered']) === 1,
    text: row['text'] as string,
    usage: usage === null ? undefined : (JSON.parse(usage) as BatchOutcome['usage']),
    amount: BigInt(row['amount'] as string),
  }
}
