import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { CREDIT } from '../gateway/images/image-error-shapes.ts'
import {
  EDITS,
  editBody,
  everyShape,
  generation,
  IMAGES,
  interaction,
  multimodal,
} from '../gateway/images/image-requests.ts'
import { scriptedVendor } from '../gateway/images/image-vendor.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'

let elsewhere: Server
let elsewhereUrl: string
let arrived: string[]
let started: StartedGateway

beforeEach(async () => {
  arrived = []
  elsewhere = createServer((request, response) => {
    arrived.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`)
    response.end('{}')
  })
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  elsewhereUrl = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
})
afterEach(async () => {
  await started.close()
  elsewhere.closeAllConnections()
  await new Promise<void>((resolve) => elsewhere.close(() => resolve()))
})

describe.each(everyShape('a paper boat'))('in the shape %s', (_shape, path, body) => {
  test('a redirect by the vendor is not followed, costs nothing and is not tried again', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'redirect', location: `${elsewhereUrl}/steal` })

    const answer = await started.post(path, body)
    await answer.arrayBuffer()

    expect(answer.status).toBe(502)
    expect(arrived).toEqual([])
    expect(started.sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('a caller chooses neither the vendor host nor its key', async () => {
    started = await startGateway()
    const evil = { base_url: elsewhereUrl, api_base: elsewhereUrl, api_key: 'stolen', endpoint: elsewhereUrl }

    const answer = await started.post(path, { ...body, ...evil }, { 'x-base-url': elsewhereUrl })
    await answer.arrayBuffer()

    expect([200, 400]).toContain(answer.status)
    expect(arrived).toEqual([])
    expect(JSON.stringify(started.sandbox.requests[0]?.headers)).toContain('vendor-key-canary')
  })
})

describe('an address in the answer of a vendor', () => {
  const answerOf = (
    url: string,
  ): Readonly<Record<string, { readonly path: string; readonly body: object; readonly answer: object }>> => ({
    multimodal: {
      path: IMAGES,
      body: multimodal('a boat'),
      answer: {
        request_id: 'r',
        output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: [{ image: url }] } }] },
        usage: { image_count: 1, width: 1024, height: 1024 },
      },
    },
    interactions: {
      path: IMAGES,
      body: interaction('a mug'),
      answer: {
        id: 'v1_Q2FmZQ',
        status: 'completed',
        steps: [{ type: 'model_output', content: [{ type: 'image', mime_type: 'image/png', uri: url }] }],
        usage: { total_input_tokens: 2, total_output_tokens: 1120 },
      },
    },
    edits: { path: EDITS, body: editBody('more light', { model: 'de-2' }), answer: { created: 1, data: [{ url }] } },
    generations: { path: IMAGES, body: generation('a boat'), answer: { created: 1, data: [{ url }] } },
  })

  test.each(['multimodal', 'interactions', 'edits', 'generations'])(
    'in the shape %s reaches the caller as it is, and the gateway never calls it',
    async (shape) => {
      const url = `${elsewhereUrl}/latest/meta-data?signature=a%2Fb`
      const { path, body, answer } = answerOf(url)[shape]!
      const vendor = await scriptedVendor('application/json', [JSON.stringify(answer)])
      const connection = { apiKey: 'vendor-key', baseURL: vendor.origin }
      const own = openai({ ...connection, allowVendorObjects: true })
      started = await startGateway({ vendors: [own, gemini(connection), dashscope(connection)] })

      const response = await started.post(path, shape === 'edits' ? { ...body, images: [{ file_id: 'file-1' }] } : body)
      const text = await response.text()
      await vendor.close()

      expect(response.status).toBe(200)
      expect(text).toContain(JSON.stringify(url))
      expect(arrived).toEqual([])
    },
  )
})

describe('a private address in a request is refused before anything is sent', () => {
  const ADDRESSES = [
    'https://127.0.0.1/a.png',
    'https://169.254.169.254/latest',
    'https://[::1]/a.png',
    'https://10.1.2.3/a.png',
  ]
  const PLACES = {
    multimodal: (url: string) => [
      IMAGES,
      { model: 'qw-image-edit', input: { messages: [{ role: 'user', content: [{ text: 'x' }, { image: url }] }] } },
    ],
    interactions: (url: string) => [
      IMAGES,
      interaction([
        { type: 'image', mime_type: 'image/png', uri: url },
        { type: 'text', text: 'x' },
      ]),
    ],
    edits: (url: string) => [EDITS, editBody('x', { images: [{ image_url: url }] })],
    'edits, as a mask': (url: string) => [EDITS, editBody('x', { mask: { image_url: url } })],
  } as const

  test.each(Object.entries(PLACES).flatMap(([shape, place]) => ADDRESSES.map((url) => [shape, url, place] as const)))(
    'in the shape %s: %s',
    async (_shape, url, place) => {
      started = await startGateway({ allowPrivateUrls: false })
      const [path, body] = place(url)

      const answer = await started.post(path as string, body)

      expect(answer.status).toBe(400)
      expect((await answer.json()).error.message).toMatch(/private/)
      expect(started.sandbox.requests).toEqual([])
      expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    },
  )
})
