/** Chat models of every translator, and models of the other kinds, by the id of their vendor's dialect. */
const CHAT = {
  relayed: ['openai', 'gpt-5.4'],
  responses: ['openai', 'gpt-5.4-pro'],
  claude: ['anthropic', 'claude-sonnet-4-5'],
  gemini: ['gemini', 'gemini-2.5-flash'],
  nova: ['amazon-bedrock', 'amazon.nova-pro-v1:0'],
}
const OTHER = {
  'embedding-openai': ['openai', 'text-embedding-3-small', 'embedding'],
  'embedding-titan': ['amazon-bedrock', 'amazon.titan-embed-text-v2:0', 'embedding'],
  'embedding-cohere': ['cohere', 'embed-v4.0', 'embedding'],
  'rerank-cohere': ['cohere', 'rerank-v3.5', 'rerank'],
  whisper: ['openai', 'whisper-1', 'transcription'],
  moderation: ['openai', 'omni-moderation-latest', 'moderation'],
}

/** Key of the caller. */
export const CALLER_KEY = 'sk-caller-0123456789'

/** Rows of the catalog. */
export const MODELS = [
  ...Object.entries(CHAT).map(([id, [vendor, upstream]]) => ({ id, kind: 'chat', vendor, upstream })),
  ...Object.entries(OTHER).map(([id, [vendor, upstream, kind]]) => ({ id, kind, vendor, upstream })),
]

/** Just below the bound of members of a body, and below that of its bytes. */
const MEMBERS = 98_000
const LENGTH = 31 * 1024 * 1024

/** As many items as a body can have, or `count`. */
function list(item, count) {
  const make = typeof item === 'string' ? () => item : item
  const membersEach = make(0).split('":').length - 1
  return `[${Array.from({ length: count ?? Math.floor(MEMBERS / membersEach) }, (_, index) => make(index)).join()}]`
}
const members = (count = MEMBERS, value = '1') =>
  `{${Array.from({ length: count }, (_, index) => `"m${index}":${value}`).join()}}`
const deep = (levels, inner = '1') => `${'{"a":['.repeat(levels)}${inner}${']}'.repeat(levels)}`
const long = (unit, bytes = LENGTH) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))
const say = (content) => `"messages":[{"role":"user","content":${content}}]`
const HI = say('"hi"')
const fn = (name, parameters) =>
  `{"type":"function","function":{"name":"${name}","description":"d","parameters":${parameters}}}`
const SCHEMA = '{"type":"object"}'
const call = (index) => `{"id":"c${index}","type":"function","function":{"name":"f","arguments":"{}"}}`

/** What is hostile in any string. */
const TEXTS = {
  'a long text': long('a'),
  'a long text of quotes': long('\\"'),
  'a long text of backslashes': long('\\\\'),
  'a long text of escapes': long('\\u0001'),
  'a long text of CJK': long('图'),
  'a long text of addresses': long('a@b.example 555-123-4567 '),
  'a long text of marks': long('<think></think>hit'),
  'a long text of braces': long('{[', 8 * 1024 * 1024),
}

/** Texts that go through the endpoints without a conversation. */
const SHORTER = Object.entries(TEXTS).filter(([name]) => name.endsWith('quotes') || name.endsWith('braces'))

