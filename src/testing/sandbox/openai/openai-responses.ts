import { type Preset, presets } from '../../../vendors/presets/presets.ts'
import { type ChatPrompt, type ChatTurn, chatTurn } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields } from '../request-fields.ts'
import {
  type AnswerContext,
  checkApiKey,
  checkBearer,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid } from './openai-errors.ts'
import { answerModel, isResponsesOnly } from './openai-models.ts'
import { checkResponsesRequest } from './openai-responses-checks.ts'
import { draws, eventLog, frame, type OfferedTool, outputItems, searches, writeItem } from './openai-responses-items.ts'

/**
 * OpenAI: `POST /v1/responses`, whole and streamed, with messages, functions, custom tools, encrypted reasoning and searches,
 * including tools of namespaces and of items (OpenAI API reference, "Create a model response"). A tool of a namespace is called
 * where the text names `namespace__tool`. It stores nothing: the continuation of an answer knows only the new items.
 */
export const OPENAI_RESPONSES: SandboxOperation = {
  vendor: 'openai',
  operation: 'responses',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/responses',
  promptText: (body) => readPrompt(asObject(body)).lastUserText,
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    return answerResponses(call, context)
  },
}

/** Azure OpenAI: `/responses` at a resource, by the v1 path and dated ones (Azure OpenAI, "Use the Responses API"). */
export const AZURE_OPENAI_RESPONSES: SandboxOperation = {
  ...OPENAI_RESPONSES,
  vendor: 'azure',
  matches: ({ method, path }) => method === 'POST' && /^\/openai(?:\/v1)?\/responses$/.test(path),
  answer(call, context) {
    checkApiKey(call, OPENAI_ERRORS)
    return answerResponses(call, context)
  },
}

const PRESET_PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/responses$/

/** Servers of `signalbox/presets` with Responses: `POST /presets/ID/v1/responses`. Servers that store no answers reject storing. */
export const PRESET_RESPONSES: SandboxOperation = {
  ...OPENAI_RESPONSES,
  vendor: 'presets',
  matches: ({ method, path }) => method === 'POST' && servingPreset(path) !== undefined,
  answer(call, context) {
    const { needsKey, responses } = servingPreset(call.path)!
    if (needsKey) checkBearer(call, OPENAI_ERRORS)
    const request = asObject(call.body)
    const kept = ['store', 'previous_response_id'].find(
      (field) => request[field] !== undefined && request[field] !== false,
    )
    if (responses?.keepsAnswers !== true && kept !== undefined)
      throw new RefusedCall(openaiInvalid(`${kept} is not supported: no state is kept.`, kept))
    const dropped = Object.entries(responses?.fields ?? {}).find(([field]) => request[field] !== undefined)?.[0]
    if (dropped !== undefined) throw new RefusedCall(openaiInvalid(`${dropped} is not supported`, dropped))
    return answerResponses(call, context)
  },
}

function servingPreset(path: string): Preset | undefined {
  const preset = Object.values<Preset>(presets).find(({ id }) => id === PRESET_PATH.exec(path)?.[1])
  return preset?.serves.includes('responses') === true ? preset : undefined
}

function answerResponses(call: SandboxCall, context: AnswerContext): SandboxReply {
  const request = asObject(call.body)
  if (asText(request['model']) === '')
    throw new RefusedCall(openaiInvalid("Missing required parameter: 'model'.", 'model'))
  const bound = asNumber(request['max_output_tokens'])
  if (bound !== undefined && bound < 16) {
    const message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
    throw new RefusedCall(openaiInvalid(message, 'max_output_tokens', 'integer_below_min_value'))
  }
  checkResponsesRequest(call)
  return answer(request, chatTurn(readPrompt(request), context), { ...context, apiKey: credentialOf(call) })
}

/** OpenAI: `POST /v1/responses/input_tokens`. */
export const OPENAI_INPUT_TOKENS: SandboxOperation = {
  vendor: 'openai',
  operation: 'count-tokens',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/responses/input_tokens',
  promptText: (body) => readPrompt(asObject(body)).lastUserText,
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const { prompt } = chatTurn(readPrompt(asObject(call.body)), context).usage
    return jsonReply(200, OPENAI_HEADERS, { object: 'response.input_tokens', input_tokens: prompt })
  },
}

/** Types of items with a model's calls, and of the results that answer them. */
const CALLS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call', 'tool_search_call'])
const RESULTS: ReadonlySet<unknown> = new Set(['function_call_output', 'custom_tool_call_output', 'tool_search_output'])

