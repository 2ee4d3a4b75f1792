import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { Transport, TransportControl, TransportFailure } from '../../src/transport/transport.ts'
import { undiciTransport } from '../../src/transport/undici.ts'
import { deferred } from '../adapters/support/deferred.ts'

const MEBIBYTE = 1024 * 1024

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function serve(listener: RequestListener): Promise<{ readonly origin: string; readonly server: Server }> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

function openTransport(): Transport {
  const transport = undiciTransport()
  cleanups.push(() => transport.close())
  return transport
}

interface Sent {
  readonly control: TransportControl
  /** The status of the answer once it is whole, or the failure. */
  readonly ending: Promise<number | TransportFailure>
}

function send(transport: Transport, origin: string, body: readonly Uint8Array[], headers: string[] = []): Sent {
  const ending = deferred<number | TransportFailure>()
  let status = 0
  const control = transport.send(
    { origin, path: '/', method: 'POST', headers, body, firstByteTimeoutMs: 10_000, idleTimeoutMs: 10_000 },
    {
      onHead(value) {
        status = value
      },
      onData: () => undefined,
      onEnd: () => ending.resolve(status),
      onFailure: (failure) => ending.resolve(failure),
    },
  )
  return { control, ending: ending.promise }
}

/** A body of many pieces that counts how many of them were asked for. */
class CountedPieces extends Array<Uint8Array> {
  taken = 0

  override *[Symbol.iterator](): ArrayIterator<Uint8Array> {
    for (let index = 0; index < this.length; index++) {
      this.taken++
      yield this[index] as Uint8Array
    }
  }
}

function manyPieces(): CountedPieces {
  const pieces = new CountedPieces()
  for (let count = 0; count < 64; count++) pieces.push(Buffer.alloc(MEBIBYTE, count))
  return pieces
}

interface Arrived {
  readonly lengths: string[]
  readonly encoding: string | undefined
  readonly body: string
}

/** A server that answers 200 and keeps what arrived. */
async function recordingServer(): Promise<{ origin: string; arrived: Arrived[]; server: Server }> {
  const arrived: Arrived[] = []
  const listening = await serve(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    const lengths = request.rawHeaders.filter(
      (_, at, all) => all[at - 1]?.toLowerCase() === 'content-length' && at % 2 === 1,
    )
    arrived.push({ lengths, encoding: request.headers['transfer-encoding'], body })
    response.end('ok')
  })
  return { ...listening, arrived }
}

const pieces = (...texts: string[]): Uint8Array[] => texts.map((text) => Buffer.from(text))

const LARGE = 'a'.repeat(40_000)

test.each<[string, Uint8Array[], string[], string]>([
  ['several pieces, empty ones among them', pieces('', 'one', '', 'two', 'ü', ''), [], 'onetwoü'],
  ['one piece', pieces('one'), [], 'one'],
  ['plain byte arrays', [new Uint8Array([97, 98]), new Uint8Array([99]).subarray(0, 1)], [], 'abc'],
  ['a length among the headers', pieces('one', 'two'), ['Content-Length', '6'], 'onetwo'],
  ['no pieces', [], [], ''],
  ['no pieces, and a length among the headers', [], ['content-length', '0'], ''],
  ['empty pieces only', pieces('', ''), [], ''],
  ['large pieces, which are not joined', pieces(LARGE, '', 'ü'), [], `${LARGE}ü`],
  ['large plain byte arrays', [new Uint8Array(40_000).fill(97), new Uint8Array([98])], [], `${LARGE}b`],
  ['large pieces with a length', pieces(LARGE, 'b'), ['Content-Length', '40001'], `${LARGE}b`],
])('a body of %s arrives as one, with its length', async (_title, body, headers, expected) => {
  const { origin, arrived } = await recordingServer()

  expect(await send(openTransport(), origin, body, headers).ending).toBe(200)
  expect(arrived).toEqual([{ lengths: [String(Buffer.byteLength(expected))], encoding: undefined, body: expected }])
})

test('a length among the headers that is not that of the pieces fails the call before a byte has left', async () => {
  const { origin, arrived } = await recordingServer()
  const transport = openTransport()

  expect(await send(transport, origin, pieces('one', 'two'), ['content-length', '5']).ending).toMatchObject({
    phase: 'connect',
    kind: 'protocol',
  })
  expect(await send(transport, origin, pieces('one')).ending).toBe(200)
  expect(arrived.map(({ body }) => body)).toEqual(['one'])
})

test('the same pieces can be sent again, also on the same connection', async () => {
  const { origin, arrived, server } = await recordingServer()
  let connections = 0
  server.on('connection', () => connections++)
  const transport = openTransport()
  const body = pieces('one', 'two')
  for (let count = 0; count < 3; count++) {
    expect(await send(transport, origin, body).ending).toBe(200)
    // A connection is free again one turn of the event loop after its answer.
    await new Promise((resolve) => setImmediate(resolve))
  }

  expect(arrived.map((each) => each.body)).toEqual(['onetwo', 'onetwo', 'onetwo'])
  expect(connections).toBe(1)
})

test('a vendor that reads slowly holds the pieces back', async () => {
  const arrived = deferred<IncomingMessage>()
  const { origin } = await serve((request, response) => {
    arrived.resolve(request)
    request.on('end', () => response.end('ok'))
  })
  const other = await recordingServer()
  const transport = openTransport()
  const body = manyPieces()
  const slow = send(transport, origin, body)
  const request = await arrived.promise
  // Another large call gets through meanwhile, so there was time enough to send all of the first.
  expect(await send(transport, other.origin, manyPieces()).ending).toBe(200)
  const takenWhileHeldBack = body.taken
  let received = 0
  request.on('data', (chunk: Buffer) => {
    received += chunk.length
  })

  expect(await slow.ending).toBe(200)
  expect(takenWhileHeldBack).toBeLessThan(body.length)
  expect(received).toBe(64 * MEBIBYTE)
})

test('giving a call up in the middle of its body closes the connection, and takes no more pieces', async () => {
  const arrived = deferred<IncomingMessage>()
  const { origin } = await serve((request) => arrived.resolve(request))
  const transport = openTransport()
  const body = manyPieces()
  const made = send(transport, origin, body)
  const request = await arrived.promise
  const closed = deferred<void>()
  request.socket.on('close', () => closed.resolve())
  made.control.abort()

  expect(await made.ending).toMatchObject({ phase: 'sent', kind: 'aborted' })
  // The server finds out when it reads on: the body ends too soon.
  request.on('error', () => undefined).resume()
  await closed.promise
  expect(body.taken).toBeLessThan(body.length)
  const next = await recordingServer()
  expect(await send(transport, next.origin, pieces('next')).ending).toBe(200)
})

test('an answer that comes before the body was sent is an answer', async () => {
  const { origin } = await serve((_request, response) => void response.writeHead(413).end('too large'))
  const transport = openTransport()

  expect(await send(transport, origin, manyPieces()).ending).toBe(413)
  // The half-used connection is not used again.
  expect(await send(transport, origin, pieces('one')).ending).toBe(413)
})

test('a connection that breaks in the middle of the body fails the call once', async () => {
  const { origin } = await serve((request) => request.once('data', () => request.socket.resetAndDestroy()))

  expect(await send(openTransport(), origin, manyPieces()).ending).toMatchObject({ phase: 'sent', kind: 'reset' })
})
