import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import {
  type AddressInfo,
  createServer as createSocketServer,
  type LookupFunction,
  type Server,
  type Socket,
} from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import type { Transport, TransportControl, TransportFailure, TransportRequest } from '../../src/transport/transport.ts'
import { type UndiciTransportOptions, undiciTransport } from '../../src/transport/undici.ts'
import { firstHeader, type HeaderMap } from '../../src/wire/headers.ts'
import { deferred } from '../adapters/support/deferred.ts'

interface Listening {
  readonly origin: string
  readonly sockets: Socket[]
}

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function listen(server: Server): Promise<Listening> {
  const sockets: Socket[] = []
  server.on('connection', (socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

const serve = (listener: RequestListener): Promise<Listening> => listen(createServer(listener))

function transportOf(options?: UndiciTransportOptions): Transport {
  const transport = undiciTransport(options)
  cleanups.push(() => transport.close())
  return transport
}

interface Call {
  readonly control: TransportControl
  /** Every callback, in order. */
  readonly log: string[]
  readonly chunks: Buffer[]
  readonly head: Promise<{ status: number; headers: HeaderMap }>
  /** The failure, or undefined when the call ended well. */
  readonly ending: Promise<TransportFailure | undefined>
}

function call(transport: Transport, origin: string, request: Partial<TransportRequest> = {}): Call {
  const log: string[] = []
  const chunks: Buffer[] = []
  const head = deferred<{ status: number; headers: HeaderMap }>()
  const ending = deferred<TransportFailure | undefined>()
  const control = transport.send(
    {
      origin,
      path: '/v1/chat?x=1',
      method: 'POST',
      headers: ['content-type', 'application/json', 'x-own', 'a'],
      body: '{"a":1}',
      firstByteTimeoutMs: 5_000,
      idleTimeoutMs: 5_000,
      ...request,
    },
    {
      onHead(status, headers) {
        log.push(`head ${status}`)
        head.resolve({ status, headers })
      },
      onData(chunk) {
        log.push('data')
        chunks.push(Buffer.from(chunk))
      },
      onEnd() {
        log.push('end')
        ending.resolve(undefined)
      },
      onFailure(failure) {
        log.push(`failure ${failure.phase} ${failure.kind}`)
        ending.resolve(failure)
      },
    },
  )
  log.push('sent')
  return { control, log, chunks, head: head.promise, ending: ending.promise }
}

test('a call carries its path, method, headers and body, and its answer comes back', async () => {
  let seen: unknown
  const { origin } = await serve((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { method, url, headers } = request
      seen = { method, url, own: headers['x-own'], length: headers['content-length'], body: Buffer.concat(parts) }
      response.writeHead(201, { 'X-Vendor': 'b', 'set-cookie': ['c=1', 'd=2'] }).end('answer')
    })
  })
  const made = call(transportOf(), origin)
  const { status, headers } = await made.head
  const failure = await made.ending

  expect(failure).toBeUndefined()
  expect(seen).toEqual({ method: 'POST', url: '/v1/chat?x=1', own: 'a', length: '7', body: Buffer.from('{"a":1}') })
  expect(status).toBe(201)
  expect(firstHeader(headers, 'x-vendor')).toBe('b')
  expect(firstHeader(headers, 'set-cookie')).toBe('c=1')
  expect(firstHeader(headers, 'x-absent')).toBeUndefined()
  expect(Buffer.concat(made.chunks).toString()).toBe('answer')
  expect(made.log.at(-1)).toBe('end')
})

test('a connection is kept and used again', async () => {
  const { origin, sockets } = await serve((_request, response) => response.end('ok'))
  const transport = transportOf()
  for (let count = 0; count < 5; count++) {
    await call(transport, origin).ending
    // A connection is free again one turn of the event loop after its answer.
    await new Promise((resolve) => setImmediate(resolve))
  }

  expect(sockets).toHaveLength(1)
})

test('calls at the same time do not wait for each other', async () => {
  const waiting: (() => void)[] = []
  const all = deferred<void>()
  const { origin } = await serve((_request, response) => {
    waiting.push(() => response.end('ok'))
    if (waiting.length === 20) all.resolve()
  })
  const transport = transportOf()
  const calls = Array.from({ length: 20 }, () => call(transport, origin))
  await all.promise
  for (const answer of waiting) answer()

  expect(await Promise.all(calls.map((made) => made.ending))).toEqual(Array.from({ length: 20 }, () => undefined))
})

test('a redirect is an answer like any other', async () => {
  const paths: (string | undefined)[] = []
  const { origin } = await serve((request, response) => {
    paths.push(request.url)
    response.writeHead(307, { location: '/elsewhere' }).end()
  })
  const made = call(transportOf(), origin)
  await made.ending

  expect(made.log).toContain('head 307')
  expect(paths).toEqual(['/v1/chat?x=1'])
})

test('a compressed body is left as it is', async () => {
  const zipped = gzipSync('answer')
  const { origin } = await serve((_request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped)
  })
  const made = call(transportOf(), origin)
  await made.ending

  expect(Buffer.concat(made.chunks)).toEqual(zipped)
})

