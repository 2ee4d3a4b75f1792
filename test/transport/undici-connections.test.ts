import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { Transport, TransportControl, TransportFailure } from '../../src/transport/transport.ts'
import { type UndiciTransportOptions, undiciTransport } from '../../src/transport/undici.ts'
import { deferred } from '../adapters/support/deferred.ts'

const servers: Server[] = []
const transports: Transport[] = []
afterEach(async () => {
  await Promise.all(transports.splice(0).map((transport) => transport.close()))
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
})

interface Vendor {
  readonly origin: string
  /** Every connection that was made, and when it has closed. */
  readonly sockets: Socket[]
  readonly closed: Promise<unknown>[]
}

async function vendor(listener: RequestListener): Promise<Vendor> {
  const server = createServer(listener)
  servers.push(server)
  const sockets: Socket[] = []
  const closed: Promise<unknown>[] = []
  server.on('connection', (socket) => {
    socket.on('error', () => undefined)
    sockets.push(socket)
    closed.push(new Promise((resolve) => socket.once('close', resolve)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets, closed }
}

function transportOf(options?: UndiciTransportOptions): Transport {
  const transport = undiciTransport(options)
  transports.push(transport)
  return transport
}

interface Sent {
  readonly control: TransportControl
  readonly head: Promise<number>
  readonly ending: Promise<TransportFailure | undefined>
}

function send(transport: Transport, origin: string, headers: readonly string[] = []): Sent {
  const head = deferred<number>()
  const ending = deferred<TransportFailure | undefined>()
  const control = transport.send(
    { origin, path: '/', method: 'POST', headers, body: '{}', firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 },
    {
      onHead: (status) => head.resolve(status),
      onData: () => undefined,
      onEnd: () => ending.resolve(undefined),
      onFailure: (failure) => ending.resolve(failure),
    },
  )
  return { control, head: head.promise, ending: ending.promise }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('connections end when they have been idle for their time, and later calls make new ones', async () => {
  const { origin, sockets, closed } = await vendor((_request, response) => response.end('ok'))
  const transport = transportOf({ keepAliveTimeoutMs: 40 })
  await Promise.all(Array.from({ length: 12 }, () => send(transport, origin).ending))
  expect(sockets).toHaveLength(12)
  await Promise.all(closed)

  expect(await send(transport, origin).ending).toBeUndefined()
  expect(sockets).toHaveLength(13)
})

test('a connection that its vendor has closed is not used again', async () => {
  const { origin, sockets, closed } = await vendor((_request, response) => response.end('ok'))
  const transport = transportOf()
  for (let count = 0; count < 4; count++) {
    expect(await send(transport, origin).ending).toBeUndefined()
    await turn()
    sockets.at(-1)?.destroy()
    await Promise.all(closed)
  }

  expect(sockets).toHaveLength(4)
})

test('calls that follow an answer with which the connection closes all succeed', async () => {
  const { origin } = await vendor((_request, response) => {
    response.writeHead(200, { connection: 'close' }).end('ok')
  })
  const transport = transportOf()
  for (let count = 0; count < 10; count++) expect(await send(transport, origin).ending).toBeUndefined()
})

test('a call that is sent when another ends does not wait for the connection of that one', async () => {
  const { origin, sockets } = await vendor((_request, response) => response.end('ok'))
  const transport = transportOf()
  const inner = deferred<TransportFailure | undefined>()
  transport.send(
    { origin, path: '/', method: 'GET', headers: [], body: null, firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 },
    {
      onHead: () => undefined,
      onData: () => undefined,
      onEnd: () => void send(transport, origin).ending.then(inner.resolve),
      onFailure: (failure) => inner.resolve(failure),
    },
  )

  expect(await inner.promise).toBeUndefined()
  expect(sockets).toHaveLength(2)
})

test('an aborted call takes its connection along and makes no new one', async () => {
  const { origin, sockets, closed } = await vendor((_request, response) => void response.write('a piece'))
  const transport = transportOf()
  const sent = send(transport, origin)
  await sent.head
  sent.control.abort()
  expect(await sent.ending).toMatchObject({ phase: 'body', kind: 'aborted' })
  await Promise.all(closed)
  await turn()

  expect(sockets).toHaveLength(1)
})

test('a call that undici refuses costs no connection', async () => {
  const { origin, sockets } = await vendor((_request, response) => response.end('ok'))
  const transport = transportOf()
  await send(transport, origin).ending
  await turn()
  const refused = await send(transport, origin, ['not a name', 'a']).ending
  expect(refused).toMatchObject({ phase: 'connect' })

  expect(await send(transport, origin).ending).toBeUndefined()
  expect(sockets).toHaveLength(1)
})

test('a handler that throws at the end of an answer keeps no connection busy', async () => {
  const { origin, sockets } = await vendor((_request, response) => response.end('ok'))
  const transport = transportOf()
  const ended = deferred<void>()
  transport.send(
    { origin, path: '/', method: 'GET', headers: [], body: null, firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 },
    {
      onHead: () => undefined,
      onData: () => undefined,
      onEnd: () => {
        ended.resolve()
        throw new Error('thrown by the handler')
      },
      onFailure: () => undefined,
    },
  )
  await ended.promise
  await turn()

  expect(await send(transport, origin).ending).toBeUndefined()
  expect(sockets).toHaveLength(1)
})

test('closing ends idle connections at once', async () => {
  const { origin, closed } = await vendor((_request, response) => response.end('ok'))
  const transport = undiciTransport()
  await Promise.all(Array.from({ length: 5 }, () => send(transport, origin).ending))
  await transport.close()
  await Promise.all(closed)

  expect(closed).toHaveLength(5)
})
