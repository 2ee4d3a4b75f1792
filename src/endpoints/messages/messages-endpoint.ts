import type { Endpoint } from '../endpoint.ts'
import { checkRequest } from '../request-field.ts'
import { messagesSurcharges } from '../surcharge-fields.ts'
import { MessagesCall } from './messages-call.ts'
import { messagesEstimate } from './messages-estimate.ts'
import { type MessagesRequest, messagesSchema } from './messages-request.ts'
import { messagesStreamError } from './messages-stream-writer.ts'

/** `POST /v1/messages` (API specification, "Endpoints"; Anthropic, Messages reference). */
export const messagesEndpoint: Endpoint<MessagesCall> = {
  id: 'messages',
  path: '/v1/messages',
  kind: 'chat',
  dialect: 'anthropic',
  passesHeaders: true,
  parse: (body) => new MessagesCall('message', checkRequest<MessagesRequest>(messagesSchema, body)),
  isStream: ({ request }) => request.stream === true,
  estimate: ({ request }, inputTokens) => messagesEstimate(request, inputTokens),
  billingFields: ({ request }) => messagesSurcharges(request),
  streamError: messagesStreamError,
}
