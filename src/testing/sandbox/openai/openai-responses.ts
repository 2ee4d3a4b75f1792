import { createHash } from 'node:crypto'
import { type ChatPrompt, type ChatTurn, chatTurn, words } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  eventText,
  jsonReply,
  type SandboxCall,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import {
  answerModel,
  checkEffort,
  checkParameters,
  isResponsesOnly,
  OPENAI_HEADERS,
  openaiOperation,
  refuseOpenai,
  refuseParameter,
} from './openai.ts'

/**
 * OpenAI: `POST /v1/responses`, whole and streamed, with messages, functions, custom tools, encrypted reasoning and searches,
 * including tools of namespaces and of items (OpenAI API reference, "Create a model response"). A tool of a namespace is called
 * where the text names `namespace__tool`. It stores nothing: the continuation of an answer knows only the new items.
 */
export const OPENAI_RESPONSES = openaiOperation({
  operation: 'responses',
  post: '/v1/responses',
  prompt: responsesPromptText,
  answer: answerResponses,
})

/** OpenAI: `POST /v1/responses/input_tokens`. */
export const OPENAI_INPUT_TOKENS = openaiOperation({
  operation: 'count-tokens',
  post: '/v1/responses/input_tokens',
  prompt: responsesPromptText,
  json(_call, context, request) {
    const { prompt } = chatTurn(readPrompt(request), context).usage
    return { object: 'response.input_tokens', input_tokens: prompt }
  },
})

/** Returns the text of the user's last message. */
export function responsesPromptText(request: Fields): string {
  return readPrompt(request).lastUserText
}

