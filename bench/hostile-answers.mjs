import { deep, fn, HI, long, post, SCHEMA } from './hostile-bodies.mjs'

const CHUNK = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
const event = (value, name) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
const range = (count, make) => Array.from({ length: count }, (_, index) => make(index))
const typed = (...values) => values.map((value) => event(value, value.type)).join('')
const TOOL = (index) => ({
  index,
  id: `call_${index}`,
  type: 'function',
  function: { name: 'f', arguments: '{"a":"hit"}' },
})
const delta = (value, rest = {}) => ({ ...CHUNK, choices: [{ index: 0, delta: value, finish_reason: null, ...rest }] })
const DONE = `${event({ ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}data: [DONE]\n\n`
const COUNT = 20_000
const whole = (message, count = 1) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: range(count, (index) => ({
    index,
    message: { role: 'assistant', content: 'hit', ...message },
    finish_reason: 'stop',
  })),
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})
const CANDIDATE = (parts, index = 0) => ({ index, content: { role: 'model', parts }, finishReason: 'STOP' })
const GEMINI = (candidates) => ({
  candidates,
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  modelVersion: 'm',
  responseId: 'r',
})
const START = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
}
const STOP = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
]
const block = (index, start, ...deltas) => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((part) => ({ type: 'content_block_delta', index, delta: part })),
  { type: 'content_block_stop', index },
]
const MESSAGE = (content) => ({ ...START.message, content, stop_reason: 'end_turn' })
const response = (output) => ({
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
})
const outputText = (index, text) => ({
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

/** Answers of each dialect by name: `[isStream, text]`. */
const ANSWERS = {
  relayed: {
    'choices in one event': [
      true,
      () =>
        event({
          ...CHUNK,
          choices: range(COUNT, (index) => ({ index, delta: { content: 'hit' }, finish_reason: null })),
        }) + DONE,
    ],
    'choices in many events': [
      true,
      () => range(COUNT, (index) => event(delta({ content: 'hit' }, { index }))).join('') + DONE,
    ],
    'tool calls in one event': [true, () => event(delta({ tool_calls: range(COUNT, TOOL) })) + DONE],
    'tool calls in many events': [
      true,
      () => range(COUNT, (index) => event(delta({ tool_calls: [TOOL(index)] }))).join('') + DONE,
    ],
    'pieces of one tool call': [
      true,
      () =>
        range(100_000, () =>
          event(
            delta({ tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: 'hit' } }] }),
          ),
        ).join('') + DONE,
    ],
    'tiny events': [true, () => event(delta({ content: 'a' })).repeat(100_000) + DONE],
    'empty events': [true, () => long('\n\n', 8e6) + DONE],
    comments: [true, () => long(':\n\n', 8e6) + DONE],
    'data lines': [true, () => `${long('data:\n', 8e6)}\n${DONE}`],
    'one event': [true, () => event(delta({ content: long('hit ', 16e6) })) + DONE],
    'an endless line': [true, () => `data: ${long('a')}`],
    'deep JSON': [true, () => event(`{"choices":${'['.repeat(100_000)}${']'.repeat(100_000)}}`) + DONE],
    'deep members': [true, () => event(`{"choices":[{"index":0,"delta":{"content":"a","x":${deep(5_000)}}}]}`) + DONE],
    'reasoning marks': [true, () => range(50_000, () => event(delta({ content: '<think>hit</' }))).join('') + DONE],
    'many choices': [false, () => JSON.stringify(whole({}, COUNT))],
    'many tool calls': [false, () => JSON.stringify(whole({ content: null, tool_calls: range(COUNT, TOOL) }))],
    'many log probabilities': [
      false,
      () =>
        JSON.stringify({
          ...whole({}),
          choices: [
            {
              ...whole({}).choices[0],
              logprobs: { content: range(COUNT, () => ({ token: 'hit', logprob: -1, bytes: [1], top_logprobs: [] })) },
            },
          ],
        }),
    ],
    'a long text': [false, () => JSON.stringify(whole({ content: long('hit ', 16e6) }))],
    'deep JSON whole': [false, () => `{"choices":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  },
  claude: {
    blocks: [
      true,
      () =>
        typed(
          START,
          ...range(COUNT, (index) =>
            block(index, { type: 'text', text: '' }, { type: 'text_delta', text: 'hit' }),
          ).flat(),
          ...STOP,
        ),
    ],
    'tool blocks': [
      true,
      () =>
        typed(
          START,
          ...range(COUNT, (index) =>
            block(
              index,
              { type: 'tool_use', id: `t${index}`, name: 'f', input: {} },
              { type: 'input_json_delta', partial_json: '{"a":"hit"}' },
            ),
          ).flat(),
          ...STOP,
        ),
    ],
    'pieces of one tool block': [
      true,
      () =>
        typed(
          START,
          ...block(
            0,
            { type: 'tool_use', id: 't', name: 'f', input: {} },
            ...range(50_000, () => ({ type: 'input_json_delta', partial_json: '"hit' })),
          ),
          ...STOP,
        ),
    ],
    'open blocks': [
      true,
      () =>
        typed(
          START,
          ...range(COUNT, (index) => ({
            type: 'content_block_start',
            index,
            content_block: { type: 'text', text: 'hit' },
          })),
          ...STOP,
        ),
    ],
    thinking: [
      true,
      () =>
        typed(
          START,
          ...range(COUNT, (index) =>
            block(
              index,
              { type: 'thinking', thinking: '', signature: '' },
              { type: 'thinking_delta', thinking: 'hit' },
              { type: 'signature_delta', signature: 'x' },
            ),
          ).flat(),
          ...STOP,
        ),
    ],
    'many blocks': [false, () => JSON.stringify(MESSAGE(range(COUNT, () => ({ type: 'text', text: 'hit' }))))],
    'many tool blocks': [
      false,
      () =>
        JSON.stringify(
          MESSAGE(range(COUNT, (index) => ({ type: 'tool_use', id: `t${index}`, name: 'f', input: { a: 'hit' } }))),
        ),
    ],
  },
  gemini: {
    'candidates in one event': [
      true,
      () => event(GEMINI(range(COUNT, (index) => CANDIDATE([{ text: 'hit' }], index)))),
    ],
    'parts in one event': [true, () => event(GEMINI([CANDIDATE(range(COUNT, () => ({ text: 'hit' })))]))],
    'calls in one event': [
      true,
      () => event(GEMINI([CANDIDATE(range(COUNT, () => ({ functionCall: { name: 'f', args: { a: 'hit' } } })))])),
    ],
    'calls in many events': [
      true,
      () =>
        range(COUNT, () =>
          event(
            GEMINI([{ ...CANDIDATE([{ functionCall: { name: 'f', args: { a: 'hit' } } }]), finishReason: undefined }]),
          ),
        ).join(''),
    ],
    'one candidate': [true, () => event(GEMINI([CANDIDATE([{ text: long('hit ', 16e6) }])]))],
    'many candidates': [
      false,
      () => JSON.stringify(GEMINI(range(COUNT, (index) => CANDIDATE([{ text: 'hit' }], index)))),
    ],
    'many parts': [false, () => JSON.stringify(GEMINI([CANDIDATE(range(COUNT, () => ({ text: 'hit' })))]))],
    'many calls': [
      false,
      () =>
        JSON.stringify(GEMINI([CANDIDATE(range(COUNT, () => ({ functionCall: { name: 'f', args: { a: 'hit' } } })))])),
    ],
  },
  responses: {
    messages: [
      true,
      () =>
        typed(
          { type: 'response.created', response: { ...response([]), status: 'in_progress' } },
          ...range(COUNT, (index) => [
            {
              type: 'response.output_item.added',
              output_index: index,
              item: { ...outputText(index, ''), content: [], status: 'in_progress' },
            },
            {
              type: 'response.content_part.added',
              output_index: index,
              content_index: 0,
              item_id: `msg_${index}`,
              part: { type: 'output_text', text: '', annotations: [] },
            },
            {
              type: 'response.output_text.delta',
              output_index: index,
              content_index: 0,
              item_id: `msg_${index}`,
              delta: 'hit',
            },
          ]).flat(),
          { type: 'response.completed', response: response(range(COUNT, (index) => outputText(index, 'hit'))) },
        ),
    ],
    calls: [
      true,
      () =>
        typed(
          { type: 'response.created', response: { ...response([]), status: 'in_progress' } },
          ...range(COUNT, (index) => [
            {
              type: 'response.output_item.added',
              output_index: index,
              item: { ...functionCall(index), arguments: '' },
            },
            {
              type: 'response.function_call_arguments.delta',
              output_index: index,
              item_id: `fc_${index}`,
              delta: '{"a":"hit"}',
            },
            {
              type: 'response.function_call_arguments.done',
              output_index: index,
              item_id: `fc_${index}`,
              arguments: '{"a":"hit"}',
            },
            { type: 'response.output_item.done', output_index: index, item: functionCall(index) },
          ]).flat(),
          { type: 'response.completed', response: response(range(COUNT, functionCall)) },
        ),
    ],
    'many messages': [false, () => JSON.stringify(response(range(COUNT, (index) => outputText(index, 'hit'))))],
    'many calls': [false, () => JSON.stringify(response(range(COUNT, functionCall)))],
  },
  nova: {
    'many blocks': [
      false,
      () =>
        JSON.stringify({
          output: { message: { role: 'assistant', content: range(COUNT, () => ({ text: 'hit' })) } },
          stopReason: 'end_turn',
          usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
        }),
    ],
    'many calls': [
      false,
      () =>
        JSON.stringify({
          output: {
            message: {
              role: 'assistant',
              content: range(COUNT, (index) => ({
                toolUse: { toolUseId: `t${index}`, name: 'f', input: { a: 'hit' } },
              })),
            },
          },
          stopReason: 'tool_use',
          usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
        }),
    ],
  },
}

const TOOLS = `"tools":[${fn('f', SCHEMA)}]`
const ASKING = {
  '/v1/chat/completions': `${HI},${TOOLS}`,
  '/v1/messages': `${HI},"tools":[{"name":"f","input_schema":{"type":"object"}}]`,
  '/v1/responses': `"input":"hi","store":false,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`,
}

/** Answers that a vendor can give, as a request with `answer`: `{ type, body }`. */
export function* hostileAnswers() {
  for (const [model, answers] of Object.entries(ANSWERS))
    for (const [path, rest] of Object.entries(ASKING))
      for (const [name, [isStream, body]] of Object.entries(answers)) {
        const answer = {
          type: isStream ? 'text/event-stream' : 'application/json',
          get body() {
            return Buffer.from(body())
          },
        }
        yield Object.assign(post(path, model, `answer: ${name}`, `${rest},"stream":${isStream}`), { answer })
      }
}
