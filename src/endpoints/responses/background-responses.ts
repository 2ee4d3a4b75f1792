import { isJsonObject, objectOf } from '../../core/json.ts'
import { sseEvent } from '../../wire/sse.ts'
import type { Deferral } from '../endpoint.ts'
import { responseObject } from './response-object.ts'
import { inputItems, itemType, type ResponsesRequest } from './responses-request.ts'
import { keepAliveEvent } from './responses-stream-writer.ts'
import { turnOf, withOwnItemIds } from './stored-responses.ts'

type Json = Record<string, unknown>

/** Responses that run in the background (OpenAI API reference, "Create a model response", `background`). */
export const backgroundResponses: Deferral<ResponsesRequest> = {
  applies: ({ background }) => background === true,
  webhookUrl: ({ webhook_url: url }) => (typeof url === 'string' ? url : undefined),
  runnable({ background: _background, stream: _stream, webhook_url: _url, ...request }) {
    // The vendor accepts options of the background only together with `background`.
    const { stream_options: _options, background_options: _window, ...rest } = request
    return rest
  },
  // The gateway runs the request as an ordinary call, without discount. Only the default has the same effect.
  dropped({ background_options: options }) {
    const window: unknown = isJsonObject(options) ? options['completion_window'] : undefined
    return window === undefined || window === null || window === 'soonest'
      ? []
      : ['background_options.completion_window']
  },
  begun: (request, facts) => responseObject({ ...facts, request }, { status: 'queued', output: [], usage: null }),
  record: recordOf,
  made: (answer, task) => ({ ...answer, id: task.id, background: true, created_at: recordOf(task)['created_at'] }),
  unmade(task, { state }) {
    const { deferred, error } = task.details
    const request = (deferred === undefined ? {} : JSON.parse(deferred.body)) as Partial<ResponsesRequest>
    const given = inputItems({ input: request.input ?? [] }).filter((item) => itemType(item) !== 'item_reference')
    const own = given.map((item) => withOwnItemIds(item, new Set()))
    const { previousId, input } = turnOf(request.previous_response_id ?? undefined, own)
    const failure =
      state === 'cancelled' ? null : { code: error?.code ?? 'server_error', message: error?.message ?? '' }
    return { previousId, input, response: { ...recordOf(task), status: state, error: failure } }
  },
  eventType(state, { details }) {
    return `response.${state === 'completed' ? String(details.facts['status'] ?? state) : state}`
  },
  eventData: ({ id }) => ({ id }),
  firstEvents(record, startingAfter) {
    const begun = ['response.created', 'response.in_progress'].map((type, number): string =>
      number > startingAfter ? sseEvent(type, JSON.stringify({ type, sequence_number: number, response: record })) : '',
    )
    return { text: begun.join(''), lastNumber: begun.length - 1 }
  },
  keepAlive: keepAliveEvent,
}

/** A submission whose outcome is being stored reads as queued. */
function recordOf({ state, details }: Parameters<Deferral['record']>[0]): Json {
  const begun = details.deferred?.begun
  const status = state === 'in_progress' ? 'in_progress' : 'queued'
  return { ...objectOf(begun), background: true, status }
}
