import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { checkRequest } from '../request-field.ts'
import { requestTexts } from '../request-texts.ts'
import { createEmbeddingsOperation, type EmbeddingsOffer } from './embeddings-operation.ts'
import { type EmbeddingsRequest, embeddingsSchema } from './embeddings-request.ts'

/** `POST /v1/embeddings` (API specification, "Embedding request and response"). */
export const embeddingsEndpoint = defineEndpoint<EmbeddingsRequest, EmbeddingsOffer>({
  id: 'embeddings',
  path: '/v1/embeddings',
  isBatchable: true,
  kind: 'embedding',
  servesUnlisted: ({ embeddings }) => embeddings !== undefined,
  errors: openaiErrors,
  canHedge: true,
  parse: (body) => checkRequest<EmbeddingsRequest>(embeddingsSchema(), body),
  requestSchema: () => jsonSchemaOf(embeddingsSchema(), 'input'),
  isStream: () => false,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  texts: {
    request: (request) => requestTexts(request, { kinds: { input: 'text' }, last: ['input'], roleOf: () => 'user' }),
  },
  createOperation: ({ embeddings }, call) =>
    embeddings === undefined ? undefined : createEmbeddingsOperation(embeddings, call),
  cached: { leftOut: new Set(['user']), isDeterministic: () => true, isExcluded: () => false, refusals: [] },
})
