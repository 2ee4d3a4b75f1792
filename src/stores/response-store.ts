// See docs/decisions/0017-stored-responses.md.

import { isJsonObject } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

/** Item of a conversation as it was sent or answered. */
export interface StoredItem {
  /** Id that is unique in its conversation. */
  readonly id: string
  readonly [member: string]: unknown
}

/** Turn of a conversation: the items that the caller added, and the answer. */
export interface StoredResponse {
  /** Id of the turn for its owner; begins with `resp_`. */
  readonly id: string
  /** Account that may read it. */
  readonly accountId: string
  /** Id of the previous turn, or `undefined` if the conversation begins here. */
  readonly previousId: string | undefined
  /** Id of the vendor that answered. */
  readonly vendor: string
  /** Credential id of the key that answered. Never the key itself. */
  readonly credentialId: string
  /** The vendor's own id if the vendor also stores the turn: only the same key can continue it there. */
  readonly upstreamId: string | undefined
  /** Conversation of the turn, and the position of the newest item before it. Such a turn has no `previousId`. */
  readonly conversation?: { readonly id: string; readonly position: number } | undefined
  /** Public id of the model that answered. */
  readonly model: string
  /** Items in order, without those of earlier turns. */
  readonly input: readonly StoredItem[]
  /** Answer as its caller read it, output included. */
  readonly response: Readonly<Record<string, unknown>>
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it counts as unknown and may be purged. */
  readonly expiresAtMs: number
}

/** Maximum length of a readable conversation, in turns. */
export const MAX_TURNS = 10_000

/** Stored answers, each for its owner only: unknown, foreign and expired ids have the same result. */
export interface ResponseStore {
  /**
   * Stores a turn, replacing one of the same id and account. Its items are added to its conversation in the same step, whatever
   * the size, unless the conversation is unknown, foreign, expired or deleted.
   */
  save(turn: StoredResponse): MaybePromise<void>
  /** Returns an account's own turn; undefined for an unknown, foreign or expired id. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<StoredResponse | undefined>
  /**
   * Returns all turns of a conversation up to one of them, first one first. Undefined if any of them is unknown, foreign, expired
   * or deleted, so that a conversation is never shortened silently, and for more than 10,000 turns.
   */
  conversation(accountId: string, id: string, nowMs: number): MaybePromise<readonly StoredResponse[] | undefined>
  /** Returns an account's own turns that contain one of these items, newest first. */
  findByItems(accountId: string, itemIds: readonly string[], nowMs: number): MaybePromise<readonly StoredResponse[]>
  /** Returns the ids in `itemIds` that belong to items of an account's own turns, each once. */
  knownItems(accountId: string, itemIds: readonly string[], nowMs: number): MaybePromise<readonly string[]>
  /** Deletes an account's own turn with its items, expired or not. Returns false if there is none. */
  delete(accountId: string, id: string): MaybePromise<boolean>
}

/** Returns the items of an answer. The vendor determines its list, so invalid items are skipped. */
export function outputOf({ response }: Pick<StoredResponse, 'response'>): readonly StoredItem[] {
  const { output } = response
  return Array.isArray(output) ? (output.filter(isJsonObject) as unknown as readonly StoredItem[]) : []
}

/** Returns the items of a turn that have an id; a vendor may omit it. */
export function namedItemsOf(turn: StoredResponse): readonly StoredItem[] {
  return [...turn.input, ...outputOf(turn)].filter((item) => typeof (item as { id?: unknown }).id === 'string')
}

/** Whether an item has content that its vendor encrypted. If it is sent with an id, the vendor checks that both belong together. */
export function isEncrypted({ encrypted_content: content }: Readonly<Record<string, unknown>>): boolean {
  return typeof content === 'string' && content !== ''
}

/** Returns the ids by which a turn is found, each once. */
export function itemIdsOf(turn: StoredResponse): readonly string[] {
  return [...new Set(namedItemsOf(turn).map(({ id }) => id))]
}

