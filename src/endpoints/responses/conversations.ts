import { Buffer } from 'node:buffer'
import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { onDemand } from '../../core/on-demand.ts'
import {
  isBeyondConversation,
  MAX_CONVERSATION_BYTES,
  MAX_CONVERSATION_ITEMS,
  type StoredConversation,
} from '../../stores/conversation-store.ts'
import type { StoredItem } from '../../stores/response-store.ts'
import type { AnswerAccess, ObjectAccess, ObjectRequest, StoredObjects } from '../endpoint.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { listOf } from '../list-of.ts'
import { checkRequest } from '../request-field.ts'
import { itemList, pageOf } from './item-page.ts'
import {
  inputItems,
  isItemId,
  itemType,
  OWN_ITEM,
  type ResponsesItem,
  type ResponsesRequest,
} from './responses-request.ts'
import { metadataSchema, responsesItem } from './responses-schema.ts'

/** Maximum items per request (OpenAI API reference, "Create a conversation", "Create items"). */
const MAX_ITEMS_PER_REQUEST = 20

const items = onDemand(() => listOf(responsesItem()).check(z.maxLength(MAX_ITEMS_PER_REQUEST)))
const creation = onDemand(() => z.looseObject({ items: items().nullish(), metadata: metadataSchema().nullish() }))
const change = onDemand(() => z.looseObject({ metadata: metadataSchema().nullable() }))
const addition = onDemand(() => z.looseObject({ items: items() }))

type Metadata = StoredConversation['metadata']

/**
 * `/v1/conversations` (OpenAI API reference, "Conversations"). The gateway stores conversations itself, whichever vendor answers:
 * those of a vendor belong to the operator's key, which all accounts share.
 */
export const conversations: StoredObjects = {
  path: '/v1/conversations',
  places: ['', '/{conversation}', '/{conversation}/items', '/{conversation}/items/{item}'],
  methods([id, list, itemId, ...rest]) {
    if (id === undefined) return ['POST']
    if (list === undefined) return ['GET', 'HEAD', 'POST', 'DELETE']
    if (id === '' || list !== 'items' || rest.length > 0) return undefined
    if (itemId === undefined) return ['GET', 'HEAD', 'POST']
    return itemId === '' ? undefined : ['GET', 'HEAD', 'DELETE']
  },
  serve(request, access) {
    const [id, list, itemId] = request.segments
    if (id === undefined) return create(request, access)
    if (list === undefined) return serveConversation(id, request, access)
    return itemId === undefined ? serveItems(id, request, access) : serveItem(id, itemId, request, access)
  },
}

async function create({ body }: ObjectRequest, access: ObjectAccess): Promise<object> {
  if (!access.keeps) throw new GatewayError('invalid_request', { message: 'Conversations are not kept here.' })
  const { items: first, metadata } = checkRequest<{ items?: ResponsesItem[] | null; metadata?: Metadata | null }>(
    creation(),
    body ?? {},
  )
  const { accountId, nowMs } = access
  const conversation: StoredConversation = {
    id: access.newId('conv'),
    accountId,
    metadata: metadata ?? {},
    createdAtMs: nowMs,
    expiresAtMs: nowMs + access.retentionMs,
  }
  const own = await newItems(first ?? [], access)
  const size = { kind: 'conversations', byteLength: byteLengthOf(own) } as const
  await access.bounds.add(accountId, [size], () => access.conversations.create(conversation, own))
  return shown(conversation)
}

async function serveConversation(id: string, { method, body }: ObjectRequest, access: AnswerAccess): Promise<object> {
  const { conversations: store, bounds, accountId, nowMs } = access
  if (method === 'DELETE') {
    if ((await store.find(accountId, id, nowMs)) === undefined || !(await store.delete(accountId, id)))
      throw new GatewayError('conversation_not_found')
    bounds.freed(accountId, 'conversations')
    return { id, object: 'conversation.deleted', deleted: true }
  }
  if (method === 'POST') {
    const { metadata } = checkRequest<{ metadata: Metadata | null }>(change(), body)
    const changed = { metadata: metadata ?? {}, expiresAtMs: nowMs + access.retentionMs }
    return shown(await store.update(accountId, id, changed, nowMs))
  }
  return shown(await store.find(accountId, id, nowMs))
}

