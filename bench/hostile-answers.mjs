import { deep, fn, HI, long, post, SCHEMA } from './hostile-bodies.mjs'

/**
 * Choice of the cases: every decoder gets every shape of its dialect once, and every writer gets the shapes of one
 * decoder; bytes that pass unchanged are read by the dialect's own reader. Counts in one event or in a whole answer are just below the
 * bound of items, so that the code after the bound is reached, and far above it in one case of each dialect. Streams have more items.
 */

/** Just below the bound of items of an answer or an event, far above it, and events of a stream. */
const ITEMS = 1_000
const TOO_MANY = 20_000
const EVENTS = 10_000

const CHUNK = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
const event = (value, name) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
const range = (count, make) => Array.from({ length: count }, (_, index) => make(index))
const typed = (...values) =>
  values
    .flat(2)
    .map((value) => event(value, value.type))
    .join('')
const TOOL = (index) => ({
  index,
  id: `call_${index}`,
  type: 'function',
  function: { name: 'f', arguments: '{"a":"hit"}' },
})
const delta = (value, rest = {}) => ({ ...CHUNK, choices: [{ index: 0, delta: value, finish_reason: null, ...rest }] })
const DONE = `${event({ ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}data: [DONE]\n\n`
const choice = (index, message = {}, rest = {}) => ({
  index,
  message: { role: 'assistant', content: 'hit', ...message },
  finish_reason: 'stop',
  ...rest,
})
const whole = (...choices) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices,
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})
const citation = (index) => ({
  type: 'url_citation',
  url_citation: { url: `https://a.example/${index}`, title: 'a', start_index: 0, end_index: 1 },
})
const candidate = (parts, index = 0, rest = {}) => ({
  index,
  content: { role: 'model', parts },
  finishReason: 'STOP',
  ...rest,
})
const gemini = (...candidates) => ({
  candidates,
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  modelVersion: 'm',
  responseId: 'r',
})
const CALL_PART = { functionCall: { name: 'f', args: { a: 'hit' } } }
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
}
const message = (content) => ({ ...MESSAGE, content, stop_reason: 'end_turn' })
const block = (index, start, ...deltas) => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((part) => ({ type: 'content_block_delta', index, delta: part })),
  { type: 'content_block_stop', index },
]
const messageStream = (...events) =>
  typed(
    { type: 'message_start', message: MESSAGE },
    ...events,
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  )
const toolUse = (index, input = {}) => ({ type: 'tool_use', id: `t${index}`, name: 'f', input })
const response = (output, rest = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  status: 'completed',
  output,
  parallel_tool_calls: true,
  tools: [],
  usage: {
    input_tokens: 1,
    output_tokens: 1,
    total_tokens: 2,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  },
  ...rest,
})
const outputText = (index, text = 'hit') => ({
  type: 'message',
  id: `msg_${index}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
})
const functionCall = (index) => ({
  type: 'function_call',
  id: `fc_${index}`,
  call_id: `call_${index}`,
  name: 'f',
  arguments: '{"a":"hit"}',
  status: 'completed',
})
/** A stream in which each item comes with its own events, and all of them again at the end. */
const responseStream = (count, item, events) =>
  typed(
    { type: 'response.created', response: response([], { status: 'in_progress' }) },
    range(count, (index) => events(index, item(index)).map((one) => ({ output_index: index, ...one }))),
    { type: 'response.completed', response: response(range(count, item)) },
  )
const textEvents = (_index, item) => [
  { type: 'response.output_item.added', item: { ...item, content: [], status: 'in_progress' } },
  { type: 'response.content_part.added', content_index: 0, item_id: item.id, part: { ...item.content[0], text: '' } },
  { type: 'response.output_text.delta', content_index: 0, item_id: item.id, delta: 'hit' },
  { type: 'response.output_item.done', item },
]
const callEvents = (_index, item) => [
  { type: 'response.output_item.added', item: { ...item, arguments: '' } },
  { type: 'response.function_call_arguments.delta', item_id: item.id, delta: item.arguments },
  { type: 'response.function_call_arguments.done', item_id: item.id, arguments: item.arguments },
  { type: 'response.output_item.done', item },
]
const converse = (content) => ({
  output: { message: { role: 'assistant', content } },
  stopReason: 'tool_use',
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
})
const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`

/** Streams of each dialect by name. */
const STREAMS = {
  relayed: {
    'choices in one event': () =>
      event({
        ...CHUNK,
        choices: range(ITEMS, (index) => ({ index, delta: { content: 'hit' }, finish_reason: null })),
      }) + DONE,
    'choices in many events': () =>
      range(EVENTS, (index) => event(delta({ content: 'hit' }, { index }))).join('') + DONE,
    'tool calls in one event': () => event(delta({ tool_calls: range(ITEMS, TOOL) })) + DONE,
    'tool calls in many events': () =>
      range(EVENTS, (index) => event(delta({ tool_calls: [TOOL(index)] }))).join('') + DONE,
    'too many tool calls in one event': () => event(delta({ tool_calls: range(TOO_MANY, TOOL) })) + DONE,
    'pieces of one tool call': () => event(delta({ tool_calls: [TOOL(0)] })).repeat(3 * EVENTS) + DONE,
    'tiny events': () => event(delta({ content: 'a' })).repeat(3 * EVENTS) + DONE,
    'empty events': () => long('\n\n') + DONE,
    comments: () => long(':\n\n') + DONE,
    'comments in one event': () => `${long(':\n')}\n${DONE}`,
    'data lines': () => `${long('data:\n')}\n${DONE}`,
    'one event': () => event(delta({ content: long('hit ') })) + DONE,
    'an endless line': () => `data: ${long('a')}`,
    'deep JSON': () => event(`{"choices":${DEEP}}`) + DONE,
    'deep members': () => event(`{"choices":[{"index":0,"delta":{"content":"a","x":${deep(5_000)}}}]}`) + DONE,
    'reasoning marks': () => event(delta({ content: '<think>hit</' })).repeat(3 * EVENTS) + DONE,
    'many annotations': () => event(delta({ content: 'hit', annotations: range(ITEMS, citation) })) + DONE,
  },
  claude: {
    blocks: () =>
      messageStream(
        range(EVENTS, (index) => block(index, { type: 'text', text: '' }, { type: 'text_delta', text: 'hit' })),
      ),
    'tool blocks': () =>
      messageStream(
        range(EVENTS, (index) =>
          block(index, toolUse(index), { type: 'input_json_delta', partial_json: '{"a":"hit"}' }),
        ),
      ),
    'pieces of one tool block': () =>
      messageStream(
        block(0, toolUse(0), ...range(3 * EVENTS, () => ({ type: 'input_json_delta', partial_json: '"hit' }))),
      ),
    'open blocks': () =>
      messageStream(
        range(EVENTS, (index) => ({
          type: 'content_block_start',
          index,
          content_block: { type: 'text', text: 'hit' },
        })),
      ),
    thinking: () =>
      messageStream(
        range(EVENTS, (index) =>
          block(
            index,
            { type: 'thinking', thinking: '', signature: '' },
            { type: 'thinking_delta', thinking: 'hit' },
            { type: 'signature_delta', signature: 'x' },
          ),
        ),
      ),
  },
  gemini: {
    'candidates in one event': () => event(gemini(...range(ITEMS, (index) => candidate([{ text: 'hit' }], index)))),
    'parts in one event': () => event(gemini(candidate(range(ITEMS, () => ({ text: 'hit' }))))),
    'calls in one event': () => event(gemini(candidate(range(ITEMS, () => CALL_PART)))),
    'calls in many events': () => event(gemini(candidate([CALL_PART], 0, { finishReason: undefined }))).repeat(EVENTS),
    'one candidate': () => event(gemini(candidate([{ text: long('hit ') }]))),
  },
  responses: {
    messages: () => responseStream(ITEMS / 2, outputText, textEvents),
    calls: () => responseStream(ITEMS, functionCall, callEvents),
    'too many calls': () => responseStream(EVENTS, functionCall, callEvents),
  },
}

/** Whole answers of each dialect by name. */
const ANSWERS = {
  relayed: {
    'many choices': () => whole(...range(ITEMS, (index) => choice(index))),
    'many tool calls': () => whole(choice(0, { content: null, tool_calls: range(ITEMS, TOOL) })),
    'too many tool calls': () => whole(choice(0, { content: null, tool_calls: range(TOO_MANY, TOOL) })),
    'many annotations': () => whole(choice(0, { annotations: range(ITEMS, citation) })),
    'many log probabilities': () =>
      whole(
        choice(
          0,
          {},
          {
            logprobs: { content: range(TOO_MANY, () => ({ token: 'hit', logprob: -1, bytes: [1], top_logprobs: [] })) },
          },
        ),
      ),
    'a long text': () => whole(choice(0, { content: long('hit ') })),
    'deep JSON whole': () => `{"choices":${DEEP}}`,
  },
  claude: {
    'many blocks': () => message(range(ITEMS, () => ({ type: 'text', text: 'hit' }))),
    'many tool blocks': () => message(range(ITEMS, (index) => toolUse(index, { a: 'hit' }))),
    'too many blocks': () => message(range(TOO_MANY, () => ({ type: 'text', text: 'hit' }))),
  },
  gemini: {
    'many candidates': () => gemini(...range(ITEMS, (index) => candidate([{ text: 'hit' }], index))),
    'many parts': () => gemini(candidate(range(ITEMS, () => ({ text: 'hit' })))),
    'many calls': () => gemini(candidate(range(ITEMS, () => CALL_PART))),
    'too many candidates': () => gemini(...range(TOO_MANY, (index) => candidate([{ text: 'hit' }], index))),
  },
  responses: {
    'many messages': () => response(range(ITEMS / 2, (index) => outputText(index))),
    'many calls': () => response(range(ITEMS, functionCall)),
    'too many calls': () => response(range(TOO_MANY, functionCall)),
  },
  nova: {
    'many blocks': () => converse(range(ITEMS, () => ({ text: 'hit' }))),
    'many calls': () =>
      converse(range(ITEMS, (index) => ({ toolUse: { toolUseId: `t${index}`, name: 'f', input: { a: 'hit' } } }))),
    'too many blocks': () => converse(range(TOO_MANY, () => ({ text: 'hit' }))),
  },
}

const REQUESTS = {
  '/v1/chat/completions': `${HI},"tools":[${fn('f', SCHEMA)}]`,
  '/v1/messages': `${HI},"tools":[{"name":"f","input_schema":{"type":"object"}}]`,
  '/v1/responses': `"input":"hi","store":false,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`,
}

/** Models whose answers each endpoint gets: all decoders once, the dialect's own reader, and all shapes for each writer. */
const READ_AT = {
  '/v1/chat/completions': ['relayed', 'claude', 'gemini', 'responses', 'nova'],
  '/v1/messages': ['relayed', 'claude', 'gemini'],
  '/v1/responses': ['claude', 'gemini', 'responses'],
}

/** Answers that a vendor can give, as a request with `answer`: `{ type, body }`. */
export function* hostileAnswers() {
  for (const [path, models] of Object.entries(READ_AT))
    for (const model of models)
      for (const [shapes, isStream] of [
        [STREAMS[model] ?? {}, true],
        [ANSWERS[model], false],
      ])
        for (const [name, make] of Object.entries(shapes)) {
          const answer = {
            type: isStream ? 'text/event-stream' : 'application/json',
            get body() {
              const made = make()
              return Buffer.from(typeof made === 'string' ? made : JSON.stringify(made))
            },
          }
          yield Object.assign(
            post(path, model, `answer: ${name}`, () => `${REQUESTS[path]},"stream":${isStream}`),
            { answer },
          )
        }
}
