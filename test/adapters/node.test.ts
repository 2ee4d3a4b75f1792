import { once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'

import { afterEach, describe, expect, it, vi } from 'vitest'

import { nodeHandler } from '../../src/adapters/node.ts'
import type { ByteSink } from '../../src/core/exchange.ts'
import { listen } from '../support/listen.ts'
import { deferred } from './support/deferred.ts'
import { handling } from './support/handling.ts'
import type { Mounted } from './support/mounts.ts'
import { RawClient } from './support/raw-client.ts'
import { type EchoAnswer, StandInGateway } from './support/stand-in-gateway.ts'

let mounted: Mounted | undefined

afterEach(async () => {
  await mounted?.close()
  mounted = undefined
})

const echo = async (path: string, init?: RequestInit): Promise<EchoAnswer> =>
  (await (await fetch(`${mounted?.origin}${path}`, init)).json()) as EchoAnswer

describe('nodeHandler', () => {
  it('takes the path as it is without a base path', async () => {
    mounted = await listen(nodeHandler(new StandInGateway()))

    expect(await echo('/v1/models?limit=2')).toMatchObject({ path: '/v1/models', query: 'limit=2' })
    expect(await echo('/ai/v1/models')).toMatchObject({ path: '/ai/v1/models' })
  })

  it('does not serve its own paths outside the base path', async () => {
    mounted = await listen(nodeHandler(new StandInGateway(), { basePath: '/ai/' }))

    expect(await echo('/ai/v1/models')).toMatchObject({ path: '/v1/models' })
    expect(await echo('/v1/models')).toMatchObject({ path: '/' })
  })

  it('identifies its own requests, for the fast mount next to a framework', async () => {
    const ai = nodeHandler(new StandInGateway(), { basePath: '/ai' })
    const app = (_request: IncomingMessage, response: ServerResponse): void => {
      response.end('the app')
    }
    mounted = await listen(
      createServer((request, response) => (ai.handles(request) ? ai(request, response) : app(request, response))),
    )

    expect(await echo('/ai/healthz?x')).toMatchObject({ path: '/healthz' })
    expect(await (await fetch(`${mounted.origin}/aim`)).text()).toBe('the app')
  })

  it('knows its own paths without a base path', () => {
    const ai = nodeHandler(new StandInGateway())

    expect(['/v1/models?x', '/healthz', '/', '/users/v1/x'].map((url) => ai.handles({ url }))).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  it('keeps repeated headers, and sends the flat list as it is when nobody set a header before', async () => {
    const gateway = handling((_request, sink) => {
      sink.head(200, ['set-cookie', 'a=1', 'set-cookie', 'b=2', 'X-Case', 'Kept', 'content-length', '2'])
      sink.end('ok')
    })
    mounted = await listen(nodeHandler(gateway))
    const client = await RawClient.open(mounted.port)

    client.send('GET', '/')
    const text = await client.until('\r\n\r\nok')

    expect(text).toContain('set-cookie: a=1\r\nset-cookie: b=2\r\nX-Case: Kept\r\ncontent-length: 2\r\n')
    client.leave()
  })

  it('keeps headers that were set before, adds to vary and cookies, and replaces what it names', async () => {
    const gateway = handling((_request, sink) => {
      sink.head(200, [
        'vary',
        'accept',
        'set-cookie',
        'b=2',
        'set-cookie',
        'c=3',
        'x-a',
        'new',
        'x-many',
        '1',
        'x-many',
        '2',
      ])
      sink.end('ok')
    })
    const ai = nodeHandler(gateway)
    mounted = await listen((request, response) => {
      response.setHeader('Vary', 'Origin')
      response.setHeader('Set-Cookie', 'a=1')
      response.setHeader('X-A', 'old')
      response.setHeader('X-Kept', 'yes')
      ai(request, response)
    })

    const { headers } = await fetch(mounted.origin)

    expect(headers.get('vary')).toBe('Origin, accept')
    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2', 'c=3'])
    expect([headers.get('x-a'), headers.get('x-kept'), headers.get('x-many')]).toEqual(['new', 'yes', '1, 2'])
  })

  it('joins repeated request headers and knows nothing of names that are not headers', async () => {
    const seen: (string | undefined)[] = []
    const gateway = handling((request, sink) => {
      seen.push(request.header('x-tag'), request.header('missing'), request.header('constructor'))
      sink.head(204, [])
      sink.end()
    })
    mounted = await listen(nodeHandler(gateway))
    const client = await RawClient.open(mounted.port)

    client.send('GET', '/', ['x-tag: one', 'x-tag: two'])
    await client.until('204')

    expect(seen).toEqual(['one, two', undefined, undefined])
    client.leave()
  })

  it('reads the headers and the parsed body of a request object without raw headers and without a stream', async () => {
    const gateway = new StandInGateway()
    const seen: unknown[] = []
    const ai = nodeHandler(
      handling((request, sink) => {
        seen.push(request.header('authorization'))
        gateway.handle(request, sink)
      }),
    )
    mounted = await listen((request, response) => {
      const { method, url, headers, socket } = request
      ai({ method, url, headers, socket, body: { a: 1 } } as unknown as IncomingMessage, response)
    })
    const headers = { authorization: 'Bearer one', 'content-type': 'application/json' }

    expect(await (await fetch(mounted.origin, { method: 'POST', headers, body: '{ "a": 1 }' })).json()).toMatchObject({
      body: '{"a":1}',
    })
    expect(seen).toEqual(['Bearer one'])
  })

  it('knows at once that the caller is gone when the socket is already destroyed', async () => {
    const outcome = deferred<unknown[]>()
    const ai = nodeHandler(
      handling((_request, sink) => {
        let calls = 0
        sink.onClose(() => calls++)
        outcome.resolve([sink.closed, calls])
      }),
    )
    mounted = await listen((request, response) => {
      request.socket.destroy()
      ai(request, response)
    })
    const client = await RawClient.open(mounted.port)

    client.send('GET', '/')

    expect(await outcome.promise).toEqual([true, 1])
  })

  it('sets headers one by one for a middleware that replaced writeHead', async () => {
    const ai = nodeHandler(new StandInGateway())
    let namesSeen: string[] = []
    mounted = await listen((request, response) => {
      const writeHead = response.writeHead
      response.writeHead = (status: number) => {
        namesSeen = response.getHeaderNames()
        return writeHead.call(response, status)
      }
      ai(request, response)
    })

    const response = await fetch(mounted.origin)

    expect(namesSeen).toEqual(['content-type', 'content-length', 'vary'])
    expect(response.headers.get('content-type')).toBe('application/json')
  })

  it('notices a disconnect while an earlier pipelined answer is still open', async () => {
    const gateway = new StandInGateway()
    mounted = await listen(nodeHandler(gateway))
    const client = await RawClient.open(mounted.port)
    client.send('GET', '/v1/hang')
    client.send('GET', '/v1/silent')
    await client.until('data: one')

    const left = gateway.next('left')
    client.leave()
    await left
    await new Promise((resolve) => setImmediate(resolve))

    expect([...gateway.left].sort()).toEqual(['/v1/hang', '/v1/silent'])
  })

  it('notices a caller that closes only its sending side', async () => {
    const gateway = new StandInGateway()
    mounted = await listen(nodeHandler(gateway))
    const client = await RawClient.open(mounted.port)
    client.send('GET', '/v1/hang')
    await client.until('data: one')

    const left = gateway.next('left')
    client.socket.end()

    expect(await left).toBe(true)
  })

  it('reports immediately that the caller had disconnected before anybody listened, and ignores later writes', async () => {
    const outcome = deferred<unknown[]>()
    const gateway = handling((_request, sink) => {
      sink.onClose(() => {
        let calls = 0
        sink.onClose(() => calls++)
        sink.head(200, [])
        outcome.resolve([sink.closed, calls, sink.write('x')])
        sink.end('y')
        sink.destroy()
      })
    })
    mounted = await listen(nodeHandler(gateway))
    const client = await RawClient.open(mounted.port)
    client.send('GET', '/')
    client.leave()

    expect(await outcome.promise).toEqual([true, 1, true])
  })

  it('takes another answer in its place, such as that of a timeout, for the caller leaving', async () => {
    const left = deferred<boolean>()
    let sinkOfRequest: ByteSink | undefined
    const ai = nodeHandler(
      handling((_request, sink) => {
        sinkOfRequest = sink
        sink.onClose(() => left.resolve(sink.closed))
      }),
    )
    mounted = await listen((request, response) => {
      ai(request, response)
      response.writeHead(503).end('too slow')
      sinkOfRequest?.head(200, ['x-late', '1'])
      sinkOfRequest?.end('late')
    })

    const response = await fetch(mounted.origin)

    expect([response.status, await response.text(), response.headers.get('x-late')]).toEqual([503, 'too slow', null])
    expect(await left.promise).toBe(true)
  })

  it('cuts an answer that somebody else has begun instead of mixing two', async () => {
    const ai = nodeHandler(new StandInGateway())
    mounted = await listen((request, response) => {
      response.write('half an answer')
      ai(request, response)
    })

    const response = fetch(mounted.origin).then((answer) => answer.text())

    await expect(response).rejects.toThrow()
  })

  it('does not take the end of its own answer for the caller leaving', async () => {
    const gateway = new StandInGateway()
    mounted = await listen(nodeHandler(gateway))
    const client = await RawClient.open(mounted.port)
    client.send('GET', '/v1/stream', ['connection: close'])

    await client.ended()
    await mounted.close()

    expect(gateway.left).toEqual([])
  })

  it('reports an error on the response to the gateway, and does not end the process', async () => {
    const gateway = new StandInGateway()
    const ai = nodeHandler(gateway)
    mounted = await listen((request, response) => {
      ai(request, response)
      setImmediate(() => response.emit('error', new Error('broken pipe')))
    })
    const left = gateway.next('left')

    await expect(fetch(`${mounted.origin}/v1/silent`)).rejects.toThrow()

    expect(await left).toBe(true)
  })

  it('lets go of a whole answer that its caller does not read', async () => {
    const sockets: Socket[] = []
    const server = createServer(
      nodeHandler(
        handling((_request, sink) => {
          sink.head(200, ['content-type', 'application/octet-stream'])
          sink.end(Buffer.alloc(8 * 1024 * 1024))
        }),
      ),
    )
    server.on('connection', (socket: Socket) => sockets.push(socket))
    mounted = await listen(server)
    const caller = connect(mounted.port, '127.0.0.1')
    caller.pause()
    caller.on('error', () => {})
    caller.write('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n')
    await vi.waitFor(() => expect(sockets[0]?.timeout).toBe(600_001))
    const closed = once(sockets[0]!, 'close')

    // Ten minutes are over.
    sockets[0]!.emit('timeout')

    await closed
    caller.destroy()
  })

  it('leaves the next request of a connection without the time limit of a large answer', async () => {
    const timeouts: number[] = []
    const server = createServer((request, response) => {
      timeouts.push(request.socket.timeout ?? 0)
      nodeHandler(
        handling((_request, sink) => {
          sink.head(200, ['content-type', 'application/octet-stream'])
          sink.end(Buffer.alloc(8 * 1024 * 1024))
        }),
      )(request, response)
    })
    // Node then leaves a socket's time limit as it is.
    server.keepAliveTimeout = 0
    mounted = await listen(server)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let call = 0; call < 2; call++) {
      const [response] = (await once(get({ port: mounted.port, agent }), 'response')) as [IncomingMessage]
      await once(response.resume(), 'end')
    }
    agent.destroy()

    expect(timeouts).toEqual([0, 0])
  })

  it('does not time an answer that the socket has taken whole', async () => {
    const sockets: Socket[] = []
    const server = createServer(nodeHandler(new StandInGateway()))
    server.on('connection', (socket: Socket) => sockets.push(socket))
    mounted = await listen(server)

    await echo('/v1/models')

    expect(sockets[0]?.timeout).not.toBe(600_001)
  })
})

describe('the writes of a whole answer', () => {
  const writesOf = async (body: Uint8Array): Promise<{ text: string; pieces: number }> => {
    let pieces = 0
    mounted = await listen(
      createServer((request, response) => {
        const { socket } = request
        const { write } = socket
        vi.spyOn(socket, 'write').mockImplementation(function (this: Socket, ...given) {
          // Node ends an answer with an empty write, which no socket sends.
          if (given[0].length > 0) pieces += 1
          return Reflect.apply(write, this, given)
        })
        nodeHandler(
          handling((_request, sink) => {
            sink.head(200, ['content-type', 'application/json', 'content-length', String(body.byteLength)])
            sink.end(body)
          }),
        )(request, response)
      }),
    )
    const client = await RawClient.open(mounted.port)
    client.send('GET', '/', ['connection: close'])
    const text = await client.ended()
    return { text, pieces }
  }

  it('a small one is one buffer with its head, and every byte of it arrives as it was', async () => {
    const body = Uint8Array.from({ length: 512 }, (_, index) => index & 255)
    const { text, pieces } = await writesOf(body)

    expect(pieces).toBe(1)
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(Buffer.from(body).toString('latin1'))
  })

  it('a large one is not copied', async () => {
    const { text, pieces } = await writesOf(Buffer.alloc(64 * 1024, 0xe9))

    expect(pieces).toBe(2)
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe('\u00e9'.repeat(64 * 1024))
  })
})
