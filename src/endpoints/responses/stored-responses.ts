import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, objectsIn } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import {
  type ConversationPage,
  isBeyondConversation,
  isEncrypted,
  MAX_CONVERSATION_BYTES,
  MAX_CONVERSATION_ITEMS,
  outputOf,
  type StoredConversation,
  type StoredItem,
  type StoredResponse,
} from '../../stores/response-store.ts'
import { sseEvent } from '../../wire/sse.ts'
import type {
  AnswerAccess,
  BoundAnswer,
  KeptAnswers,
  ObjectAccess,
  ObjectRequest,
  RecalledRequest,
  StoredObjects,
  StoredQuery,
  StoredReply,
} from '../endpoint.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { checkRequest, listOf } from '../schema.ts'
import { standInId, vendorObjectIds } from '../vendor-objects.ts'
import type { ResponsesOffer } from './responses-operation.ts'
import {
  inputItems,
  isItemId,
  itemType,
  OWN_ITEM,
  type ResponsesItem,
  type ResponsesRequest,
} from './responses-request.ts'
import { metadataSchema, responsesItem } from './responses-schema.ts'

/** Members of an item with the id of an item. */
const ID_MEMBERS = ['id', 'approval_request_id'] as const

/**
 * Returns items without ids of foreign items: a vendor that stores items would put another account's text in their place. It is
 * the same list if all ids are of the account.
 */
