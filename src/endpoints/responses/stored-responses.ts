import { GatewayError } from '../../core/errors.ts'
import { outputOf, type StoredItem, type StoredResponse } from '../../stores/response-store.ts'
import type { AnswerAccess, KeptAnswers, StoredQuery, StoredReply } from '../endpoint.ts'
import { invalidField } from '../field-errors.ts'
import { conversationItem, conversations } from './conversations.ts'
import { itemList, pageOf } from './item-page.ts'
import { itemsBefore, recallResponses } from './recalled-responses.ts'
import type { ResponsesOffer } from './responses-operation.ts'
import type { ResponsesRequest } from './responses-request.ts'
import { storedEvents } from './stored-events.ts'

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
