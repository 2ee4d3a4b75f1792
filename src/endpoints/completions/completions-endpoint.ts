import * as z from 'zod'
import type { CatalogModel } from '../../catalog/model.ts'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, objectsIn } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import { SSE_DONE, sseData } from '../../wire/sse.ts'
import { hasOtherTier } from '../answer-json.ts'
import { chatUsage } from '../chat/chat-completion.ts'
import { CHAT_SURCHARGES, chatFieldParam, chatPriceFields } from '../chat/chat-surcharges.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { type Operation, type PassThroughOperation, passThrough, type VendorCall } from '../operation.ts'
import { checkRequest, jsonSchemaOf, listOf } from '../schema.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  kindsByName,
  requestTexts,
  type SaidFacts,
  type TextPart,
  type TextStep,
  type TextStreamReader,
  textsIn,
} from '../texts.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS, LARGEST_TOKEN_BOUND } from '../token-estimate.ts'
import { type CompletionRequest, madeCount, promptTokens } from './completion-request.ts'

/** Text completions at a vendor. */
export interface CompletionsOperation extends PassThroughOperation<CompletionRequest> {
  /** Returns whether a model completes texts. */
  serves(model: CatalogModel): boolean
  /** Longest completion that the vendor makes, in tokens. If omitted, it is that of the model. */
  readonly maxTokens?: number | undefined
}

/** Part of a vendor that completes texts: servers of OpenAI's dialect. */
export interface CompletionsOffer {
  readonly completions?: CompletionsOperation
}

/**
 * Creates the operation of a text completion.
 * @throws GatewayError `endpoint_model_mismatch` if the model does not complete texts.
 */
function createCompletionOperation({ completions }: CompletionsOffer, call: VendorCall<CompletionRequest>): Operation {
  if (completions?.serves(call.model) === true) return passThrough(completions.toWire(call), completions, call)
  throw new GatewayError('endpoint_model_mismatch', {
    message: `The model ${JSON.stringify(call.publicModel)} does not complete texts. Use a chat endpoint, such as POST /v1/chat/completions.`,
    param: 'model',
  })
}

const kindOf = kindsByName({ text: ['text'] })

/** Where the texts of completions are. Prompts of token ids have none. */
export const completionTexts: EndpointTexts<CompletionRequest> = {
  request: (request) =>
    requestTexts(request, {
      kinds: { prompt: 'text', suffix: 'text' },
      last: ['suffix', 'prompt'],
      roleOf: (member) => (member === 'prompt' || member === 'suffix' ? 'user' : undefined),
    }),
  answer: {
    whole: (answer) => choicesOf(answer).flatMap(choiceTexts),
    replaced: withoutProbabilities,
    refusal: (answer) => ({
      ...answer,
      choices: choicesOf(answer).map((choice, at) => refused(indexOf(choice, at))),
    }),
    said: saidInCompletion,
    stream: () => new CompletionTextReader(),
  },
}

function choicesOf({ choices }: AnswerObject): AnswerObject[] {
  return objectsIn(choices)
}

function indexOf({ index }: AnswerObject, at: number): number {
  return typeof index === 'number' ? index : at
}

/** The id names the choice by its own number, in whole answers and in streams. */
function choiceTexts(choice: AnswerObject, at: number): TextPart[] {
  const index = indexOf(choice, at)
  const parts = textsIn(choice['text'], ['choices', at, 'text'], { kindOf, index })
  return parts.map((part) => ({ ...part, id: `choices[${index}].text` }))
}

/** Probabilities name the tokens of a text. */
function withoutProbabilities(answer: AnswerObject): void {
  for (const choice of choicesOf(answer)) if (isJsonObject(choice['logprobs'])) choice['logprobs'] = null
}

/** The dialect has no member for the reason of a refusal. */
function refused(index: number): AnswerObject {
  return { index, text: '', logprobs: null, finish_reason: 'content_filter' }
}

function saidInCompletion(text: string, { request, model, nowMs, seed, isStream }: SaidFacts): AnswerObject | string {
  const head = { id: `cmpl-${seed}`, object: 'text_completion', created: Math.floor(nowMs / 1_000), model }
  const choices = [{ index: 0, text, logprobs: null, finish_reason: 'stop' }]
  if (!isStream) return { ...head, choices, usage: chatUsage({}) }
  const { stream_options: options } = request as CompletionRequest
  const usage = options?.include_usage === true ? [{ ...head, choices: [], usage: chatUsage({}) }] : []
  return [{ ...head, choices }, ...usage].map((event) => sseData(JSON.stringify(event))).join('') + SSE_DONE
}

class CompletionTextReader implements TextStreamReader {
  #last: AnswerObject = {}
  readonly #seen = new Set<number>()
  readonly #finished = new Set<number>()

  read(event: AnswerObject): TextStep {
    if (event['object'] !== undefined) this.#last = event
    const choices = choicesOf(event)
    const added = choices.flatMap(choiceTexts)
    const ended: string[] = []
    let isBare = added.length === 1 && choices.length === 1 && !isJsonObject(event['usage'])
    for (const [at, choice] of choices.entries()) {
      const index = indexOf(choice, at)
      this.#seen.add(index)
      if (isJsonObject(choice['logprobs'])) isBare = false
      if (typeof choice['finish_reason'] !== 'string') continue
      ended.push(`choices[${index}].`)
      isBare = false
    }
    return { added, repeated: [], ended, isBare }
  }

  more(event: AnswerObject, { index }: TextPart, text: string): AnswerObject {
    const { usage: _usage, ...shared } = event
    return { ...shared, choices: [{ index, text, logprobs: null, finish_reason: null }] }
  }

  replaced = withoutProbabilities

  sent(event: AnswerObject): void {
    for (const [at, choice] of choicesOf(event).entries())
      if (typeof choice['finish_reason'] === 'string') this.#finished.add(indexOf(choice, at))
  }

  refusal(): string {
    const { id = 'cmpl-refused', created = 0, model = '' } = this.#last
    const seen = this.#seen.size === 0 ? [0] : [...this.#seen]
    const choices = seen.filter((index) => !this.#finished.has(index)).map(refused)
    if (choices.length === 0) return SSE_DONE
    return sseData(JSON.stringify({ id, object: 'text_completion', created, model, choices })) + SSE_DONE
  }
}

/** Maximum number of prompts of one request. */
const MAX_PROMPTS = 2_048

const text = onDemand(() => z.string())
const tokens = onDemand(() => listOf(z.int().min(0)).min(1))
const count = onDemand(() => z.int().min(1).max(128).nullish())

/** Rules of the request; unknown fields pass. */
export const completionSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    prompt: z.union([text(), listOf(text(), MAX_PROMPTS).min(1), tokens(), listOf(tokens(), MAX_PROMPTS).min(1)]),
    suffix: z.string().nullish(),
    max_tokens: z.int().min(0).max(LARGEST_TOKEN_BOUND).nullish(),
    n: count(),
    best_of: count(),
    echo: z.boolean().nullish(),
    logprobs: z.int().min(0).nullish(),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
  }),
)

/** `POST /v1/completions` (OpenAI API, "Create completion"). It serves chat models whose vendor completes texts with them. */
export const completionsEndpoint = defineEndpoint<CompletionRequest, CompletionsOffer>({
  id: 'completions',
  path: '/v1/completions',
  kind: 'chat',
  errors: openaiErrors,
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
