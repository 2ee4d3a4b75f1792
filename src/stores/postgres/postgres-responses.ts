import { conversationOf, RESPONSE_COLUMNS, responseOf, responseValues } from '../response-rows.ts'
import { itemIdsOf, MAX_TURNS, type ResponseStore, type StoredResponse } from '../response-store.ts'
import { isStorable, textParameter, timeParameter } from './column-values.ts'
import type { PostgresConnection, PostgresSession } from './postgres-connection.ts'
import { addTurnToConversation } from './postgres-conversations.ts'

const PURGED_PER_SAVE = 2

/** Stored answers in PostgreSQL. */
export function postgresResponses({ run, transaction }: PostgresConnection, schema: string): ResponseStore {
  const columns = `r.account_id, r.id, r.previous_id, r.vendor, r.vendor_key, r.upstream_id, r.conversation_id,
    r.conversation_position::text, r.model, r.input, r.response,
    r.created_at_ms::text, r.expires_at_ms::text`
  return {
    async save(turn) {
      await transaction((session) => saveResponse(session, schema, turn))
    },

    async find(accountId, id, nowMs) {
      const [row] = await run(
        `SELECT ${columns} FROM ${schema}.responses r WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3`,
        [accountId, textParameter(id), timeParameter(nowMs)],
      )
      return row === undefined ? undefined : responseOf(row)
    },

    async conversation(accountId, id, nowMs) {
      const rows = await run(
        `WITH RECURSIVE turns AS (
          SELECT id, previous_id, 0 AS depth FROM ${schema}.responses
          WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3
          UNION ALL
          SELECT p.id, p.previous_id, depth + 1 FROM turns
          JOIN ${schema}.responses p ON p.account_id = $1 AND p.id = turns.previous_id AND p.expires_at_ms > $3
          WHERE depth + 1 < ${MAX_TURNS}
        )
        SELECT ${columns} FROM turns JOIN ${schema}.responses r ON r.account_id = $1 AND r.id = turns.id ORDER BY depth`,
        [accountId, textParameter(id), timeParameter(nowMs)],
      )
      return conversationOf(rows)
    },

    async findByItems(accountId, itemIds, nowMs) {
      const rows = await run(
        `SELECT ${columns} FROM ${schema}.responses r WHERE account_id = $1 AND expires_at_ms > $3 AND id IN (
          SELECT response_id FROM ${schema}.response_items WHERE account_id = $1 AND item_id = ANY ($2)
        ) ORDER BY created_at_ms DESC, id DESC`,
        [accountId, itemIds.filter(isStorable), timeParameter(nowMs)],
      )
      return rows.map(responseOf)
    },

    async knownItems(accountId, itemIds, nowMs) {
      const rows = await run(
        `SELECT DISTINCT i.item_id FROM ${schema}.response_items i
         JOIN ${schema}.responses r ON r.account_id = i.account_id AND r.id = i.response_id
         WHERE i.account_id = $1 AND i.item_id = ANY ($2) AND r.expires_at_ms > $3`,
        [accountId, itemIds.filter(isStorable), timeParameter(nowMs)],
      )
      return rows.map((row) => String(row['item_id']))
    },

    async delete(accountId, id) {
      const rows = await run(`DELETE FROM ${schema}.responses WHERE account_id = $1 AND id = $2 RETURNING id`, [
        accountId,
        textParameter(id),
      ])
      return rows.length > 0
    },
  }
}

/** New values of a turn that is saved again. */
const REPLACED = RESPONSE_COLUMNS.split(', ')
  .map((column) => `${column} = EXCLUDED.${column}`)
  .join(', ')

/** Stores a turn, and adds it to its conversation, inside the caller's transaction. */
export async function saveResponse(session: PostgresSession, schema: string, turn: StoredResponse): Promise<void> {
  // Each insert deletes some expired rows, so no separate job is needed. Concurrent saves of one id wait here for each other.
  await session.query(
    `WITH purged AS (
      DELETE FROM ${schema}.responses WHERE (account_id, id) IN (
        SELECT account_id, id FROM ${schema}.responses WHERE expires_at_ms <= $12 AND (account_id, id) <> ($1, $2)
        ORDER BY expires_at_ms LIMIT ${PURGED_PER_SAVE} FOR UPDATE SKIP LOCKED
      )
    )
    INSERT INTO ${schema}.responses (${RESPONSE_COLUMNS})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (account_id, id) DO UPDATE SET ${REPLACED}`,
    responseValues(turn, timeParameter),
  )
  await session.query(
    `WITH removed AS (
      DELETE FROM ${schema}.response_items WHERE account_id = $1 AND response_id = $2 AND item_id <> ALL ($3::text[])
    )
    INSERT INTO ${schema}.response_items (account_id, item_id, response_id)
    SELECT $1, item_id, $2 FROM unnest($3::text[]) AS item_id ON CONFLICT DO NOTHING`,
    [turn.accountId, turn.id, itemIdsOf(turn)],
  )
  await addTurnToConversation(session, schema, turn)
}
