import type { GatewayError } from '../../core/errors.ts'
import { sseData } from '../../wire/sse.ts'
import type { Endpoint } from '../endpoint.ts'
import { openaiErrorObject } from '../error-body.ts'
import { checkRequest } from '../request-field.ts'
import { type EmbeddingsRequest, embeddingsSchema } from './embeddings-request.ts'

/** `POST /v1/embeddings` (API specification, "Embedding request and response"). */
export const embeddingsEndpoint: Endpoint<EmbeddingsRequest> = {
  id: 'embeddings',
  path: '/v1/embeddings',
  kind: 'embedding',
  dialect: 'openai',
  parse: (body) => checkRequest<EmbeddingsRequest>(embeddingsSchema, body),
  isStream: () => false,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  billingFields: () => NO_FIELDS,
  streamError: (error: GatewayError) => sseData(JSON.stringify(openaiErrorObject(error))),
}

const NO_FIELDS = {}
