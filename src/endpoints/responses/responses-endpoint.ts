import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { checkRequest } from '../request-field.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { remotePictures } from './remote-pictures.ts'
import { ResponsesConversation } from './responses-conversation.ts'
import { createResponsesOperation, type ResponsesOffer } from './responses-operation.ts'
import type { ResponsesRequest } from './responses-request.ts'
import { responsesSchema } from './responses-schema.ts'
import { RESPONSES_SURCHARGES, responsesSearches, responsesSurcharges } from './responses-surcharges.ts'

/** `POST /v1/responses` (OpenAI API reference, "Create a model response"). */
export const responsesEndpoint = defineEndpoint<ResponsesRequest, ResponsesOffer>({
  id: 'responses',
  path: '/v1/responses',
  kind: 'chat',
  errors: openaiErrors,
  canHedge: true,
  isSticky: true,
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
  // A translation into chat has no hosted tools, and may lose the tier.
  priceFieldsAt(fields, { responses, chat }) {
    if (responses !== undefined) return fields
    const { service_tier } = fields
    return service_tier === undefined || chat?.leavesOut?.has('service_tier') === true ? {} : { service_tier }
  },
  createOperation: createResponsesOperation,
  // A vendor of this dialect gets the request unchanged, and fetches pictures itself.
  remoteMedia: (request, { responses, chat }, model) =>
    responses === undefined && chat?.takesImageUrls?.(model) === false ? remotePictures(request) : undefined,
  conversation: (request) => new ResponsesConversation(request),
})
