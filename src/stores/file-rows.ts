import type { BatchOutcome, FileRecord } from './file-store.ts'
import type { StoredConversation, StoredItem, StoredResponse } from './response-store.ts'
import type { SqlRow } from './sql-rows.ts'

export const FILE_COLUMNS = 'id, account_id, purpose, filename, byte_length, created_at_ms, expires_at_ms, mime_type'
export const OUTCOME_COLUMNS = 'batch_id, line, is_answered, text, usage, amount, expires_at_ms'

/** Values of {@link FILE_COLUMNS}. Names are JSON text: they may have characters that no column can hold. */
export function fileValues<Time>(
  file: FileRecord,
  toTime: (timeMs: number) => Time,
): (string | number | null | Time)[] {
  const { id, accountId, purpose, filename, byteLength, createdAtMs, expiresAtMs, mimeType = null } = file
  const times = [toTime(createdAtMs), toTime(expiresAtMs)]
  return [id, accountId, purpose, JSON.stringify(filename), byteLength, ...times, mimeType]
}

export function fileOf(row: SqlRow): FileRecord {
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

/** Columns of a stored turn, with the same names in all SQL drivers. */
export const RESPONSE_COLUMNS =
  'account_id, id, previous_id, vendor, vendor_key, upstream_id, conversation_id, conversation_position, model, input, response, created_at_ms, expires_at_ms'

/** Values of {@link RESPONSE_COLUMNS}. */
export function responseValues<Time>(
  turn: StoredResponse,
  toTime: (timeMs: number) => Time,
): (string | number | null | Time)[] {
  return [
    turn.accountId,
    turn.id,
    turn.previousId ?? null,
    turn.vendor,
    turn.credentialId,
    turn.upstreamId ?? null,
    turn.conversation?.id ?? null,
    turn.conversation?.position ?? null,
    turn.model,
    JSON.stringify(turn.input),
    JSON.stringify(turn.response),
    toTime(turn.createdAtMs),
    toTime(turn.expiresAtMs),
  ]
}

/** Parses a row with these columns. */
export function responseOf(row: SqlRow): StoredResponse {
  const conversationId = row['conversation_id'] as string | null
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    previousId: (row['previous_id'] as string | null) ?? undefined,
    vendor: row['vendor'] as string,
    credentialId: row['vendor_key'] as string,
    upstreamId: (row['upstream_id'] as string | null) ?? undefined,
    conversation:
      conversationId === null ? undefined : { id: conversationId, position: Number(row['conversation_position']) },
    model: row['model'] as string,
    input: JSON.parse(row['input'] as string) as StoredItem[],
    response: JSON.parse(row['response'] as string) as Record<string, unknown>,
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
  }
}

/** Returns a conversation from its last turn back; undefined unless it reaches its first one. */
export function conversationOf(rows: readonly SqlRow[]): readonly StoredResponse[] | undefined {
  const turns = rows.map(responseOf).reverse()
  const [first] = turns
  return first === undefined || first.previousId !== undefined ? undefined : turns
}

/** Parses a conversation, without its items. */
export function storedConversationOf(row: SqlRow): StoredConversation {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    metadata: JSON.parse(row['metadata'] as string) as Record<string, string>,
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
  }
}

/** Parses an item of a conversation. */
export function conversationItemOf(row: SqlRow): StoredItem {
  return JSON.parse(row['item'] as string) as StoredItem
}
