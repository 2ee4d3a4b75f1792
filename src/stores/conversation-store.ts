import type { MaybePromise } from '../core/maybe-promise.ts'
import type { StoredItem } from './response-store.ts'

/** Most items that callers may put into one conversation. */
export const MAX_CONVERSATION_ITEMS = 10_000

/** Most bytes of the JSON text of its items: a turn reads all of them. */
export const MAX_CONVERSATION_BYTES = 64 * 1024 * 1024

/** A named list of items that turns are added to. */
export interface StoredConversation {
  /** Begins with `conv_`. */
  readonly id: string
  /** The account that may read it. */
  readonly accountId: string
  /** The caller's own texts by name. */
  readonly metadata: Readonly<Record<string, string>>
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it reads as unknown and may be purged. Changes and turns put it off. */
  readonly expiresAtMs: number
}

/** Everything that was said in a conversation. */
export interface ConversationHistory {
  /** In order. */
  readonly items: readonly StoredItem[]
  /** Place of the newest item that it ever had; 0 for none. Places only grow, also when items are deleted. */
  readonly position: number
  /** Bytes of the JSON text of all its items. */
  readonly byteLength: number
  /** Credential id of the operator's key that answered last; undefined: none has. Never the key itself. */
  readonly credentialId: string | undefined
}

/** Which items of a conversation. */
export interface ConversationPage {
  /** Most items. */
  readonly limit: number
  /** `desc`: the newest item first. */
  readonly order: 'asc' | 'desc'
  /** Id of the item before the page; an unknown one gives an empty page. */
  readonly after: string | undefined
}

/** Items that are added, and what follows for the conversation. */
export interface ConversationAddition {
  /** In order. One whose id the conversation has already is left out. */
  readonly items: readonly StoredItem[]
  /** Of the conversation from now on; never earlier than it was. */
  readonly expiresAtMs: number
}

/**
 * Conversations, each for its owner only: unknown, foreign and expired ids read alike. The turns of a conversation are added
 * by `ResponseStore.save`, in one step with the answer.
 */
export interface ConversationStore {
  /** Keeps a new conversation with its first items. */
  create(conversation: StoredConversation, items: readonly StoredItem[]): MaybePromise<void>
  /** An account's own conversation. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<StoredConversation | undefined>
  /** Replaces the metadata. Gives the conversation after it; undefined if there is none. */
  update(
    accountId: string,
    id: string,
    change: Pick<StoredConversation, 'metadata' | 'expiresAtMs'>,
    nowMs: number,
  ): MaybePromise<StoredConversation | undefined>
  /**
   * Adds items at the end, all or none. `full`: there would be more than 10,000 items, or more than
   * 64 MiB.
   */
  add(
    accountId: string,
    id: string,
    addition: ConversationAddition,
    nowMs: number,
  ): MaybePromise<'added' | 'full' | 'unknown'>
  /** All items, or those up to a place. Undefined if there is no such conversation. */
  history(
    accountId: string,
    id: string,
    nowMs: number,
    untilPosition?: number,
  ): MaybePromise<ConversationHistory | undefined>
  /** A page of the items. Undefined if there is no such conversation. */
  page(
    accountId: string,
    id: string,
    page: ConversationPage,
    nowMs: number,
  ): MaybePromise<{ readonly items: readonly StoredItem[]; readonly hasMore: boolean } | undefined>
  /** One item of a conversation. */
  item(accountId: string, id: string, itemId: string, nowMs: number): MaybePromise<StoredItem | undefined>
  /** Deletes an item. False if there is none. */
  deleteItem(accountId: string, id: string, itemId: string, nowMs: number): MaybePromise<boolean>
  /** Deletes a conversation with its items, expired or not; answers of its turns stay. False if there is none. */
  delete(accountId: string, id: string): MaybePromise<boolean>
}

/** Would items be too many, or too large, for a conversation? */
export function isBeyondConversation(size: { readonly itemCount: number; readonly byteLength: number }): boolean {
  return size.itemCount > MAX_CONVERSATION_ITEMS || size.byteLength > MAX_CONVERSATION_BYTES
}
