import { GatewayError } from '../../core/errors.ts'
import { withoutFields } from '../billing-fields.ts'
import type { ChatMessage } from '../chat/chat-request.ts'
import { defineEndpoint, type Endpoint } from '../endpoint.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { checkRequest } from '../request-field.ts'
import { cachedMessages } from './cached-messages.ts'
import { chatMessages } from './chat-messages.ts'
import { advisorsOf } from './inner-samplings.ts'
import { messageBatches } from './message-batches.ts'
import { messageFiles } from './message-files.ts'
import { anthropicErrors } from './messages-errors.ts'
import { messagesEstimate } from './messages-estimate.ts'
import { messagesMedia } from './messages-media.ts'
import { createMessagesOperation, createTokenCountOperation, type MessagesOffer } from './messages-operation.ts'
import { countTokensSchema, type MessagesRequest, messagesSchema } from './messages-request.ts'
import {
  MESSAGES_SURCHARGES,
  messagesFieldParam,
  messagesSamplings,
  messagesSurcharges,
} from './messages-surcharges.ts'
import { messagesTexts } from './messages-texts.ts'
import { messagesUrls, remotePictures } from './remote-pictures.ts'
import { threads } from './threads.ts'

/** The turns of a Messages request in both dialects, for vendors that look for their own reasoning. */
export class MessagesConversation {
  readonly model: string
  /** The caller's original body. */
  readonly request: MessagesRequest
  #messages: readonly ChatMessage[] | undefined

  constructor(request: MessagesRequest) {
    this.model = request.model
    this.request = request
  }

  /**
   * Turns in the chat dialect, translated on demand. Empty if the translation fails, because translating the whole
   * request reports the reason.
   */
  get messages(): readonly ChatMessage[] {
    this.#messages ??= this.#translated()
    return this.#messages
  }

  #translated(): readonly ChatMessage[] {
    try {
      return chatMessages(this.request, () => undefined)
    } catch (error) {
      if (GatewayError.isInstance(error)) return []
      throw error
    }
  }
}

/** Members that both endpoints of the dialect share. */
const common = {
  id: 'messages',
  kind: 'chat',
  errors: anthropicErrors,
  exactMembers: new Map([
    ['input', 'text'],
    ['input_schema', 'value'],
    ['schema', 'value'],
  ]),
  isSticky: true,
  takesXApiKey: true,
  passesHeaders: true,
  callerUrls: messagesUrls,
  // A vendor of this dialect receives the request unchanged, and fetches images itself if it can.
  remoteMedia(request, { messages, chat }, model) {
    const takesUrls = messages === undefined ? chat?.takesImageUrls?.(model) : messages.takesImageUrls
    return takesUrls === false ? remotePictures(request) : undefined
  },
  conversation: (request) => new MessagesConversation(request),
  continuation: threads,
  texts: messagesTexts,
} as const satisfies Partial<Endpoint<MessagesRequest, MessagesOffer>>

/** `POST /v1/messages` (API specification, "Endpoints"; Anthropic, Messages reference). */
export const messagesEndpoint = defineEndpoint<MessagesRequest, MessagesOffer>({
  ...common,
  path: '/v1/messages',
  isBatchable: true,
  inlineBatches: messageBatches,
  files: messageFiles,
  canHedge: true,
  parse: (body) => checkRequest<MessagesRequest>(messagesSchema(), body),
  requestSchema: () => jsonSchemaOf(messagesSchema(), 'input'),
  isStream: (request) => request.stream === true,
  media: messagesMedia,
  estimate: messagesEstimate,
  samplings: messagesSamplings,
  outputBound: { of: (request) => request.max_tokens, member: 'max_tokens' },
  mostOutputTokens: ({ messages, chat }, model) =>
    messages === undefined ? (model.limits.maxOutputTokens ?? chat?.mostOutputTokens?.(model)) : undefined,
  priceFields: messagesSurcharges,
  surcharges: MESSAGES_SURCHARGES,
  priceFieldParam: messagesFieldParam,
  // A translation into chat uses no extra features.
  extraFeatures: (request, { messages }, sent) => messages?.extraFeatures?.(request, (name) => sent.header(name)) ?? [],
  extraFields: ['server_tool', 'beta', 'fallbacks'],
  innerModels: (request, { messages }) => (messages === undefined ? [] : advisorsOf(request)),
  // A translation into chat drops all price fields.
  priceFieldsAt: (fields, { messages }) => (messages === undefined ? {} : withoutFields(fields, messages.leavesOut)),
  createOperation: createMessagesOperation,
  cached: cachedMessages,
})

/**
 * `POST /v1/messages/count_tokens` (Anthropic, "Token counting"). It is free and does not count towards token limits;
 * request limits apply. Keys for Messages may use it.
 */
export const countTokensEndpoint = defineEndpoint<MessagesRequest, MessagesOffer>({
  ...common,
  path: '/v1/messages/count_tokens',
  isFree: true,
  canHedge: true,
  parse: (body) => checkRequest<MessagesRequest>(countTokensSchema(), body),
  requestSchema: () => jsonSchemaOf(countTokensSchema(), 'input'),
  isStream: () => false,
  estimate: () => ({ inputTokens: 0, outputTokens: 0 }),
  createOperation: createTokenCountOperation,
})
