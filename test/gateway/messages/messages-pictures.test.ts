import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

// At this vendor the model accepts only bytes, so the gateway fetches the URL.
const MODELS = [{ id: 'reads-bytes', kind: 'chat', vendor: 'gemini', upstream: 'gemini-2.0-flash' }] as const
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

let started: StartedGateway
let pictures: Server
let fetched: string[]

beforeEach(async () => {
  fetched = []
  pictures = createServer((request, response) => {
    fetched.push(request.url ?? '')
    if (request.url !== '/a.png') response.statusCode = 404
    response.setHeader('content-type', 'image/png')
    response.end(PNG)
  })
  await new Promise<void>((resolve) => pictures.listen(0, '127.0.0.1', resolve))
  started = await startGateway({ models: [...MODELS], billing: 'off' })
})
afterEach(async () => {
  await started.close()
  await new Promise((resolve) => pictures.close(resolve))
})

const address = (path: string): string => `http://127.0.0.1:${(pictures.address() as AddressInfo).port}${path}`
const picture = (path: string) => ({ type: 'image', source: { type: 'url', url: address(path) } })

function ask(path: string, content: readonly object[]): Promise<Response> {
  const messages = [{ role: 'user', content }]
  return started.post(path, { model: 'reads-bytes', max_tokens: 50, messages }, { 'x-api-key': TEST_KEY })
}

test.each(['/v1/messages', '/v1/messages/count_tokens'])(
  'names an image that cannot be fetched by its place in the request on %s',
  async (path) => {
    const response = await ask(path, [{ type: 'text', text: 'What is it?' }, picture('/missing.png')])

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: expect.stringMatching(/^messages\[0\]\.content\[1\]\.source\.url: /),
      },
    })
  },
)

test('names an image in the result of a tool by its place, too', async () => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [picture('/missing.png')] }
  const messages = [
    { role: 'user', content: 'Look.' },
    { role: 'assistant', content: [call] },
    { role: 'user', content: [result] },
  ]
  const response = await started.post('/v1/messages', { model: 'reads-bytes', max_tokens: 50, messages })

  expect(await response.json()).toMatchObject({
    error: { message: expect.stringMatching(/^messages\[2\]\.content\[0\]\.content\[0\]\.source\.url: /) },
  })
})

test('sends images that can be fetched to the vendor as bytes, each once', async () => {
  const response = await ask('/v1/messages', [picture('/a.png'), { type: 'text', text: 'And' }, picture('/a.png')])

  expect(response.status).toBe(200)
  expect(fetched).toEqual(['/a.png', '/a.png'])
  const sent = JSON.stringify(started.sandbox.requests.at(-1)?.body)
  expect(sent).toContain(PNG.toString('base64'))
  expect(sent).not.toContain('/a.png')
})
