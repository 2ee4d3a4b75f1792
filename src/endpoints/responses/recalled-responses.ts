import { createHash } from 'node:crypto'
import type { GatewayError } from '../../core/errors.ts'
import { outputOf, type StoredItem, type StoredResponse } from '../../stores/response-store.ts'
import type { AnswerAccess, BoundAnswer, RecalledRequest } from '../endpoint.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { type ContinuedConversation, conversationItem, readConversation } from './conversations.ts'
import { ownObjectIds, withOwnIds } from './own-items.ts'
import {
  inputItems,
  isItemId,
  itemType,
  OWN_ITEM,
  type ResponsesItem,
  type ResponsesRequest,
} from './responses-request.ts'

/**
 * Replaces the references of a request by their content: the whole conversation so far, and the item of each reference.
 * @throws GatewayError `invalid_request` naming the reference that is unknown, foreign, expired or deleted.
 */
export async function recallResponses(
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
export async function itemsBefore(
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

const LONGEST_ID_SHOWN = 200

/** Creates the error that clients know (OpenAI, "Conversation state"). */
function previousNotFound(id: string): GatewayError {
  const shown = id.slice(0, LONGEST_ID_SHOWN)
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
    const shown = (item.id ?? '').slice(0, LONGEST_ID_SHOWN)
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
