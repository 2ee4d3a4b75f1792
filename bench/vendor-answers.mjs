import { Buffer } from 'node:buffer'
import { PICTURE_BYTES, pictureBytes } from './image-bytes.mjs'

/** Tokens that every chat answer of the mock vendor reports. */
export const CHAT_USAGE = { input: 212, output: 200 }

/** Tokens that every embeddings answer reports. */
export const EMBEDDINGS_USAGE = { input: 1_350 }

/** Tokens that every image edit reports. */
export const EDIT_USAGE = { text: 140, pictures: 1_056, output: 4_160 }

/** Content events of one streamed answer; with role, finish reason, usage and `[DONE]` an OpenAI stream has four more. */
export const CONTENT_EVENTS = 200

/** Events of one whole OpenAI stream. */
export const STREAM_EVENTS = CONTENT_EVENTS + 4

/** Events of one whole Anthropic stream. */
export const MESSAGES_EVENTS = CONTENT_EVENTS + 6

const EMBEDDING_COUNT = 100
const EMBEDDING_SIZE = 1_024

const WORDS =
  'the signal stands at clear and the points are set for the branch line so that a train may leave without delay'.split(
    ' ',
  )

const COMMON_HEADERS = [
  'date: Fri, 20 Nov 2026 09:14:07 GMT',
  'connection: keep-alive',
  'access-control-expose-headers: X-Request-ID',
  'x-request-id: req_5d1f0a7be2c94c0d9a3f6b1e8c7720aa',
  'x-ratelimit-limit-requests: 30000',
  'x-ratelimit-remaining-requests: 29999',
  'x-ratelimit-limit-tokens: 150000000',
  'x-ratelimit-remaining-tokens: 149999788',
  'x-ratelimit-reset-requests: 2ms',
  'x-ratelimit-reset-tokens: 0s',
  'strict-transport-security: max-age=31536000; includeSubDomains; preload',
  'x-content-type-options: nosniff',
  'server: mock-vendor',
]

/** A whole JSON answer, head and body, as one buffer. */
function jsonAnswer(body) {
  const bytes = Buffer.from(JSON.stringify(body))
  const head = ['HTTP/1.1 200 OK', 'content-type: application/json', `content-length: ${bytes.byteLength}`]
  return Buffer.concat([Buffer.from(`${[...head, ...COMMON_HEADERS].join('\r\n')}\r\n\r\n`), bytes])
}

/** The vendors report a dated id, so that answers have to be rewritten. */
const dated = (model) => `${model}-2026-05-14`

export function chatAnswer(model) {
  const sentence = Array.from({ length: 100 }, (_, index) => WORDS[index % WORDS.length]).join(' ')
  return jsonAnswer({
    id: 'chatcmpl-C3xQ0mVd81KpZtYwLr7fHsUe',
    object: 'chat.completion',
    created: 1_795_166_047,
    model: dated(model),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: `${sentence}.`, refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: CHAT_USAGE.input,
      completion_tokens: CHAT_USAGE.output,
      total_tokens: CHAT_USAGE.input + CHAT_USAGE.output,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
    },
    service_tier: 'default',
    system_fingerprint: 'fp_50cad350e4',
  })
}

export function embeddingsAnswer(model) {
  const data = Array.from({ length: EMBEDDING_COUNT }, (_, index) => ({
    object: 'embedding',
    index,
    embedding: Array.from({ length: EMBEDDING_SIZE }, (_, place) => component(index * EMBEDDING_SIZE + place)),
  }))
  const usage = { prompt_tokens: EMBEDDINGS_USAGE.input, total_tokens: EMBEDDINGS_USAGE.input }
  return jsonAnswer({ object: 'list', data, model: dated(model), usage })
}

/** Returns an answer of 2 MB with one edited image in base64. */
export function imageEditAnswer() {
  const { text, pictures, output } = EDIT_USAGE
  const input = text + pictures
  return jsonAnswer({
    created: 1_795_166_047,
    background: 'opaque',
    data: [{ b64_json: pictureBytes((PICTURE_BYTES / 4) * 3).toString('base64') }],
    output_format: 'png',
    quality: 'high',
    size: '1024x1024',
    usage: {
      input_tokens: input,
      input_tokens_details: { image_tokens: pictures, text_tokens: text },
      output_tokens: output,
      total_tokens: input + output,
    },
  })
}

/** The receipt for a video in DashScope's native dialect. Each ends with its own id. */
export function videoReceipt(number) {
  const taskId = `0385dc79-5ff8-4d82-bcb6-${number.toString(16).padStart(12, '0')}`
  return jsonAnswer({
    output: { task_status: 'PENDING', task_id: taskId },
    request_id: '4909100c-7b5a-9f92-bfe5-8d7d2c1f0a3e',
  })
}

/** A number of the length that vendors write: `-0.0123456789`. */
function component(seed) {
  const fraction = Math.abs(Math.sin(seed + 1) * 0.09)
  return Number(`${seed % 2 === 0 ? '' : '-'}${(fraction + 0.01).toFixed(9)}1`)
}

