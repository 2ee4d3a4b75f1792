import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'

let started: StartedGateway
let pictures: Server
let origin: string
let open = 0
let mostOpen = 0
let served = 0
let byteLength = 1_000

beforeAll(async () => {
  pictures = createServer((_request, response) => {
    open++
    served++
    mostOpen = Math.max(mostOpen, open)
    response.on('close', () => open--)
    response.setHeader('content-type', 'image/png')
    // Later than one turn, so that fetches meet.
    setImmediate(() => response.end(Buffer.alloc(byteLength)))
  })
  await new Promise<void>((resolve) => pictures.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(pictures.address() as AddressInfo).port}`
})
afterAll(() => new Promise<void>((resolve) => pictures.close(() => resolve())))
beforeEach(async () => {
  started = await startGateway({
    models: [{ id: 'old-eyes', kind: 'chat', vendor: 'gemini', upstream: 'gemini-2.0-flash' }],
    billing: 'off',
  })
  open = mostOpen = served = 0
  byteLength = 1_000
})
afterEach(() => started.close())

function withPictures(count: number): Record<string, unknown> {
  const images = Array.from({ length: count }, (_, index) => ({
    type: 'image_url',
    image_url: { url: `${origin}/${index}.png` },
  }))
  return {
    model: 'old-eyes',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'what is it?' }, ...images] }],
  }
}

test('fetches images by URL a few at a time, and sends them in their order', async () => {
  const answer = await started.post(CHAT, withPictures(20))

  expect(answer.status).toBe(200)
  expect(served).toBe(20)
  expect(mostOpen).toBeLessThanOrEqual(4)
  const sent = JSON.stringify(started.sandbox.requests[0]?.body)
  expect(sent.match(/inline_?data/gi)).toHaveLength(20)
})

test('rejects more images than one request may have fetched before fetching any', async () => {
  const answer = await started.post(CHAT, withPictures(21))

  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({ error: { param: 'messages[0].content[21].image_url.url' } })
  expect(served).toBe(0)
})

test('rejects images that are too large together without fetching the rest', async () => {
  byteLength = 12 * 1024 * 1024

  const answer = await started.post(CHAT, withPictures(20))

  expect(answer.status).toBe(400)
  expect(served).toBeLessThan(12)
})

test('treats a length that is not a number as an invalid field, not as a fault of the gateway', async () => {
  const answer = await started.post(CHAT, { model: 'old-eyes', messages: { length: { toString: 1 } } })

  expect(answer.status).toBe(400)
})

test('an id of megabytes is not repeated to its sender', async () => {
  const answer = await started.post(CHAT, { model: 'x'.repeat(1_000_000), messages: [] })

  expect(answer.status).toBe(404)
  expect((await answer.text()).length).toBeLessThan(1_000)
})
