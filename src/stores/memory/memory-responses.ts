import { Buffer } from 'node:buffer'
import { itemIdsOf, MAX_TURNS, type ResponseStore, type StoredResponse } from '../response-store.ts'
import type { StoredUsage } from '../stored-usage.ts'
import { AccountShares } from './account-shares.ts'
import { accountKey, MapCursor } from './map-scans.ts'
import type { MemoryConversations } from './memory-conversations.ts'

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
