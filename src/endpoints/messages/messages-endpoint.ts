import { defineEndpoint, type Endpoint } from '../endpoint.ts'
import { checkRequest } from '../request-field.ts'
import { advisorsOf } from './inner-samplings.ts'
import { MessagesConversation } from './messages-conversation.ts'
import { anthropicErrors } from './messages-errors.ts'
import { messagesEstimate } from './messages-estimate.ts'
import { messagesMedia } from './messages-media.ts'
import { createMessagesOperation, createTokenCountOperation, type MessagesOffer } from './messages-operation.ts'
import { countTokensSchema, type MessagesRequest, messagesSchema } from './messages-request.ts'
import { MESSAGES_SURCHARGES, messagesFieldParam, messagesSurcharges } from './messages-surcharges.ts'
import { messagesUrls, remotePictures } from './remote-pictures.ts'

/** What both endpoints of the dialect share. */
const common = {
  id: 'messages',
  kind: 'chat',
  errors: anthropicErrors,
  isSticky: true,
  takesXApiKey: true,
  passesHeaders: true,
  callerUrls: messagesUrls,
  // A vendor of this dialect gets the request unchanged, and fetches pictures itself.
  remoteMedia: (request, { messages, chat }, model) =>
    messages === undefined && chat?.takesImageUrls?.(model) === false ? remotePictures(request) : undefined,
  conversation: (request) => new MessagesConversation(request),
} as const satisfies Partial<Endpoint<MessagesRequest, MessagesOffer>>

/** `POST /v1/messages` (API specification, "Endpoints"; Anthropic, Messages reference). */
export const messagesEndpoint = defineEndpoint<MessagesRequest, MessagesOffer>({
  ...common,
  path: '/v1/messages',
  canHedge: true,
  parse: (body) => checkRequest<MessagesRequest>(messagesSchema, body),
  isStream: (request) => request.stream === true,
  media: messagesMedia,
  estimate: messagesEstimate,
  outputBound: { of: (request) => request.max_tokens, member: 'max_tokens' },
  priceFields: messagesSurcharges,
  surcharges: MESSAGES_SURCHARGES,
  priceFieldParam: messagesFieldParam,
  // A translation into chat asks for none of them.
  extraFeatures: (request, { messages }, header) => messages?.extraFeatures?.(request, header) ?? [],
  extraFields: ['server_tool', 'beta', 'fallbacks'],
  innerModels: (request, { messages }) => (messages === undefined ? [] : advisorsOf(request)),
  // A translation into chat loses all of them.
  priceFieldsAt: (fields, { messages }) => (messages === undefined ? {} : fields),
  createOperation: createMessagesOperation,
})

/**
 * `POST /v1/messages/count_tokens` (Anthropic, "Token counting"). It is free and takes no tokens from the caller's limit;
 * request limits apply. Keys for Messages may use it.
 */
export const countTokensEndpoint = defineEndpoint<MessagesRequest, MessagesOffer>({
  ...common,
  path: '/v1/messages/count_tokens',
  isFree: true,
  canHedge: true,
  parse: (body) => checkRequest<MessagesRequest>(countTokensSchema, body),
  isStream: () => false,
  estimate: () => ({ inputTokens: 0, outputTokens: 0 }),
  createOperation: createTokenCountOperation,
})
