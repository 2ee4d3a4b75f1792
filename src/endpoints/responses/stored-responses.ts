import { GatewayError } from '../../core/errors.ts'
import { outputOf, type StoredItem, type StoredResponse } from '../../stores/response-store.ts'
import type { AnswerAccess, KeptAnswers, StoredQuery, StoredReply } from '../endpoint.ts'
import { invalidField } from '../field-errors.ts'
import { previousNotFound, recallResponses } from './recalled-responses.ts'
import type { ResponsesOffer } from './responses-operation.ts'
import type { ResponsesRequest } from './responses-request.ts'
import { storedEvents } from './stored-events.ts'

/** How responses are kept and read (OpenAI API reference, "Responses": get, delete, cancel, list input items). */
export const keptResponses: KeptAnswers<ResponsesRequest, ResponsesOffer> = {
  idPrefix: 'resp',
  actions: { '': ['GET', 'HEAD', 'DELETE'], cancel: ['POST'], input_items: ['GET', 'HEAD'] },
  recall: recallResponses,
  notFound: ({ previous_response_id: id }) => previousNotFound(id ?? ''),
  isKeptAtVendor: (request, { responses }) => responses !== undefined && request.store !== false,
  deletion: ({ responses }, upstreamId, apiKey) => responses?.deletion(upstreamId, apiKey),
  read: readStored,
}

async function readStored({ id, action, parameters }: StoredQuery, access: AnswerAccess): Promise<StoredReply> {
  const { store, accountId, nowMs } = access
  const turn = await store.find(accountId, id, nowMs)
  if (turn === undefined) throw new GatewayError('response_not_found')
  if (action === 'input_items') {
    const turns = (await store.conversation(accountId, id, nowMs)) ?? [turn]
    return { json: itemList(inputOf(turns), parameters) }
  }
  if (action === 'cancel')
    throw new GatewayError('invalid_request', { message: 'Cannot cancel a response that was not made in background.' })
  if (parameters.get('stream') !== 'true') return { json: turn.response }
  return { events: storedEvents(turn.response, startOf(parameters)) }
}

/** Everything that the model read for the last of the turns. */
function inputOf(turns: readonly StoredResponse[]): StoredItem[] {
  return turns.flatMap((turn, index) => (index === turns.length - 1 ? turn.input : [...turn.input, ...outputOf(turn)]))
}

function startOf(parameters: URLSearchParams): number {
  const after = parameters.get('starting_after')
  if (after === null) return -1
  if (/^\d{1,9}$/.test(after)) return Number(after)
  throw invalidField('starting_after', 'must be a sequence number')
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** A page of items, the newest first unless `order` is `asc`. */
function itemList(items: readonly StoredItem[], parameters: URLSearchParams): object {
  const limit = limitOf(parameters.get('limit'))
  const order = parameters.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalidField('order', 'must be asc or desc')
  const ordered = order === 'asc' ? items : [...items].reverse()
  const after = parameters.get('after')
  const position = after === null ? -1 : ordered.findIndex(({ id }) => id === after)
  if (after !== null && position === -1) throw invalidField('after', 'is no item of this response')
  const data = ordered.slice(position + 1, position + 1 + limit)
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: position + 1 + limit < ordered.length,
  }
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw invalidField('limit', `must be 1 to ${MAX_LIMIT}`)
}
