import { type ChatPrompt, type ChatTurn, chatTurn, words } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  jsonReply,
  RefusedCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid } from './openai-errors.ts'

/**
 * OpenAI: `POST /v1/responses`, whole and streamed, with messages and functions (OpenAI API reference, "Create a model
 * response"). It keeps nothing: an answer that is continued knows only the new items.
 */
export const OPENAI_RESPONSES: SandboxOperation = {
  vendor: 'openai',
  operation: 'responses',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/responses',
  promptText: (body) => readPrompt(asObject(body)).lastUserText,
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const request = asObject(call.body)
    if (asText(request['model']) === '')
      throw new RefusedCall(openaiInvalid("Missing required parameter: 'model'.", 'model'))
    const bound = asNumber(request['max_output_tokens'])
    if (bound !== undefined && bound < 16) {
      const message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
      throw new RefusedCall(openaiInvalid(message, 'max_output_tokens', 'integer_below_min_value'))
    }
    return answer(request, chatTurn(readPrompt(request), context.blocked), context)
  },
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
    const { prompt } = chatTurn(readPrompt(asObject(call.body)), context.blocked).usage
    return jsonReply(200, OPENAI_HEADERS, { object: 'response.input_tokens', input_tokens: prompt })
  },
}

function readPrompt(request: Fields): ChatPrompt {
  const { input } = request
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : asList(input).map(asObject)
  const lastUser: Fields = items.findLast((item) => item['role'] === 'user') ?? {}
  const results = items.slice(items.findLastIndex((item) => item['type'] === 'function_call' || 'role' in item) + 1)
  const format = asObject(asObject(request['text'])['format'])
  const isJson = format['type'] === 'json_schema' || format['type'] === 'json_object'
  const effort = asText(asObject(request['reasoning'])['effort'])
  return {
    texts: [asText(request['instructions']), ...items.map(textOf)],
    lastUserText: textOf(lastUser),
    lastUserImages: asList(lastUser['content']).filter((part) => asObject(part)['type'] === 'input_image').length,
    toolResults: results.filter((item) => item['type'] === 'function_call_output').map(textOf),
    tools: asList(request['tools']).flatMap((tool) => {
      const { type, name, parameters } = asObject(tool)
      return type === 'function' ? [{ name: asText(name), schema: asObject(parameters) }] : []
    }),
    toolChoice: toolChoice(request['tool_choice']),
    parallelToolCalls: request['parallel_tool_calls'] !== false,
    json: isJson ? { schema: format['type'] === 'json_schema' ? asObject(format['schema']) : undefined } : undefined,
    reasoning: effort !== '' && effort !== 'none',
    maxTokens: asNumber(request['max_output_tokens']),
    stop: [],
    prefill: '',
  }
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

function answer(request: Fields, turn: ChatTurn, context: AnswerContext): SandboxReply {
  const items = outputItems(turn, context.id)
  const response = (status: string, output: readonly unknown[], usage: unknown): Fields => ({
    id: `resp_${context.id}`,
    object: 'response',
    created_at: Math.floor(context.nowMs / 1000),
    status,
    background: false,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: incompleteReason(turn) } : null,
    instructions: request['instructions'] ?? null,
    model: `${asText(request['model'])}-2026-03-05`,
    output,
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: request['previous_response_id'] ?? null,
    store: request['store'] ?? true,
    text: request['text'] ?? { format: { type: 'text' } },
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    usage,
    metadata: request['metadata'] ?? {},
  })
  const { prompt, cached, cacheWrite, completion, reasoning } = turn.usage
  const usage = context.usage({
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + completion,
  })
  const status = incompleteReason(turn) === undefined ? 'completed' : 'incomplete'
  const whole = response(status, items, usage ?? null)
  if (request['stream'] !== true) return jsonReply(200, OPENAI_HEADERS, whole)
  const log = eventLog()
  log.write('response.created', { response: response('in_progress', [], null) })
  log.write('response.in_progress', { response: response('in_progress', [], null) })
  items.forEach((item, index) => {
    writeItem(item, index, turn, log)
  })
  log.write(`response.${status}`, { response: whole })
  const filler = { item_id: `msg_${context.id}`, output_index: 0, content_index: 0, delta: ' more', logprobs: [] }
  return streamReply(OPENAI_HEADERS, log.events, frame('response.output_text.delta', { sequence_number: 4, ...filler }))
}

function incompleteReason({ ending }: ChatTurn): string | undefined {
  if (ending === 'length') return 'max_output_tokens'
  return ending === 'blocked' ? 'content_filter' : undefined
}

type Item = Readonly<Record<string, unknown>> & { readonly id: string }

function outputItems(turn: ChatTurn, id: string): Item[] {
  if (turn.toolCalls.length === 0) {
    const content = [{ type: 'output_text', text: turn.words.join(''), annotations: [], logprobs: [] }]
    const status = incompleteReason(turn) === undefined ? 'completed' : 'incomplete'
    return [{ id: `msg_${id}`, type: 'message', role: 'assistant', status, content }]
  }
  return turn.toolCalls.map((call, index) => ({
    id: `fc_${id}${index}`,
    type: 'function_call',
    call_id: `call_${id}${index}`,
    name: call.name,
    arguments: JSON.stringify(call.arguments),
    status: 'completed',
  }))
}

interface EventLog {
  readonly events: string[]
  write(type: string, members: Fields): void
}

function eventLog(): EventLog {
  const events: string[] = []
  return {
    events,
    write: (type, members) => void events.push(frame(type, { sequence_number: events.length, ...members })),
  }
}

function frame(type: string, members: Fields): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

function writeItem(item: Item, outputIndex: number, turn: ChatTurn, log: EventLog): void {
  const place = { item_id: item.id, output_index: outputIndex }
  const isCall = item['type'] === 'function_call'
  const begun = { ...item, status: 'in_progress', ...(isCall ? { arguments: '' } : { content: [] }) }
  log.write('response.output_item.added', { output_index: outputIndex, item: begun })
  if (isCall) {
    const text = asText(item['arguments'])
    for (const delta of words(text)) log.write('response.function_call_arguments.delta', { ...place, delta })
    log.write('response.function_call_arguments.done', { ...place, arguments: text })
  } else {
    const [part] = asList(item['content'])
    const inPart = { ...place, content_index: 0 }
    log.write('response.content_part.added', { ...inPart, part: { ...asObject(part), text: '' } })
    for (const delta of turn.words) log.write('response.output_text.delta', { ...inPart, delta, logprobs: [] })
    log.write('response.output_text.done', { ...inPart, text: turn.words.join(''), logprobs: [] })
    log.write('response.content_part.done', { ...inPart, part })
  }
  log.write('response.output_item.done', { output_index: outputIndex, item })
}