/** Maximum number of items that callers may add to one conversation. */
export const MAX_CONVERSATION_ITEMS = 10_000

/** Maximum size of the JSON text of its items in bytes, because a turn reads all of them. */
export const MAX_CONVERSATION_BYTES = 64 * 1024 * 1024

/** Named list of items that turns are added to. */
export interface StoredConversation {
  /** Id that begins with `conv_`. */
  readonly id: string
  /** Account that may read it. */
  readonly accountId: string
  /** Strings of the caller by name. */
  readonly metadata: Readonly<Record<string, string>>
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it counts as unknown and may be purged. Changes and turns extend it. */
  readonly expiresAtMs: number
}

/** All items of a conversation. */
export interface ConversationHistory {
  /** Items in order. */
  readonly items: readonly StoredItem[]
  /** Position of the newest item that it ever had; 0 for none. Positions only grow, even when items are deleted. */
  readonly position: number
  /** Size of the JSON text of all its items, in bytes. */
  readonly byteLength: number
  /** Credential id of the key that answered last, or `undefined` if none has. Never the key itself. */
  readonly credentialId: string | undefined
}

/** Page of a conversation's items. */
export interface ConversationPage {
  /** Maximum number of items. */
  readonly limit: number
  /** Order of the items. `desc` lists the newest item first. */
  readonly order: 'asc' | 'desc'
  /** Cursor: id of the item before the page. An unknown id returns an empty page. */
  readonly after: string | undefined
}

/** Items to add to a conversation, and its new expiry. */
export interface ConversationAddition {
  /** Items in order. An item whose id the conversation has already is skipped. */
  readonly items: readonly StoredItem[]
  /** New expiry of the conversation; never earlier than before. */
  readonly expiresAtMs: number
}

/**
 * Conversations, each for its owner only: unknown, foreign and expired ids have the same result. `ResponseStore.save` adds the
 * turns of a conversation, in one step with the answer.
 */
export interface ConversationStore {
  /** Stores a new conversation with its first items. */
  create(conversation: StoredConversation, items: readonly StoredItem[]): MaybePromise<void>
  /** Returns an account's own conversation. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<StoredConversation | undefined>
  /** Replaces the metadata and returns the changed conversation, or undefined if there is none. */
  update(
    accountId: string,
    id: string,
    change: Pick<StoredConversation, 'metadata' | 'expiresAtMs'>,
    nowMs: number,
  ): MaybePromise<StoredConversation | undefined>
  /** Adds items at the end, all or none. Returns `full` if there would be more than 10,000 items, or more than 64 MiB. */
  add(
    accountId: string,
    id: string,
    addition: ConversationAddition,
    nowMs: number,
  ): MaybePromise<'added' | 'full' | 'unknown'>
  /** Returns all items, or those up to a position. Undefined if there is no such conversation. */
  history(
    accountId: string,
    id: string,
    nowMs: number,
    untilPosition?: number,
  ): MaybePromise<ConversationHistory | undefined>
  /** Returns a page of the items. Undefined if there is no such conversation. */
  page(
    accountId: string,
    id: string,
    page: ConversationPage,
    nowMs: number,
  ): MaybePromise<{ readonly items: readonly StoredItem[]; readonly hasMore: boolean } | undefined>
  /** Returns one item of a conversation. */
  item(accountId: string, id: string, itemId: string, nowMs: number): MaybePromise<StoredItem | undefined>
  /** Deletes an item. Returns false if there is none. */
  deleteItem(accountId: string, id: string, itemId: string, nowMs: number): MaybePromise<boolean>
  /** Deletes a conversation with its items, expired or not; answers of its turns stay. Returns false if there is none. */
  delete(accountId: string, id: string): MaybePromise<boolean>
}

/** Whether items would be too many, or too large, for a conversation. */
export function isBeyondConversation(size: { readonly itemCount: number; readonly byteLength: number }): boolean {
  return size.itemCount > MAX_CONVERSATION_ITEMS || size.byteLength > MAX_CONVERSATION_BYTES
}
