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
import {
  isStorable,
  type PostgresConnection,
  type PostgresRow,
  type PostgresSession,
  textParameter,
  timeParameter,
} from './postgres-connection.ts'

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

const PURGED_PER_CREATE = 2

const COLUMNS = `c.account_id, c.id, c.metadata, c.vendor_key, c.last_position::text, c.item_count::text,
  c.byte_length::text, c.created_at_ms::text, c.expires_at_ms::text`

/** Conversations in PostgreSQL. A conversation is locked while items are added to it, so that their positions are consecutive. */
export function postgresConversations(connection: PostgresConnection, schema: string): ConversationStore {
  const { run, transaction } = connection

  async function live(accountId: string, id: string, nowMs: number): Promise<PostgresRow | undefined> {
    const [row] = await run(
      `SELECT ${COLUMNS} FROM ${schema}.conversations c WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3`,
      [accountId, textParameter(id), timeParameter(nowMs)],
    )
    return row
  }

  return {
    async create(conversation, items) {
      const { accountId, id, metadata, createdAtMs, expiresAtMs } = conversation
      await transaction(async (session) => {
        // Each insert deletes some expired rows, so no separate job is needed.
        await session.query(
          `WITH purged AS (
            DELETE FROM ${schema}.conversations WHERE (account_id, id) IN (
              SELECT account_id, id FROM ${schema}.conversations WHERE expires_at_ms <= $3 AND (account_id, id) <> ($1, $2)
              ORDER BY expires_at_ms LIMIT ${PURGED_PER_CREATE} FOR UPDATE SKIP LOCKED
            )
          )
          DELETE FROM ${schema}.conversations WHERE account_id = $1 AND id = $2`,
          [accountId, id, timeParameter(createdAtMs)],
        )
        await session.query(
          `INSERT INTO ${schema}.conversations
            (account_id, id, metadata, last_position, item_count, byte_length, created_at_ms, expires_at_ms)
          VALUES ($1, $2, $3, 0, 0, 0, $4, $5)`,
          [accountId, id, JSON.stringify(metadata), timeParameter(createdAtMs), timeParameter(expiresAtMs)],
        )
        await append(session, schema, { accountId, id, items, expiresAtMs, nowMs: createdAtMs, isBounded: false })
      })
    },

    async find(accountId, id, nowMs) {
      const row = await live(accountId, id, nowMs)
      return row && storedConversationOf(row)
    },

    async update(accountId, id, { metadata, expiresAtMs }, nowMs) {
      const [row] = await run(
        `UPDATE ${schema}.conversations AS c SET metadata = $4, expires_at_ms = greatest(expires_at_ms, $5)
        WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3 RETURNING ${COLUMNS}`,
        [accountId, textParameter(id), timeParameter(nowMs), JSON.stringify(metadata), timeParameter(expiresAtMs)],
      )
      return row && storedConversationOf(row)
    },

    add: (accountId, id, { items, expiresAtMs }, nowMs) =>
      transaction((session) => append(session, schema, { accountId, id, items, expiresAtMs, nowMs, isBounded: true })),

    async history(accountId, id, nowMs, untilPosition = Number.MAX_SAFE_INTEGER) {
      // One statement, so that the position belongs to these items.
      const rows = await run(
        `SELECT ${COLUMNS}, i.item FROM ${schema}.conversations c LEFT JOIN ${schema}.conversation_items i
          ON i.account_id = c.account_id AND i.conversation_id = c.id AND i.position <= $4
        WHERE c.account_id = $1 AND c.id = $2 AND c.expires_at_ms > $3 ORDER BY i.position`,
        [accountId, textParameter(id), timeParameter(nowMs), String(untilPosition)],
      )
      const [first] = rows
      if (first === undefined) return undefined
      return {
        items: rows.filter((row) => row['item'] !== null).map(conversationItemOf),
        position: Number(first['last_position']),
        byteLength: Number(first['byte_length']),
        credentialId: (first['vendor_key'] as string | null) ?? undefined,
      }
    },

    async page(accountId, id, { limit, order, after }, nowMs) {
      if ((await live(accountId, id, nowMs)) === undefined) return undefined
      const values = [accountId, id, limit + 1, after === undefined ? null : textParameter(after)]
      const [relation, direction] = order === 'asc' ? ['>', 'ASC'] : ['<', 'DESC']
      const rows = await run(
        `SELECT i.item FROM ${schema}.conversation_items i
        WHERE i.account_id = $1 AND i.conversation_id = $2 AND (${after === undefined} OR i.position ${relation} (
          SELECT a.position FROM ${schema}.conversation_items a
          WHERE a.account_id = $1 AND a.conversation_id = $2 AND a.item_id = $4
        )) ORDER BY i.position ${direction} LIMIT $3`,
        values,
      )
      return { items: rows.slice(0, limit).map(conversationItemOf), hasMore: rows.length > limit }
    },

    async item(accountId, id, itemId, nowMs) {
      const [row] = await run(
        `SELECT i.item FROM ${schema}.conversation_items i
        JOIN ${schema}.conversations c ON c.account_id = i.account_id AND c.id = i.conversation_id
        WHERE c.account_id = $1 AND c.id = $2 AND c.expires_at_ms > $3 AND i.item_id = $4`,
        [accountId, textParameter(id), timeParameter(nowMs), textParameter(itemId)],
      )
      return row && conversationItemOf(row)
    },

    async deleteItem(accountId, id, itemId, nowMs) {
      // The conversation is locked first, as when items are added.
      const [row] = await run(
        `WITH conversation AS (
          SELECT account_id, id FROM ${schema}.conversations
          WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3 FOR UPDATE
        ), removed AS (
          DELETE FROM ${schema}.conversation_items i USING conversation c
          WHERE i.account_id = c.account_id AND i.conversation_id = c.id AND i.item_id = $4
          RETURNING octet_length(i.item) AS byte_length
        )
        UPDATE ${schema}.conversations c
        SET item_count = c.item_count - 1, byte_length = c.byte_length - removed.byte_length
        FROM removed WHERE c.account_id = $1 AND c.id = $2 RETURNING c.id`,
        [accountId, textParameter(id), timeParameter(nowMs), textParameter(itemId)],
      )
      return row !== undefined
    },

    async delete(accountId, id) {
      const rows = await run(`DELETE FROM ${schema}.conversations WHERE account_id = $1 AND id = $2 RETURNING id`, [
        accountId,
        textParameter(id),
      ])
      return rows.length > 0
    },
  }
}

