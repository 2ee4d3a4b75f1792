import { isEncrypted, outputOf, type StoredItem, type StoredResponse } from '../../stores/response-store.ts'
import type { AnswerAccess } from '../endpoint.ts'
import { standInId, vendorObjectIds } from '../vendor-objects.ts'
import { isItemId, itemType, type ResponsesItem } from './responses-request.ts'

/** Members of an item with the id of an item. */
const ID_MEMBERS = ['id', 'approval_request_id'] as const

/**
 * Returns items without ids of foreign items: a vendor that stores items would put another account's text in their place. It is
 * the same list if all ids are of the account.
 */
export async function withOwnIds(
  items: readonly ResponsesItem[],
  { keeps, store, accountId, nowMs }: AnswerAccess,
): Promise<readonly ResponsesItem[]> {
  const named = items.flatMap((item) => (isReference(item) ? [] : ID_MEMBERS.map((member) => item[member])))
  const ids = [...new Set(named.filter(isItemId))]
  const own = new Set(keeps && ids.length > 0 ? await store.knownItems(accountId, ids, nowMs) : [])
  const changed = items.map((item) => withOwnItemIds(item, own))
  return changed.every((item, index) => item === items[index]) ? items : changed
}

/**
 * Returns an item whose ids are all in `own`. Other ids are replaced, always in the same way, so that an approval still names its
 * request. The id of an item with encrypted content stays, because the vendor verifies that both belong together.
 */
export function withOwnItemIds(item: ResponsesItem, own: ReadonlySet<string>): ResponsesItem {
  if (isReference(item)) return item
  const members = isEncrypted(item) ? ID_MEMBERS.slice(1) : ID_MEMBERS
  const foreign = members.filter((member) => typeof item[member] === 'string' && !own.has(item[member]))
  if (foreign.length === 0) return item
  return { ...item, ...Object.fromEntries(foreign.map((member) => [member, standInId(item[member] as string)])) }
}

function isReference(item: ResponsesItem): boolean {
  return itemType(item) === 'item_reference'
}

/** Returns the ids of objects at vendors that answers to the account have named: those of the turns, and those that have the items. */
export async function ownObjectIds(
  turns: readonly StoredResponse[],
  items: readonly ResponsesItem[],
  { keeps, store, accountId, nowMs }: AnswerAccess,
): Promise<ReadonlySet<string>> {
  const naming = items.filter((item): item is StoredItem => isItemId(item.id) && vendorObjectIds(item).length > 0)
  const itemIds = naming.map(({ id }) => id)
  const holders = keeps && itemIds.length > 0 ? await store.findByItems(accountId, itemIds, nowMs) : []
  return new Set([...turns, ...holders].flatMap((turn) => vendorObjectIds(outputOf(turn))))
}
