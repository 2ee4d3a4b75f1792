import { conversationOf, RESPONSE_COLUMNS, responseOf, responseValues } from '../response-rows.ts'
import { itemIdsOf, MAX_TURNS, type ResponseStore } from '../response-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import type { SqliteConversations } from './sqlite-conversations.ts'
import { listOf, type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'

/** Stored answers and their items. */
export const RESPONSE_MIGRATION = `
CREATE TABLE signalbox_responses (
  number        INTEGER PRIMARY KEY,
  account_id    TEXT NOT NULL,
  id            TEXT NOT NULL,
  previous_id   TEXT,
  vendor        TEXT NOT NULL,
  vendor_key    TEXT NOT NULL,
  upstream_id   TEXT,
  conversation_id       TEXT,
  conversation_position INTEGER,
  model         TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  input         TEXT NOT NULL,
  response      TEXT NOT NULL,
  UNIQUE (account_id, id)
) STRICT;
CREATE INDEX signalbox_responses_by_expiry ON signalbox_responses (expires_at_ms);

CREATE TABLE signalbox_response_items (
  account_id TEXT NOT NULL,
  item_id    TEXT NOT NULL,
  response   INTEGER NOT NULL REFERENCES signalbox_responses (number) ON DELETE CASCADE,
  PRIMARY KEY (account_id, item_id, response)
) STRICT, WITHOUT ROWID;
CREATE INDEX signalbox_response_items_by_response ON signalbox_response_items (response);
`

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
