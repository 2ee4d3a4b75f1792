import type { Endpoint } from '../endpoint.ts'
import { MessagesCall } from '../messages/messages-call.ts'
import { messagesEndpoint } from '../messages/messages-endpoint.ts'
import { countTokensSchema, type MessagesRequest } from '../messages/messages-request.ts'
import { messagesStreamError } from '../messages/messages-stream-writer.ts'
import { checkRequest } from '../request-field.ts'

/**
 * `POST /v1/messages/count_tokens` (Anthropic, "Token counting"). It costs nothing and takes no tokens from the caller's limit;
 * the limits on requests apply. Keys that may use Messages may use it.
 */
export const countTokensEndpoint: Endpoint<MessagesCall> = {
  id: messagesEndpoint.id,
  path: `${messagesEndpoint.path}/count_tokens`,
  kind: 'chat',
  dialect: 'anthropic',
  isFree: true,
  passesHeaders: true,
  parse: (body) => new MessagesCall('token_count', checkRequest<MessagesRequest>(countTokensSchema, body)),
  isStream: () => false,
  estimate: () => ({ inputTokens: 0, outputTokens: 0 }),
  billingFields: () => NO_FIELDS,
  streamError: messagesStreamError,
}

const NO_FIELDS = {}
