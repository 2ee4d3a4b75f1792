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
import type { StoredUsage } from '../sql-rows.ts'
import { accountKey } from './account-shares.ts'
import { MemoryTable } from './memory-table.ts'

/** Limits of stored answers. */
export interface MemoryResponsesOptions {
  /** Maximum number of answers; the oldest of accounts with more than their share are dropped first. Default 10,000. */
  readonly maxResponses?: number | undefined
  /** Maximum size of their JSON in bytes, as with `maxResponses`. Default 128 MiB. */
  readonly maxResponseBytes?: number | undefined
}

const DEFAULT_MAX_BYTES = 128 * 1024 * 1024

/** Turn as text, so that neither callers nor later requests share objects with the store. */
interface KeptTurn {
  readonly name: string
  readonly text: string
  readonly byteLength: number
  readonly expiresAtMs: number
  readonly accountId: string
  readonly itemKeys: readonly string[]
}

/**
 * Creates a store of answers in this process, limited in number and size; synchronous.
 * @param conversations Conversations that their turns are added to. May be omitted.
 */
export function memoryResponses(
  options: MemoryResponsesOptions = {},
  conversations?: Pick<MemoryConversations, 'addTurn'>,
): ResponseStore & { stored(accountId: string, nowMs: number): StoredUsage } {
  const turns = new MemoryTable<KeptTurn, 'item'>({
    nameOf: ({ name }) => name,
    maxCount: options.maxResponses ?? 10_000,
    maxBytes: options.maxResponseBytes ?? DEFAULT_MAX_BYTES,
    byteLengthOf: ({ byteLength }) => byteLength,
    expiresAtMsOf: ({ expiresAtMs }) => expiresAtMs,
    indexes: { item: ({ itemKeys }) => itemKeys },
  })

  function find(accountId: string, id: string, nowMs: number): StoredResponse | undefined {
    const turn = turns.get(accountKey(accountId, id), nowMs)
    return turn && turnOf(turn)
  }

  return {
    save(turn) {
      const { accountId, id, createdAtMs, expiresAtMs } = turn
      // If the turn cannot be stored, the earlier one stays in its place.
      const text = JSON.stringify(turn)
      const itemKeys = itemIdsOf(turn).map((itemId) => accountKey(accountId, itemId))
      const kept = { name: accountKey(accountId, id), text, byteLength: Buffer.byteLength(text), accountId, itemKeys }
      // `save` has no time argument, so the time of the turn counts as now.
      turns.set({ ...kept, expiresAtMs }, createdAtMs)
      conversations?.addTurn(turn)
    },

    stored: (accountId, nowMs) => turns.stored(accountId, nowMs),

    find,

    conversation(accountId, id, nowMs) {
      const found: StoredResponse[] = []
      for (let next: string | undefined = id; next !== undefined; ) {
        const turn = find(accountId, next, nowMs)
        if (turn === undefined || found.length === MAX_TURNS) return undefined
        found.push(turn)
        next = turn.previousId
      }
      return found.reverse()
    },

    findByItems(accountId, itemIds, nowMs) {
      const found = new Set(itemIds.flatMap((id) => [...turns.by('item', accountKey(accountId, id), nowMs)]))
      return Array.from(found, turnOf).sort((one, other) => other.createdAtMs - one.createdAtMs)
    },

    knownItems: (accountId, itemIds, nowMs) =>
      itemIds.filter((id) => [...turns.by('item', accountKey(accountId, id), nowMs)].length > 0),

    delete: (accountId, id) => turns.delete(accountKey(accountId, id)),
  }
}

function turnOf({ text }: KeptTurn): StoredResponse {
  const { previousId, upstreamId, ...rest } = JSON.parse(text) as StoredResponse
  // JSON omits undefined members.
  return { ...rest, previousId, upstreamId }
}

/** Limits of stored conversations. */
export interface MemoryConversationsOptions {
  /** Maximum number of conversations; of accounts with more than their share, those used longest ago are dropped first. Default 10,000. */
  readonly maxConversations?: number | undefined
  /** Maximum size of the JSON of their items in bytes, as with `maxConversations`. Default 128 MiB. */
  readonly maxConversationBytes?: number | undefined
}

/** Conversations, and the function with which the store of answers adds to them. */
interface MemoryConversations extends ConversationStore {
  /** Adds the items of a turn to its conversation, if it has one. */
  addTurn(turn: StoredResponse): void
  /** Returns how much an account has stored, without expired data. */
  stored(accountId: string, nowMs: number): StoredUsage
}

/** Item as text, so that neither callers nor later requests share objects with the store. */
interface KeptItem {
  readonly id: string
  readonly text: string
  readonly byteLength: number
}

interface KeptConversation {
  readonly accountId: string
  readonly facts: StoredConversation
  /** Items by their ids, in order. */
  readonly items: Map<string, KeptItem & { readonly position: number }>
  position: number
  byteLength: number
  readonly credentialId: string | undefined
}

