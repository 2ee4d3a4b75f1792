import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { imageFetcher, MAX_IMAGE_BYTES } from '../../src/pipeline/fetched-media.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { NameResolver } from '../../src/transport/name-resolver.ts'
import type { Transport, TransportHandler, TransportRequest } from '../../src/transport/transport.ts'
import { undiciTransport } from '../../src/transport/undici.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3])
const png: Answer = (_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(PNG)

const names = new NameResolver({ allowPrivate: true })
let publicNames: NameResolver
let dns: DnsServer
let transport: Transport
let origin: string
let requests: string[]
let answers: Map<string, Answer>
let close: () => Promise<void>

beforeEach(async () => {
  dns = await startDnsServer({ 'images.example.com': ['93.184.215.14'], 'slow.example.com': 'silence' })
  publicNames = new NameResolver({ servers: [dns.address] })
  transport = undiciTransport()
  requests = []
  answers = new Map([['/cat.png', png]])
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const answer = answers.get(request.url ?? '')
    if (answer === undefined) response.writeHead(404).end()
    else answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  close = async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
    await transport.close()
    await dns.close()
  }
})
afterEach(() => close())

const redirect =
  (location: string): Answer =>
  (_request, response) =>
    response.writeHead(302, { location }).end()

describe('an image', () => {
  test('comes with its bytes and media type', async () => {
    const fetched = await imageFetcher(transport, { names, allowPrivate: true })(`${origin}/cat.png`)

    expect(fetched).toEqual({ bytes: PNG, mediaType: 'image/png' })
  })

  test('is fetched without any header of the caller or the vendor', async () => {
    let headers: unknown
    answers.set('/cat.png', (request, response) => {
      headers = request.headers
      png(request, response)
    })
    await imageFetcher(transport, { names, allowPrivate: true })(`${origin}/cat.png`)

    expect(headers).toEqual({
      host: new URL(origin).host,
      connection: 'keep-alive',
      accept: 'image/*',
      'accept-encoding': 'identity',
    })
  })

  test('is followed over redirects, relative ones too', async () => {
    answers.set('/a', redirect('/b')).set('/b', redirect(`${origin}/cat.png`))

    expect(await imageFetcher(transport, { names, allowPrivate: true })(`${origin}/a`)).toMatchObject({ bytes: PNG })
    expect(requests).toEqual(['/a', '/b', '/cat.png'])
  })
})

describe('no image, but a reason, comes', () => {
  test.each<[string, Answer, RegExp]>([
    ['for another status', (_request, response) => response.writeHead(403).end(), /status 403/],
    [
      'for another type',
      (_request, response) => response.setHeader('content-type', 'text/html').end('x'),
      /not a JPEG/,
    ],
    [
      'for SVG, which is a document',
      (_request, response) => response.setHeader('content-type', 'image/svg+xml').end('<svg/>'),
      /not a JPEG/,
    ],
    ['for a broken connection', (request) => request.socket.resetAndDestroy(), /could not be fetched/],
    [
      'for an image that breaks off',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'image/png', 'content-length': '100' })
        response.write(PNG, () => response.destroy())
      },
      /could not be fetched/,
    ],
    ['for endless redirects', redirect('/x'), /redirects too often/],
    ['for a redirect to no URL', redirect('http://'), /not a URL/],
    ['for a redirect to another scheme', redirect('file:///etc/passwd'), /must be an http or https URL/],
    ['for a redirect with credentials', redirect('http://a:b@example.com/'), /must not contain credentials/],
  ])('%s', async (_name, answer, reason) => {
    answers.set('/x', answer)

    expect(await imageFetcher(transport, { names, allowPrivate: true })(`${origin}/x`)).toEqual({
      reason: expect.stringMatching(reason),
    })
  })

  test('returns one for more than 20 MiB, without reading the rest', async () => {
    let isClosed: Promise<void> | undefined
    answers.set('/x', (_request, response) => {
      isClosed = new Promise((resolve) => response.on('close', () => resolve()))
      response.writeHead(200, { 'content-type': 'image/png' })
      const block = Buffer.alloc(1024 * 1024)
      const more = (): void => {
        while (!response.destroyed && response.write(block)) {
          // Goes on until the socket is full.
        }
      }
      response.on('drain', more)
      more()
    })
    const fetched = await imageFetcher(transport, { names, allowPrivate: true })(`${origin}/x`)
    await isClosed

    expect(fetched).toEqual({ reason: `is larger than ${MAX_IMAGE_BYTES} bytes` })
  })

  test('returns one for a server that drips bytes endlessly', async () => {
    const clock = fakeClock()
    let begun: () => void = () => undefined
    const beginning = new Promise<void>((resolve) => {
      begun = resolve
    })
    answers.set('/x', (_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png' })
      response.write(PNG, () => begun())
    })
    const fetching = imageFetcher(transport, { names, allowPrivate: true, clock })(`${origin}/x`)
    await beginning
    clock.advance(30_000)

    expect(await fetching).toEqual({ reason: 'took too long to fetch' })
    expect(clock.pending).toBe(0)
  })
})

