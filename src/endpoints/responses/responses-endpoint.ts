import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { checkRequest } from '../request-field.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { remotePictures } from './remote-pictures.ts'
import { ResponsesConversation } from './responses-conversation.ts'
import { createResponsesOperation, type ResponsesOffer } from './responses-operation.ts'
import type { ResponsesRequest } from './responses-request.ts'
import { responsesSchema } from './responses-schema.ts'

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
  estimate: (request, inputTokens, { limits }) => ({
    inputTokens,
    outputTokens: request.max_output_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS,
  }),
  outputBound: { of: (request) => request.max_output_tokens ?? undefined, member: 'max_output_tokens' },
  createOperation: createResponsesOperation,
  remoteMedia: (request, { chat }, model) =>
    chat?.takesImageUrls?.(model) === false ? remotePictures(request) : undefined,
  conversation: (request) => new ResponsesConversation(request),
})