test('interim answers are passed over', async () => {
  const { origin } = await serve((_request, response) => {
    response.writeProcessing()
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    response.end('ok')
  })
  const made = call(transportOf(), origin)
  await made.ending

  expect(made.log.filter((line) => line.startsWith('head'))).toEqual(['head 200'])
})

describe('a failure tells how far the call came', () => {
  test('connect, when nobody listens', async () => {
    const { origin } = await listen(createSocketServer())
    await cleanups.pop()?.()
    const made = call(transportOf(), origin)

    expect(await made.ending).toMatchObject({ phase: 'connect', kind: 'refused' })
    expect(made.log).toEqual(['sent', 'failure connect refused'])
  })

  test('connect, when a name is not known', async () => {
    const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND nobody.example'), { code: 'ENOTFOUND' })
    const lookup: LookupFunction = (_name, _options, done) => done(unknown, '')
    const made = call(transportOf({ lookup }), 'http://nobody.example')

    expect(await made.ending).toMatchObject({ phase: 'connect', kind: 'refused' })
  })

  test('connect, when TLS is spoken to a server without it', async () => {
    const { origin } = await listen(createSocketServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')))
    const made = call(transportOf(), origin.replace('http:', 'https:'))

    expect(await made.ending).toMatchObject({ phase: 'connect', kind: 'tls' })
  })

  test('sent, when the connection is reset before the headers', async () => {
    const { origin } = await serve((request) => request.socket.resetAndDestroy())
    const made = call(transportOf(), origin)

    expect(await made.ending).toMatchObject({ phase: 'sent', kind: 'reset' })
  })

  test('sent, when the connection is closed without an answer', async () => {
    const { origin } = await serve((request) => request.socket.destroy())
    const made = call(transportOf(), origin)

    expect(await made.ending).toMatchObject({ phase: 'sent', kind: 'reset' })
  })

  test('sent, if the response is not HTTP', async () => {
    const { origin } = await listen(
      createSocketServer((socket) => socket.once('data', () => socket.end('SSH-2.0-server\r\n'))),
    )
    const made = call(transportOf(), origin)

    expect(await made.ending).toMatchObject({ phase: 'sent', kind: 'protocol' })
  })

  test('sent, when no headers come in time', async () => {
    const { origin } = await serve(() => undefined)
    const made = call(transportOf(), origin, { firstByteTimeoutMs: 50 })

    expect(await made.ending).toMatchObject({ phase: 'sent', kind: 'timeout' })
  })

  test('body, when the body breaks off', async () => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => response.destroy())
    })
    const made = call(transportOf(), origin)

    expect(await made.ending).toMatchObject({ phase: 'body', kind: 'reset' })
    expect(made.log).not.toContain('end')
  })

  test('body, when a chunked body ends without its last chunk', async () => {
    const { origin } = await serve((_request, response) => {
      response.write('half', () => response.socket?.end())
    })
    const made = call(transportOf(), origin)

    expect(await made.ending).toMatchObject({ phase: 'body', kind: 'reset' })
  })

  test('body, when the body falls silent', async () => {
    const { origin } = await serve((_request, response) => void response.write('half'))
    const made = call(transportOf(), origin, { idleTimeoutMs: 50 })

    expect(await made.ending).toMatchObject({ phase: 'body', kind: 'timeout' })
  })

  test('nothing is reported before send has returned, or after the end', async () => {
    const made = call(transportOf(), 'http://127.0.0.1:1', { path: 'no slash' })
    await made.ending
    made.control.abort()
    made.control.pause()
    made.control.resume()
    await new Promise((resolve) => setImmediate(resolve))

    expect(made.log[0]).toBe('sent')
    expect(made.log.filter((line) => line.startsWith('failure'))).toHaveLength(1)
  })
})

describe('giving a call up', () => {
  test('before it is connected leaves the pool whole', async () => {
    const { origin } = await serve((_request, response) => response.end('ok'))
    const transport = transportOf()
    const abandoned = Array.from({ length: 10 }, () => {
      const made = call(transport, origin)
      made.control.abort()
      return made
    })
    const endings = await Promise.all(abandoned.map((made) => made.ending))
    const later = await Promise.all(Array.from({ length: 10 }, () => call(transport, origin).ending))

    expect(endings.map((failure) => failure?.kind)).toEqual(Array.from({ length: 10 }, () => 'aborted'))
    expect(endings.map((failure) => failure?.phase)).toEqual(Array.from({ length: 10 }, () => 'connect'))
    expect(later).toEqual(Array.from({ length: 10 }, () => undefined))
  })

  test('before and after the headers closes the connection at the vendor', async () => {
    const closed: Promise<unknown>[] = []
    const arrived = [deferred<void>(), deferred<void>()]
    const { origin } = await serve((request, response) => {
      closed.push(once(request.socket, 'close'))
      if (closed.length === 2) response.write('a piece')
      arrived[closed.length - 1]?.resolve()
    })
    const transport = transportOf()
    const early = call(transport, origin)
    await arrived[0]?.promise
    early.control.abort()
    const late = call(transport, origin)
    await late.head
    late.control.abort()
    const endings = await Promise.all([early.ending, late.ending])
    await Promise.all(closed)

    expect(endings).toMatchObject([
      { phase: 'sent', kind: 'aborted' },
      { phase: 'body', kind: 'aborted' },
    ])
  })

  test('twice is the same as once', async () => {
    const { origin } = await serve(() => undefined)
    const made = call(transportOf(), origin)
    made.control.abort()
    made.control.abort()
    await made.ending
    await new Promise((resolve) => setImmediate(resolve))

    expect(made.log).toEqual(['sent', 'failure connect aborted'])
  })
})

