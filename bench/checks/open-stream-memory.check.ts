import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { nodeHandler } from '../../src/adapters/node.ts'
import type { ByteSink } from '../../src/core/exchange.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import type { Transport, TransportFailure } from '../../src/transport/transport.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { TEST_KEY, TEST_MODELS } from '../../test/support/start-gateway.ts'
import { usedBytes } from './used-bytes.ts'

const PROMPT_BYTES = 16 * 1024 * 1024

const FIRST_EVENT = Buffer.from(
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'gpt-5.4',
    choices: [{ index: 0, delta: { role: 'assistant', content: 'Well' }, finish_reason: null }],
  })}\n\n`,
)

const ABORTED: TransportFailure = { phase: 'body', kind: 'aborted', error: new Error('aborted') }

/** Returns a vendor that begins to answer, and stores none of the request. */
function begunTransport(): Transport & { readonly asked: number } {
  let asked = 0
  return {
    get asked() {
      return asked
    },
    send(_request, handler) {
      asked += 1
      queueMicrotask(() => {
        handler.onHead(200, { 'content-type': 'text/event-stream' })
        handler.onData(FIRST_EVENT)
      })
      return { abort: () => handler.onFailure(ABORTED), pause() {}, resume() {} }
    },
    async close() {},
  }
}

function longPrompt(): Buffer {
  const messages = [{ role: 'user', content: 'signal '.repeat(PROMPT_BYTES / 7) }]
  return Buffer.from(JSON.stringify({ model: 'chat-relayed', stream: true, max_tokens: 5, messages }))
}

test('an open stream keeps nothing of its prompt, however long the model speaks', async () => {
  const transport = begunTransport()
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'sk-vendor' })],
    models: [{ ...TEST_MODELS[0], limits: { contextTokens: 100_000_000, maxOutputTokens: 2_000 } }],
    keys: [{ key: TEST_KEY, account: 'acct_memory' }],
    billing: 'off',
    limits: { tokensPerMinute: 1_000_000_000 },
    transport,
  })
  const server = createServer(nodeHandler(gateway)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const before = await usedBytes()

  const call = request({
    port: (server.address() as AddressInfo).port,
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TEST_KEY}` },
  })
  call.end(longPrompt())
  const [response] = await once(call, 'response')
  const [chunk] = await once(response, 'data')
  expect(String(chunk)).toContain('Well')

  expect(transport.asked).toBe(1)
  // Buffers are swept a little after the collection.
  await expect.poll(async () => (await usedBytes()) - before).toBeLessThan(PROMPT_BYTES / 4)
  call.destroy()
  await gateway.close({ drainMs: 0 })
  server.close()
})

const STREAMS = 1_000
/**
 * Bytes that the gateway itself keeps, without sockets: 8,400, of which the frames of the `async` stages take about 800, and the learned
 * event of the reader about 1,000. A stream with its sockets takes about 40,000.
 */
const MAX_BYTES_OF_A_STREAM = 8_900

test('an open stream keeps few bytes besides its connections', async () => {
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'sk-vendor' })],
    models: [{ ...TEST_MODELS[0], limits: { contextTokens: 100_000, maxOutputTokens: 2_000 } }],
    prices: {
      currency: 'USD',
      prices: (['input_token', 'output_token'] as const).map((meter) => {
        return { model: 'chat-relayed', meter, amount: '1', per: 1_000_000 }
      }),
    },
    keys: [{ key: TEST_KEY, account: 'acct_memory' }],
    limits: { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 10_000 },
    transport: begunTransport(),
  })
  const body = Buffer.from(
    JSON.stringify({ model: 'chat-relayed', stream: true, max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }),
  )
  const open = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const headers: Readonly<Record<string, string>> = {
        'content-type': 'application/json',
        authorization: `Bearer ${TEST_KEY}`,
      }
      const sink: ByteSink = {
        closed: false,
        head() {},
        write() {
          resolve()
          return true
        },
        end: (bytes) => reject(new Error(`it ended: ${String(bytes)}`)),
        destroy() {},
        onDrain() {},
        onClose() {},
      }
      gateway.handle(
        {
          method: 'POST',
          path: '/v1/chat/completions',
          query: '',
          header: (name) => headers[name],
          readBody: (_limit, listener) => listener(undefined, [body]),
        },
        sink,
      )
    })
  const openMany = () => Promise.all(Array.from({ length: STREAMS }, open))

  await gateway.start()
  await gateway.accounts.credit('acct_memory', '1000')
  await openMany()
  const before = await usedBytes()
  await openMany()
  const bytesOfAStream = ((await usedBytes()) - before) / STREAMS

  expect(bytesOfAStream).toBeLessThan(MAX_BYTES_OF_A_STREAM)
  await gateway.close({ drainMs: 0 })
})
