import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { PriceFile } from '../../src/catalog/prices/prices.ts'
import { chat, image, imageEdit, rerank, speech, video } from '../../src/client/builders/index.ts'
import {
  type ClientError,
  createClient,
  type GatewayClient,
  type ResponseFacts,
  type Upload,
} from '../../src/client/index.ts'
import { drawPicture } from '../../src/testing/sandbox/files/draw-image.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { collected } from './stand-in.ts'

/** Prices of the other tests, and a price for speech. */
const withSpeech: PriceFile = {
  currency: 'USD',
  prices: [...testPrices.prices, { model: 'qw3-tts-flash', meter: 'character', amount: '0.00001' }],
}

const CDN = 'https://cdn.example.net'

let started: StartedGateway
let folder: string

beforeAll(async () => {
  started = await startGateway(
    { taskPollIntervalMs: 20, prices: withSpeech },
    { videoPendingMs: 20, videoRunningMs: 20 },
  )
  folder = mkdtempSync(join(tmpdir(), 'client-'))
})
afterEach(() => started.sandbox.reset())
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await started.close()
})

function overHttp(): GatewayClient {
  return createClient({ baseURL: `${started.url}/v1/`, apiKey: TEST_KEY })
}

function inProcess(): GatewayClient {
  return started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'key_host', tier: 'paid' })
}

function png(seed: string): Uint8Array {
  return drawPicture({ width: 64, height: 64, format: 'png', seed })
}