test('a paused call holds the vendor back until it is resumed, without timing out', async () => {
  const block = Buffer.alloc(256 * 1024)
  const total = 64
  let written = 0
  const full = deferred<void>()
  const { origin } = await serve((_request, response) => {
    response.writeHead(200)
    const more = (): void => {
      while (written < total) {
        written++
        if (!response.write(block)) {
          full.resolve()
          return
        }
      }
      response.end()
    }
    response.on('drain', more)
    more()
  })
  const made = call(transportOf(), origin, { idleTimeoutMs: 200 })
  await made.head
  made.control.pause()
  await full.promise
  // Another call that falls silent now times out, this one does not: silence that we asked for is not the vendor's.
  const silent = await serve((_request, response) => void response.write('half'))
  const other = await call(transportOf(), silent.origin, { idleTimeoutMs: 200 }).ending
  const writtenWhilePaused = written
  made.control.resume()
  const failure = await made.ending

  expect(other).toMatchObject({ kind: 'timeout' })
  expect(writtenWhilePaused).toBeLessThan(total)
  expect(failure).toBeUndefined()
  expect(Buffer.concat(made.chunks)).toHaveLength(total * block.length)
})

test('a call that is paused with each piece and resumed at once reads on, and gets no empty pieces', async () => {
  const block = Buffer.alloc(64 * 1024, 'x')
  const { origin } = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': 16 * block.length })
    for (let sent = 0; sent < 16; sent++) response.write(block)
    response.end()
  })
  const pieces: number[] = []
  const ending = deferred<TransportFailure | undefined>()
  const control = transportOf().send(
    {
      origin,
      path: '/',
      method: 'GET',
      headers: [],
      body: null,
      firstByteTimeoutMs: 5_000,
      idleTimeoutMs: 5_000,
    },
    {
      onHead: () => undefined,
      onData(chunk) {
        pieces.push(chunk.byteLength)
        // Far more pieces than there are bytes to read at once: without an end to it no event would come any more.
        if (pieces.length > 10_000) return
        control.pause()
        queueMicrotask(() => control.resume())
      },
      onEnd: () => ending.resolve(undefined),
      onFailure: ending.resolve,
    },
  )

  expect(await ending.promise).toBeUndefined()
  expect(pieces.reduce((sum, piece) => sum + piece, 0)).toBe(16 * block.length)
  expect(pieces.filter((piece) => piece === 0)).toEqual([])
})

test('a call that is paused before its answer begins gets no bytes until it is resumed', async () => {
  const { origin } = await serve((_request, response) => response.end('answer'))
  const made = call(transportOf(), origin)
  made.control.pause()
  await made.head
  await call(transportOf(), origin).ending
  const logWhilePaused = [...made.log]
  made.control.resume()
  const failure = await made.ending

  expect(logWhilePaused).toEqual(['sent', 'head 200'])
  expect(failure).toBeUndefined()
  expect(Buffer.concat(made.chunks).toString()).toBe('answer')
})

test('a body that is still being sent ends with its call', async () => {
  const received = deferred<() => void>()
  const closed = deferred<void>()
  let byteLength = 0
  const { origin } = await serve((request) => {
    request.on('error', () => undefined)
    request.on('data', (part: Buffer) => {
      byteLength += part.length
    })
    request.once('data', () => {
      // Nothing more is read for now, so most of the body has to wait at the sender.
      request.pause()
      request.socket.once('close', () => closed.resolve())
      received.resolve(() => request.resume())
    })
  })
  const piece = Buffer.alloc(4 * 1024 * 1024)
  const transport = transportOf()
  const made = call(transport, origin, { body: [piece, piece, piece, piece] })
  const readOn = await received.promise
  made.control.abort()
  const failure = await made.ending
  readOn()
  await closed.promise
  const next = call(transport, (await serve((_request, response) => response.end('ok'))).origin)

  expect(failure).toMatchObject({ phase: 'sent', kind: 'aborted' })
  expect(byteLength).toBeLessThan(4 * piece.length)
  expect(await next.ending).toBeUndefined()
})

test('closing waits for calls under way', async () => {
  const arrived = deferred<() => void>()
  const { origin } = await serve((_request, response) => arrived.resolve(() => response.end('ok')))
  const transport = undiciTransport()
  const made = call(transport, origin)
  const answer = await arrived.promise
  const closing = transport.close()
  answer()

  expect(await made.ending).toBeUndefined()
  await closing
})
