import { type ChatTurn, words } from '../model/chat-turn.ts'
import { asList, asObject, asText, type Fields } from '../request-fields.ts'
import { sealedReasoning } from './openai-responses-checks.ts'

/** An item of an answer. */
export type OutputItem = Fields & { readonly id: string }

/** A tool that the caller runs. */
export interface OfferedTool {
  readonly kind: 'function' | 'custom'
  /** Name of the tool in texts. */
  readonly key: string
  readonly name: string
  readonly namespace: string | undefined
  readonly schema: Fields
}

/** Facts that the items of an answer depend on in addition to its turn. */
export interface ItemFacts {
  readonly request: Fields
  /** Id of the answer. Ids of its items are derived from it. */
  readonly id: string
  readonly apiKey: string
  readonly status: string
  readonly tools: readonly OfferedTool[]
}

/** Returns the items of an answer: its reasoning, a requested search, and its text or calls. */
export function outputItems(turn: ChatTurn, facts: ItemFacts): OutputItem[] {
  const { request, id, apiKey, status } = facts
  const reasoning = turn.reasoning.length === 0 ? [] : [reasoningItem(turn, request, `rs_${id}`, apiKey)]
  const calls = callItems(turn, facts)
  if (calls.length > 0 && turn.words.length === 0) return [...reasoning, ...calls]
  if (draws(request))
    return [...reasoning, { id: `ig_${id}`, type: 'image_generation_call', status: 'completed', result: PIXEL }]
  const text = turn.words.join('')
  const searched = searches(request)
  const search = {
    id: `ws_${id}`,
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: text },
  }
  const annotations = searched
    ? [
        {
          type: 'url_citation',
          start_index: 0,
          end_index: text.length,
          url: 'https://source.example/1',
          title: 'Source',
        },
      ]
    : []
  const content = [{ type: 'output_text', text, annotations, logprobs: logprobsOf(turn.words, request) }]
  const message = { id: `msg_${id}`, type: 'message', role: 'assistant', status, content }
  return [...reasoning, ...(searched ? [search] : []), message, ...calls]
}

function callItems({ toolCalls }: ChatTurn, { id, tools }: ItemFacts): OutputItem[] {
  return toolCalls.map((call, index) => {
    const { kind, name, namespace } = tools.find(({ key }) => key === call.name) ?? {
      kind: 'function',
      name: call.name,
    }
    const common = { call_id: `call_${id}${index}`, name, ...(namespace === undefined ? {} : { namespace }) }
    return kind === 'custom'
      ? { id: `ctc_${id}${index}`, type: 'custom_tool_call', ...common, input: asText(call.arguments['input']) }
      : {
          id: `fc_${id}${index}`,
          type: 'function_call',
          ...common,
          arguments: JSON.stringify(call.arguments),
          status: 'completed',
        }
  })
}

/** Whether a request makes the model draw because its `tool_choice` is the image tool. */
export function draws(request: Fields): boolean {
  return asObject(request['tool_choice'])['type'] === 'image_generation'
}

/** The stand-in's image, 1 pixel in size. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Whether a request lets the model search. The stand-in then searches once. */
export function searches(request: Fields): boolean {
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
export interface EventLog {
  readonly events: string[]
  write(type: string, members: Fields): void
}

export function eventLog(): EventLog {
  const events: string[] = []
  return {
    events,
    write: (type, members) => void events.push(frame(type, { sequence_number: events.length, ...members })),
  }
}

export function frame(type: string, members: Fields): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

/** Writes the events of one item. */
export function writeItem(item: OutputItem, outputIndex: number, pieces: readonly string[], log: EventLog): void {
  const place = { item_id: item.id, output_index: outputIndex }
  log.write('response.output_item.added', { output_index: outputIndex, item: begun(item) })
  const ofCall = CALL_TEXTS.get(item['type'])
  if (ofCall !== undefined) writeCallText(item, ofCall, place, log)
  else if (item['type'] === 'message') writeText(asObject(asList(item['content'])[0]), pieces, place, log)
  else if (item['type'] === 'reasoning') writeSummary(asList(item['summary']).map(asObject), place, log)
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
  return item['type'] === 'message'
    ? { ...item, status: 'in_progress', content: [] }
    : { ...item, status: 'in_progress' }
}

function writeCallText(
  item: OutputItem,
  [member, events]: readonly [member: string, events: string],
  place: Fields,
  log: EventLog,
): void {
  const text = asText(item[member])
  for (const delta of words(text)) log.write(`response.${events}.delta`, { ...place, delta })
  log.write(`response.${events}.done`, { ...place, [member]: text })
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