/** Answers a request at any vendor that has the API. */
export function answerResponses(call: SandboxCall, context: AnswerContext, request: Fields): SandboxReply {
  if (asText(request['model']) === '') refuseOpenai("Missing required parameter: 'model'.", 'model')
  const bound = asNumber(request['max_output_tokens'])
  if (bound !== undefined && bound < 16) {
    const message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
    refuseOpenai(message, 'max_output_tokens', 'integer_below_min_value')
  }
  checkResponsesRequest(call)
  return answer(request, chatTurn(readPrompt(request), context), { ...context, apiKey: credentialOf(call) })
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
  const log = new EventLog()
  for (const type of ['created', 'in_progress'])
    log.write(`response.${type}`, { response: response('in_progress', [], null) })
  for (const [index, item] of items.entries()) writeItem(item, index, turn.words, log)
  log.write(`response.${status}`, { response: whole })
  const type = 'response.output_text.delta'
  const place = { item_id: `msg_${context.id}`, output_index: 0, content_index: 0 }
  const filler = eventText({ type, sequence_number: 4, ...place, delta: ' more', logprobs: [] }, type)
  return streamReply(OPENAI_HEADERS, log.events, filler)
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

/** An item of an answer. */
type OutputItem = Fields & { readonly id: string }

/** A tool that the caller runs. */
interface OfferedTool {
  readonly kind: 'function' | 'custom'
  /** Name of the tool in texts. */
  readonly key: string
  readonly name: string
  readonly namespace: string | undefined
  readonly schema: Fields
}

/** Facts that the items of an answer depend on in addition to its turn. */
interface ItemFacts {
  readonly request: Fields
  /** Id of the answer. Ids of its items are derived from it. */
  readonly id: string
  readonly apiKey: string
  readonly status: string
  readonly tools: readonly OfferedTool[]
}

/** Returns the items of an answer: its reasoning, a requested search, and its text or calls. */
function outputItems(turn: ChatTurn, facts: ItemFacts): OutputItem[] {
  const { request, id, apiKey, status } = facts
  const reasoning = turn.reasoning.length === 0 ? [] : [reasoningItem(turn, request, `rs_${id}`, apiKey)]
  const calls = callItems(turn, facts)
  if (calls.length > 0 && turn.words.length === 0) return [...reasoning, ...calls]
  if (draws(request))
    return [...reasoning, { id: `ig_${id}`, type: 'image_generation_call', status: 'completed', result: PIXEL }]
  const text = turn.words.join('')
  const action = { type: 'search', query: text }
  const searched = searches(request) ? [{ id: `ws_${id}`, type: 'web_search_call', status: 'completed', action }] : []
  const source = { start_index: 0, end_index: text.length, url: 'https://source.example/1', title: 'Source' }
  const annotations = searched.map(() => ({ type: 'url_citation', ...source }))
  const content = [{ type: 'output_text', text, annotations, logprobs: logprobsOf(turn.words, request) }]
  const message = { id: `msg_${id}`, type: 'message', role: 'assistant', status, content }
  return [...reasoning, ...searched, message, ...calls]
}

function callItems({ toolCalls }: ChatTurn, { id, tools }: ItemFacts): OutputItem[] {
  return toolCalls.map((call, index) => {
    const { kind, name, namespace }: Partial<OfferedTool> = tools.find(({ key }) => key === call.name) ?? call
    const common = { call_id: `call_${id}${index}`, name, ...(namespace === undefined ? {} : { namespace }) }
    if (kind === 'custom')
      return { id: `ctc_${id}${index}`, type: 'custom_tool_call', ...common, input: asText(call.arguments['input']) }
    const written = { arguments: JSON.stringify(call.arguments), status: 'completed' }
    return { id: `fc_${id}${index}`, type: 'function_call', ...common, ...written }
  })
}

/** Whether a request makes the model draw because its `tool_choice` is the image tool. */
function draws(request: Fields): boolean {
  return asObject(request['tool_choice'])['type'] === 'image_generation'
}

/** The stand-in's image, 1 pixel in size. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Whether a request lets the model search. The stand-in then searches once. */
function searches(request: Fields): boolean {
  return asList(request['tools']).some((tool) => asText(asObject(tool)['type']).startsWith('web_search'))
}

function reasoningItem(turn: ChatTurn, request: Fields, id: string, apiKey: string): OutputItem {
  const isShown = asText(asObject(request['reasoning'])['summary']) !== ''
  return {
    id,
    type: 'reasoning',
    summary: isShown ? [{ type: 'summary_text', text: turn.reasoning.join('') }] : [],
    encrypted_content: sealedReasoning(id, apiKey, asText(request['model'])),
  }
}

function logprobsOf(tokens: readonly string[], request: Fields): object[] {
  if (!asList(request['include']).includes('message.output_text.logprobs')) return []
  return tokens.map((token) => ({ token, logprob: -0.25, bytes: [...Buffer.from(token)], top_logprobs: [] }))
}

/** The events of a stream, numbered from 0. */
class EventLog {
  readonly events: string[] = []

  write(type: string, members: Fields): void {
    this.events.push(eventText({ type, sequence_number: this.events.length, ...members }, type))
  }
}

/** Writes the events of one item. */
function writeItem(item: OutputItem, outputIndex: number, pieces: readonly string[], log: EventLog): void {
  const place = { item_id: item.id, output_index: outputIndex }
  log.write('response.output_item.added', { output_index: outputIndex, item: begun(item) })
  const ofCall = CALL_TEXTS.get(item['type'])
  if (ofCall !== undefined) {
    const [member, events] = ofCall
    const text = asText(item[member])
    for (const delta of words(text)) log.write(`response.${events}.delta`, { ...place, delta })
    log.write(`response.${events}.done`, { ...place, [member]: text })
  }
  if (item['type'] === 'message') writeText(asObject(asList(item['content'])[0]), pieces, place, log)
  if (item['type'] === 'reasoning') writeSummary(asList(item['summary']).map(asObject), place, log)
  log.write('response.output_item.done', { output_index: outputIndex, item })
}

/** Member with the text of a call, and the name of its events, by the type of its item. */
const CALL_TEXTS: ReadonlyMap<unknown, readonly [member: string, events: string]> = new Map([
  ['function_call', ['arguments', 'function_call_arguments']],
  ['custom_tool_call', ['input', 'custom_tool_call_input']],
])

function begun(item: OutputItem): Fields {
  const ofCall = CALL_TEXTS.get(item['type'])
  if (ofCall !== undefined) return { ...item, status: 'in_progress', [ofCall[0]]: '' }
  if (item['type'] === 'reasoning') return { ...item, summary: [], encrypted_content: null }
  return { ...item, status: 'in_progress', ...(item['type'] === 'message' ? { content: [] } : {}) }
}

function writeText(part: Fields, pieces: readonly string[], place: Fields, log: EventLog): void {
  const inPart = { ...place, content_index: 0 }
  const text = asText(part['text'])
  const logprobs = asList(part['logprobs'])
  log.write('response.content_part.added', { ...inPart, part: { ...part, text: '', annotations: [], logprobs: [] } })
  for (const [index, delta] of pieces.entries())
    log.write('response.output_text.delta', { ...inPart, delta, logprobs: logprobs.slice(index, index + 1) })
  for (const [index, annotation] of asList(part['annotations']).entries())
    log.write('response.output_text.annotation.added', { ...inPart, annotation_index: index, annotation })
  log.write('response.output_text.done', { ...inPart, text, logprobs })
  log.write('response.content_part.done', { ...inPart, part })
}

function writeSummary(parts: readonly Fields[], place: Fields, log: EventLog): void {
  for (const [index, part] of parts.entries()) {
    const inPart = { ...place, summary_index: index }
    log.write('response.reasoning_summary_part.added', { ...inPart, part: { ...part, text: '' } })
    for (const delta of words(asText(part['text'])))
      log.write('response.reasoning_summary_text.delta', { ...inPart, delta })
    log.write('response.reasoning_summary_text.done', { ...inPart, text: part['text'] })
    log.write('response.reasoning_summary_part.done', { ...inPart, part })
  }
}

/** Fields of chat completions and of routers that Responses does not know, or knows by another name. */
const CHAT_FIELDS = names(
  'messages max_tokens max_completion_tokens n seed stop logit_bias logprobs response_format reasoning_effort verbosity web_search_options modalities audio prediction functions function_call presence_penalty frequency_penalty session_id',
)

/** Items other than messages that may follow reasoning. */
const FOLLOWERS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call', 'web_search_call'])

/** Checks a request for a response (OpenAI API reference, "Create a model response"). */
function checkResponsesRequest(call: SandboxCall): void {
  const request = asObject(call.body)
  const model = asText(request['model'])
  const unknown = Object.keys(request).find((field) => CHAT_FIELDS.has(field))
  if (unknown !== undefined) refuseOpenai(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter')
  for (const field of ['temperature', 'top_p']) {
    if (isGiven(request[field]) && isResponsesOnly(model)) refuseParameter(field)
  }
  checkEffort(model, asText(asObject(request['reasoning'])['effort']), 'reasoning.effort')
  asList(request['tools']).forEach((tool, index) => {
    if (asObject(tool)['type'] === 'function') checkParameters(asObject(tool), `tools[${index}].parameters`)
  })
  const choice = asText(asObject(request['tool_choice'])['type'])
  if (choice === 'image_generation' && !asList(request['tools']).some((tool) => asObject(tool)['type'] === choice)) {
    const message = `Tool choice '${choice}' not found in 'tools' parameter.`
    refuseOpenai(message, 'tool_choice')
  }
  const input = asList(request['input']).map(asObject)
  checkOutputs(request, input)
  checkReasoning(input, credentialOf(call), model)
}

const SEAL = 'gAAAAA'

/** Returns the content of reasoning, bound to the key's organization, the model, and the item's id if one is sent. */
function sealedReasoning(id: string, apiKey: string, model: string): string {
  const mac = createHash('sha256').update(`${id} ${apiKey} ${model}`).digest('base64url')
  return `${SEAL}${Buffer.from(id).toString('base64url')}.${mac}`
}

function sealedId(content: string): string {
  return Buffer.from(content.slice(SEAL.length, content.indexOf('.')), 'base64url').toString()
}

/** The stand-in does not store its answers, so only whole conversations can be checked. */
function checkOutputs(request: Fields, input: readonly Fields[]): void {
  if (isGiven(request['previous_response_id'])) return
  const called = new Set<string>()
  for (const item of input) {
    const { type, call_id: id } = item
    if (type === 'function_call') called.add(asText(id))
    if (type !== 'function_call_output' || called.has(asText(id)) || item['id'] !== undefined) continue
    const message = `No tool call found for function call output with call_id ${asText(id)}.`
    refuseOpenai(message, 'input')
  }
}

function checkReasoning(input: readonly Fields[], apiKey: string, model: string): void {
  for (const [index, item] of input.entries()) {
    const { type, id, encrypted_content: content, summary } = item
    if (type !== 'reasoning') continue
    const param = `input[${index}].summary`
    if (!isGiven(summary)) refuseOpenai(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter')
    if (!Array.isArray(summary)) {
      const message = `Invalid type for '${param}': expected an array of objects, but got ${typeof summary} instead.`
      refuseOpenai(message, param, 'invalid_type')
    }
    if (typeof content !== 'string') continue
    const boundTo = isGiven(id) ? asText(id) : sealedId(content)
    if (content !== sealedReasoning(boundTo, apiKey, model)) {
      const message = `The encrypted content for item ${asText(id)} could not be verified.`
      refuseOpenai(message, null, 'invalid_encrypted_content')
    }
    const next = input.slice(index + 1).find((other) => other['type'] !== 'reasoning')
    if (next !== undefined && (FOLLOWERS.has(next['type']) || next['role'] === 'assistant')) continue
    const message = `Item '${asText(id)}' of type 'reasoning' was provided without its required following item.`
    refuseOpenai(message, 'input')
  }
}
