import { Buffer } from 'node:buffer'
import {
  conversationItemOf,
  conversationOf,
  RESPONSE_COLUMNS,
  responseOf,
  responseValues,
  storedConversationOf,
} from '../file-rows.ts'
import {
  type ConversationStore,
  isBeyondConversation,
  itemIdsOf,
  MAX_TURNS,
  namedItemsOf,
  type ResponseStore,
  type StoredItem,
  type StoredResponse,
} from '../response-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import { listOf, type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'

const PURGED_PER_SAVE = 2

/** Stored answers, inside the caller's transaction. */
export type SqliteResponses = Synchronous<ResponseStore>

/** Prepares the statements of {@link SqliteResponses}. */
export function sqliteResponses(database: SqliteDatabase, conversations: SqliteConversations): SqliteResponses {
  const purge = database.prepare(
    `DELETE FROM signalbox_responses WHERE number IN
       (SELECT number FROM signalbox_responses WHERE expires_at_ms <= ? LIMIT ${PURGED_PER_SAVE})`,
  )
  const remove = database.prepare('DELETE FROM signalbox_responses WHERE account_id = ? AND id = ?')
  const insert = database.prepare(
    `INSERT INTO signalbox_responses (${RESPONSE_COLUMNS}) VALUES (${listOf('?', 13)}) RETURNING number`,
  )
  const insertItems = database.prepare(
    `INSERT INTO signalbox_response_items (account_id, item_id, response)
     SELECT ?, value, ? FROM json_each(?)`,
  )
  const select = database.prepare(
    'SELECT * FROM signalbox_responses WHERE account_id = ? AND id = ? AND expires_at_ms > ?',
  )
  const selectConversation = database.prepare(
    `WITH RECURSIVE turns (number, previous_id, depth) AS (
       SELECT number, previous_id, 0 FROM signalbox_responses WHERE account_id = ? AND id = ? AND expires_at_ms > ?
       UNION ALL
       SELECT r.number, r.previous_id, depth + 1 FROM turns
       JOIN signalbox_responses r ON r.account_id = ? AND r.id = turns.previous_id AND r.expires_at_ms > ?
       WHERE depth + 1 < ${MAX_TURNS}
     )
     SELECT r.* FROM turns JOIN signalbox_responses r ON r.number = turns.number ORDER BY depth`,
  )
  const selectByItems = database.prepare(
    `SELECT * FROM signalbox_responses WHERE expires_at_ms > ? AND number IN (
       SELECT response FROM signalbox_response_items WHERE account_id = ? AND item_id IN (SELECT value FROM json_each(?))
     ) ORDER BY created_at_ms DESC, number DESC`,
  )
  const selectKnown = database.prepare(
    `SELECT DISTINCT i.item_id FROM signalbox_response_items i JOIN signalbox_responses r ON r.number = i.response
     WHERE i.account_id = ? AND i.item_id IN (SELECT value FROM json_each(?)) AND r.expires_at_ms > ?`,
  )

  return {
    save(turn) {
      // Each insert deletes some expired rows, so no separate job is needed.
      purge.run(wholeMilliseconds(turn.createdAtMs))
      remove.run(turn.accountId, turn.id)
      const { number } = insert.get(...responseValues(turn, wholeMilliseconds)) as { readonly number: number | bigint }
      insertItems.run(turn.accountId, number, JSON.stringify(itemIdsOf(turn)))
      conversations.addTurn(turn)
    },
    find(accountId, id, nowMs) {
      const row = select.get(accountId, id, nowMs) as SqlRow | undefined
      return row === undefined ? undefined : responseOf(row)
    },
    conversation: (accountId, id, nowMs) =>
      conversationOf(selectConversation.all(accountId, id, nowMs, accountId, nowMs) as readonly SqlRow[]),
    findByItems: (accountId, itemIds, nowMs) =>
      (selectByItems.all(nowMs, accountId, JSON.stringify(itemIds)) as readonly SqlRow[]).map(responseOf),
    knownItems: (accountId, itemIds, nowMs) =>
      (selectKnown.all(accountId, JSON.stringify(itemIds), nowMs) as readonly SqlRow[]).map((row) =>
        String(row['item_id']),
      ),
    delete: (accountId, id) => Number(remove.run(accountId, id).changes) > 0,
  }
}