async function withOwnIds(
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
 * request. An item with encrypted content loses its id instead: a vendor refuses the content with another id, and accepts it
 * without one.
 */
export function withOwnItemIds(item: ResponsesItem, own: ReadonlySet<string>): ResponsesItem {
  if (isReference(item)) return item
  const foreign = ID_MEMBERS.filter((member) => typeof item[member] === 'string' && !own.has(item[member]))
  if (foreign.length === 0) return item
  const changed = {
    ...item,
    ...Object.fromEntries(foreign.map((member) => [member, standInId(item[member] as string)])),
  }
  if (isEncrypted(item) && changed.id !== item.id) delete changed.id
  return changed
}

function isReference(item: ResponsesItem): boolean {
  return itemType(item) === 'item_reference'
}

/** Returns the ids of objects at vendors that answers to the account have named: those of the turns, and those that have the items. */
async function ownObjectIds(
  turns: readonly StoredResponse[],
  items: readonly ResponsesItem[],
  { keeps, store, accountId, nowMs }: AnswerAccess,
): Promise<ReadonlySet<string>> {
  const naming = items.filter((item): item is StoredItem => isItemId(item.id) && vendorObjectIds(item).length > 0)
  const itemIds = naming.map(({ id }) => id)
  const holders = keeps && itemIds.length > 0 ? await store.findByItems(accountId, itemIds, nowMs) : []
  return new Set([...turns, ...holders].flatMap((turn) => vendorObjectIds(outputOf(turn))))
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/**
 * Returns the requested page: the newest items first unless `order` is `asc`.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
function pageOf(parameters: URLSearchParams): ConversationPage {
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
function itemList({ items, hasMore }: { readonly items: readonly StoredItem[]; readonly hasMore: boolean }): object {
  return {
    object: 'list',
    data: items,
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}

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
const conversations: StoredObjects = {
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
interface ContinuedConversation {
  readonly id: string
  readonly position: number
  readonly items: readonly StoredItem[]
  readonly credentialId: string | undefined
}

/**
 * Reads the conversation that a request names and checks that it has room for new items.
 * @throws GatewayError `invalid_request` naming the field.
 */
async function readConversation(
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
  const problem = `Conversation with id '${id.slice(0, MAX_ID_SHOWN)}' not found.`
  return invalidField('conversation', problem, 'conversation_not_found')
}

const MAX_ID_SHOWN = 200

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
function conversationItem(item: ResponsesItem, { newId }: Pick<AnswerAccess, 'newId'>): StoredItem {
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

/**
 * Replaces the references of a request by their content: the whole conversation so far, and the item of each reference.
 * @throws GatewayError `invalid_request` naming the reference that is unknown, foreign, expired or deleted.
 */
async function recallResponses(
  given: ResponsesRequest,
  access: AnswerAccess,
): Promise<RecalledRequest<ResponsesRequest>> {
  const { previous_response_id: previousId } = given
  const givenItems = inputItems(given)
  const items = await withOwnIds(givenItems, access)
  const request = items === givenItems ? given : { ...given, input: [...items] }
  const hasReferences = items.some((item) => itemType(item) === 'item_reference')
  if (!access.keeps) return { request: notKept(request, hasReferences), ...NOTHING }
  const isKept = request.store !== false
  const conversationId = conversationIdOf(request)
  if (typeof previousId !== 'string' && !hasReferences && conversationId === undefined)
    return {
      ...NOTHING,
      request,
      ownIds: await ownObjectIds([], items, access),
      turn: isKept ? turnOf(undefined, items) : undefined,
    }
  const turns = typeof previousId === 'string' ? await conversationOf(previousId, access) : []
  const conversation = conversationId === undefined ? undefined : await readConversation(conversationId, items, access)
  const before = conversation?.items ?? (await itemsBefore(turns, access))
  if (before === undefined) throw previousNotFound(previousId ?? '')
  const { own, holders } = hasReferences ? await resolved(items, before, access) : { own: items, holders: [] }
  const answered = new Set([...turns, ...holders].flatMap((turn) => outputOf(turn).map(({ id }) => id)))
  const isAnswered = items.every((item) => itemType(item) !== 'item_reference' || answered.has(item.id ?? ''))
  const history = [...before, ...turns.flatMap((turn) => [...turn.input, ...outputOf(turn)])]
  // Callers chose the ids of items in a conversation.
  const all = await withOwnIds([...history, ...own], access)
  const added = all.slice(history.length)
  const { previous_response_id: _previous, conversation: _conversation, ...rest } = request
  const last = turns.at(-1)
  // A vendor knows the items of its answers only by their ids.
  const named = last === undefined ? holders : [last, ...holders]
  return {
    request: { ...rest, input: all.map(asSent) },
    original: request,
    makers: makersOf([...turns, ...holders]),
    ownIds: await ownObjectIds([...turns, ...holders], [...before, ...own], access),
    bound: conversation !== undefined ? preferred(conversation) : isAnswered ? boundTo(named) : undefined,
    turn: !isKept
      ? undefined
      : conversation === undefined
        ? turnOf(last?.id, added)
        : turnIn(conversation, own, access),
  }
}

/** The conversation that a request names. */
export function conversationIdOf({ conversation }: ResponsesRequest): string | undefined {
  return typeof conversation === 'string' ? conversation : (conversation?.id ?? undefined)
}

/** Returns the stored items of a conversation before the first of the turns, or `undefined` if the conversation is gone. */
async function itemsBefore(
  [first]: readonly StoredResponse[],
  { conversations, accountId, nowMs }: AnswerAccess,
): Promise<readonly StoredItem[] | undefined> {
  if (first?.conversation === undefined) return []
  const { id, position } = first.conversation
  return (await conversations.history(accountId, id, nowMs, position))?.items
}

/** Removes ids that the gateway assigned, because vendors accept only ids of their own form. */
function asSent(item: ResponsesItem): ResponsesItem {
  if (item.id?.startsWith(`${OWN_ITEM}_`) !== true) return item
  const { id: _id, ...sent } = item
  return sent
}

function preferred({ credentialId }: ContinuedConversation): BoundAnswer | undefined {
  if (credentialId === undefined) return undefined
  return { vendor: credentialId.slice(0, credentialId.lastIndexOf(':')), credentialId, upstreamId: undefined }
}

function turnIn(
  { id, position, items }: ContinuedConversation,
  own: readonly ResponsesItem[],
  access: AnswerAccess,
): RecalledRequest<ResponsesRequest>['turn'] {
  const known = new Set(items.map((item) => item.id))
  const input = own.map((item) => conversationItem(known.has(item.id ?? '') ? { ...item, id: null } : item, access))
  return { previousId: undefined, conversation: { id, position }, input }
}

const NOTHING = { original: undefined, bound: undefined, turn: undefined } as const

/**
 * Handles a host without storage: sets `store` to false and rejects references.
 * @throws GatewayError `unsupported_parameter` naming the reference.
 */
function notKept(request: ResponsesRequest, hasReferences: boolean): ResponsesRequest {
  if (typeof request.previous_response_id === 'string')
    throw unsupportedField('previous_response_id', 'answers are not kept here; send the whole conversation')
  if (conversationIdOf(request) !== undefined)
    throw unsupportedField('conversation', 'conversations are not kept here; send the whole conversation')
  if (hasReferences) throw unsupportedField('input', 'items are not kept here; send the whole conversation')
  return request.store === false ? request : { ...request, store: false }
}

async function conversationOf(
  previousId: string,
  { store, accountId, nowMs }: AnswerAccess,
): Promise<readonly StoredResponse[]> {
  const turns = await store.conversation(accountId, previousId, nowMs)
  // Failed and cancelled answers contain nothing to continue.
  if (turns === undefined || UNMADE.has(turns.at(-1)?.response['status'])) throw previousNotFound(previousId)
  return turns
}

const UNMADE: ReadonlySet<unknown> = new Set(['failed', 'cancelled'])

/** Creates the error that clients know (OpenAI, "Conversation state"). */
function previousNotFound(id: string): GatewayError {
  const shown = id.slice(0, MAX_ID_SHOWN)
  const problem = `Previous response with id '${shown}' not found.`
  return invalidField('previous_response_id', problem, 'previous_response_not_found')
}

interface ResolvedItems {
  readonly own: readonly ResponsesItem[]
  /** Turns that contain the items. */
  readonly holders: readonly StoredResponse[]
}

async function resolved(
  items: readonly ResponsesItem[],
  before: readonly StoredItem[],
  { store, accountId, nowMs }: AnswerAccess,
): Promise<ResolvedItems> {
  const ids = items.filter((item) => itemType(item) === 'item_reference').map(({ id }) => id ?? '')
  const holders = await store.findByItems(accountId, [...new Set(ids)], nowMs)
  const found = new Map(before.map((item) => [item.id, item]))
  // Turns are ordered newest first, and the newest occurrence of an item is used.
  for (const turn of holders)
    for (const item of [...turn.input, ...outputOf(turn)]) if (!found.has(item.id)) found.set(item.id, item)
  const own = items.map((item, index): ResponsesItem => {
    if (itemType(item) !== 'item_reference') return item
    const kept = found.get(item.id ?? '')
    if (kept !== undefined) return kept
    const shown = (item.id ?? '').slice(0, MAX_ID_SHOWN)
    const problem = `Item with id '${shown}' not found. Items are not kept when store is false.`
    throw invalidField(`input[${index}]`, problem)
  })
  return { own, holders }
}

/** Returns the vendor that issued the state in each answer. No other vendor accepts it. */
function makersOf(turns: readonly StoredResponse[]): ReadonlyMap<string, string> {
  const makers = new Map<string, string>()
  for (const turn of turns)
    for (const { encrypted_content: state } of outputOf(turn))
      if (typeof state === 'string' && state !== '') makers.set(state, turn.vendor)
  return makers
}

/** Returns the common owner if one vendor stores all turns under one key. */
function boundTo(turns: readonly StoredResponse[]): BoundAnswer | undefined {
  const [first] = turns
  if (first?.upstreamId === undefined) return undefined
  const { vendor, credentialId, upstreamId } = first
  const isOne = turns.every((turn) => turn.upstreamId !== undefined && turn.credentialId === credentialId)
  return isOne ? { vendor, credentialId, upstreamId } : undefined
}

/** The items of a turn, each with an id. */
export function turnOf(
  previousId: string | undefined,
  items: readonly ResponsesItem[],
): Pick<StoredResponse, 'previousId' | 'input'> {
  const input = items.map((item, index): StoredItem => {
    const { id } = item
    if (isItemId(id)) return item as StoredItem
    return { ...item, id: freshItemId(item, `${previousId} ${index}`) }
  })
  return { previousId, input }
}

/** An item gets the same id at the same position, and different ids in different turns. */
function freshItemId(item: ResponsesItem, place: string): string {
  const hash = createHash('sha256')
    .update(`${place} ${JSON.stringify(item)}`)
    .digest('hex')
  return `${itemType(item) === 'message' ? 'msg' : OWN_ITEM}_${hash.slice(0, 40)}`
}

type Members = Record<string, unknown>

/**
 * Returns a stored response as a stream with each text in one chunk. It always contains the last event, whose number is above
 * `startingAfter`: a client that lost a finer stream reads the whole answer there.
 * @param startingAfter Number of the last event that the caller has, or -1 for none.
 */
function storedEvents(response: Readonly<Members>, startingAfter: number): string {
  let number = 0
  let text = ''
  const write = (type: string, members: Members): void => {
    if (number > startingAfter) text += sseEvent(type, JSON.stringify({ type, sequence_number: number, ...members }))
    number += 1
  }
  const begun = { ...response, status: 'in_progress', output: [], usage: null, completed_at: null }
  write('response.created', { response: begun })
  write('response.in_progress', { response: begun })
  const output = objectsIn(response['output'])
  output.forEach((item, index) => {
    writeItem(item, index, write)
  })
  const { status, error } = response
  const isFailed = status === 'failed' || status === 'cancelled'
  number = Math.max(number, startingAfter + 1)
  // Some clients read only the first of the two events, and some only the second.
  if (isJsonObject(error))
    write('error', { ...error, param: null, error: { type: 'server_error', ...error, param: null } })
  write(isFailed ? 'response.failed' : `response.${String(status)}`, { response })
  return text
}

function writeItem(item: Members, outputIndex: number, write: (type: string, members: Members) => void): void {
  const place = { item_id: item['id'], output_index: outputIndex }
  write('response.output_item.added', { output_index: outputIndex, item: emptied(item) })
  for (const [index, part] of objectsIn(item['summary']).entries()) {
    const inPart = { ...place, summary_index: index }
    write('response.reasoning_summary_part.added', { ...inPart, part: { ...part, text: '' } })
    write('response.reasoning_summary_text.delta', { ...inPart, delta: part['text'] })
    write('response.reasoning_summary_text.done', { ...inPart, text: part['text'] })
    write('response.reasoning_summary_part.done', { ...inPart, part })
  }
  if (item['type'] === 'message') writeParts(objectsIn(item['content']), place, write)
  if (item['type'] === 'function_call') {
    write('response.function_call_arguments.delta', { ...place, delta: item['arguments'] })
    write('response.function_call_arguments.done', { ...place, arguments: item['arguments'] })
  }
  if (item['type'] === 'custom_tool_call') {
    write('response.custom_tool_call_input.delta', { ...place, delta: item['input'] })
    write('response.custom_tool_call_input.done', { ...place, input: item['input'] })
  }
  write('response.output_item.done', { output_index: outputIndex, item })
}

function writeParts(parts: readonly Members[], place: Members, write: (type: string, members: Members) => void): void {
  for (const [index, part] of parts.entries()) {
    const inPart = { ...place, content_index: index }
    const isRefusal = part['type'] === 'refusal'
    write('response.content_part.added', {
      ...inPart,
      part: { ...part, ...(isRefusal ? { refusal: '' } : { text: '', annotations: [] }) },
    })
    if (isRefusal) {
      write('response.refusal.delta', { ...inPart, delta: part['refusal'] })
      write('response.refusal.done', { ...inPart, refusal: part['refusal'] })
    } else {
      write('response.output_text.delta', { ...inPart, delta: part['text'], logprobs: [] })
      for (const [number, annotation] of objectsIn(part['annotations']).entries())
        write('response.output_text.annotation.added', { ...inPart, annotation_index: number, annotation })
      write('response.output_text.done', { ...inPart, text: part['text'], logprobs: [] })
    }
    write('response.content_part.done', { ...inPart, part })
  }
}

function emptied(item: Members): Members {
  const begun = { ...item, ...('status' in item ? { status: 'in_progress' } : {}) }
  if (item['type'] === 'message') return { ...begun, content: [] }
  if (item['type'] === 'reasoning') return { ...begun, summary: [], encrypted_content: null }
  if (item['type'] === 'function_call') return { ...begun, arguments: '' }
  return item['type'] === 'custom_tool_call' ? { ...begun, input: '' } : begun
}

/** How responses are stored and read (OpenAI API reference, "Responses": get, delete, cancel, list input items). */
export const keptResponses: KeptAnswers<ResponsesRequest, ResponsesOffer> = {
  idPrefix: 'resp',
  actions: { '': ['GET', 'HEAD', 'DELETE'], cancel: ['POST'], input_items: ['GET', 'HEAD'] },
  reserved: new Set(['compact']),
  recall: recallResponses,
  objects: conversations,
  isKeptAtVendor: (request, { responses }) => responses?.deletion !== undefined && request.store !== false,
  deletion: ({ responses }, upstreamId, apiKey) => responses?.deletion?.(upstreamId, apiKey),
  read: readStored,
}

async function readStored({ id, action, parameters }: StoredQuery, access: AnswerAccess): Promise<StoredReply> {
  const { store, accountId, nowMs } = access
  const turn = await store.find(accountId, id, nowMs)
  if (turn === undefined) throw new GatewayError('response_not_found')
  if (action === 'input_items') {
    const turns = (await store.conversation(accountId, id, nowMs)) ?? [turn]
    const items = (await inputOf(turns, access)).map((item) => conversationItem(item, access))
    return { json: inputPage(items, parameters) }
  }
  // Cancelling again returns the answer as it ended (OpenAI API reference, "Cancel a response").
  if (action === 'cancel' && turn.response['background'] === true) return { json: turn.response }
  if (action === 'cancel')
    throw new GatewayError('invalid_request', { message: 'Cannot cancel a response that was not made in background.' })
  if (parameters.get('stream') !== 'true') return { json: turn.response }
  return { events: storedEvents(turn.response, startOf(parameters)) }
}

/** Returns everything that the model read for the last of the turns, as far as it is still stored. */
async function inputOf(turns: readonly StoredResponse[], access: AnswerAccess): Promise<StoredItem[]> {
  const before = (await itemsBefore(turns, access)) ?? []
  const own = turns.flatMap((turn, index) =>
    index === turns.length - 1 ? turn.input : [...turn.input, ...outputOf(turn)],
  )
  return [...before, ...own]
}

/** Returns a page of items that are in memory. */
function inputPage(items: readonly StoredItem[], parameters: URLSearchParams): object {
  const { limit, order, after } = pageOf(parameters)
  const ordered = order === 'asc' ? items : [...items].reverse()
  // Callers may repeat an id. The page starts after its last occurrence, so that paging ends.
  const position = after === undefined ? -1 : ordered.findLastIndex(({ id }) => id === after)
  if (after !== undefined && position === -1) throw invalidField('after', 'is not an item of this response')
  const end = position + 1 + limit
  return itemList({ items: ordered.slice(position + 1, end), hasMore: end < ordered.length })
}

function startOf(parameters: URLSearchParams): number {
  const after = parameters.get('starting_after')
  if (after === null) return -1
  if (/^\d{1,9}$/.test(after)) return Number(after)
  throw invalidField('starting_after', 'must be a sequence number')
}
