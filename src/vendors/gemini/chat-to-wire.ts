import { WorkBudget } from '../../core/calls-in-flight.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, isSet } from '../../core/json.ts'
import type { ChatRequest, ChatTool } from '../../endpoints/chat/chat-request.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import { invalidParameter, unsupportedParameter } from '../shared/invalid-response.ts'
import { jsonInstruction } from '../shared/messages-tools.ts'
import { forcesCall } from '../shared/openai-chat-dialect.ts'
import {
  type FieldCheck,
  fieldCheck,
  reportLostMarks,
  surchargesLeftOut,
  translationTable,
} from '../shared/translated-chat-fields.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import {
  apiRequestHead,
  type FunctionCallingConfig,
  type FunctionDeclaration,
  type GeminiApi,
  type GenerateContentRequest,
  type GenerationConfig,
} from './api-request.ts'
import { conversationToWire } from './conversation-to-wire.ts'
import { type ModelAbilities, modelAbilities, reasoningToWire } from './model-abilities.ts'
import { parametersToWire, schemaToWire } from './schema-to-wire.ts'

/** Every field of a chat request at this vendor (Gemini API, "GenerateContentRequest" and "GenerationConfig"). */
export const CHAT_FIELDS = translationTable({
  mapped: [
    ...['model', 'messages', 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'n', 'stream'],
    ...['stream_options', 'stop', 'presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs', 'seed'],
    ...['tools', 'tool_choice', 'response_format', 'reasoning_effort'],
  ],
  refused: ['audio', 'function_call', 'functions', 'modalities'],
  dropped: [
    ...['logit_bias', 'parallel_tool_calls', 'user', 'metadata', 'moderation', 'prediction'],
    ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'safety_identifier'],
    ...['service_tier', 'store', 'verbosity', 'web_search_options'],
  ],
} as const)

/** Billing fields of surcharges that are never sent to the vendor. */
export const SURCHARGES_LEFT_OUT = surchargesLeftOut(CHAT_FIELDS)

/**
 * Reports dropped fields, including unknown ones.
 * @throws GatewayError `unsupported_parameter` naming a field that must not be dropped.
 */
export const reportDroppedFields: FieldCheck = fieldCheck(CHAT_FIELDS)

/**
 * Writes a chat as `generateContent`, or `streamGenerateContent` for streams (Gemini API, "Generating content").
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming a field that cannot be translated.
 */
export function chatToWire(call: VendorCall<ChatRequest>, { basePath, hasCallIds }: GeminiApi): WireRequest {
  const { model, stream } = call
  const abilities = modelAbilities(model.upstream)
  const dropped = new Set<string>()
  const report = (field: string): void => {
    dropped.add(field)
  }
  reportDroppedFields(call.request, report)
  reportLostMarks(call.request, report)
  const request = abilities.jsonWithTools ? call.request : withInstruction(call.request, report)
  const { systemInstruction, contents } = conversationToWire(request.messages, abilities, report, hasCallIds)
  const budget = new WorkBudget()
  const config = generationConfig(request, { abilities, stream, budget, report })
  const body: GenerateContentRequest = {
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    contents,
    ...toolsToWire(request, abilities, budget, report),
    ...(config === undefined ? {} : { generationConfig: config }),
  }
  const method = stream ? 'streamGenerateContent' : 'generateContent'
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method, apiKey: call.apiKey }),
    body: exactJsonText(body),
    dropped: [...dropped],
  }
}

/** Requests the answer format in the system text, where nothing enforces it, if the request has functions. */
function withInstruction(request: ChatRequest, report: (field: string) => void): ChatRequest {
  const content = (request.tools ?? []).length === 0 ? undefined : jsonInstruction(request)
  if (content === undefined) return request
  report('response_format')
  return { ...request, messages: [...request.messages, { role: 'system', content }], response_format: null }
}

const MAX_CANDIDATES = 8

/** Facts that the translation of the settings needs. */
interface GenerationContext {
  readonly abilities: ModelAbilities
  readonly stream: boolean
  /** Budget for the work on the schemas of the request. */
  readonly budget: WorkBudget
  /** Reports a field of the request that is dropped or changed. */
  readonly report: (field: string) => void
}

/**
 * Returns the settings of a generation, or `undefined` if the request sets none. Defaults are never filled in.
 * @throws GatewayError `unsupported_parameter` naming `n` above eight answers.
 */
function generationConfig(request: ChatRequest, context: GenerationContext): GenerationConfig | undefined {
  const config: GenerationConfig = {}
  addLimits(config, request)
  addSampling(config, request, context)
  addLogprobs(config, request, context)
  addResponseFormat(config, request, context)
  if (request.reasoning_effort !== undefined && request.reasoning_effort !== null) {
    const plan = reasoningToWire(request.reasoning_effort, context.abilities.thinking)
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
    throw unsupportedParameter('n', `n: the model gives at most ${MAX_CANDIDATES} answers to one request.`)
  }
  config.candidateCount = n
}

function addSampling(config: GenerationConfig, request: ChatRequest, context: GenerationContext): void {
  const { abilities, report } = context
  const reportChange = (field: string, value: unknown): void => {
    if (!changesNothing(field, value)) report(field)
  }
  const { seed, temperature, top_p: topP, presence_penalty: presence, frequency_penalty: frequency } = request
  if (isSet(seed)) config.seed = seed
  if (isSet(temperature)) {
    if (abilities.sampling) config.temperature = temperature
    else reportChange('temperature', temperature)
  }
  if (isSet(topP)) {
    if (abilities.sampling) config.topP = topP
    else reportChange('top_p', topP)
  }
  if (isSet(presence)) {
    if (abilities.penalties) config.presencePenalty = presence
    else reportChange('presence_penalty', presence)
  }
  if (isSet(frequency)) {
    if (abilities.penalties) config.frequencyPenalty = frequency
    else reportChange('frequency_penalty', frequency)
  }
}

