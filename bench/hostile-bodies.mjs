/**
 * Choice of the cases: every endpoint and every translator gets every shape that it walks itself. A shape that only the
 * reader of JSON or of forms walks goes through it once per endpoint, because every model has the same reader. Counts are just below the
 * bounds of members, values and items, so that the code after the bounds is reached. Long texts have a quarter of the allowed length, and
 * one text, one form and one file have the whole length, so that superlinear work shows.
 */

/** Just below the bound of members of a body, of its values, and of its bytes. */
const MEMBERS = 48_000
const VALUES = 480_000
const WHOLE_LENGTH = 31 * 1024 * 1024
export const LONG_LENGTH = WHOLE_LENGTH / 4

/** Returns the maximum number of items of a body, or `count` items. */
function list(item, count) {
  const make = typeof item === 'string' ? () => item : item
  const membersEach = make(0).split('":').length - 1
  return `[${Array.from({ length: count ?? Math.floor(MEMBERS / membersEach) }, (_, index) => make(index)).join()}]`
}
const members = (count = MEMBERS, value = '1') =>
  `{${Array.from({ length: count }, (_, index) => `"m${index}":${value}`).join()}}`
export const deep = (levels, inner = '1') => `${'{"a":['.repeat(levels)}${inner}${']}'.repeat(levels)}`
export const long = (unit, bytes = LONG_LENGTH) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))
const say = (content) => `"messages":[{"role":"user","content":${content}}]`
export const HI = say('"hi"')
export const fn = (name, parameters) =>
  `{"type":"function","function":{"name":"${name}","description":"d","parameters":${parameters}}}`
export const SCHEMA = '{"type":"object"}'
const call = (index) => `{"id":"c${index}","type":"function","function":{"name":"f","arguments":"{}"}}`

/** Strings that are hostile in any member. */
const TEXTS = {
  'a long text': long('a'),
  'a long text of quotes': long('\\"', WHOLE_LENGTH),
  'a long text of backslashes': long('\\\\'),
  'a long text of escapes': long('\\u0001'),
  'a long text of CJK': long('图'),
  'a long text of addresses': long('a@b.example 555-123-4567 '),
  'a long text of marks': long('<think></think>hit'),
  'a long text of braces': long('{['),
}

/** Text that goes through the endpoints without a conversation. */
const SHORTER = [['a long text of braces', long('{[')]]

