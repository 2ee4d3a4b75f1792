import { once } from 'node:events'
import type { Server } from 'node:http'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer,
  type IncomingHttpHeaders,
} from 'node:http2'
import fastify from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fastifyGateway } from '../../src/adapters/fastify.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import { bodyPieces, type ExchangeHandler } from '../../src/core/exchange.ts'
import { deferred } from './support/deferred.ts'
import { type EchoAnswer, StandInGateway } from './support/stand-in-gateway.ts'

const MOUNTS: Readonly<Record<string, (gateway: ExchangeHandler) => Promise<Server>>> = {
  node: async (gateway) => {
    const handler = nodeHandler(gateway, { basePath: '/ai' })
    return createServer(handler as never) as unknown as Server
  },
  fastify: async (gateway) => {
    const app = fastify({ http2: true })
    await app.register(fastifyGateway as never, { gateway, prefix: '/ai' } as never)
    await app.ready()
    return app.server as unknown as Server
  },
}

interface Answer {
  readonly status: number
  readonly text: string
}

describe.each(Object.entries(MOUNTS))('the gateway over HTTP/2 in %s', (_name, mount) => {
  let gateway: StandInGateway
  let server: Server
  let session: ClientHttp2Session

  async function serve(handler: ExchangeHandler): Promise<void> {
    server = await mount(handler)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    session = connect(`http://127.0.0.1:${(server.address() as { port: number }).port}`)
  }

  beforeEach(async () => {
    gateway = new StandInGateway()
  })

  afterEach(async () => {
    session.destroy()
    server.close()
  })

  function open(method: string, path: string, headers: Record<string, string> = {}): ClientHttp2Stream {
    return session.request({ ':method': method, ':path': `/ai${path}`, ...headers }, { endStream: method !== 'POST' })
  }

  async function answerTo(stream: ClientHttp2Stream): Promise<Answer> {
    let status = 0
    let text = ''
    stream.setEncoding('utf8')
    stream.on('response', (headers: IncomingHttpHeaders) => {
      status = Number(headers[':status' as keyof IncomingHttpHeaders])
    })
    stream.on('data', (piece: string) => {
      text += piece
    })
    await once(stream, 'close')
    return { status, text }
  }

  it.each([
    ['without a length', {}],
    ['with one', { 'content-length': '8' }],
  ])('reads a body %s', async (_length, headers) => {
    await serve(gateway)
    const stream = open('POST', '/v1/x', headers)
    stream.end('größer')

    const { status, text } = await answerTo(stream)

    expect(status).toBe(200)
    expect(JSON.parse(text) as EchoAnswer).toMatchObject({ path: '/v1/x', body: 'größer', failure: null })
  })

  it('reads a body piece by piece', async () => {
    const read = deferred<string>()
    await serve({
      async handle(request, sink) {
        const pieces: Uint8Array[] = []
        for await (const piece of bodyPieces(request, 100)) pieces.push(piece)
        sink.head(204, [])
        sink.end()
        read.resolve(Buffer.concat(pieces).toString())
      },
    })
    const stream = open('POST', '/v1/files')
    stream.write('one ')
    stream.end('two')

    expect((await answerTo(stream)).status).toBe(204)
    expect(await read.promise).toBe('one two')
  })

  it.each(['GET', 'HEAD', 'DELETE'])('waits for no body of a %s that ends with its headers', async (method) => {
    await serve(gateway)

    expect((await answerTo(open(method, '/v1/x'))).status).toBe(200)
    expect(gateway.failures).toEqual([undefined])
  })

  it.each([
    ['without a length', {}],
    ['with one', { 'content-length': '3000000' }],
  ])('refuses a body that is too large %s, and the caller gets the answer', async (_length, headers) => {
    gateway.limitBytes = 1000
    await serve(gateway)
    const stream = open('POST', '/v1/x', headers)
    stream.end(Buffer.alloc(3_000_000, 'x'))

    const { status, text } = await answerTo(stream)

    expect([status, (JSON.parse(text) as EchoAnswer).failure]).toEqual([413, 'too_large'])
  })

  it('streams, and notices a disconnect', async () => {
    await serve(gateway)

    expect((await answerTo(open('GET', '/v1/stream'))).text).toBe('data: one\n\ndata: zwei – ünï\n\ndata: [DONE]\n\n')

    const stream = open('GET', '/v1/hang')
    await once(stream, 'data')
    const left = gateway.next('left')
    stream.close(8)

    expect(await left).toBe(true)
  })
})