describe('a private address is never asked', () => {
  test('when the URL names it', async () => {
    expect(await imageFetcher(transport, { names: publicNames })(`${origin}/cat.png`)).toEqual({
      reason: 'must not point to a private address',
    })
    expect(requests).toEqual([])
  })

  test('when a redirect names it', async () => {
    const redirecting: Transport = {
      send(_request, handler) {
        queueMicrotask(() => handler.onHead(302, { location: `${origin}/cat.png` }))
        return { abort: () => undefined, pause: () => undefined, resume: () => undefined }
      },
      close: () => Promise.resolve(),
    }

    expect(await imageFetcher(redirecting, { names: publicNames })('https://images.example.com/cat.png')).toEqual({
      reason: 'must not point to a private address',
    })
  })

  test('when a name resolves to it', async () => {
    const guarded = undiciTransport({ lookup: publicNames.lookup })
    const port = new URL(origin).port
    // The text of the URL is allowed, so only the look-up protects the address.
    const fetched = await imageFetcher(guarded, { names, allowPrivate: true })(`http://localhost:${port}/cat.png`)
    await guarded.close()

    expect(fetched).toEqual({ reason: 'could not be fetched' })
    expect(requests).toEqual([])
  })
})

/** A transport whose calls are answered by the test, and which notes them. */
function manualTransport() {
  const calls: { request: TransportRequest; handler: TransportHandler; isAborted: boolean }[] = []
  const transport: Transport = {
    send(request, handler) {
      const call = { request, handler, isAborted: false }
      calls.push(call)
      return {
        abort() {
          call.isAborted = true
        },
        pause: () => undefined,
        resume: () => undefined,
      }
    },
    close: () => Promise.resolve(),
  }
  return { transport, calls }
}

describe('a fetch', () => {
  const ADDRESS = 'http://93.184.215.14/cat.png'
  const head = { 'content-type': 'image/png' }

  test('ends when its signal is aborted', async () => {
    const { transport: manual, calls } = manualTransport()
    const control = new AbortController()
    const fetched = imageFetcher(manual, { names })(ADDRESS, { signal: control.signal })
    await expect.poll(() => calls.length).toBe(1)
    control.abort()

    expect(await fetched).toEqual({ reason: 'was not fetched' })
    expect(calls[0]?.isAborted).toBe(true)
  })

  test('is not begun when its signal is aborted while the name is resolved', async () => {
    const { transport: manual, calls } = manualTransport()
    const control = new AbortController()
    const fetched = imageFetcher(manual, { names: publicNames })('http://images.example.com/', control)
    control.abort()

    expect(await fetched).toEqual({ reason: 'was not fetched' })
    expect(calls).toEqual([])
  })

  test('counts each chunk before it is kept, and a tiny one by the memory that it needs', async () => {
    const { transport: manual, calls } = manualTransport()
    const counted: number[] = []
    const fetched = imageFetcher(manual, { names })(ADDRESS, { onBytes: (bytes) => counted.push(bytes) })
    await expect.poll(() => calls.length).toBe(1)
    const { handler } = calls[0]!
    handler.onHead(200, head)
    handler.onData(Buffer.alloc(70_000))
    handler.onData(Buffer.alloc(1))
    handler.onEnd()

    expect(await fetched).toMatchObject({ mediaType: 'image/png' })
    expect(counted).toEqual([70_000, 256])
  })

  test('ends with the error of whoever counts its bytes', async () => {
    const { transport: manual, calls } = manualTransport()
    const clock = fakeClock()
    const fetched = imageFetcher(manual, { names, clock })(ADDRESS, {
      onBytes() {
        throw new Error('no room')
      },
    })
    await expect.poll(() => calls.length).toBe(1)
    calls[0]?.handler.onHead(200, head)
    calls[0]?.handler.onData(Buffer.alloc(10))

    await expect(fetched).rejects.toThrow('no room')
    expect(calls[0]?.isAborted).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('has one time limit for all redirects, and 5 s between two chunks', async () => {
    const { transport: manual, calls } = manualTransport()
    const clock = fakeClock()
    const fetched = imageFetcher(manual, { names, clock })(ADDRESS)
    await expect.poll(() => calls.length).toBe(1)
    clock.advance(20_000)
    calls[0]?.handler.onHead(302, { location: '/other.png' })
    await expect.poll(() => calls.length).toBe(2)
    clock.advance(10_000)

    expect(await fetched).toEqual({ reason: 'took too long to fetch' })
    expect(calls.map(({ isAborted, request }) => [isAborted, request.idleTimeoutMs])).toEqual([
      [true, 5_000],
      [true, 5_000],
    ])
  })

  test.each([true, false])(
    'ends with a reason if the host name is malformed (private addresses allowed: %j)',
    async (allowed) => {
      const resolver = new NameResolver({ servers: [dns.address], allowPrivate: allowed })
      const name = `${'a'.repeat(64)}.example.com`

      expect(await imageFetcher(transport, { names: resolver, allowPrivate: allowed })(`http://${name}/`)).toEqual({
        reason: 'could not be fetched',
        isBusy: false,
      })
    },
  )

  test('says that it can be repeated when too many names of the account are being resolved', async () => {
    dns.records = { '*': 'silence' }
    const { transport: manual } = manualTransport()
    const fetchImage = imageFetcher(manual, { names: publicNames })
    const fetches = Array.from({ length: 33 }, (_, index) =>
      fetchImage(`http://n${index}.example.com/`, { accountId: 'acct_one' }),
    )

    expect(await fetches[32]).toEqual({ reason: 'could not be fetched', isBusy: true })
  })
})
