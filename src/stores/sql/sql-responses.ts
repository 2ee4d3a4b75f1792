import { Buffer } from 'node:buffer'
import {
  type ConversationStore,
  isBeyondConversation,
  itemIdsOf,
  MAX_TURNS,
  namedItemsOf,
  type ResponseStore,
  type StoredConversation,
  type StoredItem,
  type StoredResponse,
} from '../response-store.ts'
import type { SqlRow } from '../sql-rows.ts'
import {
  allOf,
  deleteBefore,
  firstOf,
  insertRows,
  joined,
  ownedRows,
  purgeOwned,
  type SqlDialect,
  type SqlParameter,
  type SqlStore,
  type SqlWork,
  upsert,
} from './statements.ts'

const RESPONSE_COLUMNS =
  'account_id, id, previous_id, vendor, vendor_key, upstream_id, conversation_id, conversation_position, model, input, response, created_at_ms, expires_at_ms'

/** Creates the store of answers. CROSS JOIN makes SQLite begin with the table on its left, which leads to few rows. */
export function sqlResponses(dialect: SqlDialect, { addTurn }: SqlConversations): SqlStore<ResponseStore> {
  const table = dialect.table('responses')
  const items = dialect.table('response_items')
  const link = dialect.links.response
  const columns = dialect.columns(RESPONSE_COLUMNS, 'r')
  const owned = ownedRows(table, dialect.columns(RESPONSE_COLUMNS), responseOf)
  const purge = purgeOwned(dialect, table, '$12')
  const save = upsert(table, RESPONSE_COLUMNS, 'account_id, id')
  const [parents, itemParents] = [columnsOf('r', link.parent), columnsOf('i', link.item)]
  const deleteOthers = `DELETE FROM ${items} AS i WHERE i.account_id = $1 AND NOT (${dialect.isIn('i.item_id', '$3')})
    AND (${itemParents}) IN (SELECT ${parents} FROM ${table} AS r WHERE r.account_id = $1 AND r.id = $2)`
  const addItems = `INSERT INTO ${items} (account_id, item_id, ${link.item.join(', ')})
    SELECT $1, i.value, ${parents} FROM ${table} AS r, ${dialect.list('$3')}
    WHERE r.account_id = $1 AND r.id = $2 ON CONFLICT DO NOTHING`
  return {
    reads: ['find', 'conversation', 'findByItems', 'knownItems'],
    transactions: ['save'],
    work: {
      ...owned,
      *conversation(accountId, id, nowMs) {
        const turns = yield* allOf(
          responseOf,
          `WITH RECURSIVE turns AS (
            SELECT id, previous_id, 0 AS depth FROM ${table}
            WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3
            UNION ALL
            SELECT p.id, p.previous_id, depth + 1 FROM turns CROSS JOIN ${table} AS p
            WHERE p.account_id = $1 AND p.id = turns.previous_id AND p.expires_at_ms > $3 AND depth + 1 < ${MAX_TURNS}
          )
          SELECT ${columns} FROM turns CROSS JOIN ${table} AS r WHERE r.account_id = $1 AND r.id = turns.id
          ORDER BY depth DESC`,
          [accountId, id, Math.floor(nowMs)],
        )
        // A conversation must reach its first turn.
        return turns[0] === undefined || turns[0].previousId !== undefined ? undefined : turns
      },
      findByItems: (accountId, itemIds, nowMs) =>
        allOf(
          responseOf,
          `SELECT ${columns} FROM (
            SELECT DISTINCT ${itemParents} FROM ${items} AS i WHERE i.account_id = $1 AND ${dialect.isIn('i.item_id', '$2')}
          ) AS i CROSS JOIN ${table} AS r WHERE r.account_id = $1 AND ${joined(link, 'r')} AND r.expires_at_ms > $3
          ORDER BY r.created_at_ms DESC, ${parents} DESC`,
          [accountId, itemIds, Math.floor(nowMs)],
        ),
      knownItems: (accountId, itemIds, nowMs) =>
        allOf(
          (row) => row['item_id'] as string,
          `SELECT DISTINCT i.item_id FROM ${items} AS i CROSS JOIN ${table} AS r
          WHERE i.account_id = $1 AND r.account_id = $1 AND ${joined(link, 'r')} AND ${dialect.isIn('i.item_id', '$2')}
            AND r.expires_at_ms > $3`,
          [accountId, itemIds, Math.floor(nowMs)],
        ),
      *save(turn) {
        // Concurrent saves of one id wait here for each other.
        yield* deleteBefore(dialect, [purge, save], responseValues(turn))
        yield* deleteBefore(dialect, [deleteOthers, addItems], [turn.accountId, turn.id, itemIdsOf(turn)])
        yield* addTurn(turn)
      },
    },
  }
}