async function serveItems(
  id: string,
  { method, parameters, body }: ObjectRequest,
  access: ObjectAccess,
): Promise<object> {
  const { conversations: store, accountId, nowMs } = access
  if (method === 'POST') {
    const { items: given } = checkRequest<{ items: ResponsesItem[] }>(addition(), body)
    const own = await newItems(given, access)
    const added = { items: own, expiresAtMs: nowMs + access.retentionMs }
    const size = { kind: 'conversations', count: 0, byteLength: byteLengthOf(own) } as const
    const outcome = await access.bounds.add(accountId, [size], () => store.add(accountId, id, added, nowMs))
    if (outcome === 'unknown') throw new GatewayError('conversation_not_found')
    if (outcome === 'full') throw invalidField('items', TOO_MANY)
    return itemList({ items: own, hasMore: false })
  }
  const asked = pageOf(parameters)
  const page = await store.page(accountId, id, asked, nowMs)
  if (page === undefined) throw new GatewayError('conversation_not_found')
  if (asked.after !== undefined && page.items.length === 0) {
    const known = isItemId(asked.after) ? await store.item(accountId, id, asked.after, nowMs) : undefined
    if (known === undefined) throw invalidField('after', 'is not an item of this conversation')
  }
  return itemList(page)
}

async function serveItem(
  id: string,
  itemId: string,
  { method }: ObjectRequest,
  { conversations: store, bounds, accountId, nowMs }: AnswerAccess,
): Promise<object> {
  const conversation = await store.find(accountId, id, nowMs)
  if (conversation === undefined) throw new GatewayError('conversation_not_found')
  const item = isItemId(itemId) ? await store.item(accountId, id, itemId, nowMs) : undefined
  if (item === undefined) throw new GatewayError('conversation_not_found')
  if (method !== 'DELETE') return item
  await store.deleteItem(accountId, id, itemId, nowMs)
  bounds.freed(accountId, 'conversations')
  return shown(conversation)
}

function byteLengthOf(items: readonly StoredItem[]): number {
  return items.reduce((sum, item) => sum + Buffer.byteLength(JSON.stringify(item)), 0)
}

const TOO_MANY = `a conversation holds at most ${MAX_CONVERSATION_ITEMS} items and ${MAX_CONVERSATION_BYTES} bytes`

/** The history of a conversation that a request continues. */
export interface ContinuedConversation {
  readonly id: string
  readonly position: number
  readonly items: readonly StoredItem[]
  readonly credentialId: string | undefined
}

/**
 * Reads the conversation that a request names and checks that it has room for new items.
 * @throws GatewayError `invalid_request` naming the field.
 */
export async function readConversation(
  id: string,
  added: readonly ResponsesItem[],
  { conversations: store, accountId, nowMs }: AnswerAccess,
): Promise<ContinuedConversation> {
  const history = await store.history(accountId, id, nowMs)
  if (history === undefined) throw conversationNotFound(id)
  const itemCount = history.items.length + added.length
  const byteLength = history.byteLength + added.reduce((sum, item) => sum + JSON.stringify(item).length, 0)
  if (isBeyondConversation({ itemCount, byteLength })) throw invalidField('conversation', TOO_MANY)
  const { items: known, position, credentialId } = history
  return { id, position, items: known, credentialId }
}

/** Creates the error for a conversation that does not exist or belongs to another caller. */
export function conversationNotFound(id: string): GatewayError {
  const problem = `Conversation with id '${id.slice(0, LONGEST_ID_SHOWN)}' not found.`
  return invalidField('conversation', problem, 'conversation_not_found')
}

const LONGEST_ID_SHOWN = 200

function shown(conversation: StoredConversation | undefined): object {
  if (conversation === undefined) throw new GatewayError('conversation_not_found')
  const { metadata, createdAtMs } = conversation
  return { id: conversation.id, object: 'conversation', created_at: Math.floor(createdAtMs / 1000), metadata }
}

/** Returns items to store, each with an id. Hooks read them now, as later requests do not contain them. */
async function newItems(added: readonly ResponsesItem[], access: ObjectAccess): Promise<readonly StoredItem[]> {
  if (added.length === 0) return []
  const screened = await access.screened<ResponsesRequest>({ model: '', input: [...added] })
  const { items: own } = checkRequest<{ items: ResponsesItem[] }>(addition(), { items: inputItems(screened) })
  for (const [index, item] of own.entries())
    if (itemType(item) === 'item_reference') throw unsupportedField(`items[${index}]`, 'must not be a reference')
  return own.map((item) => conversationItem(item, access))
}

/** Returns an item in its stored form: messages have type and parts, and each item has an id. */
export function conversationItem(item: ResponsesItem, { newId }: Pick<AnswerAccess, 'newId'>): StoredItem {
  const type = itemType(item)
  const id = isItemId(item.id) ? item.id : newId(type === 'message' ? 'msg' : OWN_ITEM)
  if (type !== 'message') return { ...item, id }
  const { content, role } = item
  const isOwn = role === 'assistant'
  const part = isOwn ? { type: 'output_text', text: content, annotations: [] } : { type: 'input_text', text: content }
  return {
    ...item,
    type,
    id,
    status: item['status'] ?? 'completed',
    content: typeof content === 'string' ? [part] : content,
  }
}
