import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { memoryTransport } from '../../src/testing/sandbox/transports.ts'
import type { StreamedBody, Transport, TransportFailure } from '../../src/transport/transport.ts'
import { undiciTransport } from '../../src/transport/undici.ts'
import { deferred } from '../adapters/support/deferred.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function send(transport: Transport, origin: string, body: StreamedBody): Promise<string | TransportFailure> {
  const ending = deferred<string | TransportFailure>()
  let text = ''
  transport.send(
    { origin, path: '/', method: 'POST', headers: [], body, firstByteTimeoutMs: 10_000, idleTimeoutMs: 10_000 },
    {
      onHead: () => undefined,
      onData: (chunk) => {
        text += Buffer.from(chunk).toString()
      },
      onEnd: () => ending.resolve(text),
      onFailure: (failure) => ending.resolve(failure),
    },
  )
  return ending.promise
}

async function* pieces(count: number, byteLength: number, taken = { count: 0 }): AsyncIterable<Uint8Array> {
  for (let piece = 0; piece < count; piece++) {
    taken.count++
    yield Buffer.alloc(byteLength, String(piece % 10))
  }
}

async function* broken(): AsyncIterable<Uint8Array> {
  yield Buffer.alloc(10)
  throw new Error('the store is gone')
}

describe('a body that is read while it is sent', () => {
  test('arrives whole, with its length, and is read no faster than it is taken', async () => {
    const isRead = deferred<void>()
    const taken = { count: 0 }
    const origin = await serve(async (request, response) => {
      request.pause()
      await isRead.promise
      let received = 0
      for await (const chunk of request) received += (chunk as Buffer).byteLength
      response.end(`${request.headers['content-length']} ${received}`)
    })
    const transport = undiciTransport()
    cleanups.push(() => transport.close())
    const sent = send(transport, origin, { byteLength: 64 * 2 ** 20, content: pieces(64, 2 ** 20, taken) })
    const before = await settledCount(taken)
    expect(before).toBeLessThan(40)
    isRead.resolve()

    expect(await sent).toBe(`${64 * 2 ** 20} ${64 * 2 ** 20}`)
  })

  test.each([
    ['breaks off', { byteLength: 20, content: broken() }],
    ['is longer than it said', { byteLength: 5, content: pieces(2, 5) }],
    ['is shorter than it said', { byteLength: 20, content: pieces(2, 5) }],
  ])('fails the call when it %s', async (_, body) => {
    const origin = await serve((request, response) => request.resume().on('end', () => response.end('taken')))
    const transport = undiciTransport()
    cleanups.push(() => transport.close())

    expect(await send(transport, origin, body)).toMatchObject({ error: expect.any(Error) })
  })

  test('arrives in process too', async () => {
    const transport = memoryTransport((call, connection) => {
      connection.head(200, [])
      connection.write(call.bytes)
      connection.end()
    }, systemClock)

    expect(await send(transport, 'http://any', { byteLength: 6, content: pieces(3, 2) })).toBe('001122')
    expect(await send(transport, 'http://any', { byteLength: 20, content: broken() })).toMatchObject({
      error: new Error('the store is gone'),
    })
  })
})

/** The count once it has stopped growing. */
async function settledCount(taken: { readonly count: number }): Promise<number> {
  for (let before = -1; ; ) {
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (taken.count === before) return before
    before = taken.count
  }
}