function readPrompt(request: Fields): ChatPrompt {
  const items = itemsOf(request)
  const lastUser: Fields = items.findLast((item) => item['role'] === 'user') ?? {}
  const results = items.slice(items.findLastIndex((item) => CALLS.has(item['type']) || 'role' in item) + 1)
  const format = asObject(asObject(request['text'])['format'])
  const isJson = format['type'] === 'json_schema' || format['type'] === 'json_object'
  const effort = asText(asObject(request['reasoning'])['effort'])
  return {
    texts: [asText(request['instructions']), ...items.map(textOf)],
    lastUserText: textOf(lastUser),
    lastUserImages: asList(lastUser['content']).filter((part) => asObject(part)['type'] === 'input_image').length,
    toolResults: results.filter((item) => RESULTS.has(item['type'])).map(textOf),
    tools: toolsOf(request).map(({ key, schema }) => ({ name: key, schema })),
    toolChoice: toolChoice(request['tool_choice']),
    parallelToolCalls: request['parallel_tool_calls'] !== false,
    json: isJson ? { schema: format['type'] === 'json_schema' ? asObject(format['schema']) : undefined } : undefined,
    reasoning: (effort !== '' || isResponsesOnly(asText(request['model']))) && effort !== 'none',
    maxTokens: asNumber(request['max_output_tokens']),
    stop: [],
    prefill: '',
  }
}

function itemsOf({ input }: Fields): Fields[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : asList(input).map(asObject)
}

const TEXT_INPUT = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }

function toolsOf(request: Fields): OfferedTool[] {
  const hidden = itemsOf(request).flatMap((item) => (item['role'] === 'user' ? [] : asList(item['tools'])))
  return [...asList(request['tools']), ...hidden].flatMap((tool) => offeredTools(asObject(tool), undefined))
}

function offeredTools({ type, name, parameters, tools }: Fields, namespace: string | undefined): OfferedTool[] {
  const own = asText(name)
  if (type === 'namespace') return asList(tools).flatMap((tool) => offeredTools(asObject(tool), own))
  if ((type !== 'function' && type !== 'custom') || own === '') return []
  const key = namespace === undefined ? own : `${namespace}__${own}`
  return [{ kind: type, key, name: own, namespace, schema: type === 'custom' ? TEXT_INPUT : asObject(parameters) }]
}

function textOf(item: Fields): string {
  const content = item['content'] ?? item['output']
  if (typeof content === 'string') return content
  return asList(content)
    .map((part) => asText(asObject(part)['text']))
    .join('')
}

function toolChoice(value: unknown): ChatPrompt['toolChoice'] {
  if (value === 'none' || value === 'required') return value
  const { type, name } = asObject(value)
  return type === 'function' ? { name: asText(name) } : 'auto'
}

function answer(request: Fields, turn: ChatTurn, context: AnswerContext & { readonly apiKey: string }): SandboxReply {
  const status = incompleteReason(turn) === undefined ? 'completed' : 'incomplete'
  const { id, apiKey } = context
  const items = outputItems(turn, { request, id, apiKey, status, tools: toolsOf(request) })
  const response = (status: string, output: readonly unknown[], usage: unknown): Fields => ({
    id: `resp_${context.id}`,
    object: 'response',
    created_at: Math.floor(context.nowMs / 1000),
    status,
    background: false,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: incompleteReason(turn) } : null,
    instructions: request['instructions'] ?? null,
    model: answerModel(asText(request['model'])),
    output,
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: request['previous_response_id'] ?? null,
    store: request['store'] ?? true,
    text: request['text'] ?? { format: { type: 'text' } },
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    usage,
    metadata: request['metadata'] ?? {},
    tool_usage: {
      image_gen: imageUsage(draws(request) ? 1 : 0),
      web_search: { num_requests: searches(request) ? 1 : 0 },
    },
  })
  const { prompt, cached, cacheWrite, completion, reasoning } = turn.usage
  const usage = context.usage({
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + completion,
  })
  const whole = response(status, items, usage ?? null)
  if (request['stream'] !== true) return jsonReply(200, OPENAI_HEADERS, whole)
  const log = eventLog()
  log.write('response.created', { response: response('in_progress', [], null) })
  log.write('response.in_progress', { response: response('in_progress', [], null) })
  items.forEach((item, index) => {
    writeItem(item, index, turn.words, log)
  })
  log.write(`response.${status}`, { response: whole })
  const filler = { item_id: `msg_${context.id}`, output_index: 0, content_index: 0, delta: ' more', logprobs: [] }
  return streamReply(OPENAI_HEADERS, log.events, frame('response.output_text.delta', { sequence_number: 4, ...filler }))
}

/** Tokens of low-quality images, in addition to those of the model that calls the tool. */
function imageUsage(images: number): Fields {
  const [input, output] = [images * 50, images * 272]
  return {
    input_tokens: input,
    input_tokens_details: { image_tokens: 0, text_tokens: input },
    output_tokens: output,
    total_tokens: input + output,
  }
}

function incompleteReason({ ending }: ChatTurn): string | undefined {
  if (ending === 'length') return 'max_output_tokens'
  return ending === 'blocked' ? 'content_filter' : undefined
}