/** Head of a streamed answer; the body follows in HTTP chunks. */
export const STREAM_HEAD = Buffer.from(
  `${['HTTP/1.1 200 OK', 'content-type: text/event-stream; charset=utf-8', 'transfer-encoding: chunked', ...COMMON_HEADERS].join('\r\n')}\r\n\r\n`,
)

/** The end of a streamed body. */
export const STREAM_END = Buffer.from('0\r\n\r\n')

/** One event in a separate HTTP chunk, as vendors flush them. */
function framed(event) {
  const bytes = Buffer.from(event)
  return Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

/** The events of an OpenAI stream with a usage report, each framed. */
export function chatEvents(model, contentEvents = CONTENT_EVENTS) {
  const event = (choices, usage = null) =>
    `data: ${JSON.stringify({
      id: 'chatcmpl-C3xQ0mVd81KpZtYwLr7fHsUe',
      object: 'chat.completion.chunk',
      created: 1_795_166_047,
      model: dated(model),
      choices,
      usage,
    })}\n\n`
  const choice = (delta, reason = null) => [{ index: 0, delta, logprobs: null, finish_reason: reason }]
  return [
    event(choice({ role: 'assistant', content: '', refusal: null })),
    ...Array.from({ length: contentEvents }, (_, index) =>
      event(choice({ content: ` ${WORDS[index % WORDS.length]}` })),
    ),
    event(choice({}, 'stop')),
    event([], {
      prompt_tokens: CHAT_USAGE.input,
      completion_tokens: CHAT_USAGE.output,
      total_tokens: CHAT_USAGE.input + CHAT_USAGE.output,
    }),
    'data: [DONE]\n\n',
  ].map(framed)
}

/** The events of an Anthropic stream, each framed. */
export function messagesEvents(model) {
  const event = (type, fields) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const message = {
    id: 'msg_01Bq7xNf4TzW9cYhR2mKdVse',
    type: 'message',
    role: 'assistant',
    model: dated(model),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: CHAT_USAGE.input, output_tokens: 1 },
  }
  return [
    event('message_start', { message }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('ping', {}),
    ...Array.from({ length: CONTENT_EVENTS }, (_, index) =>
      event('content_block_delta', {
        index: 0,
        delta: { type: 'text_delta', text: ` ${WORDS[index % WORDS.length]}` },
      }),
    ),
    event('content_block_stop', { index: 0 }),
    event('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: CHAT_USAGE.output },
    }),
    event('message_stop', {}),
  ].map(framed)
}

/** A whole Anthropic answer. */
export function messageAnswer(model) {
  const text = Array.from({ length: 100 }, (_, index) => WORDS[index % WORDS.length]).join(' ')
  return jsonAnswer({
    id: 'msg_01Bq7xNf4TzW9cYhR2mKdVse',
    type: 'message',
    role: 'assistant',
    model: dated(model),
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: CHAT_USAGE.input, output_tokens: CHAT_USAGE.output },
  })
}

/** Events of one whole Responses stream. */
export const RESPONSES_EVENTS = CONTENT_EVENTS + 8

function responseObject(model, status, output) {
  const usage = {
    input_tokens: CHAT_USAGE.input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: CHAT_USAGE.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: CHAT_USAGE.input + CHAT_USAGE.output,
  }
  return {
    id: 'resp_0a1b2c3d4e5f60718293a4b5c6d7e8f9',
    object: 'response',
    created_at: 1_795_166_047,
    status,
    model: dated(model),
    output,
    tools: [],
    usage: status === 'completed' ? usage : null,
  }
}

function responseMessage(words) {
  const part = { type: 'output_text', text: words.join(''), annotations: [], logprobs: [] }
  return { id: 'msg_0a1b2c3d4e5f6071', type: 'message', role: 'assistant', status: 'completed', content: [part] }
}

/** A whole response. */
export function responseAnswer(model) {
  const words = Array.from({ length: 100 }, (_, index) => ` ${WORDS[index % WORDS.length]}`)
  return jsonAnswer(responseObject(model, 'completed', [responseMessage(words)]))
}

/** The events of a Responses stream with the padding that OpenAI adds by default, each framed. */
export function responsesEvents(model) {
  const words = Array.from({ length: CONTENT_EVENTS }, (_, index) => ` ${WORDS[index % WORDS.length]}`)
  const item = responseMessage(words)
  const [part] = item.content
  const place = { item_id: item.id, output_index: 0, content_index: 0 }
  const begun = { response: responseObject(model, 'in_progress', []) }
  const events = [
    ['created', begun],
    ['in_progress', begun],
    ['output_item.added', { output_index: 0, item: { ...item, status: 'in_progress', content: [] } }],
    ['content_part.added', { ...place, part: { ...part, text: '' } }],
    ...words.map((delta) => ['output_text.delta', { ...place, delta, logprobs: [], obfuscation: 'x9Yz1aB2cD' }]),
    ['output_text.done', { ...place, text: part.text, logprobs: [] }],
    ['content_part.done', { ...place, part }],
    ['output_item.done', { output_index: 0, item }],
    ['completed', { response: responseObject(model, 'completed', [item]) }],
  ]
  return events.map(([name, fields], sequence_number) => {
    const type = `response.${name}`
    return framed(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...fields })}\n\n`)
  })
}
