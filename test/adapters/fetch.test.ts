import { describe, expect, it } from 'vitest'

import { fetchHandler } from '../../src/adapters/fetch.ts'
import type { ByteSink } from '../../src/core/exchange.ts'
import { handling } from './support/handling.ts'
import { BLOCK, type EchoAnswer, StandInGateway } from './support/stand-in-gateway.ts'

const post = (path: string, init: RequestInit = {}): Request =>
  new Request(`https://host.example${path}`, { method: 'POST', ...init })

/** A body whose chunks are asked for one by one; `asked` counts them. */
function endlessBody(): { body: ReadableStream<Uint8Array>; asked: () => number } {
  let count = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        count++
        controller.enqueue(BLOCK)
      },
    },
    { highWaterMark: 0 },
  )
  return { body, asked: () => count }
}

/** Lets everything that is already decided happen. */
const settleTurns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('fetchHandler', () => {
  it.each([
    ['/v1/files/a%2Fb?x=1#part', undefined, '/v1/files/a%2Fb', 'x=1'],
    ['/api/ai/v1/models', undefined, '/v1/models', ''],
    ['/api/ai/healthz?', undefined, '/healthz', ''],
    ['/api/v1/ai/v1/models', '/api/v1/ai', '/v1/models', ''],
    ['/v1/models', '/api/v1/ai', '/', ''],
  ])('%s with base path %j is %s', async (url, basePath, path, query) => {
    const handler = fetchHandler(new StandInGateway(), { basePath })

    expect(await (await handler(new Request(`https://host.example${url}`))).json()).toMatchObject({ path, query })
  })

  it('resolves with the head, before the first byte', async () => {
    let sinkOfRequest: ByteSink | undefined
    const handler = fetchHandler(
      handling((_request, sink) => {
        sinkOfRequest = sink
        sink.head(201, ['x-request-id', 'req_1', 'set-cookie', 'a=1', 'set-cookie', 'b=2'])
      }),
    )

    const response = await handler(post('/'))
    sinkOfRequest?.write('late')
    sinkOfRequest?.end(' bytes')

    expect([response.status, response.headers.get('x-request-id')]).toEqual([201, 'req_1'])
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(await response.text()).toBe('late bytes')
  })

  it('gives an answer that ends at once, empty ones included, as it is', async () => {
    const answer = (bytes?: string | Uint8Array): Promise<string> =>
      fetchHandler(
        handling((_request, sink) => {
          sink.head(200, ['content-type', 'text/plain'])
          sink.end(bytes)
        }),
      )(post('/')).then((response) => response.text())

    expect([await answer('text'), await answer(Buffer.from('bytes')), await answer('')]).toEqual(['text', 'bytes', ''])
    expect(await answer()).toBe('')
  })

  it('keeps several writes before the end in order', async () => {
    const response = await fetchHandler(
      handling((_request, sink) => {
        sink.head(200, [])
        sink.write('a')
        sink.write(new Uint8Array())
        sink.write(Buffer.from('b'))
        sink.end('c')
      }),
    )(post('/'))

    expect(await response.text()).toBe('abc')
  })

  it('has no body for HEAD and 204', async () => {
    const handler = fetchHandler(new StandInGateway())

    const head = await handler(new Request('https://host.example/v1/models', { method: 'HEAD' }))
    const stream = await handler(new Request('https://host.example/v1/stream', { method: 'HEAD' }))
    const empty = await handler(new Request('https://host.example/v1/empty'))

    expect([head.body, stream.body, empty.body]).toEqual([null, null, null])
    expect([head.status, empty.status]).toEqual([200, 204])
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(0)
  })

  it('writes no further than the reader has room for', async () => {
    const gateway = new StandInGateway()
    const response = await fetchHandler(gateway)(new Request('https://host.example/v1/flood'))
    await settleTurns()
    const beforeReading = gateway.floodedBytes

    const reader = response.body!.getReader()
    await reader.read()
    await settleTurns()

    expect(beforeReading).toBe(BLOCK.byteLength)
    expect(gateway.floodedBytes).toBe(2 * BLOCK.byteLength)
    expect(gateway.drains).toBe(1)
  })

  it('a cancelled body is the caller leaving, once', async () => {
    const gateway = new StandInGateway()
    const abort = new AbortController()
    const response = await fetchHandler(gateway)(new Request('https://host.example/v1/hang', { signal: abort.signal }))

    await response.body!.cancel()
    const leftAfterCancel = [...gateway.left]
    abort.abort()
    await settleTurns()

    expect([leftAfterCancel, gateway.left]).toEqual([['/v1/hang'], ['/v1/hang']])
  })

  it('an aborted signal is the caller leaving, and its reader gets the reason', async () => {
    const gateway = new StandInGateway()
    const abort = new AbortController()
    const response = await fetchHandler(gateway)(new Request('https://host.example/v1/hang', { signal: abort.signal }))
    const reader = response.body!.getReader()
    await reader.read()

    abort.abort(new Error('enough'))

    expect(gateway.left).toEqual(['/v1/hang'])
    await expect(reader.read()).rejects.toThrow('enough')
  })

  it('an abort before the head ends the wait as well', async () => {
    const gateway = new StandInGateway()
    const abort = new AbortController()
    const response = fetchHandler(gateway)(new Request('https://host.example/v1/silent', { signal: abort.signal }))

    abort.abort()

    expect((await response).status).toBe(499)
    expect(gateway.left).toEqual(['/v1/silent'])
  })

  it('reports immediately that a caller had already disconnected', async () => {
    const gateway = new StandInGateway()

    const response = await fetchHandler(gateway)(
      new Request('https://host.example/v1/silent', { signal: AbortSignal.abort() }),
    )

    expect([response.status, gateway.left]).toEqual([499, ['/v1/silent']])
  })

  it('does not take an abort after the end for the caller leaving', async () => {
    const gateway = new StandInGateway()
    const abort = new AbortController()
    const response = await fetchHandler(gateway)(new Request('https://host.example/v1/x', { signal: abort.signal }))

    abort.abort()

    expect(((await response.json()) as EchoAnswer).path).toBe('/v1/x')
    expect(gateway.left).toEqual([])
  })

  it('destroy makes the body fail', async () => {
    const response = await fetchHandler(new StandInGateway())(new Request('https://host.example/v1/cut'))

    await expect(response.text()).rejects.toThrow('cut')
  })

  it('destroy before the head makes the promise fail', async () => {
    const handler = fetchHandler(handling((_request, sink) => sink.destroy()))

    await expect(handler(post('/'))).rejects.toThrow('cut')
  })

  it('says "consumed" for a body that was read or is being read', async () => {
    const read = post('/', { body: 'x' })
    await read.text()
    const locked = post('/', { body: 'x' })
    locked.body?.getReader()
    const handler = fetchHandler(new StandInGateway())

    expect(await (await handler(read)).json()).toMatchObject({ failure: 'consumed' })
    expect(await (await handler(locked)).json()).toMatchObject({ failure: 'consumed' })
  })

  it('reads nothing of a body that is announced too large, and stops one that grows too large', async () => {
    const gateway = new StandInGateway()
    gateway.limitBytes = 3 * BLOCK.byteLength
    const handler = fetchHandler(gateway)
    const announced = endlessBody()
    const grown = endlessBody()

    const first = await handler(
      post('/', { body: announced.body, duplex: 'half', headers: { 'content-length': '999999999' } } as RequestInit),
    )
    const second = await handler(post('/', { body: grown.body, duplex: 'half' } as RequestInit))

    expect([first.status, announced.asked()]).toEqual([413, 0])
    expect([second.status, grown.asked()]).toEqual([413, 4])
  })

  it('fails a body that breaks off, or whose request is aborted, with "aborted"', async () => {
    const gateway = new StandInGateway()
    const handler = fetchHandler(gateway)
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) })
    const abort = new AbortController()
    const silent = new ReadableStream()

    await handler(post('/', { body: broken, duplex: 'half' } as RequestInit))
    const waiting = handler(post('/', { body: silent, duplex: 'half', signal: abort.signal } as RequestInit))
    abort.abort()
    await waiting

    expect(gateway.failures).toEqual(['aborted', 'aborted'])
  })
})