function responseValues(turn: StoredResponse): SqlParameter[] {
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
    Math.floor(turn.createdAtMs),
    Math.floor(turn.expiresAtMs),
  ]
}

function responseOf(row: SqlRow): StoredResponse {
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

/** Items to add to a conversation. */
interface Addition {
  readonly items: readonly StoredItem[]
  readonly expiresAtMs: number
  readonly nowMs: number
  readonly credentialId?: string
  /** Whether the limits of a conversation apply. */
  readonly isBounded?: boolean
}

/** Conversations as work, and the function with which the store of answers adds to them. */
export interface SqlConversations extends SqlStore<ConversationStore> {
  /** Adds the items of a turn to its conversation, if it has one. */
  addTurn(turn: StoredResponse): SqlWork<void>
}

/** Creates the store of conversations. A conversation is locked while its items change, so that positions are consecutive. */
export function sqlConversations(dialect: SqlDialect): SqlConversations {
  const table = dialect.table('conversations')
  const items = dialect.table('conversation_items')
  const link = dialect.links.conversation
  const facts = 'account_id, id, metadata, created_at_ms, expires_at_ms'
  const own = 'account_id = $1 AND id = $2'
  const itemsOfOwn = `FROM ${table} AS c JOIN ${items} AS i ON ${joined(link, 'c')}
    WHERE c.account_id = $1 AND c.id = $2 AND c.expires_at_ms > $3`
  const purge = purgeOwned(dialect, table, '$3')
  const owned = ownedRows(table, dialect.columns(facts), storedConversationOf)
  const insert = `INSERT INTO ${table} (${facts}, last_position, item_count, byte_length)
    VALUES ($1, $2, $4, $3, $5, 0, 0, 0)`
  const setSize = 'item_count = $3, byte_length = $4'

  const grow = `UPDATE ${table} SET ${setSize}, last_position = $5, vendor_key = coalesce($6, vendor_key),
    expires_at_ms = CASE WHEN expires_at_ms < $7 THEN $7 ELSE expires_at_ms END WHERE ${own}`
  const size = dialect.columns([...new Set(['last_position', 'item_count', 'byte_length', ...link.parent])].join(', '))
  const selectSize = `SELECT ${size} FROM ${table} WHERE ${own} AND expires_at_ms > $3 ${dialect.forUpdate}`
  const selectKnown = `SELECT i.item_id ${itemsOfOwn} AND ${dialect.isIn('i.item_id', '$4')}`

  const parentOf = (row: SqlRow): SqlParameter[] => link.parent.map((column) => row[column] as SqlParameter)

  function* lockSize(accountId: string, id: string, nowMs: number): SqlWork<SqlRow | undefined> {
    const [row] = yield [selectSize, [accountId, id, Math.floor(nowMs)]]
    return row
  }

  function* append(accountId: string, id: string, addition: Addition): SqlWork<'added' | 'full' | 'unknown'> {
    const { nowMs, expiresAtMs, credentialId = null, isBounded = false } = addition
    const row = yield* lockSize(accountId, id, nowMs)
    if (row === undefined) return 'unknown'
    const texts = new Map(addition.items.map((item) => [item.id, JSON.stringify(item)]))
    const known = yield [selectKnown, [accountId, id, Math.floor(nowMs), [...texts.keys()]]]
    for (const { item_id: itemId } of known) texts.delete(itemId as string)
    const itemCount = Number(row['item_count']) + texts.size
    const byteLength = [...texts.values()].reduce(
      (sum, text) => sum + Buffer.byteLength(text),
      Number(row['byte_length']),
    )
    if (isBounded && isBeyondConversation({ itemCount, byteLength })) return 'full'
    let position = Number(row['last_position'])
    yield* insertRows(
      items,
      [...link.item, 'position', 'item_id', 'item'],
      Array.from(texts, ([itemId, text]) => [...parentOf(row), ++position, itemId, text]),
    )
    yield [grow, [accountId, id, itemCount, byteLength, position, credentialId, Math.floor(expiresAtMs)]]
    return 'added'
  }

  return {
    reads: ['find', 'history', 'page', 'item'],
    transactions: ['create', 'add', 'deleteItem'],
    work: {
      ...owned,
      *history(accountId, id, nowMs, untilPosition = Number.MAX_SAFE_INTEGER) {
        const values = [accountId, id, Math.floor(nowMs)]
        const sizes = dialect.columns('last_position, byte_length, vendor_key')
        const [row] = yield [`SELECT ${sizes} FROM ${table} WHERE ${own} AND expires_at_ms > $3`, values]
        if (row === undefined) return undefined
        const position = Number(row['last_position'])
        // Positions only grow, so later items are not read.
        const found = yield* allOf(itemOf, `SELECT i.item ${itemsOfOwn} AND i.position <= $4 ORDER BY i.position`, [
          ...values,
          Math.min(untilPosition, position),
        ])
        const credentialId = (row['vendor_key'] as string | null) ?? undefined
        return { items: found, position, byteLength: Number(row['byte_length']), credentialId }
      },
      *page(accountId, id, { limit, order, after }, nowMs) {
        if ((yield* owned.find(accountId, id, nowMs)) === undefined) return undefined
        const bound = `AND i.position ${order === 'asc' ? '>' : '<'} (SELECT i.position ${itemsOfOwn} AND i.item_id = $5)`
        const found = yield* allOf(
          itemOf,
          `SELECT i.item ${itemsOfOwn} ${after === undefined ? '' : bound} ORDER BY i.position ${order} LIMIT $4`,
          [accountId, id, Math.floor(nowMs), limit + 1, ...(after === undefined ? [] : [after])],
        )
        return { items: found.slice(0, limit), hasMore: found.length > limit }
      },
      item: (accountId, id, itemId, nowMs) =>
        firstOf(itemOf, `SELECT i.item ${itemsOfOwn} AND i.item_id = $4`, [accountId, id, Math.floor(nowMs), itemId]),
      update: (accountId, id, { metadata, expiresAtMs }, nowMs) =>
        firstOf(
          storedConversationOf,
          `UPDATE ${table} SET metadata = $4, expires_at_ms = CASE WHEN expires_at_ms < $5 THEN $5 ELSE expires_at_ms END
          WHERE ${own} AND expires_at_ms > $3 RETURNING ${dialect.columns(facts)}`,
          [accountId, id, Math.floor(nowMs), JSON.stringify(metadata), Math.floor(expiresAtMs)],
        ),
      *create({ accountId, id, metadata, createdAtMs, expiresAtMs }, added) {
        yield* owned.delete(accountId, id)
        const [createdMs, expiresMs] = [Math.floor(createdAtMs), Math.floor(expiresAtMs)]
        const values = [accountId, id, createdMs, JSON.stringify(metadata), expiresMs]
        yield* deleteBefore(dialect, [purge, insert], values)
        yield* append(accountId, id, { items: added, expiresAtMs, nowMs: createdAtMs })
      },
      add: (accountId, id, addition, nowMs) => append(accountId, id, { ...addition, nowMs, isBounded: true }),
      *deleteItem(accountId, id, itemId, nowMs) {
        const row = yield* lockSize(accountId, id, nowMs)
        if (row === undefined) return false
        const isOfParent = link.item.map((column, index) => `${column} = $${index + 2}`).join(' AND ')
        const removed = yield* firstOf(
          (deleted) => deleted['item'] as string,
          `DELETE FROM ${items} WHERE item_id = $1 AND ${isOfParent} RETURNING item`,
          [itemId, ...parentOf(row)],
        )
        if (removed === undefined) return false
        const [itemCount, byteLength] = [Number(row['item_count']) - 1, Number(row['byte_length'])]
        const rest = [itemCount, byteLength - Buffer.byteLength(removed)]
        yield [`UPDATE ${table} SET ${setSize} WHERE ${own}`, [accountId, id, ...rest]]
        return true
      },
    },
    *addTurn(turn) {
      const { accountId, conversation, credentialId, createdAtMs: nowMs, expiresAtMs } = turn
      if (conversation === undefined) return
      yield* append(accountId, conversation.id, { items: namedItemsOf(turn), credentialId, expiresAtMs, nowMs })
    },
  }
}

function storedConversationOf(row: SqlRow): StoredConversation {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    metadata: JSON.parse(row['metadata'] as string) as Record<string, string>,
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
  }
}

function itemOf(row: SqlRow): StoredItem {
  return JSON.parse(row['item'] as string) as StoredItem
}

function columnsOf(alias: string, names: readonly string[]): string {
  return names.map((name) => `${alias}.${name}`).join(', ')
}