/** Members of chat requests, without the model. */
const CHATS = {
  ...Object.fromEntries(Object.entries(TEXTS).map(([name, text]) => [name, say(`"${text}"`)])),
  'many messages': `"messages":${list('{"role":"user","content":"a"}')}`,
  'many messages in turn': `"messages":${list((index) => `{"role":"${index % 2 ? 'assistant' : 'user'}","content":"a"}`)}`,
  'many system messages': `"messages":${list('{"role":"system","content":"a"}', 48_000).slice(0, -1)},{"role":"user","content":"a"}]`,
  'many parts': say(list('{"type":"text","text":"a"}')),
  'many images': say(list('{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}', 4_900)),
  'a long image': say(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,${long('QUJD')}"}}]`),
  'a long audio': say(`[{"type":"input_audio","input_audio":{"data":"${long('QUJD')}","format":"wav"}}]`),
  'a long file': say(
    `[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,${long('QUJD')}"}}]`,
  ),
  'many tools': `${HI},"tools":${list((index) => fn(`f${index}`, SCHEMA))}`,
  'many tools of one name': `${HI},"tools":${list(fn('f', SCHEMA))}`,
  'tool names of megabytes': `${HI},"tools":${list((index) => fn(`f${index}${'x'.repeat(100_000)}`, SCHEMA), 300)}`,
  'many tool calls': `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":${list(call)}},{"role":"tool","tool_call_id":"c1","content":"x"}]`,
  'many tool calls with results': `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":${list(call, 11_500)}},${list((index) => `{"role":"tool","tool_call_id":"c${index}","content":"x"}`, 11_500).slice(1)}`,
  'many results of one call': `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[${call(1)}]},${list('{"role":"tool","tool_call_id":"c1","content":"x"}', 32_000).slice(1)}`,
  'long arguments': `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(`{"a":"${'x'.repeat(20_000_000)}"}`)}}}]},{"role":"tool","tool_call_id":"c","content":"x"}]`,
  'arguments of many members': `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(members(97_000))}}}]},{"role":"tool","tool_call_id":"c","content":"x"}]`,
  'many stop strings': `${HI},"stop":${list('"a"', 450_000)}`,
  'many members': `${HI},"extra":${members()}`,
  'many top members': `${HI},${members().slice(1, -1)}`,
  'many members of metadata': `${HI},"metadata":${members(undefined, '"x"')}`,
  'many biases': `${HI},"logit_bias":${members()}`,
  'long names': `${HI},"metadata":${`{${Array.from({ length: 300 }, (_, index) => `"${index}${'n'.repeat(100_000)}":"x"`).join()}}`}`,
  'repeated names': `${HI},"extra":{${'"a":1,'.repeat(97_000)}"a":1}`,
  'deep lists': `${HI},"extra":${list(deep(30), 2_000)}`,
  'many values': `${HI},"extra":${list('[]', 490_000)}`,
  'a wide schema': `${HI},"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":${members(48_000, '{"type":"string"}')}}}}`,
  'schemas in many tools': `${HI},"tools":${list((index) => fn(`f${index}`, '{"type":"object","properties":{"a":{"type":"string"},"b":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"]}'), 6_500)}`,
}

/** Members of requests of the Messages API, without the model. */
const MESSAGES = {
  'many messages': CHATS['many messages'],
  'many messages in turn': CHATS['many messages in turn'],
  'many blocks': say(list('{"type":"text","text":"a"}')),
  'many system blocks': `${HI},"system":${list('{"type":"text","text":"a"}')}`,
  'many results': `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":${list((index) => `{"type":"tool_use","id":"t${index}","name":"f","input":{}}`, 13_800)}},{"role":"user","content":${list((index) => `{"type":"tool_result","tool_use_id":"t${index}","content":"x"}`, 13_800)}}]`,
  'many tools': `${HI},"tools":${list((index) => `{"name":"f${index}","input_schema":{"type":"object"}}`)}`,
  'many stop strings': `${HI},"stop_sequences":${list('"a"', 450_000)}`,
  'many members': `${HI},${members().slice(1, -1)}`,
  'a long image': say(
    `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"${long('QUJD')}"}}]`,
  ),
  'many images': say(list('{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}', 4_900)),
  'cache marks': say(list('{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}')),
  'deep blocks': say(`[{"type":"tool_result","tool_use_id":"t","content":${list('{"type":"text","text":"a"}')}}]`),
  'input of many members': `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":${members(97_000)}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]`,
}

/** Members of requests of the Responses API, without the model. */
const RESPONSES = {
  'many items': `"input":${list('{"role":"user","content":"a"}')}`,
  'many parts': `"input":[{"role":"user","content":${list('{"type":"input_text","text":"a"}')}}]`,
  'many calls': `"input":[${list((index) => `{"type":"function_call","call_id":"c${index}","name":"f","arguments":"{}"}`, 13_500).slice(1, -1)},${list((index) => `{"type":"function_call_output","call_id":"c${index}","output":"x"}`, 13_500).slice(1)}`,
  'many reasoning items': `"input":[{"role":"user","content":"a"},${list((index) => `{"type":"reasoning","id":"rs_${index}","summary":[{"type":"summary_text","text":"a"}]}`, 19_000).slice(1, -1)},{"role":"user","content":"a"}]`,
  'many references': `"input":[{"role":"user","content":"a"},${list((index) => `{"type":"item_reference","id":"msg_${index}"}`, 48_000).slice(1)}`,
  'many tools': `"input":"hi","tools":${list((index) => `{"type":"function","name":"f${index}","parameters":{"type":"object"}}`)}`,
  'many members': `"input":"hi",${members().slice(1, -1)}`,
  'a long image': `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,${long('QUJD')}"}]}]`,
  'many images': `"input":[{"role":"user","content":${list('{"type":"input_image","image_url":"data:image/png;base64,QUJD"}', 4_900)}}]`,
}

const json = (model, rest) => `{"model":"${model}",${rest}}`
const bound = { '/v1/messages': '"max_tokens":9,', '/v1/messages/count_tokens': '' }

/** A form whose parts are given as header lines and content. */
function form(parts) {
  const boundary = 'edge'
  const body = `${parts.map(([headers, content]) => `--${boundary}\r\n${headers}\r\n\r\n${content}\r\n`).join('')}--${boundary}--\r\n`
  return { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body: Buffer.from(body) }
}
const field = (name, value) => [`content-disposition: form-data; name="${name}"`, value]
const file = (name, content, type = 'application/octet-stream') => [
  `content-disposition: form-data; name="${name}"; filename="a"\r\ncontent-type: ${type}`,
  content,
]

/** Contents that readers of media headers walk through. */
const MEDIA = {
  'WAV of empty chunks': `RIFF\u0000\u0000\u0000\u0000WAVE${long('LIST\u0000\u0000\u0000\u0000')}`,
  'MP3 frames': `ID3\u0003\u0000\u0000\u0000\u0000\u0000\u0000${long('\u007f\u007b\u0000')}`,
  'OGG pages': long(`OggS\u0000\u0000${'\u0000'.repeat(20)}\u0001\u0000`),
  'boxes of MP4': long('\u0000\u0000\u0000\u0008free'),
  'boxes of MP4 with times': `\u0000\u0000\u0000\u0014ftypM4A \u0000\u0000\u0000\u0000M4A ${long('\u0000\u0000\u0000\u0008moov')}`,
  'FLAC blocks': `fLaC${long('\u0001\u0000\u0000\u0000')}`,
  'EBML elements': `\u001aEߣ${long('\u0000')}`,
  edges: long('\r\n--edg'),
  'carriage returns': long('\r\n'),
  dashes: long('-'),
  PDF: `%PDF-1.4\n${long('/Type /Page\n')}`,
  PNG: `\u0089PNG\r\n\u001a\n${long('\u0000\u0000\u0000\u0000tEXt\u0000\u0000\u0000\u0000')}`,
}

const CONVERSATIONS = {
  '/v1/chat/completions': CHATS,
  '/v1/messages': MESSAGES,
  '/v1/messages/count_tokens': MESSAGES,
  '/v1/responses': RESPONSES,
  '/v1/responses/input_tokens': RESPONSES,
}
/** Vendors whose dialects have a translator of their own at each endpoint. */
const TRANSLATED = {
  '/v1/chat/completions': ['openai', 'anthropic', 'gemini', 'amazon-bedrock'],
  '/v1/messages': ['anthropic', 'gemini'],
  '/v1/messages/count_tokens': ['gemini'],
  '/v1/responses': ['openai', 'anthropic'],
  '/v1/responses/input_tokens': ['openai'],
}
const LONG_AT = ['gemini']
const isLong = (rest) => rest.length > LENGTH / 2

/** Requests that a caller can send, as `{ name, path, headers, body }`. */
export function* hostileRequests() {
  for (const [path, cases] of Object.entries(CONVERSATIONS))
    for (const [model, [vendor]] of Object.entries(CHAT))
      for (const [name, rest] of Object.entries(cases)) {
        // Long texts go through each endpoint once.
        if (isLong(rest) && !LONG_AT.includes(model)) continue
        if (path !== '/v1/chat/completions' && isLong(rest)) continue
        if (!TRANSLATED[path].includes(vendor)) continue
        yield post(path, model, name, path === '/v1/responses' ? `"store":false,${rest}` : rest)
      }
  for (const model of [
    'embedding-openai',
    'embedding-titan',
    'embedding-cohere',
    'gmn-embedding-001',
    'text-embedding-v4',
    'vy-4',
  ]) {
    yield post('/v1/embeddings', model, 'many texts', `"input":${list('"a"', 10_000)}`)
    yield post('/v1/embeddings', model, 'long texts', `"input":${list(`"${'a'.repeat(3_000)}"`, 10_000)}`)
    yield post('/v1/embeddings', model, 'many token ids', `"input":${list('1', 480_000)}`)
    yield post('/v1/embeddings', model, 'lists of token ids', `"input":${list(`[${'1,'.repeat(40)}1]`, 10_000)}`)
    for (const [name, text] of SHORTER) yield post('/v1/embeddings', model, name, `"input":"${text}"`)
  }
  for (const model of ['rerank-cohere', 'qw3-rerank', 'vy-rerank-2.5', 'qw3-vl-rerank']) {
    for (const count of [1_000, 400_000])
      yield post('/v1/rerank', model, `${count} documents`, `"query":"a","documents":${list('"a"', count)}`)
    yield post(
      '/v1/rerank',
      model,
      'long documents',
      `"query":"a","documents":${list(`"${'a'.repeat(30_000)}"`, 1_000)}`,
    )
    yield post('/v1/rerank', model, 'documents as objects', `"query":"a","documents":${list('{"text":"a"}')}`)
    for (const [name, text] of SHORTER) yield post('/v1/rerank', model, name, `"query":"${text}","documents":["a"]`)
  }
  for (const [name, text] of SHORTER) {
    for (const model of ['gp-image-2', 'de-2']) yield post('/v1/images/generations', model, name, `"prompt":"${text}"`)
    for (const model of ['gmn-3.1-flash-image-preview', 'gmn-2.5-flash-image'])
      yield post('/v1/images/generations', model, name, `"input":"${text}"`)
    yield post(
      '/v1/images/generations',
      'qw-image-2.0',
      name,
      `"input":{"messages":[{"role":"user","content":[{"text":"${text}"}]}]}`,
    )
    yield post(
      '/v1/images/edits',
      'gp-image-2',
      name,
      `"prompt":"${text}","images":[{"image_url":"data:image/png;base64,QUJD"}]`,
    )
    yield post('/v1/videos/generations', 'wv2.7-t2v', name, `"input":{"prompt":"${text}"}`)
    for (const model of ['qw3-tts-flash']) yield post('/v1/audio/speech', model, name, `"input":"${text}"`)
    yield post('/v1/moderations', 'moderation', name, `"input":"${text}"`)
  }
  yield post('/v1/moderations', 'moderation', 'many texts', `"input":${list('"a"', 480_000)}`)
  yield post('/v1/moderations', 'moderation', 'many parts', `"input":${list('{"type":"text","text":"a"}')}`)
  yield post(
    '/v1/images/generations',
    'gmn-3.1-flash-image-preview',
    'many texts',
    `"input":${list('{"type":"text","text":"a"}')}`,
  )
  yield post(
    '/v1/images/generations',
    'qw-image-2.0',
    'many parts',
    `"input":{"messages":[{"role":"user","content":${list('{"text":"a"}')}}]}`,
  )
  yield post(
    '/v1/images/edits',
    'gp-image-2',
    'many images',
    `"prompt":"a","images":${list('{"image_url":"data:image/png;base64,QUJD"}', 97_000)}`,
  )
  yield post(
    '/v1/images/edits',
    'gp-image-2',
    'a long image',
    `"prompt":"a","images":[{"image_url":"data:image/png;base64,${long('QUJD')}"}]`,
  )
  yield post(
    '/v1/videos/generations',
    'wv2.7-t2v',
    'many parameters',
    `"input":{"prompt":"a"},"parameters":${members()}`,
  )
  for (const [path, start, part, type] of [
    ['/v1/audio/transcriptions', [field('model', 'whisper')], 'file', 'audio/wav'],
    ['/v1/images/edits', [field('model', 'gp-image-2'), field('prompt', 'a')], 'image', 'image/png'],
  ]) {
    for (const [name, content] of Object.entries(MEDIA).slice(part === 'file' ? 0 : -3))
      yield { name, path, ...form([...start, file(part, content, type)]) }
    yield {
      name: 'many fields',
      path,
      ...form([...start, ...Array.from({ length: 400_000 }, (_, index) => field(`f${index}`, ''))]),
    }
    yield {
      name: 'many lists',
      path,
      ...form([
        ...start,
        ...Array.from({ length: 95 }, () => field('keywords[]', 'x'.repeat(300_000))),
        file(part, 'x', type),
      ]),
    }
    yield {
      name: 'long headers',
      path,
      ...form([...start, [`content-disposition: form-data; name="file"; filename="${long('a;')}"`, 'x']]),
    }
    yield {
      name: 'many headers',
      path,
      ...form([...start, [`content-disposition: form-data; name="file"\r\n${long('a: b\r\n')}x: y`, 'x']]),
    }
    yield {
      name: 'folded headers',
      path,
      ...form([...start, [`content-disposition: form-data;\r\n ${long('\r\n ')}name="file"`, 'x']]),
    }
  }
  yield {
    name: 'many lines',
    path: '/v1/files',
    ...form([field('purpose', 'batch'), file('file', long('{}\n'), 'application/jsonl')]),
  }
  yield {
    name: 'one line',
    path: '/v1/files',
    ...form([field('purpose', 'batch'), file('file', long('{'), 'application/jsonl')]),
  }
  yield {
    name: 'lines of requests',
    path: '/v1/files',
    ...form([
      field('purpose', 'batch'),
      file(
        'file',
        Array.from(
          { length: 45_000 },
          (_, index) =>
            `{"custom_id":"l${index}","method":"POST","url":"/v1/chat/completions","body":{"model":"claude","max_tokens":9,${HI}}}`,
        ).join('\n'),
      ),
    ]),
  }
}

const post = (path, model, name, rest) => ({
  name,
  path,
  model,
  headers: { 'content-type': 'application/json' },
  /** Written when it is read: all of them at a time would fill the memory. */
  get body() {
    return Buffer.from(json(model, `${bound[path] ?? ''}${rest}`))
  },
})

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
