import { Buffer } from 'node:buffer'
import { PICTURE_BYTES, pictureBytes } from './image-bytes.mjs'

/** The caller's key at every proxy. */
export const API_KEY = 'sk-benchmarkCaller7Qw2Zx9Lk4Vn8Rt6Yb1Mc5Hd3Jf0Gs'

/** Keys of this number of callers, beginning with `API_KEY`; all have the same length. */
export function apiKeys(count) {
  return Array.from({ length: count }, (_, index) =>
    index === 0 ? API_KEY : `${API_KEY.slice(0, -8)}${String(index).padStart(8, '0')}`,
  )
}

const HEADERS = [
  'host: 127.0.0.1',
  'accept: application/json',
  'accept-encoding: gzip, deflate',
  'user-agent: bench/1.0',
  `authorization: Bearer ${API_KEY}`,
  'x-client-lang: js',
  'x-client-os: Linux',
  'x-client-arch: x64',
  'x-client-retry-count: 0',
  'x-client-timeout: 600',
]

const SYSTEM_PROMPT =
  'You are the signalman of a small junction. Answer in plain words, keep to what the timetable says, and name the track, the ' +
  'train and the minute whenever you speak of a movement. When two trains want the same section, say which one waits and why.'
const QUESTION =
  'The 09:14 from the coast runs twelve minutes late and the 09:31 stopping train is already standing at the home signal. There is ' +
  'one free platform, the branch line is closed for works until ten, and the goods train on track 3 cannot be moved before its crew ' +
  'has changed. In which order do you let them in, which signals do you pull, and what do you tell the passengers who have a ' +
  'connection at 09:40? Please answer step by step, and add at the end what you would do if the late train lost another five minutes.'

/** The head of a POST, with the headers that SDKs send. */
function postHead(path, contentType, byteLength) {
  const head = [`POST ${path} HTTP/1.1`, ...HEADERS, `content-type: ${contentType}`, `content-length: ${byteLength}`]
  return `${head.join('\r\n')}\r\n\r\n`
}

/** A POST of a JSON body. */
export function post(path, body) {
  const json = JSON.stringify(body)
  return `${postHead(path, 'application/json', Buffer.byteLength(json))}${json}`
}

/** The body of a chat request of two messages, about 1 KB. */
export function chatBody(model) {
  return {
    model,
    messages: [
      { role: 'system', content: SYSTEM_PROMPT },
      { role: 'user', content: QUESTION },
    ],
    temperature: 0.7,
    max_completion_tokens: 512,
  }
}

/** A chat request, whole. */
export function chatRequest(model, { stream = false } = {}) {
  const streaming = stream ? { stream: true, stream_options: { include_usage: true } } : {}
  return post('/v1/chat/completions', { ...chatBody(model), ...streaming })
}

/** The same prompt in Anthropic's dialect, streamed. */
export function messagesRequest(model) {
  return post('/v1/messages', {
    model,
    system: SYSTEM_PROMPT,
    messages: [{ role: 'user', content: QUESTION }],
    temperature: 0.7,
    max_tokens: 512,
    stream: true,
  })
}

/** The same prompt in OpenAI's Responses, which is not stored. */
export function responsesRequest(model, { stream = false } = {}) {
  return post('/v1/responses', {
    model,
    instructions: SYSTEM_PROMPT,
    input: QUESTION,
    max_output_tokens: 512,
    store: false,
    ...(stream ? { stream } : {}),
  })
}

/** One hundred short texts to embed. */
export function embeddingsRequest(model) {
  const input = Array.from({ length: 100 }, (_, index) => `Track ${index}: ${QUESTION.slice(index, index + 60)}`)
  return post('/v1/embeddings', { model, input, encoding_format: 'float' })
}

/** Returns the bytes of a form that edits one image of 2 MB, with its parts in the order of SDKs. */
export function imageEditRequest(model) {
  const boundary = '----formdata-bench-094117302265'
  const field = (name, value) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const file = 'content-disposition: form-data; name="image"; filename="junction.png"\r\ncontent-type: image/png'
  const body = Buffer.concat([
    Buffer.from(field('model', model)),
    Buffer.from(field('prompt', QUESTION)),
    Buffer.from(`--${boundary}\r\n${file}\r\n\r\n`),
    pictureBytes(PICTURE_BYTES),
    Buffer.from(`\r\n${field('size', '1024x1024')}${field('quality', 'high')}--${boundary}--\r\n`),
  ])
  const head = postHead('/v1/images/edits', `multipart/form-data; boundary=${boundary}`, body.byteLength)
  return Buffer.concat([Buffer.from(head), body])
}

/** A video to be rendered from a text. */
export function videoRequest(model) {
  const input = { prompt: QUESTION, negative_prompt: 'people on the track, rain' }
  return post('/v1/videos/generations', { model, duration: 5, resolution: '720p', input, parameters: { seed: 4_711 } })
}
