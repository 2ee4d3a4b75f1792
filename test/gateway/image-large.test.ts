import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { usedBytes } from '../support/used-bytes.ts'
import { EDITS, editBody, generation, IMAGES, interaction, png } from './image-requests.ts'
import { type ScriptedVendor, scriptedVendor } from './image-vendor.ts'

const MEGABYTE = 1024 * 1024
const LARGE = 20 * MEGABYTE
const SMALL = 2 * MEGABYTE

const USAGE = {
  total_tokens: 1122,
  input_tokens: 2,
  input_tokens_details: { text_tokens: 2, image_tokens: 0 },
  output_tokens: 1120,
  output_tokens_details: { image_tokens: 1120, text_tokens: 0 },
}
const INTERACTION_USAGE = {
  total_tokens: 1122,
  total_input_tokens: 2,
  total_output_tokens: 1120,
  output_tokens_by_modality: [{ modality: 'image', tokens: 1120 }],
}
const COST = 2n * 5_000n + 1120n * 30_000n

let vendor: ScriptedVendor
let started: StartedGateway

afterEach(async () => {
  await started.close()
  await vendor.close()
})

/** A vendor that gives this answer, behind a gateway. */
async function start(contentType: string, pieces: readonly string[]): Promise<void> {
  vendor = await scriptedVendor(contentType, pieces)
  const connection = { apiKey: 'vendor-key', baseURL: vendor.origin }
  started = await startGateway({ vendors: [openai(connection), gemini(connection)] })
}

const PATTERN = Buffer.from(Array.from({ length: 1021 }, (_, index) => (index * 7) % 256))

/** So many characters of base64, which do not repeat within any power of two. */
function base64(length: number): string {
  return Buffer.alloc((length / 4) * 3, PATTERN).toString('base64')
}

const WHOLE = 'application/json'
const STREAM = 'text/event-stream'

/** Answers of all kinds around one picture. */
const ANSWERS: Readonly<
  Record<string, (picture: string) => { type: string; pieces: string[]; path: string; body: object }>
> = {
  'a generation': (picture) => ({
    type: WHOLE,
    pieces: [`{"created":1,"data":[{"b64_json":"${picture}"}],"usage":${JSON.stringify(USAGE)}}`],
    path: IMAGES,
    body: generation('a kettle'),
  }),
  'an edit': (picture) => ({
    type: WHOLE,
    pieces: [`{"created":1,"usage":${JSON.stringify(USAGE)},"data":[{"b64_json":"${picture}"}]}`],
    path: EDITS,
    body: editBody('a kettle'),
  }),
  'a streamed generation': (picture) => ({
    type: STREAM,
    pieces: [
      'event: image_generation.completed\n',
      `data: {"type":"image_generation.completed","b64_json":"${picture}","usage":${JSON.stringify(USAGE)}}\n\n`,
    ],
    path: IMAGES,
    body: generation('a kettle', { stream: true }),
  }),
  'an interaction': (picture) => ({
    type: WHOLE,
    pieces: [
      `{"id":"v1_Q2FmZQ","object":"interaction","model":"gemini-3.1-flash-image-preview","status":"completed","steps":[{"type":"model_output","content":[{"type":"image","mime_type":"image/png","data":"${picture}"}]}],"usage":${JSON.stringify(INTERACTION_USAGE)}}`,
    ],
    path: IMAGES,
    body: interaction('a kettle'),
  }),
  'a streamed interaction': (picture) => ({
    type: STREAM,
    pieces: [
      'event: interaction.created\ndata: {"interaction":{"id":"v1_Q2FmZQ","status":"in_progress","object":"interaction","model":"gemini-3.1-flash-image-preview"},"event_type":"interaction.created"}\n\n',
      'event: step.start\ndata: {"index":0,"step":{"type":"model_output"},"event_type":"step.start"}\n\n',
      `event: step.delta\ndata: {"index":0,"delta":{"type":"image","mime_type":"image/png","data":"${picture}"},"event_type":"step.delta"}\n\n`,
      'event: step.stop\ndata: {"index":0,"event_type":"step.stop"}\n\n',
      `event: interaction.completed\ndata: {"interaction":{"id":"v1_Q2FmZQ","object":"interaction","status":"completed","usage":${JSON.stringify(INTERACTION_USAGE)}},"event_type":"interaction.completed"}\n\n`,
      'data: [DONE]\n\n',
    ],
    path: IMAGES,
    body: interaction('a kettle', { stream: true }),
  }),
}

