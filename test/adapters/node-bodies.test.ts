import type { IncomingMessage } from 'node:http'

import { afterEach, describe, expect, it } from 'vitest'

import { nodeHandler } from '../../src/adapters/node.ts'
import { GatewayError } from '../../src/core/errors.ts'
import { bodyPieces } from '../../src/core/exchange.ts'
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

describe('a body at nodeHandler', () => {
  it('does not read a body before it is asked to', async () => {
    let readableDidRead: boolean | undefined
    const ai = nodeHandler(
      handling((_request, sink) => {
        sink.head(401, ['content-length', '0'])
        sink.end()
      }),
    )
    mounted = await listen((request, response) => {
      ai(request, response)
      readableDidRead = request.readableDidRead
    })

    const response = await fetch(mounted.origin, { method: 'POST', body: 'x'.repeat(100) })

    expect([response.status, readableDidRead]).toEqual([401, false])
  })

  it('reads a body that a middleware has paused', async () => {
    const ai = nodeHandler(new StandInGateway())
    mounted = await listen((request, response) => {
      request.pause()
      setImmediate(() => ai(request, response))
    })

    expect(await echo('/', { method: 'POST', body: 'waited' })).toMatchObject({ body: 'waited' })
  })

  it('reads a body as bytes although a middleware asked for text', async () => {
    const ai = nodeHandler(new StandInGateway())
    mounted = await listen((request, response) => {
      request.setEncoding('utf8')
      ai(request, response)
    })

    expect(await echo('/', { method: 'POST', body: 'größer' })).toMatchObject({ body: 'größer' })
  })

  it('streams a body as bytes, and no more than the limit, although a middleware asked for text', async () => {
    const pieces: unknown[] = []
    const ai = nodeHandler(
      handling(async (request, sink) => {
        let status = 200
        try {
          for await (const piece of bodyPieces(request, 10)) pieces.push(piece)
        } catch (error) {
          status = GatewayError.from(error).status
        }
        sink.head(status, ['content-length', '0'])
        sink.end()
      }),
    )
    mounted = await listen((request, response) => {
      request.setEncoding('utf8')
      ai(request, response)
    })
    const client = await RawClient.open(mounted.port)

    client.send('POST', '/', ['transfer-encoding: chunked'], '8\r\ngrößer\r\n0\r\n\r\n')
    await client.until('HTTP/1.1 200 OK')
    expect(pieces).toEqual([Buffer.from('größer')])

    client.send('POST', '/', ['transfer-encoding: chunked'], 'b\r\ngrößer, ja\r\n0\r\n\r\n')
    await client.until('HTTP/1.1 413 ')
    client.leave()
  })

  it('says "consumed" at once when somebody read the body and kept nothing', async () => {
    const ai = nodeHandler(new StandInGateway())
    mounted = await listen((request, response) => {
      request.resume()
      request.on('end', () => ai(request, response))
    })

    expect(await echo('/', { method: 'POST', body: '{"a":1}' })).toMatchObject({ failure: 'consumed', body: '' })
  })

  it('takes the rest of a refused body before it closes, so that the answer is not lost in a reset', async () => {
    const gateway = new StandInGateway()
    gateway.limitBytes = 10
    const ai = nodeHandler(gateway)
    let refused: IncomingMessage | undefined
    mounted = await listen((request, response) => {
      refused = request
      ai(request, response)
    })
    const client = await RawClient.open(mounted.port)

    client.send('POST', '/', ['content-length: 1000'], 'x'.repeat(400))
    await client.until('too_large')
    client.socket.write('x'.repeat(600))
    const text = await client.ended()

    expect(text).toMatch(/connection: close/i)
    expect(refused?.complete).toBe(true)
    expect(client.failure).toBeUndefined()
  })

  it('reads no further once a body is too large', async () => {
    let isPaused: boolean | undefined
    const read = deferred<void>()
    let incoming: IncomingMessage | undefined
    const ai = nodeHandler(
      handling((request, sink) => {
        request.readBody(10, (failure, chunks) => {
          isPaused = incoming?.isPaused()
          sink.head(413, ['content-length', '0'])
          sink.end()
          expect([failure, chunks]).toEqual(['too_large', []])
          read.resolve()
        })
      }),
    )
    mounted = await listen((request, response) => {
      incoming = request
      ai(request, response)
    })
    const client = await RawClient.open(mounted.port)

    client.send('POST', '/', ['transfer-encoding: chunked'], `20\r\n${'x'.repeat(32)}\r\n`)
    await read.promise

    expect(isPaused).toBe(true)
    client.leave()
  })

  it('fails the body with "aborted" when the host drops the request', async () => {
    const gateway = new StandInGateway()
    const ai = nodeHandler(gateway)
    mounted = await listen((request, response) => {
      ai(request, response)
      setImmediate(() => request.destroy())
    })
    const client = await RawClient.open(mounted.port)
    const read = gateway.next('read')

    client.send('POST', '/', ['content-length: 100'], 'x')

    expect(await read).toBe('aborted')
  })
})