/** Adds the items of a turn to its conversation, inside the caller's transaction. */
async function addTurnToConversation(session: PostgresSession, schema: string, turn: StoredResponse): Promise<void> {
  const { accountId, conversation, credentialId, createdAtMs: nowMs, expiresAtMs } = turn
  if (conversation === undefined) return
  const items = namedItemsOf(turn)
  await append(session, schema, {
    accountId,
    id: conversation.id,
    items,
    credentialId,
    expiresAtMs,
    nowMs,
    isBounded: false,
  })
}

interface Addition {
  readonly accountId: string
  readonly id: string
  readonly items: readonly StoredItem[]
  readonly credentialId?: string
  readonly expiresAtMs: number
  readonly nowMs: number
  /** Whether the limits of a conversation apply. */
  readonly isBounded: boolean
}

async function append(
  session: PostgresSession,
  schema: string,
  { accountId, id, items, credentialId, expiresAtMs, nowMs, isBounded }: Addition,
): Promise<'added' | 'full' | 'unknown'> {
  const found = await session.query(
    `SELECT ${COLUMNS} FROM ${schema}.conversations c
    WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3 FOR UPDATE`,
    [accountId, textParameter(id), timeParameter(nowMs)],
  )
  const row = found.rows[0] as PostgresRow | undefined
  if (row === undefined) return 'unknown'
  const known = await session.query(
    `SELECT item_id FROM ${schema}.conversation_items
    WHERE account_id = $1 AND conversation_id = $2 AND item_id = ANY ($3)`,
    [accountId, id, items.map((item) => item.id)],
  )
  const knownIds = new Set(known.rows.map((one) => (one as PostgresRow)['item_id']))
  const added = [...new Map(items.map((item) => [item.id, JSON.stringify(item)]))].filter(([one]) => !knownIds.has(one))
  const position = Number(row['last_position'])
  const itemCount = Number(row['item_count']) + added.length
  const byteLength = added.reduce((sum, [, text]) => sum + Buffer.byteLength(text), Number(row['byte_length']))
  if (isBounded && isBeyondConversation({ itemCount, byteLength })) return 'full'
  await session.query(
    `INSERT INTO ${schema}.conversation_items (account_id, conversation_id, position, item_id, item)
    SELECT $1, $2, $3::bigint + i.place, i.id, i.item
    FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS i(id, item, place)`,
    [accountId, id, String(position), added.map(([one]) => one), added.map(([, text]) => text)],
  )
  await session.query(
    `UPDATE ${schema}.conversations SET last_position = $3, item_count = $4, byte_length = $5,
      vendor_key = coalesce($6, vendor_key), expires_at_ms = greatest(expires_at_ms, $7)
    WHERE account_id = $1 AND id = $2`,
    [
      accountId,
      id,
      String(position + added.length),
      String(itemCount),
      String(byteLength),
      credentialId ?? null,
      timeParameter(expiresAtMs),
    ],
  )
  return 'added'
}