describe('a picture of 20 MB in an answer', () => {
  test.each(Object.keys(ANSWERS))(
    '%s passes unharmed and is charged by its usage',
    { timeout: 60_000 },
    async (name) => {
      const picture = base64(LARGE)
      const { type, pieces, path, body } = ANSWERS[name]!(picture)
      await start(type, pieces)

      const answer = await started.post(path, body)
      const text = await answer.text()
      const ended = await started.ended(answer)

      expect(answer.status).toBe(200)
      expect(text.includes(picture)).toBe(true)
      expect(ended.costNanoDollars).toBe(COST)
      expect(vendor.calls).toHaveLength(1)
      const again = await started.post(path, body)
      await again.arrayBuffer()
      expect(again.status).toBe(200)
    },
  )

  test.each(Object.keys(ANSWERS))('%s takes time in proportion to its size', { timeout: 60_000 }, async (name) => {
    const times: number[] = []
    for (const size of [SMALL, LARGE]) {
      const { type, pieces, path, body } = ANSWERS[name]!(base64(size))
      await start(type, pieces)
      await (await started.post(path, body)).arrayBuffer()
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 5; round++) {
        const before = process.cpuUsage()
        await (await started.post(path, body)).arrayBuffer()
        const { user, system } = process.cpuUsage(before)
        best = Math.min(best, user + system)
      }
      times.push(best)
      if (size === SMALL) {
        await started.close()
        await vendor.close()
      }
    }

    // Processor time, because others use the machine too. Ten times the size: linear work takes about 10 times as much, up to
    // 35 where the small one stays in the processor's caches; quadratic work takes 100.
    expect(times[1]! / times[0]!).toBeLessThan(60)
  })
})

describe('a picture of 20 MB in a request', () => {
  /** A PNG with so much behind its end that its base64 has this length. */
  function paddedPng(length: number): string {
    const bytes = Buffer.alloc((length / 4) * 3, PATTERN)
    bytes.set(png(64))
    return bytes.toString('base64')
  }

  const small = ANSWERS['a generation']!('aGVsbG8=')
  const smallInteraction = ANSWERS['an interaction']!('aGVsbG8=')
  const inputs = {
    'an edit in JSON': {
      pieces: small.pieces,
      path: EDITS,
      body: (picture: string) => editBody('a kettle', { images: [{ image_url: `data:image/png;base64,${picture}` }] }),
    },
    'an interaction': {
      pieces: smallInteraction.pieces,
      path: IMAGES,
      body: (picture: string) =>
        interaction([
          { type: 'text', text: 'a kettle' },
          { type: 'image', mime_type: 'image/png', data: picture },
        ]),
    },
  } as const

  test.each(Object.entries(inputs))(
    '%s reaches the vendor whole',
    { timeout: 60_000 },
    async (_name, { pieces, path, body }) => {
      await start(WHOLE, pieces)
      const picture = paddedPng(LARGE)

      const answer = await started.post(path, body(picture))
      await answer.arrayBuffer()

      expect(answer.status).toBe(200)
      expect(vendor.calls).toHaveLength(1)
      expect(vendor.calls[0]?.byteLength).toBeGreaterThan(LARGE)
      expect((await started.account()).held).toBe(0n)
    },
  )

  test('a form with a file of 20 MB reaches the vendor whole', { timeout: 60_000 }, async () => {
    await start(WHOLE, small.pieces)
    const bytes = new Uint8Array(Buffer.alloc(LARGE, PATTERN))
    bytes.set(png(64))
    const form = new FormData()
    form.append('model', 'gp-image-2')
    form.append('prompt', 'a kettle')
    form.append('image', new Blob([bytes], { type: 'image/png' }), 'large.png')

    const answer = await fetch(`${started.url}${EDITS}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}` },
      body: form,
    })
    await answer.arrayBuffer()

    expect(answer.status).toBe(200)
    expect(vendor.calls[0]?.byteLength).toBeGreaterThan(LARGE)
  })

  test('many of them leave no memory behind', { timeout: 60_000 }, async () => {
    const { pieces, path, body } = inputs['an interaction']
    await start(WHOLE, pieces)
    const request = body(paddedPng(LARGE))
    const send = async (count: number): Promise<void> => {
      for (let round = 0; round < count; round++) await (await started.post(path, request)).arrayBuffer()
    }
    await send(2)
    const before = await usedBytes()
    await send(6)
    const after = await usedBytes()

    expect(after - before).toBeLessThan(LARGE)
  })
})

test('the digest of a relayed answer is that of the vendor', { timeout: 60_000 }, async () => {
  const { type, pieces, path, body } = ANSWERS['a generation']!(base64(LARGE))
  await start(type, pieces)

  const answer = await started.post(path, body)
  const bytes = Buffer.from(await answer.arrayBuffer())

  expect(createHash('sha256').update(bytes).digest('hex')).toBe(
    createHash('sha256').update(pieces.join('')).digest('hex'),
  )
})
