import assert from 'node:assert/strict'
import { ClientError } from 'signalbox/client'
import { drawPng } from './draw-png.mjs'

const PNG = drawPng(64)

/**
 * The kinds of calls of the soak with their shares. Each makes one call and throws when the answer is not right.
 * `caller` is one of the accounts; `mark` is a text that no other call has.
 */
export const CALLS = [
  { name: 'chat', share: 24, run: chat },
  { name: 'stream', share: 16, run: stream },
  { name: 'messages', share: 8, run: messages },
  { name: 'messages stream', share: 6, run: messagesStream },
  { name: 'embeddings', share: 16, run: embeddings },
  { name: 'leaving caller', share: 8, run: leavingCaller },
  { name: 'repeated request', share: 4, run: repeatedRequest },
  { name: 'fault', share: 8, run: fault },
  { name: 'broken stream', share: 4, run: brokenStream },
  { name: 'image', share: 2, run: image },
  { name: 'image edit', share: 1, run: edit },
  { name: 'speech', share: 1, run: speechCall },
  { name: 'video', share: 2, run: videoTask },
]

const CHAT_MODELS = ['relay', 'cl-sonnet-4-6', 'gmn-2.5-flash']
let turns = 0
const chatModel = () => CHAT_MODELS[turns++ % CHAT_MODELS.length]

/** A text said to a chat model, in either dialect. */
const saying = (text, model = chatModel()) => ({
  model,
  max_tokens: 200,
  messages: [{ role: 'user', content: text }],
})

async function chat({ client }, mark) {
  const answer = await client.chat.completions.create(saying(mark))
  assert.equal(answer.choices[0].message.content, `You said: ${mark}`)
}

const streamed = (client, text) => client.chat.completions.create({ ...saying(text), stream: true })

async function streamedText(client, text) {
  let heard = ''
  for await (const chunk of await streamed(client, text)) heard += chunk.choices[0]?.delta.content ?? ''
  return heard
}

async function stream({ client }, mark) {
  const text = `${mark} ${'and so on '.repeat(20)}end`
  assert.equal(await streamedText(client, text), `You said: ${text}`)
}

async function messages({ client }, mark) {
  const answer = await client.messages.create(saying(mark))
  assert.equal(answer.content[0].text, `You said: ${mark}`)
}

async function messagesStream({ client }, mark) {
  let heard = ''
  for await (const event of await client.messages.stream(saying(mark)))
    if (event.type === 'content_block_delta') heard += event.delta.text ?? ''
  assert.equal(heard, `You said: ${mark}`)
}

async function embeddings({ client }, mark) {
  const answer = await client.embeddings.create({ model: 'vy-4-lite', input: [mark, 'another text'] })
  assert.equal(answer.data.length, 2)
  assert.ok(answer.data[0].embedding.length >= 256)
  assert.notDeepEqual(answer.data[0].embedding, answer.data[1].embedding)
}

/** Leaves in the middle of a stream. */
async function leavingCaller({ client }, mark) {
  const text = `${mark} [[fault:pace=20]] ${'word '.repeat(50)}`
  let seen = 0
  for await (const _chunk of await streamed(client, text)) if (++seen === 3) break
  assert.equal(seen, 3)
}

/** The second answer is the first one, kept. */
async function repeatedRequest({ client }, mark) {
  const once = () => client.chat.completions.create(saying(mark, 'relay'), { idempotencyKey: `key ${mark}` })
  const [first, second] = [await once(), await once()]
  assert.equal(second.id, first.id)
  assert.equal(second.choices[0].message.content, `You said: ${mark}`)
}

const FAULTS = [
  ['status=500', 503, 'upstream_unavailable'],
  ['status=503', 503, 'upstream_unavailable'],
  ['reset', 503, 'upstream_unavailable'],
  ['half-json', 502, 'upstream_invalid_response'],
  ['garbage', 502, 'upstream_invalid_response'],
  ['empty', 502, 'upstream_invalid_response'],
  ['status=400', 400, 'upstream_rejected'],
  ['hang', 504, 'upstream_timeout'],
]

async function fault({ client }, mark) {
  const [name, status, code] = FAULTS[turns++ % FAULTS.length]
  const text = `${mark} [[fault:${name}]]`
  await assert.rejects(client.chat.completions.create(saying(text, 'relay')), (error) => {
    assert.ok(ClientError.isInstance(error))
    assert.deepEqual([name, error.status, error.code], [name, status, code])
    return true
  })
}

async function brokenStream({ client }, mark) {
  await assert.rejects(streamedText(client, `${mark} one two [[fault:reset-mid-stream=4]]`), (error) => {
    assert.equal(error.code, 'upstream_unavailable')
    return true
  })
}

const drawing = (prompt) => ({ model: 'gp-image-2', prompt, size: '1024x1024' })

function assertPng({ data }) {
  assert.equal(Buffer.from(data[0].b64_json, 'base64').subarray(1, 4).toString(), 'PNG')
}

async function image({ client }, mark) {
  assertPng(await client.images.generate({ ...drawing(mark), quality: 'low' }))
}

async function edit({ client }, mark) {
  assertPng(await client.images.edit({ ...drawing(mark), image: new Blob([PNG], { type: 'image/png' }) }))
}

async function speechCall({ client }, mark) {
  const answer = await client.audio.speech.create({
    model: 'qw3-tts-flash',
    input: mark,
    voice: 'Ethan',
    response_format: 'mp3',
  })
  assert.ok((await answer.bytes()).byteLength > 1_000)
}

/** A webhook reports the end. For every second task, the drill also polls and fetches the file. */
async function videoTask({ client, videos, webhookUrl }, mark) {
  const task = await client.videos.generate({
    model: 'wv2.7-t2v',
    resolution: '720p',
    duration: 2,
    input: { prompt: mark },
    webhook_url: webhookUrl,
  })
  assert.equal(task.status, 'queued')
  videos.push(task.id)
  if (turns++ % 2 === 0) return
  const ended = await client.videos.wait(task, { timeoutMs: 60_000 })
  assert.equal(ended.status, 'completed')
  const content = await client.videos.content(task.id)
  assertMp4(Buffer.from(await content.bytes()))
}

/** A film with a single image is small, so its boxes distinguish a whole file from a part. */
function assertMp4(file) {
  const types = []
  let offset = 0
  for (; offset + 8 <= file.length; offset += file.readUInt32BE(offset)) {
    types.push(file.toString('latin1', offset + 4, offset + 8))
    assert.ok(file.readUInt32BE(offset) >= 8, `a box without a length after ${types.join(', ')}`)
  }
  assert.deepEqual([types.slice(0, 3), offset], [['ftyp', 'moov', 'mdat'], file.length])
}
