import type { ConversationPage } from '../../stores/conversation-store.ts'
import type { StoredItem } from '../../stores/response-store.ts'
import { invalidField } from '../field-errors.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/**
 * Returns the requested page: the newest items first unless `order` is `asc`.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
export function pageOf(parameters: URLSearchParams): ConversationPage {
  const limit = limitOf(parameters.get('limit'))
  const order = parameters.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalidField('order', 'must be asc or desc')
  return { limit, order, after: parameters.get('after') ?? undefined }
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw invalidField('limit', `must be 1 to ${MAX_LIMIT}`)
}

/** A page as OpenAI writes lists. */
export function itemList({
  items,
  hasMore,
}: {
  readonly items: readonly StoredItem[]
  readonly hasMore: boolean
}): object {
  return {
    object: 'list',
    data: items,
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}
