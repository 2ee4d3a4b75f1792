import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { GenerationConfig } from './generate-content.ts'
import type { ModelAbilities } from './model-abilities.ts'
import { openApiSchema } from './openapi-schema.ts'
import { planThinking } from './thinking-config.ts'

const MAX_CANDIDATES = 8

/** What the translation of the settings needs to know. */
export interface GenerationContext {
  readonly abilities: ModelAbilities
  readonly stream: boolean
  /** Names a field of the request that is left out or changed. */
  readonly report: (field: string) => void
}

/**
 * The settings of a generation; undefined when the request sets none. Defaults are never filled in.
 * @throws GatewayError `unsupported_parameter` naming `n` beyond eight answers.
 */
export function generationConfig(request: ChatRequest, context: GenerationContext): GenerationConfig | undefined {
  const config: GenerationConfig = {}
  addLimits(config, request)
  addSampling(config, request, context)
  addLogprobs(config, request, context)
  addResponseFormat(config, request, context)
  if (request.reasoning_effort !== undefined && request.reasoning_effort !== null) {
    const plan = planThinking(request.reasoning_effort, context.abilities.thinking)
    if (plan.changed) context.report('reasoning_effort')
    if (plan.config !== undefined) config.thinkingConfig = plan.config
  }
  return Object.keys(config).length === 0 ? undefined : config
}

function addLimits(config: GenerationConfig, request: ChatRequest): void {
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  if (maxTokens !== undefined && maxTokens !== null) config.maxOutputTokens = maxTokens
  const { stop, n } = request
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? [])
  if (sequences.length > 0) config.stopSequences = sequences
  if (n === undefined || n === null || n === 1) return
  if (n > MAX_CANDIDATES) {
    throw new GatewayError('unsupported_parameter', {
      message: `n: the model gives at most ${MAX_CANDIDATES} answers to one request.`,
      param: 'n',
    })
  }
  config.candidateCount = n
}

function addSampling(config: GenerationConfig, request: ChatRequest, context: GenerationContext): void {
  const { abilities, report } = context
  const { seed, temperature, top_p: topP, presence_penalty: presence, frequency_penalty: frequency } = request
  if (isSet(seed)) config.seed = seed
  if (isSet(temperature)) {
    if (abilities.sampling) config.temperature = temperature
    else report('temperature')
  }
  if (isSet(topP)) {
    if (abilities.sampling) config.topP = topP
    else report('top_p')
  }
  if (isSet(presence)) {
    if (abilities.penalties) config.presencePenalty = presence
    else report('presence_penalty')
  }
  if (isSet(frequency)) {
    if (abilities.penalties) config.frequencyPenalty = frequency
    else report('frequency_penalty')
  }
}

function addLogprobs(config: GenerationConfig, request: ChatRequest, context: GenerationContext): void {
  if (request.logprobs !== true) {
    if (isSet(request.top_logprobs)) context.report('top_logprobs')
    return
  }
  // Streamed chat has no place for them on the way to the caller.
  if (context.stream) {
    context.report('logprobs')
    if (isSet(request.top_logprobs)) context.report('top_logprobs')
    return
  }
  config.responseLogprobs = true
  if (isSet(request.top_logprobs) && request.top_logprobs > 0) config.logprobs = request.top_logprobs
}

function addResponseFormat(config: GenerationConfig, request: ChatRequest, context: GenerationContext): void {
  const format = request.response_format
  if (format === undefined || format === null || format.type === 'text') return
  if (format.type !== 'json_object' && format.type !== 'json_schema') {
    throw new GatewayError('unsupported_parameter', {
      message: 'response_format.type must be text, json_object or json_schema for this model.',
      param: 'response_format.type',
    })
  }
  config.responseMimeType = 'application/json'
  if (format.type === 'json_object') return
  const schema: unknown = format.json_schema?.schema
  if (!isJsonObject(schema)) return
  if (context.abilities.jsonSchema) config.responseJsonSchema = schema
  else config.responseSchema = openApiSchema(schema, 'response_format.json_schema.schema')
}

function isSet<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null
}
