import { defineEndpoint, type Endpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { checkRequest } from '../request-field.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { remotePictures } from './remote-pictures.ts'
import { ResponsesConversation } from './responses-conversation.ts'
import { responsesMedia } from './responses-media.ts'
import { createInputTokensOperation, createResponsesOperation, type ResponsesOffer } from './responses-operation.ts'
import type { ResponsesRequest } from './responses-request.ts'
import { inputTokensSchema, responsesSchema } from './responses-schema.ts'
import {
  RESPONSES_SURCHARGES,
  responsesExtras,
  responsesFieldParam,
  responsesSearches,
  responsesSurcharges,
} from './responses-surcharges.ts'
import { keptResponses } from './stored-responses.ts'

/** What both endpoints of the dialect share. */
const common = {
  id: 'responses',
  kind: 'chat',
  errors: openaiErrors,
  canHedge: true,
  isSticky: true,
  kept: keptResponses,
  media: responsesMedia,
  // A vendor of this dialect gets the request unchanged, and fetches pictures itself.
  remoteMedia: (request, { responses, chat }, model) =>
    responses === undefined && chat?.takesImageUrls?.(model) === false ? remotePictures(request) : undefined,
  conversation: (request) => new ResponsesConversation(request),
} as const satisfies Partial<Endpoint<ResponsesRequest, ResponsesOffer>>

/** `POST /v1/responses` (OpenAI API reference, "Create a model response"). */
export const responsesEndpoint = defineEndpoint<ResponsesRequest, ResponsesOffer>({
  ...common,
  path: '/v1/responses',
  parse: (body) => checkRequest<ResponsesRequest>(responsesSchema, body),
  isStream: (request) => request.stream === true,
  estimate(request, inputTokens, { limits }) {
    const outputTokens = request.max_output_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS
    const webSearches = responsesSearches(request)
    return { inputTokens, outputTokens, ...(webSearches === undefined ? {} : { webSearches }) }
  },
  outputBound: { of: (request) => request.max_output_tokens ?? undefined, member: 'max_output_tokens' },
  priceFields: responsesSurcharges,
  surcharges: RESPONSES_SURCHARGES,
  priceFieldParam: responsesFieldParam,
  extraFeatures: (request, { responses }) => (responses === undefined ? [] : responsesExtras(request)),
  extraFields: ['server_tool'],
  // A translation into chat has no hosted tools, and may lose the tier.
  priceFieldsAt(fields, { responses, chat }) {
    if (responses !== undefined) return fields
    const { service_tier } = fields
    return service_tier === undefined || chat?.leavesOut?.has('service_tier') === true ? {} : { service_tier }
  },
  createOperation: createResponsesOperation,
})

/**
 * `POST /v1/responses/input_tokens` (OpenAI API reference, "Get input token counts"). It is free and takes no tokens from the
 * caller's limit; request limits apply. Keys for Responses may use it.
 */
export const inputTokensEndpoint = defineEndpoint<ResponsesRequest, ResponsesOffer>({
  ...common,
  path: '/v1/responses/input_tokens',
  kept: { ...keptResponses, actions: {} },
  isFree: true,
  // Nothing is answered that could be kept.
  parse: (body) => ({ ...checkRequest<ResponsesRequest>(inputTokensSchema, body), store: false }),
  isStream: () => false,
  estimate: () => ({ inputTokens: 0, outputTokens: 0 }),
  createOperation: createInputTokensOperation,
})
