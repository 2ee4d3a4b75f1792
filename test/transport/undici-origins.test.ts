import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Transport } from '../../src/transport/transport.ts'
import { undiciTransport } from '../../src/transport/undici.ts'

let server: Server
let transport: Transport

beforeEach(async () => {
  // On a slow machine no connection is to end for having waited.
  server = createServer({ keepAliveTimeout: 60_000 }, (_request, response) => response.end('ok'))
  await new Promise<void>((resolve) => server.listen(0, resolve))
  transport = undiciTransport()
})
afterEach(async () => {
  await transport.close()
  server.closeAllConnections()
  await new Promise<void>((resolve) => server.close(() => resolve()))
})

function call(origin: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    transport.send(
      { origin, path: '/', method: 'GET', headers: [], body: null, firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 },
      {
        onHead() {},
        onData: (chunk) => chunks.push(chunk),
        onEnd: () => resolve(Buffer.concat(chunks).toString()),
        onFailure: ({ error }) => reject(error),
      },
    )
  })
}

test('connections to ever new origins do not pile up, and an origin that was dropped is reached again', async () => {
  const { port } = server.address() as AddressInfo
  // Every address of 127.0.0.0/8 is this machine, so that each is an origin of its own.
  const origins = Array.from({ length: 400 }, (_, index) => `http://127.1.${index >> 8}.${index & 255}:${port}`)
  let most = 0

  for (const origin of origins) {
    expect(await call(origin)).toBe('ok')
    const open = await new Promise<number>((resolve, reject) =>
      server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
    )
    most = Math.max(most, open)
  }

  expect(most).toBeGreaterThan(200)
  expect(most).toBeLessThan(300)
  expect(await call(origins[0]!)).toBe('ok')
})