const PURGED_PER_CREATE = 2

/** Conversations, inside the caller's transaction. */
export interface SqliteConversations extends Synchronous<ConversationStore> {
  /** Adds the items of a turn to its conversation, if it has one. */
  addTurn(turn: StoredResponse): void
}

interface ConversationRow extends SqlRow {
  readonly number: number
  readonly vendor_key: string | null
  readonly last_position: number
  readonly item_count: number
  readonly byte_length: number
}

/** Prepares the statements of {@link SqliteConversations}. */
export function sqliteConversations(database: SqliteDatabase): SqliteConversations {
  const purge = database.prepare(
    `DELETE FROM signalbox_conversations WHERE number IN
       (SELECT number FROM signalbox_conversations WHERE expires_at_ms <= ? LIMIT ${PURGED_PER_CREATE})`,
  )
  const remove = database.prepare('DELETE FROM signalbox_conversations WHERE account_id = ? AND id = ?')
  const insert = database.prepare(
    `INSERT INTO signalbox_conversations (account_id, id, metadata, created_at_ms, expires_at_ms)
     VALUES (?, ?, ?, ?, ?) RETURNING *`,
  )
  const select = database.prepare(
    'SELECT * FROM signalbox_conversations WHERE account_id = ? AND id = ? AND expires_at_ms > ?',
  )
  const update = database.prepare(
    `UPDATE signalbox_conversations SET metadata = ifnull(?, metadata), vendor_key = ifnull(?, vendor_key),
       expires_at_ms = max(?, expires_at_ms), last_position = ?, item_count = ?, byte_length = ? WHERE number = ?
     RETURNING *`,
  )
  const insertItem = database.prepare(
    'INSERT INTO signalbox_conversation_items (conversation, position, item_id, item) VALUES (?, ?, ?, ?)',
  )
  const selectItem = database.prepare(
    'SELECT position, item FROM signalbox_conversation_items WHERE conversation = ? AND item_id = ?',
  )
  const selectHistory = database.prepare(
    'SELECT item FROM signalbox_conversation_items WHERE conversation = ? AND position <= ? ORDER BY position',
  )
  const selectPage = {
    asc: database.prepare(
      'SELECT item FROM signalbox_conversation_items WHERE conversation = ? AND position > ? ORDER BY position LIMIT ?',
    ),
    desc: database.prepare(
      `SELECT item FROM signalbox_conversation_items WHERE conversation = ? AND position < ?
       ORDER BY position DESC LIMIT ?`,
    ),
  }
  const removeItem = database.prepare(
    'DELETE FROM signalbox_conversation_items WHERE conversation = ? AND item_id = ? RETURNING item',
  )

  function live(accountId: string, id: string, nowMs: number): ConversationRow | undefined {
    return select.get(accountId, id, nowMs) as ConversationRow | undefined
  }

  function placeOf(row: ConversationRow, itemId: string): number | undefined {
    return (selectItem.get(row.number, itemId) as { readonly position: number } | undefined)?.position
  }

  function newItems(row: ConversationRow, items: readonly StoredItem[]): readonly { id: string; text: string }[] {
    const added = new Map(items.map((item) => [item.id, JSON.stringify(item)]))
    return [...added].flatMap(([id, text]) => (placeOf(row, id) === undefined ? [{ id, text }] : []))
  }

  interface Change {
    readonly metadata?: string
    readonly credentialId?: string
    readonly expiresAtMs: number
    readonly added?: readonly { readonly id: string; readonly text: string }[]
  }

  function change(row: ConversationRow, { metadata, credentialId, expiresAtMs, added = [] }: Change): SqlRow {
    for (const [index, { id, text }] of added.entries())
      insertItem.run(row.number, row.last_position + 1 + index, id, text)
    return update.get(
      metadata ?? null,
      credentialId ?? null,
      wholeMilliseconds(expiresAtMs),
      row.last_position + added.length,
      row.item_count + added.length,
      row.byte_length + byteLengthOf(added),
      row.number,
    ) as SqlRow
  }

  return {
    create(conversation, items) {
      const { accountId, id, metadata, createdAtMs, expiresAtMs } = conversation
      // Each insert deletes some expired rows, so no separate job is needed.
      purge.run(wholeMilliseconds(createdAtMs))
      remove.run(accountId, id)
      const times = [wholeMilliseconds(createdAtMs), wholeMilliseconds(expiresAtMs)]
      const row = insert.get(accountId, id, JSON.stringify(metadata), ...times) as ConversationRow
      change(row, { expiresAtMs, added: newItems(row, items) })
    },

    find(accountId, id, nowMs) {
      const row = live(accountId, id, nowMs)
      return row && storedConversationOf(row)
    },

    update(accountId, id, { metadata, expiresAtMs }, nowMs) {
      const row = live(accountId, id, nowMs)
      return row && storedConversationOf(change(row, { metadata: JSON.stringify(metadata), expiresAtMs }))
    },

    add(accountId, id, { items, expiresAtMs }, nowMs) {
      const row = live(accountId, id, nowMs)
      if (row === undefined) return 'unknown'
      const added = newItems(row, items)
      const itemCount = row.item_count + added.length
      if (isBeyondConversation({ itemCount, byteLength: row.byte_length + byteLengthOf(added) })) return 'full'
      change(row, { expiresAtMs, added })
      return 'added'
    },

    addTurn(turn) {
      const { accountId, conversation, credentialId, createdAtMs, expiresAtMs } = turn
      const row = conversation && live(accountId, conversation.id, createdAtMs)
      if (row === undefined) return
      change(row, { credentialId, expiresAtMs, added: newItems(row, namedItemsOf(turn)) })
    },

    history(accountId, id, nowMs, untilPosition = Number.MAX_SAFE_INTEGER) {
      const row = live(accountId, id, nowMs)
      if (row === undefined) return undefined
      const items = (selectHistory.all(row.number, untilPosition) as SqlRow[]).map(conversationItemOf)
      const { last_position: position, byte_length: byteLength, vendor_key: key } = row
      return { items, position, byteLength, credentialId: key ?? undefined }
    },

    page(accountId, id, { limit, order, after }, nowMs) {
      const row = live(accountId, id, nowMs)
      if (row === undefined) return undefined
      const start = order === 'asc' ? 0 : Number.MAX_SAFE_INTEGER
      const bound = after === undefined ? start : placeOf(row, after)
      if (bound === undefined) return { items: [], hasMore: false }
      const rows = selectPage[order].all(row.number, bound, limit + 1) as SqlRow[]
      return { items: rows.slice(0, limit).map(conversationItemOf), hasMore: rows.length > limit }
    },

    item(accountId, id, itemId, nowMs) {
      const row = live(accountId, id, nowMs)
      const item = row && (selectItem.get(row.number, itemId) as SqlRow | undefined)
      return item && conversationItemOf(item)
    },

    deleteItem(accountId, id, itemId, nowMs) {
      const row = live(accountId, id, nowMs)
      const removed = row && (removeItem.get(row.number, itemId) as { readonly item: string } | undefined)
      if (row === undefined || removed === undefined) return false
      const byteLength = row.byte_length - Buffer.byteLength(removed.item)
      update.get(null, null, 0, row.last_position, row.item_count - 1, byteLength, row.number)
      return true
    },

    delete: (accountId, id) => Number(remove.run(accountId, id).changes) > 0,
  }
}

function byteLengthOf(items: readonly { readonly text: string }[]): number {
  return items.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
}