/** Members of chat requests, without the model. */
const CHATS = {
  ...Object.fromEntries(Object.entries(TEXTS).map(([name, text]) => [name, () => say(`"${text}"`)])),
  'many messages': () => `"messages":${list('{"role":"user","content":"a"}')}`,
  'many messages in turn': () =>
    `"messages":${list((index) => `{"role":"${index % 2 ? 'assistant' : 'user'}","content":"a"}`)}`,
  'many system messages': () =>
    `"messages":${list('{"role":"system","content":"a"}', 24_000).slice(0, -1)},{"role":"user","content":"a"}]`,
  'many parts': () => say(list('{"type":"text","text":"a"}')),
  'many images': () => say(list('{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}', 4_900)),
  'a long image': () => say(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,${long('QUJD')}"}}]`),
  'a long audio': () => say(`[{"type":"input_audio","input_audio":{"data":"${long('QUJD')}","format":"wav"}}]`),
  'a long file': () =>
    say(`[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,${long('QUJD')}"}}]`),
  'many tools': () => `${HI},"tools":${list((index) => fn(`f${index}`, SCHEMA))}`,
  'many tools of one name': () => `${HI},"tools":${list(fn('f', SCHEMA))}`,
  'tool names of megabytes': () =>
    `${HI},"tools":${list((index) => fn(`f${index}${'x'.repeat(100_000)}`, SCHEMA), 75)}`,
  'many tool calls': () =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":${list(call)}},{"role":"tool","tool_call_id":"c1","content":"x"}]`,
  'many tool calls with results': () =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":${list(call, 6_000)}},${list((index) => `{"role":"tool","tool_call_id":"c${index}","content":"x"}`, 6_000).slice(1)}`,
  'many results of one call': () =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[${call(1)}]},${list('{"role":"tool","tool_call_id":"c1","content":"x"}', 16_000).slice(1)}`,
  'long arguments': () =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(`{"a":"${'x'.repeat(LONG_LENGTH)}"}`)}}}]},{"role":"tool","tool_call_id":"c","content":"x"}]`,
  'arguments of many members': () =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(members(MEMBERS))}}}]},{"role":"tool","tool_call_id":"c","content":"x"}]`,
  'many stop strings': () => `${HI},"stop":${list('"a"', VALUES)}`,
  'many members': () => `${HI},"extra":${members()}`,
  'many top members': () => `${HI},${members().slice(1, -1)}`,
  'many members of metadata': () => `${HI},"metadata":${members(undefined, '"x"')}`,
  'many biases': () => `${HI},"logit_bias":${members()}`,
  'long names': () =>
    `${HI},"metadata":${`{${Array.from({ length: 75 }, (_, index) => `"${index}${'n'.repeat(100_000)}":"x"`).join()}}`}`,
  'repeated names': () => `${HI},"extra":{${'"a":1,'.repeat(MEMBERS)}"a":1}`,
  'deep lists': () => `${HI},"extra":${list(deep(30), 1_600)}`,
  'many values': () => `${HI},"extra":${list('[]', VALUES)}`,
  'a wide schema': () =>
    `${HI},"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":${members(24_000, '{"type":"string"}')}}}}`,
  'schemas in many tools': () =>
    `${HI},"tools":${list((index) => fn(`f${index}`, '{"type":"object","properties":{"a":{"type":"string"},"b":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"]}'), 3_200)}`,
}

/** Members of requests of the Messages API, without the model. */
const MESSAGES = {
  'many messages': CHATS['many messages'],
  'many messages in turn': CHATS['many messages in turn'],
  'many blocks': () => say(list('{"type":"text","text":"a"}')),
  'many system blocks': () => `${HI},"system":${list('{"type":"text","text":"a"}')}`,
  'many results': () =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":${list((index) => `{"type":"tool_use","id":"t${index}","name":"f","input":{}}`, 6_000)}},{"role":"user","content":${list((index) => `{"type":"tool_result","tool_use_id":"t${index}","content":"x"}`, 6_000)}}]`,
  'many tools': () => `${HI},"tools":${list((index) => `{"name":"f${index}","input_schema":{"type":"object"}}`)}`,
  'many stop strings': () => `${HI},"stop_sequences":${list('"a"', VALUES)}`,
  'many members': () => `${HI},${members().slice(1, -1)}`,
  'a long image': () =>
    say(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"${long('QUJD')}"}}]`),
  'many images': () =>
    say(list('{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}', 4_900)),
  'cache marks': () => say(list('{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}')),
  'deep blocks': () =>
    say(`[{"type":"tool_result","tool_use_id":"t","content":${list('{"type":"text","text":"a"}')}}]`),
  'input of many members': () =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":${members(MEMBERS)}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]`,
}

/** Members of requests of the Responses API, without the model. */
const RESPONSES = {
  'many items': () => `"input":${list('{"role":"user","content":"a"}')}`,
  'many parts': () => `"input":[{"role":"user","content":${list('{"type":"input_text","text":"a"}')}}]`,
  'many calls': () =>
    `"input":[${list((index) => `{"type":"function_call","call_id":"c${index}","name":"f","arguments":"{}"}`, 7_000).slice(1, -1)},${list((index) => `{"type":"function_call_output","call_id":"c${index}","output":"x"}`, 7_000).slice(1)}`,
  'many reasoning items': () =>
    `"input":[{"role":"user","content":"a"},${list((index) => `{"type":"reasoning","id":"rs_${index}","summary":[{"type":"summary_text","text":"a"}]}`, 9_500).slice(1, -1)},{"role":"user","content":"a"}]`,
  'many references': () =>
    `"input":[{"role":"user","content":"a"},${list((index) => `{"type":"item_reference","id":"msg_${index}"}`, 24_000).slice(1)}`,
  'many tools': () =>
    `"input":"hi","tools":${list((index) => `{"type":"function","name":"f${index}","parameters":{"type":"object"}}`)}`,
  'many members': () => `"input":"hi",${members().slice(1, -1)}`,
  'a long image': () =>
    `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,${long('QUJD')}"}]}]`,
  'many images': () =>
    `"input":[{"role":"user","content":${list('{"type":"input_image","image_url":"data:image/png;base64,QUJD"}', 4_900)}}]`,
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
  edges: long('\r\n--edg', WHOLE_LENGTH),
  'carriage returns': long('\r\n'),
  dashes: long('-'),
  PDF: `%PDF-1.4\n${long('/Type /Page\n')}`,
  PNG: `\u0089PNG\r\n\u001a\n${long('\u0000\u0000\u0000\u0000tEXt\u0000\u0000\u0000\u0000')}`,
}

