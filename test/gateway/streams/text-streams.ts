import { chatBody } from '../../support/start-gateway.ts'
import { chunk, events, type Script, USAGE } from '../hooks/hooked-gateway.ts'

const CHAT = '/v1/chat/completions'

export type Json = Record<string, unknown>

/** The members of a kind of text in the events of a stream, joined. */
export function joined(list: readonly string[], find: (event: Json) => unknown): string {
  return list
    .filter((event) => event !== '[DONE]')
    .map((event) => find(JSON.parse(event) as Json) ?? '')
    .join('')
}

export type Choices = { choices?: { index: number; delta?: Json }[] }

export const chatText =
  (member: string, index = 0) =>
  (event: Json): unknown =>
    (event as Choices).choices?.find((choice) => choice.index === index)?.delta?.[member]

export const chatArguments = (event: Json): unknown => {
  const calls = (event as Choices).choices?.[0]?.delta?.['tool_calls'] as { function?: Json }[] | undefined
  return calls?.[0]?.function?.['arguments']
}

/** The events of a stream of each dialect that says two texts, reasons and calls a tool, cut into such pieces. */
export const STREAMS: Record<
  string,
  { path: string; body: Json; events: (pieces: readonly string[]) => Script; texts: ((event: Json) => unknown)[] }
> = {
  chat: {
    path: CHAT,
    body: chatBody('chat-relayed', 'hi', { stream: true, n: 2 }),
    events: (pieces) =>
      events([
        chunk({ role: 'assistant', content: '' }, null, 0),
        chunk({ role: 'assistant', content: '' }, null, 1),
        ...pieces.map((text) => chunk({ reasoning_content: text })),
        // Choices take turns.
        ...pieces.flatMap((text) => [chunk({ content: text }, null, 0), chunk({ content: text }, null, 1)]),
        chunk({ tool_calls: [{ index: 0, id: 't1', type: 'function', function: { name: 'look', arguments: '' } }] }),
        ...jsonPieces(pieces).map((text) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
        chunk({}, 'stop', 0),
        chunk({}, 'stop', 1),
        { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'x', choices: [], usage: USAGE },
      ]),
    texts: [chatText('reasoning_content'), chatText('content', 0), chatText('content', 1), chatArguments],
  },
  messages: {
    path: '/v1/messages',
    body: { ...chatBody('cl-sonnet-4-6', 'hi', { stream: true }), max_tokens: 50 },
    events: (pieces) => events(messageEvents(pieces), ''),
    texts: ['thinking', 'text', 'partial_json'].map(
      (member) => (event) => (event['delta'] as Json | undefined)?.[member],
    ),
  },
  'chat by translation': {
    path: CHAT,
    body: chatBody('cl-sonnet-4-6', 'hi', { stream: true }),
    events: (pieces) => events(messageEvents(pieces), ''),
    texts: [chatText('reasoning_content'), chatText('content'), chatArguments],
  },
  responses: {
    path: '/v1/responses',
    body: { model: 'chat-relayed', input: 'hi', stream: true },
    events: (pieces) => events(responseEvents(pieces), ''),
    texts: ['reasoning_summary_text', 'output_text', 'function_call_arguments'].map(
      (name) => (event) => (event['type'] === `response.${name}.delta` ? event['delta'] : undefined),
    ),
  },
}

export function jsonPieces(pieces: readonly string[]): string[] {
  return ['{"to":"', ...pieces, '"}']
}

export function messageEvents(pieces: readonly string[]): Json[] {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'x', content: [], stop_reason: null }
  const usage = { input_tokens: 7, output_tokens: 1 }
  const block = (index: number, start: Json, deltas: Json[]): Json[] => [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
  return [
    { type: 'message_start', message: { ...message, stop_sequence: null, usage } },
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      ...pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: 'sig' },
    ]),
    ...block(
      1,
      { type: 'text', text: '' },
      pieces.map((text) => ({ type: 'text_delta', text })),
    ),
    ...block(
      2,
      { type: 'tool_use', id: 't1', name: 'look', input: {} },
      jsonPieces(pieces).map((text) => ({ type: 'input_json_delta', partial_json: text })),
    ),
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
}

export function responseEvents(pieces: readonly string[]): Json[] {
  const text = pieces.join('')
  const json = jsonPieces(pieces).join('')
  const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-5.4', output: [] as Json[] }
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text }] }
  const message = { type: 'message', id: 'm1', role: 'assistant', status: 'completed' }
  const said = { ...message, content: [{ type: 'output_text', text, annotations: [] }] }
  const call = { type: 'function_call', id: 'f1', call_id: 'c1', name: 'look', status: 'completed', arguments: json }
  const usage = {
    input_tokens: 7,
    input_tokens_details: {},
    output_tokens: 5,
    output_tokens_details: {},
    total_tokens: 12,
  }
  const summary = { item_id: 'rs_1', output_index: 0, summary_index: 0 }
  const content = { item_id: 'm1', output_index: 1, content_index: 0 }
  const list: Json[] = [
    { type: 'response.created', response: { ...base, status: 'in_progress', usage: null } },
    { type: 'response.output_item.added', output_index: 0, item: { ...reasoning, summary: [] } },
    ...pieces.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...summary, delta })),
    { type: 'response.reasoning_summary_text.done', ...summary, text },
    { type: 'response.output_item.done', output_index: 0, item: reasoning },
    { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
    ...pieces.map((delta) => ({ type: 'response.output_text.delta', ...content, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...content, text, logprobs: [] },
    { type: 'response.output_item.done', output_index: 1, item: said },
    { type: 'response.output_item.added', output_index: 2, item: { ...call, arguments: '' } },
    ...jsonPieces(pieces).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      item_id: 'f1',
      output_index: 2,
      delta,
    })),
    { type: 'response.function_call_arguments.done', item_id: 'f1', output_index: 2, arguments: json },
    { type: 'response.output_item.done', output_index: 2, item: call },
    { type: 'response.completed', response: { ...base, status: 'completed', output: [reasoning, said, call], usage } },
  ]
  return list.map((event, number) => ({ ...event, sequence_number: number }))
}
