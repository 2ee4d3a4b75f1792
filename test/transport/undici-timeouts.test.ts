import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Transport, TransportRequest } from '../../src/transport/transport.ts'
import { undiciTransport } from '../../src/transport/undici.ts'

const TIMEOUT_MS = 800
/** The vendor's silence: as long as it may be, less what a busy machine adds. */
const SILENCE_MS = 700
/** Calls begin at different moments between two of undici's looks at its timers, which lie 499 ms apart. */
const BEGIN_AT_MS = [0, 100, 200, 300, 400, 480]

let server: Server
let transport: Transport

beforeEach(() => {
  transport = undiciTransport()
})
afterEach(async () => {
  await transport.close()
  server.closeAllConnections()
  await new Promise<void>((resolve) => server.close(() => resolve()))
})

async function listen(): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function callAt(delayMs: number, origin: string): Promise<string> {
  return new Promise((resolve) => {
    const request: TransportRequest = {
      origin,
      path: '/',
      method: 'GET',
      headers: [],
      body: null,
      firstByteTimeoutMs: TIMEOUT_MS,
      idleTimeoutMs: TIMEOUT_MS,
    }
    setTimeout(() => {
      transport.send(request, {
        onHead() {},
        onData() {},
        onEnd: () => resolve('answered'),
        onFailure: ({ phase, kind }) => resolve(`${phase} ${kind}`),
      })
    }, delayMs)
  })
}

test.each([
  ['before the headers', false],
  ['in the body', true],
])('no silence %s is cut short, whenever it begins', async (_name, hasHeaders) => {
  server = createServer((_request, response) => {
    if (hasHeaders) {
      response.writeHead(200, { 'content-length': '2' })
      response.write('o')
    }
    setTimeout(() => response.end(hasHeaders ? 'k' : 'ok'), SILENCE_MS)
  })
  const origin = await listen()

  const endings = await Promise.all(BEGIN_AT_MS.map((delayMs) => callAt(delayMs, origin)))

  expect(endings).toEqual(BEGIN_AT_MS.map(() => 'answered'))
})
