import type { ChatMessage } from '../chat/chat-request.ts'
import { type CarriedState, defineEndpoint, type Endpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { checkRequest } from '../request-field.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { backgroundResponses } from './background-responses.ts'
import { cachedResponses } from './cached-responses.ts'
import { imageToolEstimate, imageToolModels } from './image-tool.ts'
import { isEnvelope, peekReasoning } from './reasoning-envelope.ts'
import { remotePictures, responsesUrls } from './remote-pictures.ts'
import { responsesMedia } from './responses-media.ts'
import { createInputTokensOperation, createResponsesOperation, type ResponsesOffer } from './responses-operation.ts'
import { inputItems, type ResponsesItem, type ResponsesRequest, responsesCacheTime } from './responses-request.ts'
import { inputTokensSchema, responsesSchema } from './responses-schema.ts'
import {
  RESPONSES_SURCHARGES,
  responsesExtras,
  responsesFieldParam,
  responsesSamplings,
  responsesSearches,
  responsesSurcharges,
} from './responses-surcharges.ts'
import { responsesTexts } from './responses-texts.ts'
import { keptResponses } from './stored-responses.ts'

/** Content that a vendor encrypted for the organization of a key (OpenAI, "Reasoning models", encrypted reasoning items). */
const encryptedState: CarriedState<ResponsesRequest> = {
  // All state of a conversation belongs to one key, so the newest one decides.
  inRequest: (request) => inputItems(request).findLast(isEncrypted)?.['encrypted_content'] as string | undefined,
  inAnswer: ({ output }) =>
    Array.isArray(output)
      ? output.filter(isEncrypted).map((item: ResponsesItem) => item['encrypted_content'] as string)
      : [],
}

function isEncrypted(item: ResponsesItem): boolean {
  const content: unknown = (item as ResponsesItem | null)?.['encrypted_content']
  return typeof content === 'string' && content !== '' && !isEnvelope(content)
}

const { objects: _served, ...withoutObjects } = keptResponses

/** The reasoning in a request, for vendors that look for their own. */
export class ResponsesConversation {
  readonly model: string
  readonly #request: ResponsesRequest

  constructor(request: ResponsesRequest) {
    this.model = request.model
    this.#request = request
  }

  /** A message of the chat dialect for each item that carries a vendor's state. */
  get messages(): readonly ChatMessage[] {
    return inputItems(this.#request).flatMap((item): ChatMessage[] => {
      const state = peekReasoning(item['encrypted_content'])
      if (state === undefined) return []
      const calls = Object.entries(state.calls ?? {}).map(([id, extra]) => ({
        id,
        type: 'function' as const,
        function: { name: '', arguments: '' },
        extra_content: extra,
      }))
      return [{ role: 'assistant', thinking_blocks: [...(state.blocks ?? [])], tool_calls: calls }]
    })
  }
}

/** Members that both endpoints of the dialect share. */
const common = {
  id: 'responses',
  kind: 'chat',
  errors: openaiErrors,
  exactMembers: new Map([
    ['parameters', 'value'],
    ['schema', 'value'],
  ]),
  canHedge: true,
  isSticky: true,
  carried: encryptedState,
  kept: keptResponses,
  media: responsesMedia,
  callerUrls: responsesUrls,
  // A vendor of this dialect receives the request unchanged, and most fetch images themselves.
  remoteMedia: (request, { responses, chat }, model) =>
    (responses === undefined ? chat?.takesImageUrls?.(model) : responses.takesImageUrls) === false
      ? remotePictures(request)
      : undefined,
  conversation: (request) => new ResponsesConversation(request),
  texts: responsesTexts,
} as const satisfies Partial<Endpoint<ResponsesRequest, ResponsesOffer>>

/** `POST /v1/responses` (OpenAI API reference, "Create a model response"). */
export const responsesEndpoint = defineEndpoint<ResponsesRequest, ResponsesOffer>({
  ...common,
  path: '/v1/responses',
  isBatchable: true,
  parse: (body) => checkRequest<ResponsesRequest>(responsesSchema(), body),
  requestSchema: () => jsonSchemaOf(responsesSchema(), 'input'),
  isStream: (request) => request.stream === true,
  estimate(request, inputTokens, { limits }) {
    const outputTokens = request.max_output_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS
    const webSearches = responsesSearches(request)
    const cacheTime = responsesCacheTime(request)
    const otherModels = imageToolEstimate(request, inputTokens)
    const usage = { inputTokens, outputTokens }
    // Fast path of nearly every request: the code below allocates an object per line.
    if (cacheTime === 'none' && webSearches === undefined && otherModels.length === 0) return usage
    return {
      ...usage,
      ...(cacheTime === 'none' ? {} : { cacheWriteTokens: inputTokens }),
      ...(cacheTime === 'hour' ? { cacheWrite1hTokens: inputTokens } : {}),
      ...(webSearches === undefined ? {} : { webSearches }),
      ...(otherModels.length === 0 ? {} : { otherModels }),
    }
  },
  samplings: responsesSamplings,
  outputBound: { of: (request) => request.max_output_tokens ?? undefined, member: 'max_output_tokens' },
  mostOutputTokens: ({ responses, chat }, model) =>
    responses === undefined ? (model.limits.maxOutputTokens ?? chat?.mostOutputTokens?.(model)) : undefined,
  priceFields: responsesSurcharges,
  surcharges: RESPONSES_SURCHARGES,
  priceFieldParam: responsesFieldParam,
  extraFeatures: (request, { responses }) => (responses === undefined ? [] : responsesExtras(request)),
  innerModels: (request, { responses }) => (responses === undefined ? [] : imageToolModels(request)),
  extraFields: ['server_tool'],
  // A translation into chat has no hosted tools, and may lose the tier.
  priceFieldsAt(fields, { responses, chat }) {
    if (responses !== undefined) return fields
    const { service_tier } = fields
    return service_tier === undefined || chat?.leavesOut?.has('service_tier') === true ? {} : { service_tier }
  },
  callerUrls: (request) => {
    const { webhook_url: url } = request
    const urls = responsesUrls(request)
    return typeof url === 'string' ? [...urls, { url, param: 'webhook_url', isCalledHere: true }] : urls
  },
  createOperation: createResponsesOperation,
  cached: cachedResponses,
  deferral: backgroundResponses,
})

/**
 * `POST /v1/responses/input_tokens` (OpenAI API reference, "Get input token counts"). It is free and does not count towards token
 * limits; request limits apply. Keys for Responses may use it.
 */
export const inputTokensEndpoint = defineEndpoint<ResponsesRequest, ResponsesOffer>({
  ...common,
  path: '/v1/responses/input_tokens',
  kept: { ...withoutObjects, actions: {} },
  isFree: true,
  // Token counts produce no answer to store.
  parse: (body) => ({ ...checkRequest<ResponsesRequest>(inputTokensSchema(), body), store: false }),
  requestSchema: () => jsonSchemaOf(inputTokensSchema(), 'input'),
  isStream: () => false,
  estimate: () => ({ inputTokens: 0, outputTokens: 0 }),
  createOperation: createInputTokensOperation,
})