describe.each([
  ['over HTTP', overHttp],
  ['in process', inProcess],
])('%s the client', (_name, open) => {
  test('chats, whole and streamed, and tells what it cost', async () => {
    const client = open()
    const request = chat('cl-sonnet-4-6').system('Be brief.').user('hello')
    const facts: ResponseFacts[] = []
    const whole = await client.chat.completions.create(request.build(), { onResponse: (seen) => void facts.push(seen) })
    const chunks = await collected(await client.chat.completions.create(request.stream().build()))
    const streamed = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')

    expect(whole.choices[0]?.message.content).toBe('You said: hello')
    expect(streamed).toBe('You said: hello')
    expect(chunks.at(-1)?.usage?.total_tokens).toBeGreaterThan(0)
    expect(facts[0]).toMatchObject({ status: 200, requestId: expect.stringMatching(/^req_/), dropped: [] })
    expect(Number(facts[0]?.cost)).toBeGreaterThan(0)
  })

  test('stops the vendor when a stream is aborted', async () => {
    const stream = await open().chat.completions.create(
      chat('chat-relayed')
        .user(`[[fault:pace=10]] ${'word '.repeat(200)}`)
        .stream()
        .build(),
    )
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content !== undefined) stream.abort()
    await started.sandbox.nextAbort()

    expect(started.sandbox.aborted).toBe(1)
  })

  test('creates images in the three shapes', async () => {
    const client = open()
    const multimodal = await client.images.generate(image('qw-image-2.0').prompt('a boat').size('1664*928').build())
    const interaction = await client.images.generate(
      image('gmn-3.1-flash-image-preview').prompt('a boat').size('512px').build(),
    )
    const openai = await client.images.generate(
      image('gp-image-2').prompt('a boat').size('1024x1024').quality('low').build(),
    )
    const blocks = interaction.steps.flatMap(({ content = [] }) => content)

    expect(multimodal.output.choices[0]?.message.content[0]?.image).toMatch(/^https?:/)
    expect(blocks.find(({ type }) => type === 'image')?.data?.length).toBeGreaterThan(100)
    expect(openai.data[0]?.b64_json?.length).toBeGreaterThan(100)
  })

  test('draws and edits event by event', async () => {
    const client = open()
    const size = { size: '1024x1024', quality: 'low' } as const
    const drawn = await collected(
      await client.images.generate(
        image('gp-image-2').prompt('a boat').size('1024x1024').quality('low').stream(2).build(),
      ),
    )
    const edited = await collected(
      await client.images.edit({ model: 'gp-image-1', prompt: 'a sail', image: png('a'), ...size, stream: true }),
    )
    const request = image('gmn-3.1-flash-image-preview').prompt('a boat').size('512px').stream()
    const stream = await client.images.generate(request.build())
    const interaction = await collected(stream)
    const pictures = interaction.flatMap((event) =>
      event.event_type === 'step.delta' && event.delta.type === 'image' ? [event.delta] : [],
    )

    expect(drawn.map(({ type }) => type)).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
    expect(edited.map(({ type }) => type)).toEqual(['image_edit.completed'])
    expect(drawn.every(({ b64_json }) => b64_json.length > 100)).toBe(true)
    expect(pictures[0]?.data?.length).toBeGreaterThan(100)
    expect(interaction.at(-1)).toMatchObject({ event_type: 'interaction.completed' })
    expect(stream.requestId).toMatch(/^req_/)
  })

  test('stops the vendor when streamed images are aborted', async () => {
    const stream = await open().images.generate({
      model: 'gp-image-2',
      prompt: '[[fault:pace=50]] a boat',
      size: '1024x1024',
      quality: 'low',
      stream: true,
      partial_images: 3,
    })
    for await (const _event of stream) stream.abort()
    await started.sandbox.nextAbort()

    expect(started.sandbox.aborted).toBe(1)
  })

  test('edits images from blobs, files, bytes, buffers and paths, one or several', async () => {
    const client = open()
    const path = join(folder, 'boat.png')
    await writeFile(path, png('path'))
    const given: (Upload | readonly Upload[])[] = [
      new Blob([Buffer.from(png('blob'))], { type: 'image/png' }),
      new File([Buffer.from(png('file'))], 'harbour.png', { type: 'image/png' }),
      png('bytes'),
      Buffer.from(png('buffer')),
      { path },
      [png('first'), { path }],
    ]
    for (const picture of given) {
      const answer = await client.images.edit({
        model: 'gp-image-2',
        prompt: 'a sail',
        image: picture,
        size: '1024x1024',
        quality: 'low',
      })
      expect(answer.data[0]?.b64_json?.length).toBeGreaterThan(100)
    }
    const masked = imageEdit('gp-image-1')
      .prompt('a sail')
      .image(png('a'))
      .mask(png('b'))
      .size('1024x1024')
      .quality('low')
    const answer = await client.images.edit(masked.build())
    const sent = started.sandbox.requests.map(({ bytes }) => Buffer.from(bytes).toString('latin1'))

    expect(answer.data).toHaveLength(1)
    expect(sent[1]).toContain('filename="harbour.png"')
    expect(sent[2]).toMatch(/filename="image\.png"\r\nContent-Type: image\/png/i)
    expect(sent[4]).toContain('filename="boat.png"')
    expect(sent[5]?.match(/name="image\[\]"/g)).toHaveLength(2)
    expect(sent[6]).toContain('name="mask"')
  })

  test('orders a video, waits for it, lists it and fetches it', async () => {
    const client = open()
    const states = new Set<string>()
    const ordered = await client.videos.generate(video('wv2.7-i2v').prompt('a boat').firstFrame(`${CDN}/a.png`).build())
    const task = await client.videos.wait(ordered, {
      intervalMs: 10,
      onProgress: (seen) => states.add(seen.task.status),
    })
    const content = await client.videos.content(task)
    const list = await client.videos.list({ limit: 1 })

    expect(ordered.status).toBe('queued')
    expect(task).toMatchObject({ status: 'completed', content: { video_url: expect.stringMatching(/^https?:/) } })
    expect([...states].at(-1)).toBe('completed')
    expect(list.data[0]?.id).toBe(ordered.id)
    expect(content.contentType).toBe('video/mp4')
    expect(Buffer.from((await content.bytes()).slice(4, 8)).toString()).toBe('ftyp')
    await expect(client.videos.cancel(task)).rejects.toMatchObject({ code: 'task_not_cancellable', status: 409 })
  })

  test('makes vectors as numbers and, decoded, from base64, which say the same', async () => {
    const client = open()
    const request = { model: 'vy-4', input: ['one', 'two'], dimensions: 256 } as const
    const plain = await client.embeddings.create(request)
    const packed = await client.embeddings.create({ ...request, encoding_format: 'base64' })

    expect(packed.data.map(({ index }) => index)).toEqual([0, 1])
    for (const [index, { embedding: floats }] of packed.data.entries()) {
      expect(floats).toBeInstanceOf(Float32Array)
      expect(floats).toHaveLength(256)
      const numbers = plain.data[index]?.embedding ?? []
      expect(Math.max(...numbers.map((number, at) => Math.abs(number - (floats[at] ?? 0))))).toBeLessThan(1e-6)
    }
  })

  test('ranks documents, the best ones first', async () => {
    const client = open()
    const documents = ['Quito', { text: 'Lima is the capital of Peru', id: 7 }, 'Peru']
    const request = { model: 'vy-rerank-2.5', query: 'capital of Peru', documents, top_n: 2 } as const
    const answer = await client.rerank({ ...request, return_documents: true })

    expect(answer.model).toBe('vy-rerank-2.5')
    expect(answer.results.map(({ index, document }) => [index, document])).toEqual([
      [1, documents[1]],
      [2, { text: 'Peru' }],
    ])
    expect(answer.usage.total_tokens).toBeGreaterThan(0)
    await expect(client.rerank({ ...request, documents: [] })).rejects.toMatchObject({ param: 'documents' })
    const built = rerank('vy-rerank-2.5')
      .query(request.query)
      .documents(...documents)
      .top(2)
      .build()
    expect((await client.rerank(built)).results.map(({ index }) => index)).toEqual([1, 2])
  })

  test('lists models and reads the balance', async () => {
    const client = open()

    expect((await client.models.list()).map(({ id }) => id)).toContain('wv2.7-r2v')
    expect(await client.account.balance()).toMatchObject({ object: 'account', id: TEST_ACCOUNT, currency: 'USD' })
  })

  test('throws what the gateway says, with the id of the request', async () => {
    const call = open().images.generate({
      model: 'qw-image-edit',
      input: { messages: [{ role: 'user', content: [{ text: 'no picture' }] }] },
    })
    const error = (await call.catch((cause: unknown) => cause)) as ClientError

    expect(error).toMatchObject({ code: 'invalid_request', status: 400, publicCode: 'InvalidParameter' })
    expect(error.requestId).toMatch(/^req_/)
    expect(started.events).toContainEqual(
      expect.objectContaining({ type: 'request-refused', requestId: error.requestId, code: error.code }),
    )
  })

  test('speaks, and answers in the dialect of messages', async () => {
    const client = open()
    const sound = await client.audio.speech.create({
      model: 'qw3-tts-flash',
      input: 'Good morning.',
      response_format: 'wav',
    })
    const bytes = Buffer.from(await sound.bytes())
    const inEvents = await collected(
      await client.audio.speech.create(speech('qw3-tts-flash').text('Good morning.').events().build()),
    )
    const pieces = inEvents.flatMap((event) => (event.type === 'speech.audio.delta' ? [event.audio] : []))
    const request = { model: 'cl-sonnet-4-6', max_tokens: 50, messages: [{ role: 'user', content: 'hello' }] } as const
    const message = await client.messages.create(request)
    const types = (await collected(await client.messages.stream(request))).map(({ type }) => type)
    const { input_tokens } = await client.messages.countTokens({ model: 'cl-sonnet-4-6', messages: request.messages })

    expect(sound.contentType).toBe('audio/wav')
    expect(bytes.subarray(0, 4).toString()).toBe('RIFF')
    expect(bytes.byteLength).toBeGreaterThan(1_000)
    expect(Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))).byteLength).toBeGreaterThan(1_000)
    expect(inEvents.at(-1)).toMatchObject({ type: 'speech.audio.done', usage: { characters: 13 } })
    expect(message.content[0]).toMatchObject({ type: 'text', text: 'You said: hello' })
    expect([types[0], types.at(-1)]).toEqual(['message_start', 'message_stop'])
    expect(input_tokens).toBeGreaterThan(0)
  })
})

test('a retry of a paid call is charged once: the gateway gives the first answer again', async () => {
  let calls = 0
  const client = createClient({
    baseURL: `${started.url}/v1`,
    apiKey: TEST_KEY,
    fetch: async (request) => {
      const response = await fetch(request)
      calls += 1
      if (calls > 1) return response
      await response.arrayBuffer()
      throw new TypeError('the answer got lost')
    },
  })
  const before = (await started.account()).balance
  const answer = await client.chat.completions.create(chat('chat-relayed').user('hello').build())
  const spent = before - (await started.account()).balance

  expect(answer.choices[0]?.message.content).toBe('You said: hello')
  expect(calls).toBe(2)
  expect(started.sandbox.requests).toHaveLength(1)
  expect(spent).toBeGreaterThan(0n)
})
