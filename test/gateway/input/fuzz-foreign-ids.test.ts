import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

/** A vendor that knows no file and no container, and answers everything else. */
let vendor: Server
let started: StartedGateway

beforeEach(async () => {
  vendor = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const id = /(?:file|container)_bogus/.exec(Buffer.concat(chunks).toString())?.[0]
      const error = {
        type: 'not_found_error',
        message: `${id?.startsWith('file') ? 'File' : 'Container'} not found: ${id}`,
      }
      const message = {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-6', stop_reason: 'end_turn' },
        ...{ content: [{ type: 'text', text: 'hi' }], usage: { input_tokens: 5, output_tokens: 1 } },
      }
      response.writeHead(id === undefined ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify(id === undefined ? message : { type: 'error', error }))
    })
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  const baseURL = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
  started = await startGateway({
    vendors: [anthropic({ apiKey: 'vendor-key-canary-7f3a', baseURL, allowVendorObjects: true })],
  })
})
afterEach(async () => {
  await started.close()
  vendor.closeAllConnections()
  vendor.close()
})

const ask = (content: unknown, rest: object = {}) =>
  started.post('/v1/messages', {
    model: 'cl-sonnet-4-6',
    max_tokens: 10,
    messages: [{ role: 'user', content }],
    ...rest,
  })

test.each([
  ['a file', [{ type: 'document', source: { type: 'file', file_id: 'file_bogus' } }], {}],
  ['a container', 'hello', { container: 'container_bogus' }],
])(
  'reports %s that does not exist to its caller, and keeps the model available to others',
  async (_what, content, rest) => {
    const refused = await ask(content, rest)
    const text = await refused.text()
    const next = await ask('hello')
    await next.arrayBuffer()

    expect(refused.status, text).toBe(404)
    expect(text).toMatch(/not found: (file|container)_bogus/)
    expect(next.status).toBe(200)
  },
)
