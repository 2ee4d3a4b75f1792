import { hasOtherTier } from '../cached-answers.ts'
import { CHAT_SURCHARGES, chatFieldParam, chatPriceFields } from '../chat/chat-surcharges.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { checkRequest } from '../request-field.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { type CompletionsOffer, createCompletionOperation } from './completion-operation.ts'
import { type CompletionRequest, completionSchema, madeCount, promptTokens } from './completion-request.ts'
import { completionTexts } from './completion-texts.ts'

/** `POST /v1/completions` (OpenAI API, "Create completion"). It serves chat models whose vendor completes texts with them. */
export const completionsEndpoint = defineEndpoint<CompletionRequest, CompletionsOffer>({
  id: 'completions',
  path: '/v1/completions',
  kind: 'chat',
  errors: openaiErrors,
  canHedge: true,
  parse: (body) => checkRequest<CompletionRequest>(completionSchema(), body),
  requestSchema: () => jsonSchemaOf(completionSchema(), 'input'),
  isStream: (request) => request.stream === true,
  estimate: (request, inputTokens, { limits }) => ({
    inputTokens: Math.max(inputTokens, promptTokens(request)),
    outputTokens: (request.max_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS) * madeCount(request),
  }),
  answers: madeCount,
  samplings: madeCount,
  outputBound: { of: (request) => request.max_tokens ?? undefined, member: 'max_tokens' },
  mostOutputTokens: ({ completions }) => completions?.maxTokens,
  priceFields: chatPriceFields,
  surcharges: CHAT_SURCHARGES,
  priceFieldParam: chatFieldParam,
  texts: completionTexts,
  createOperation: createCompletionOperation,
  cached: {
    leftOut: new Set(['stream', 'stream_options', 'user']),
    form: ({ stream, stream_options: options }) =>
      stream === true ? (options?.include_usage === true ? 'stream with usage' : 'stream') : '',
    isDeterministic: ({ temperature }) => temperature === 0,
    isExcluded: hasOtherTier,
    refusals: ['"content_filter"'],
    idPaths: [['id']],
    costMark: '"cost":"',
  },
})