function addLogprobs(config: GenerationConfig, request: ChatRequest, context: GenerationContext): void {
  if (request.logprobs !== true || context.stream) {
    // Streamed chat cannot pass them to the caller.
    if (request.logprobs === true) context.report('logprobs')
    if (!changesNothing('top_logprobs', request.top_logprobs)) context.report('top_logprobs')
    return
  }
  config.responseLogprobs = true
  if (isSet(request.top_logprobs) && request.top_logprobs > 0) config.logprobs = request.top_logprobs
}

function addResponseFormat(config: GenerationConfig, request: ChatRequest, context: GenerationContext): void {
  const format = request.response_format
  if (format === undefined || format === null || format.type === 'text') return
  if (format.type !== 'json_object' && format.type !== 'json_schema') {
    const message = 'response_format.type must be text, json_object or json_schema for this model.'
    throw unsupportedParameter('response_format.type', message)
  }
  config.responseMimeType = 'application/json'
  if (format.type === 'json_object') return
  const schema: unknown = format.json_schema?.schema
  if (!isJsonObject(schema)) return
  if (context.abilities.jsonSchema) config.responseJsonSchema = schema
  else config.responseSchema = schemaToWire(schema, 'response_format.json_schema.schema', context.budget)
}

/**
 * Returns the functions that a model may or must call. Empty without functions, because the vendor rejects an empty list and a
 * choice without functions; a forced call is then reported as dropped.
 * @throws GatewayError `unsupported_parameter` naming a tool or choice that is not a function, `invalid_request` for a
 *   malformed one.
 */
export function toolsToWire(
  request: ChatRequest,
  abilities: ModelAbilities,
  budget: WorkBudget,
  report: (field: string) => void,
): Pick<GenerateContentRequest, 'tools' | 'toolConfig'> {
  const tools = (request.tools ?? []).map((tool, index) => functionOf(tool, `tools[${index}]`, budget))
  const allowed = allowedNames(request.tool_choice)
  const offered = allowed === undefined ? tools : tools.filter((tool) => allowed.has(tool.name))
  if (allowed !== undefined && offered.length === 0) {
    throw invalidParameter('tool_choice', 'tool_choice: none of the allowed tools is among tools.')
  }
  if (offered.length === 0) {
    if (forcesCall(request.tool_choice)) report('tool_choice')
    return {}
  }
  const functionDeclarations = offered.map((tool) => tool.declaration)
  const isStrict = abilities.jsonSchema && offered.some((tool) => tool.strict)
  const isValidated = request.tool_choice === 'validated'
  if (isValidated && !abilities.jsonSchema) report('tool_choice')
  const config = isValidated
    ? { mode: abilities.jsonSchema ? ('VALIDATED' as const) : ('AUTO' as const) }
    : callingConfig(request.tool_choice, isStrict)
  return {
    tools: [{ functionDeclarations }],
    ...(config === undefined ? {} : { toolConfig: { functionCallingConfig: config } }),
  }
}

interface OfferedFunction {
  readonly name: string
  readonly strict: boolean
  readonly declaration: FunctionDeclaration
}

function functionOf(tool: ChatTool, path: string, budget: WorkBudget): OfferedFunction {
  if (tool.type !== 'function') {
    throw unsupportedParameter(`${path}.type`, `${path}.type: the model supports tools of type "function" only.`)
  }
  const definition: unknown = tool.function
  if (!isJsonObject(definition) || typeof definition['name'] !== 'string') {
    throw invalidParameter(`${path}.function.name`, `${path}.function.name is required.`)
  }
  const { name, description, parameters, strict } = definition
  const schema = isJsonObject(parameters)
    ? parametersToWire(parameters, `${path}.function.parameters`, budget)
    : undefined
  const declaration: FunctionDeclaration = {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    ...(schema === undefined ? {} : { parameters: schema }),
  }
  return { name, strict: strict === true, declaration }
}

/** Returns the names of an `allowed_tools` choice. Other tools are not sent, in every calling mode. */
function allowedNames(choice: ChatRequest['tool_choice']): ReadonlySet<string> | undefined {
  if (!isJsonObject(choice) || choice.type !== 'allowed_tools') return undefined
  const tools: unknown = choice.allowed_tools?.tools
  const names = (Array.isArray(tools) ? tools : []).flatMap((tool) => {
    const definition = isJsonObject(tool) ? tool['function'] : undefined
    const name = isJsonObject(definition) ? definition['name'] : undefined
    return typeof name === 'string' ? [name] : []
  })
  return new Set(names)
}

function callingConfig(choice: ChatRequest['tool_choice'], isStrict: boolean): FunctionCallingConfig | undefined {
  if (choice === undefined || choice === null) return isStrict ? { mode: 'VALIDATED' } : undefined
  if (choice === 'auto') return { mode: isStrict ? 'VALIDATED' : 'AUTO' }
  if (choice === 'none') return { mode: 'NONE' }
  if (choice === 'required') return { mode: 'ANY' }
  if (isJsonObject(choice) && choice.type === 'allowed_tools') {
    if (choice.allowed_tools?.mode === 'required') return { mode: 'ANY' }
    return { mode: isStrict ? 'VALIDATED' : 'AUTO' }
  }
  const name = isJsonObject(choice) && choice.type === 'function' ? choice.function?.name : undefined
  if (typeof name === 'string') return { mode: 'ANY', allowedFunctionNames: [name] }
  const message = 'tool_choice must be auto, none, required, a function or allowed tools.'
  throw unsupportedParameter('tool_choice', message)
}
