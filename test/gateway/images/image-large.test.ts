import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { EDITS, editBody, IMAGES, interaction } from './image-requests.ts'
import { type ScriptedVendor, scriptedVendor } from './image-vendor.ts'
import { ANSWERS, base64, paddedPng, WHOLE } from './large-images.ts'

const MEGABYTE = 1024 * 1024
const LARGE = 20 * MEGABYTE

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

describe('an image of 20 MB in an answer', () => {
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
})

describe('an image of 20 MB in a request', () => {
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
    const bytes = new Uint8Array(Buffer.from(paddedPng(LARGE + LARGE / 2), 'base64'))
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