/** Conversations in this process, limited in number and size; synchronous. */
export function memoryConversations(options: MemoryConversationsOptions = {}): MemoryConversations {
  const conversations = new MemoryTable<KeptConversation>({
    nameOf: ({ accountId, facts }) => accountKey(accountId, facts.id),
    maxCount: options.maxConversations ?? 10_000,
    maxBytes: options.maxConversationBytes ?? DEFAULT_MAX_BYTES,
    byteLengthOf: ({ byteLength }) => byteLength,
    expiresAtMsOf: ({ facts }) => facts.expiresAtMs,
  })

  function live(accountId: string, id: string, nowMs: number): KeptConversation | undefined {
    return conversations.get(accountKey(accountId, id), nowMs)
  }

  /** Stores a changed conversation as the newest of its account. */
  function change(
    kept: KeptConversation,
    { items = [], metadata, credentialId, expiresAtMs = 0 }: Change,
    nowMs: number,
  ): StoredConversation {
    for (const item of items) {
      if (kept.items.has(item.id)) continue
      kept.position += 1
      kept.items.set(item.id, { ...item, position: kept.position })
      kept.byteLength += item.byteLength
    }
    const facts = {
      ...kept.facts,
      metadata: metadata ?? kept.facts.metadata,
      expiresAtMs: Math.max(kept.facts.expiresAtMs, expiresAtMs),
    }
    conversations.set({ ...kept, facts, credentialId: credentialId ?? kept.credentialId }, nowMs)
    return structuredClone(facts)
  }

  return {
    create(conversation, items) {
      const facts = structuredClone(conversation)
      const { accountId, createdAtMs } = facts
      const empty = { accountId, facts, items: new Map(), position: 0, byteLength: 0, credentialId: undefined }
      change(empty, { items: items.map(textOf) }, createdAtMs)
    },

    find(accountId, id, nowMs) {
      const kept = live(accountId, id, nowMs)
      return kept && structuredClone(kept.facts)
    },

    update(accountId, id, { metadata, expiresAtMs }, nowMs) {
      const kept = live(accountId, id, nowMs)
      return kept && change(kept, { metadata: structuredClone(metadata), expiresAtMs }, nowMs)
    },

    add(accountId, id, { items, expiresAtMs }, nowMs) {
      const kept = live(accountId, id, nowMs)
      if (kept === undefined) return 'unknown'
      const added = items.map(textOf).filter((item) => !kept.items.has(item.id))
      const size = {
        itemCount: kept.items.size + added.length,
        byteLength: added.reduce((sum, item) => sum + item.byteLength, kept.byteLength),
      }
      if (isBeyondConversation(size)) return 'full'
      change(kept, { items: added, expiresAtMs }, nowMs)
      return 'added'
    },

    addTurn(turn) {
      const { accountId, conversation, createdAtMs, credentialId, expiresAtMs } = turn
      const kept = conversation && live(accountId, conversation.id, createdAtMs)
      if (kept === undefined) return
      change(kept, { items: namedItemsOf(turn).map(textOf), credentialId, expiresAtMs }, createdAtMs)
    },

    stored: (accountId, nowMs) => conversations.stored(accountId, nowMs),

    history(accountId, id, nowMs, untilPosition = Number.POSITIVE_INFINITY) {
      const kept = live(accountId, id, nowMs)
      if (kept === undefined) return undefined
      const items = [...kept.items.values()].filter(({ position }) => position <= untilPosition).map(itemOf)
      const { position, byteLength, credentialId } = kept
      return { items, position, byteLength, credentialId }
    },

    page(accountId, id, { limit, order, after }, nowMs) {
      const kept = live(accountId, id, nowMs)
      if (kept === undefined) return undefined
      const ordered = [...kept.items.values()]
      if (order === 'desc') ordered.reverse()
      const start = after === undefined ? 0 : ordered.findIndex((item) => item.id === after) + 1
      if (after !== undefined && start === 0) return { items: [], hasMore: false }
      return { items: ordered.slice(start, start + limit).map(itemOf), hasMore: ordered.length > start + limit }
    },

    item(accountId, id, itemId, nowMs) {
      const kept = live(accountId, id, nowMs)?.items.get(itemId)
      return kept && itemOf(kept)
    },

    deleteItem(accountId, id, itemId, nowMs) {
      const kept = live(accountId, id, nowMs)
      const item = kept?.items.get(itemId)
      if (kept === undefined || item === undefined) return false
      kept.items.delete(itemId)
      kept.byteLength -= item.byteLength
      change(kept, {}, nowMs)
      return true
    },

    delete: (accountId, id) => conversations.delete(accountKey(accountId, id)),
  }
}

interface Change {
  readonly items?: readonly KeptItem[]
  readonly metadata?: StoredConversation['metadata']
  readonly credentialId?: string
  readonly expiresAtMs?: number
}

function textOf(item: StoredItem): KeptItem {
  const text = JSON.stringify(item)
  return { id: item.id, text, byteLength: Buffer.byteLength(text) }
}

function itemOf({ text }: KeptItem): StoredItem {
  return JSON.parse(text) as StoredItem
}
