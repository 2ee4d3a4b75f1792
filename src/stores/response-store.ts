import { isJsonObject } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

/** An item of a conversation as it was sent or answered. */
export interface StoredItem {
  /** Unique in its conversation. */
  readonly id: string
  readonly [member: string]: unknown
}

/** One turn of a conversation: the items that the caller added, and the answer. */
export interface StoredResponse {
  /** The owner's id of it; begins with `resp_`. */
  readonly id: string
  /** The account that may read it. */
  readonly accountId: string
  /** Id of the turn before; undefined: the conversation begins here. */
  readonly previousId: string | undefined
  /** Id of the vendor that answered. */
  readonly vendor: string
  /** Credential id of the operator's key that answered. Never the key itself. */
  readonly credentialId: string
  /** The vendor's own id if the vendor keeps the turn too: only the same key can continue it there. */
  readonly upstreamId: string | undefined
  /** The conversation that it is a turn of, and the place of the newest item before it. Such a turn has no `previousId`. */
  readonly conversation?: { readonly id: string; readonly position: number } | undefined
  /** Public id of the model that answered. */
  readonly model: string
  /** In order; without the items of earlier turns. */
  readonly input: readonly StoredItem[]
  /** The answer as its caller read it, output included. */
  readonly response: Readonly<Record<string, unknown>>
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it reads as unknown and may be purged. */
  readonly expiresAtMs: number
}

/** Longest conversation that can be read, in turns. */
export const MAX_TURNS = 10_000

/** Stored answers, each for its owner only: unknown, foreign and expired ids read alike. */
export interface ResponseStore {
  /**
   * Keeps a turn; one of the same id and account is replaced. The items of a turn of a conversation are added to it in the same
   * step, whatever its size; nothing is added to one that is unknown, foreign, expired or deleted.
   */
  save(turn: StoredResponse): MaybePromise<void>
  /** An account's own turn; undefined for an unknown, foreign or expired id. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<StoredResponse | undefined>
  /**
   * All turns of a conversation up to one of them, the first one first. Undefined if any of them is unknown, foreign, expired or
   * deleted, so that a conversation is never shortened in silence, and for more than 10,000.
   */
  conversation(accountId: string, id: string, nowMs: number): MaybePromise<readonly StoredResponse[] | undefined>
  /** An account's own turns that hold one of these items, the newest first. */
  findByItems(accountId: string, itemIds: readonly string[], nowMs: number): MaybePromise<readonly StoredResponse[]>
  /** Returns the ids in `itemIds` that items of an account's own turns have, each once. */
  knownItems(accountId: string, itemIds: readonly string[], nowMs: number): MaybePromise<readonly string[]>
  /** Deletes an account's own turn with its items, expired or not. False if there is none. */
  delete(accountId: string, id: string): MaybePromise<boolean>
}

/** The items of an answer. A vendor decides what stands in its list, so that what is no item is passed over. */
export function outputOf({ response }: Pick<StoredResponse, 'response'>): readonly StoredItem[] {
  const { output } = response
  return Array.isArray(output) ? (output.filter(isJsonObject) as unknown as readonly StoredItem[]) : []
}

/** The items of a turn that can be found by their id; a vendor may have left it out. */
export function namedItemsOf(turn: StoredResponse): readonly StoredItem[] {
  return [...turn.input, ...outputOf(turn)].filter((item) => typeof (item as { id?: unknown }).id === 'string')
}

/** Whether an item has content that its vendor encrypted and bound to its id. */
export function isEncrypted({ encrypted_content: content }: Readonly<Record<string, unknown>>): boolean {
  return typeof content === 'string' && content !== ''
}

/** Ids by which a turn is found, each once. Encrypted items of callers are left out, because only their vendor knows whose they are. */
export function itemIdsOf(turn: StoredResponse): readonly string[] {
  const input = turn.input.filter((item) => !isEncrypted(item))
  return [...new Set(namedItemsOf({ ...turn, input }).map(({ id }) => id))]
}
