import { SAMPLINGS_WITH_TOOLS } from '../../catalog/prices/plausible-usage.ts'
import { withoutFields } from '../billing-fields.ts'
import { chatCacheTime } from '../cache-marks.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { checkRequest } from '../request-field.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { cachedChats } from './cached-chats.ts'
import { chatMedia } from './chat-media.ts'
import { type ChatOffer, createChatOperation } from './chat-operation.ts'
import type { ChatRequest } from './chat-request.ts'
import { chatSchema } from './chat-schema.ts'
import {
  CHAT_SURCHARGES,
  chatExtras,
  chatFieldParam,
  chatPriceFields,
  chatSearches,
  runsTools,
} from './chat-surcharges.ts'
import { chatTexts } from './chat-texts.ts'
import { chatUrls, remoteImages } from './remote-images.ts'

/** `POST /v1/chat/completions` (API specification, "Chat completion request"). */
export const chatEndpoint = defineEndpoint<ChatRequest, ChatOffer>({
  id: 'chat',
  path: '/v1/chat/completions',
  isBatchable: true,
  kind: 'chat',
  protocols: ({ chat }) => chat?.protocols ?? [],
  servesUnlisted: ({ chat }) => chat !== undefined && (chat.protocol ?? true),
  errors: openaiErrors,
  exactMembers: new Map([
    ['parameters', 'value'],
    ['schema', 'value'],
  ]),
  canHedge: true,
  isSticky: true,
  parse: (body) => checkRequest<ChatRequest>(chatSchema(), body),
  requestSchema: () => jsonSchemaOf(chatSchema(), 'input'),
  isStream: (request) => request.stream === true,
  media: chatMedia,
  estimate(request, inputTokens, { limits, protocol }) {
    const perChoice =
      request.max_completion_tokens ?? request.max_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS
    const webSearches = chatSearches(request, protocol)
    const cacheTime = chatCacheTime(request)
    const usage = { inputTokens, outputTokens: perChoice * (request.n ?? 1) }
    // Fast path of nearly every chat: the code below allocates an object per line.
    if (cacheTime === 'none' && webSearches === undefined) return usage
    return {
      ...usage,
      ...(cacheTime === 'none' ? {} : { cacheWriteTokens: inputTokens }),
      ...(cacheTime === 'hour' ? { cacheWrite1hTokens: inputTokens } : {}),
      ...(webSearches === undefined ? {} : { webSearches }),
    }
  },
  answers: ({ n }) => n ?? 1,
  samplings: (request) => (request.n ?? 1) * (runsTools(request) ? SAMPLINGS_WITH_TOOLS : 1),
  outputBound: {
    of: (request) => request.max_completion_tokens ?? request.max_tokens ?? undefined,
    // Every vendor's translation knows this one, and servers of the dialect that know one only know it.
    member: 'max_tokens',
  },
  mostOutputTokens: ({ chat }, model) => chat?.mostOutputTokens?.(model),
  priceFields: chatPriceFields,
  surcharges: CHAT_SURCHARGES,
  priceFieldParam: chatFieldParam,
  // A translation has no words for them.
  extraFeatures: (request, { chat }) => (chat?.passThrough === undefined ? [] : chatExtras(request)),
  extraFields: ['server_tool'],
  priceFieldsAt: (fields, { chat }) => withoutFields(fields, chat?.leavesOut),
  createOperation: ({ chat }, call) => (chat === undefined ? undefined : createChatOperation(chat, call)),
  callerUrls: chatUrls,
  cached: cachedChats,
  texts: chatTexts,
  remoteMedia: (request, { chat }, model) =>
    chat?.takesImageUrls?.(model) === false ? remoteImages(request) : undefined,
})