/** Shapes that translators of chat requests walk. */
const TRANSLATED_CHATS = [
  'many messages in turn',
  'many system messages',
  'many parts',
  'many images',
  'many tools',
  'tool names of megabytes',
  'many tool calls with results',
  'many results of one call',
  'long arguments',
  'arguments of many members',
  'a wide schema',
  'schemas in many tools',
]
/** Model that gets all shapes of an endpoint, models that get some, and the shapes. */
const CONVERSATIONS = [
  ['/v1/chat/completions', CHATS, 'gemini', ['relayed', 'responses', 'claude', 'nova'], TRANSLATED_CHATS],
  [
    '/v1/messages',
    MESSAGES,
    'gemini',
    ['claude'],
    ['many messages', 'many blocks', 'many system blocks', 'many results', 'many tools', 'cache marks', 'deep blocks'],
  ],
  ['/v1/messages/count_tokens', MESSAGES, undefined, ['gemini'], ['many blocks', 'many results', 'many members']],
  [
    '/v1/responses',
    RESPONSES,
    'claude',
    ['relayed'],
    ['many items', 'many calls', 'many reasoning items', 'many tools'],
  ],
  ['/v1/responses/input_tokens', RESPONSES, undefined, ['relayed'], ['many items', 'many members']],
]

/** Requests that a caller can send, as `{ name, path, headers, body }`. */
export function* hostileRequests() {
  for (const [path, cases, first, others, walked] of CONVERSATIONS) {
    const shapes = [
      ...Object.keys(cases).map((name) => [first, name]),
      ...others.flatMap((model) => walked.map((name) => [model, name])),
    ]
    for (const [model, name] of shapes) {
      if (model === undefined) continue
      yield post(path, model, name, () => (path === '/v1/responses' ? '"store":false,' : '') + cases[name]())
    }
  }
  for (const model of [
    'embedding-openai',
    'embedding-titan',
    'embedding-cohere',
    'gmn-embedding-001',
    'text-embedding-v4',
    'vy-4',
  ]) {
    yield post('/v1/embeddings', model, 'many texts', () => `"input":${list('"a"', 10_000)}`)
    yield post('/v1/embeddings', model, 'a long text of quotes', () => `"input":"${long('\\"')}"`)
  }
  yield post(
    '/v1/embeddings',
    'embedding-openai',
    'long texts',
    () => `"input":${list(`"${'a'.repeat(3_000)}"`, 2_500)}`,
  )
  yield post('/v1/embeddings', 'embedding-openai', 'many token ids', () => `"input":${list('1', VALUES)}`)
  yield post(
    '/v1/embeddings',
    'embedding-openai',
    'lists of token ids',
    () => `"input":${list(`[${'1,'.repeat(40)}1]`, 10_000)}`,
  )
  for (const model of ['rerank-cohere', 'qw3-rerank', 'vy-rerank-2.5', 'qw3-vl-rerank']) {
    yield post('/v1/rerank', model, 'many documents', () => `"query":"a","documents":${list('"a"', 1_000)}`)
    yield post('/v1/rerank', model, 'a long text of quotes', () => `"query":"${long('\\"')}","documents":["a"]`)
  }
  yield post(
    '/v1/rerank',
    'rerank-cohere',
    'too many documents',
    () => `"query":"a","documents":${list('"a"', VALUES)}`,
  )
  yield post(
    '/v1/rerank',
    'rerank-cohere',
    'long documents',
    () => `"query":"a","documents":${list(`"${'a'.repeat(30_000)}"`, 250)}`,
  )
  yield post(
    '/v1/rerank',
    'rerank-cohere',
    'documents as objects',
    () => `"query":"a","documents":${list('{"text":"a"}')}`,
  )
  for (const [name, text] of SHORTER) {
    for (const model of ['gp-image-2', 'de-2'])
      yield post('/v1/images/generations', model, name, () => `"prompt":"${text}"`)
    for (const model of ['gmn-3.1-flash-image-preview', 'gmn-2.5-flash-image'])
      yield post('/v1/images/generations', model, name, () => `"input":"${text}"`)
    yield post(
      '/v1/images/generations',
      'qw-image-2.0',
      name,
      () => `"input":{"messages":[{"role":"user","content":[{"text":"${text}"}]}]}`,
    )
    yield post(
      '/v1/images/edits',
      'gp-image-2',
      name,
      () => `"prompt":"${text}","images":[{"image_url":"data:image/png;base64,QUJD"}]`,
    )
    yield post('/v1/videos/generations', 'wv2.7-t2v', name, () => `"input":{"prompt":"${text}"}`)
    for (const model of ['qw3-tts-flash']) yield post('/v1/audio/speech', model, name, () => `"input":"${text}"`)
    yield post('/v1/moderations', 'moderation', name, () => `"input":"${text}"`)
  }
  yield post('/v1/moderations', 'moderation', 'many texts', () => `"input":${list('"a"', VALUES)}`)
  yield post('/v1/moderations', 'moderation', 'many parts', () => `"input":${list('{"type":"text","text":"a"}')}`)
  yield post(
    '/v1/images/generations',
    'gmn-3.1-flash-image-preview',
    'many texts',
    () => `"input":${list('{"type":"text","text":"a"}')}`,
  )
  yield post(
    '/v1/images/generations',
    'qw-image-2.0',
    'many parts',
    () => `"input":{"messages":[{"role":"user","content":${list('{"text":"a"}')}}]}`,
  )
  yield post(
    '/v1/images/edits',
    'gp-image-2',
    'many images',
    () => `"prompt":"a","images":${list('{"image_url":"data:image/png;base64,QUJD"}')}`,
  )
  yield post(
    '/v1/images/edits',
    'gp-image-2',
    'a long image',
    () => `"prompt":"a","images":[{"image_url":"data:image/png;base64,${long('QUJD')}"}]`,
  )
  yield post(
    '/v1/videos/generations',
    'wv2.7-t2v',
    'many parameters',
    () => `"input":{"prompt":"a"},"parameters":${members()}`,
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
        ...Array.from({ length: 95 }, () => field('keywords[]', 'x'.repeat(80_000))),
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
}

/** Lines of batches, as requests that upload them. */
export function* hostileBatches() {
  const request = (index) =>
    `{"custom_id":"l${index}","method":"POST","url":"/v1/chat/completions","body":{"model":"claude","max_tokens":9,${HI}}}`
  for (const [name, lines] of [
    ['many lines', () => long('{}\n', WHOLE_LENGTH)],
    ['many blank lines', () => long('\n', 1024 * 1024)],
    ['one line', () => long('{')],
    ['many requests', () => Array.from({ length: 10_000 }, (_, index) => request(index)).join('\n')],
  ])
    yield { name, path: '/v1/files', ...form([field('purpose', 'batch'), file('file', lines(), 'application/jsonl')]) }
}

export const post = (path, model, name, rest) => ({
  name,
  path,
  model,
  headers: { 'content-type': 'application/json' },
  /** Generated when it is read, because all of them together would fill the memory. */
  get body() {
    return Buffer.from(json(model, `${bound[path] ?? ''}${rest()}`))
  },
})
