import type { GatewayError } from '../../core/errors.ts'
import { sseData } from '../../wire/sse.ts'
import type { Endpoint } from '../endpoint.ts'
import { openaiErrorObject } from '../error-body.ts'
import { checkRequest } from '../request-field.ts'
import { chatSurcharges } from '../surcharge-fields.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import type { ChatRequest } from './chat-request.ts'
import { chatSchema } from './chat-schema.ts'

/** `POST /v1/chat/completions` (API specification, "Chat completion request"). */
export const chatEndpoint: Endpoint<ChatRequest> = {
  id: 'chat',
  path: '/v1/chat/completions',
  kind: 'chat',
  dialect: 'openai',
  parse: (body) => checkRequest<ChatRequest>(chatSchema, body),
  isStream: (request) => request.stream === true,
  estimate(request, inputTokens, { limits }) {
    const perChoice =
      request.max_completion_tokens ?? request.max_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS
    return { inputTokens, outputTokens: perChoice * (request.n ?? 1) }
  },
  billingFields: chatSurcharges,
  streamError: (error: GatewayError) => sseData(JSON.stringify(openaiErrorObject(error))),
}
