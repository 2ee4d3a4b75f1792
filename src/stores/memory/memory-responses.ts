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
import { AccountShares, accountKey, MapCursor } from './account-shares.ts'

/** Limits of stored answers. */
export interface MemoryResponsesOptions {
  /** Maximum number of answers; the oldest of accounts with more than their share are dropped first. Default 10,000. */
  readonly maxResponses?: number | undefined
  /** Maximum size of their JSON in bytes, as with `maxResponses`. Default 128 MiB. */
  readonly maxResponseBytes?: number | undefined
}

const SWEPT_PER_SAVE = 2
const DEFAULT_MAX_BYTES = 128 * 1024 * 1024

/** Turn as text, so that neither callers nor later requests share objects with the store. */
interface KeptTurn {
  readonly text: string
  readonly byteLength: number
  readonly expiresAtMs: number
  readonly accountId: string
  readonly itemIds: readonly string[]
}

/**
 * Creates a store of answers in this process, limited in number and size; synchronous.
 * @param conversations Conversations that their turns are added to. May be omitted.
 */
export function memoryResponses(
  options: MemoryResponsesOptions = {},
  conversations?: Pick<MemoryConversations, 'addTurn'>,
): ResponseStore & { stored(accountId: string, nowMs: number): StoredUsage } {
  const { maxResponses = 10_000, maxResponseBytes = DEFAULT_MAX_BYTES } = options
  const shares = new AccountShares(maxResponses, maxResponseBytes)
  const turns = new Map<string, KeptTurn>()
  /** Names of the turns that contain an item, newest last. */
  const byItem = new Map<string, Set<string>>()
  const cursor = new MapCursor(turns)
  let newestMs = Number.NEGATIVE_INFINITY

  function drop(name: string): boolean {
    const turn = turns.get(name)
    if (turn === undefined) return false
    turns.delete(name)
    shares.delete(turn.accountId, name)
    for (const id of turn.itemIds) {
      const item = accountKey(turn.accountId, id)
      const holders = byItem.get(item)
      holders?.delete(name)
      if (holders?.size === 0) byItem.delete(item)
    }
    return true
  }

  function sweep(accountId: string): void {
    for (let count = 0; count < SWEPT_PER_SAVE; count++) {
      const next = cursor.next()
      if (next !== undefined && next[1].expiresAtMs <= newestMs) drop(next[0])
    }
    for (const surplus of shares.surplus(accountId)) drop(surplus)
  }

  function read(name: string, nowMs: number): StoredResponse | undefined {
    const turn = turns.get(name)
    if (turn === undefined || turn.expiresAtMs <= nowMs) return undefined
    const { previousId, upstreamId, ...rest } = JSON.parse(turn.text) as StoredResponse
    // JSON omits undefined members.
    return { ...rest, previousId, upstreamId }
  }

  return {
    save(turn) {
      const { accountId, expiresAtMs } = turn
      const name = accountKey(accountId, turn.id)
      // If the turn cannot be stored, the earlier one stays in its place.
      const text = JSON.stringify(turn)
      const itemIds = itemIdsOf(turn)
      drop(name)
      const kept: KeptTurn = { text, byteLength: Buffer.byteLength(text), expiresAtMs, accountId, itemIds }
      turns.set(name, kept)
      shares.set(accountId, name, kept.byteLength, expiresAtMs)
      for (const id of itemIds) {
        const item = accountKey(accountId, id)
        const holders = byItem.get(item)
        if (holders === undefined) byItem.set(item, new Set([name]))
        else holders.add(name)
      }
      // `save` has no time argument, so the time of the turn counts as now.
      newestMs = Math.max(newestMs, turn.createdAtMs)
      sweep(accountId)
      conversations?.addTurn(turn)
    },

    stored: (accountId, nowMs) => shares.usage(accountId, nowMs, (name) => turns.get(name)!.expiresAtMs),

    find: (accountId, id, nowMs) => read(accountKey(accountId, id), nowMs),

    conversation(accountId, id, nowMs) {
      const found: StoredResponse[] = []
      for (let next: string | undefined = id; next !== undefined; ) {
        const turn = read(accountKey(accountId, next), nowMs)
        if (turn === undefined || found.length === MAX_TURNS) return undefined
        found.push(turn)
        next = turn.previousId
      }
      return found.reverse()
    },

    findByItems(accountId, itemIds, nowMs) {
      const names = new Set(itemIds.flatMap((id) => [...(byItem.get(accountKey(accountId, id)) ?? [])]))
      const found = [...names].flatMap((name) => read(name, nowMs) ?? [])
      return found.sort((one, other) => other.createdAtMs - one.createdAtMs)
    },

    knownItems(accountId, itemIds, nowMs) {
      const isRead = (name: string): boolean => (turns.get(name)?.expiresAtMs ?? nowMs) > nowMs
      return itemIds.filter((id) => [...(byItem.get(accountKey(accountId, id)) ?? [])].some(isRead))
    },

    delete: (accountId, id) => drop(accountKey(accountId, id)),
  }
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

const SWEPT_PER_CHANGE = 2
const DEFAULT_MAX_CONVERSATION_BYTES = 128 * 1024 * 1024

/** Item as text, so that neither callers nor later requests share objects with the store. */
interface KeptItem {
  readonly position: number
  readonly text: string
  readonly byteLength: number
}

interface KeptConversation {
  readonly facts: Omit<StoredConversation, 'metadata'>
  /** JSON text. */
  readonly metadata: string
  /** Items by their ids, in order. */
  readonly items: Map<string, KeptItem>
  position: number
  byteLength: number
  credentialId: string | undefined
}

/** Conversations in this process, limited in number and size; synchronous. */
export function memoryConversations(options: MemoryConversationsOptions = {}): MemoryConversations {
  const { maxConversations = 10_000, maxConversationBytes = DEFAULT_MAX_CONVERSATION_BYTES } = options
  const shares = new AccountShares(maxConversations, maxConversationBytes)
  const conversations = new Map<string, KeptConversation>()
  const cursor = new MapCursor(conversations)

  function drop(name: string): boolean {
    const kept = conversations.get(name)
    if (kept === undefined) return false
    shares.delete(kept.facts.accountId, name)
    return conversations.delete(name)
  }

  function sweep(accountId: string, nowMs: number): void {
    for (let count = 0; count < SWEPT_PER_CHANGE; count++) {
      const next = cursor.next()
      if (next !== undefined && next[1].facts.expiresAtMs <= nowMs) drop(next[0])
    }
    for (const surplus of shares.surplus(accountId)) drop(surplus)
  }

  function live(accountId: string, id: string, nowMs: number): KeptConversation | undefined {
    const kept = conversations.get(accountKey(accountId, id))
    return kept === undefined || kept.facts.expiresAtMs <= nowMs ? undefined : kept
  }

  /** Makes a changed conversation the newest of its account. */
  function used(kept: KeptConversation, change: { metadata?: string; expiresAtMs: number }): void {
    const { facts } = kept
    const name = accountKey(facts.accountId, facts.id)
    const expiresAtMs = Math.max(facts.expiresAtMs, change.expiresAtMs)
    shares.set(facts.accountId, name, kept.byteLength, expiresAtMs)
    conversations.set(name, { ...kept, metadata: change.metadata ?? kept.metadata, facts: { ...facts, expiresAtMs } })
  }

  function append(kept: KeptConversation, items: readonly KeptText[]): void {
    for (const { id, text, byteLength: length } of items) {
      if (kept.items.has(id)) continue
      kept.position += 1
      kept.items.set(id, { position: kept.position, text, byteLength: length })
      kept.byteLength += length
    }
  }

  return {
    create(conversation, items) {
      const { metadata, ...facts } = conversation
      const name = accountKey(facts.accountId, facts.id)
      drop(name)
      const kept: KeptConversation = {
        facts,
        metadata: JSON.stringify(metadata),
        items: new Map(),
        position: 0,
        byteLength: 0,
        credentialId: undefined,
      }
      conversations.set(name, kept)
      append(kept, items.map(textOf))
      shares.set(facts.accountId, name, kept.byteLength, facts.expiresAtMs)
      sweep(facts.accountId, facts.createdAtMs)
    },

    find(accountId, id, nowMs) {
      const kept = live(accountId, id, nowMs)
      return kept && storedOf(kept)
    },

    update(accountId, id, { metadata, expiresAtMs }, nowMs) {
      const kept = live(accountId, id, nowMs)
      if (kept === undefined) return undefined
      used(kept, { metadata: JSON.stringify(metadata), expiresAtMs })
      return storedOf(live(accountId, id, nowMs)!)
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
      append(kept, added)
      used(kept, { expiresAtMs })
      sweep(accountId, nowMs)
      return 'added'
    },

    addTurn(turn) {
      const { accountId, conversation, createdAtMs, expiresAtMs } = turn
      const kept = conversation && live(accountId, conversation.id, createdAtMs)
      if (kept === undefined) return
      append(kept, namedItemsOf(turn).map(textOf))
      kept.credentialId = turn.credentialId
      used(kept, { expiresAtMs })
      sweep(accountId, createdAtMs)
    },

    stored: (accountId, nowMs) => shares.usage(accountId, nowMs, (name) => conversations.get(name)!.facts.expiresAtMs),

    history(accountId, id, nowMs, untilPosition = Number.POSITIVE_INFINITY) {
      const kept = live(accountId, id, nowMs)
      if (kept === undefined) return undefined
      const items = [...kept.items.values()].filter(({ position }) => position <= untilPosition).map(itemOf)
      const { position, byteLength: length, credentialId } = kept
      return { items, position, byteLength: length, credentialId }
    },

    page(accountId, id, { limit, order, after }, nowMs) {
      const kept = live(accountId, id, nowMs)
      if (kept === undefined) return undefined
      const bound = after === undefined ? undefined : kept.items.get(after)
      if (after !== undefined && bound === undefined) return { items: [], hasMore: false }
      const ordered = [...kept.items.values()]
      if (order === 'desc') ordered.reverse()
      const start = bound === undefined ? 0 : ordered.indexOf(bound) + 1
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
      kept.byteLength -= item.byteLength
      kept.items.delete(itemId)
      used(kept, { expiresAtMs: 0 })
      return true
    },

    delete: (accountId, id) => drop(accountKey(accountId, id)),
  }
}

type KeptText = Omit<KeptItem, 'position'> & { readonly id: string }

function textOf(item: StoredItem): KeptText {
  const text = JSON.stringify(item)
  return { id: item.id, text, byteLength: Buffer.byteLength(text) }
}

function itemOf({ text }: KeptItem): StoredItem {
  return JSON.parse(text) as StoredItem
}

function storedOf({ facts, metadata }: KeptConversation): StoredConversation {
  return { ...facts, metadata: JSON.parse(metadata) as Record<string, string> }
}
