import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import express from 'express'
import { afterEach, describe, expect, it } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import type { ExchangeHandler, GatewayRequest } from '../../src/core/exchange.ts'
import { listen } from '../support/listen.ts'
import { compression, MOUNTS, type Mounted } from './support/mounts.ts'
import { RawClient } from './support/raw-client.ts'

const PIECES = 64
const PIECE_BYTES = 64 * 1024

let mounted: Mounted | undefined

afterEach(async () => {
  await mounted?.close()
  mounted = undefined
})

/** Pieces that differ, each in memory of its own. */
function pieces(): Buffer[] {
  return Array.from({ length: PIECES }, (_, index) =>
    Buffer.allocUnsafeSlow(PIECE_BYTES).fill(`${index} of ${PIECES}, `),
  )
}

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const WHOLE = digest(Buffer.concat(pieces()))

/** Answers with pieces that may be freed, by write and by end; with a length, or in chunks. */
function sending(given: Buffer[], hasLength: boolean): ExchangeHandler {
  const length = ['content-length', String(PIECES * PIECE_BYTES)]
  return {
    handle(_request, sink) {
      sink.head(200, ['content-type', 'application/octet-stream', ...(hasLength ? length : [])])
      for (const piece of given.slice(0, -1)) sink.write(piece, true)
      sink.end(given.at(-1), true)
    },
  }
}

const freed = (given: readonly Buffer[]): number => given.filter(({ length }) => length === 0).length

describe.each(Object.entries(MOUNTS))('an answer whose memory may be freed, in %s', (_name, mount) => {
  it.each([true, false])('arrives whole (with a length: %s)', async (hasLength) => {
    mounted = await mount(sending(pieces(), hasLength))

    const response = await fetch(`${mounted.origin}/ai/v1/x`)

    expect(digest(new Uint8Array(await response.arrayBuffer()))).toBe(WHOLE)
  })
})

describe('the memory of an answer', () => {
  it('stays until a slow caller has read it, and is freed then', async () => {
    const given = Array.from({ length: 32 }, (_, index) => Buffer.allocUnsafeSlow(1024 * 1024).fill(`${index}, `))
    const whole = digest(Buffer.concat(given))
    const handler = nodeHandler({
      handle(_request, sink) {
        sink.head(200, ['content-length', String(32 * 1024 * 1024)])
        for (const piece of given) sink.write(piece, true)
        sink.end()
      },
    })
    mounted = await listen(handler)
    const client = await RawClient.open(mounted.port)
    client.socket.pause()
    client.send('GET', '/')
    await expect.poll(() => client.socket.bytesRead).toBeGreaterThan(0)

    // More than the system takes for a caller who does not read.
    expect(given.at(-1)?.length).toBe(1024 * 1024)

    client.socket.resume()
    await expect.poll(() => freed(given)).toBe(32)
    await expect.poll(() => client.received.length).toBeGreaterThan(32 * 1024 * 1024)
    const body = client.received.slice(client.received.indexOf('\r\n\r\n') + 4)
    expect(digest(Buffer.from(body, 'latin1'))).toBe(whole)
    client.leave()
  })

  it('is not touched if a caller disconnects in the middle', async () => {
    const given = pieces()
    const closed: Promise<unknown>[] = []
    const handler = nodeHandler(sending(given, true))
    mounted = await listen((request, response) => {
      closed.push(once(response, 'close'))
      handler(request, response)
    })
    const client = await RawClient.open(mounted.port)
    client.socket.pause()
    client.send('GET', '/')
    await expect.poll(() => closed.length).toBe(1)

    client.leave()
    await closed[0]

    // The process lives, and the next caller is served.
    const next = await fetch(`${mounted.origin}/`)
    expect(next.status).toBe(200)
  })

  it('stays where middleware may have kept it', async () => {
    const given = pieces()
    mounted = await listen(
      express()
        .use(compression())
        .use('/ai', expressHandler(sending(given, false))),
    )

    const response = await fetch(`${mounted.origin}/ai/v1/x`, { headers: { 'accept-encoding': 'gzip' } })

    expect(digest(new Uint8Array(await response.arrayBuffer()))).toBe(WHOLE)
    expect(freed(given)).toBe(0)
  })

  it('stays unless it is said that nobody reads it again', async () => {
    const given = pieces()
    const handler = nodeHandler({
      handle(_request, sink) {
        sink.head(200, [])
        for (const piece of given) sink.write(piece)
        sink.end()
      },
    })
    mounted = await listen(handler)

    await (await fetch(`${mounted.origin}/`)).arrayBuffer()

    expect(freed(given)).toBe(0)
  })
})

describe('the body of a request', () => {
  const answering = (seen: GatewayRequest[]): ExchangeHandler => ({
    handle(request, sink) {
      request.readBody(10 * 1024 * 1024, () => {
        seen.push(request)
        sink.head(204, [])
        sink.end()
      })
    },
  })

  async function owned(prepare: (request: IncomingMessage) => void): Promise<boolean | undefined> {
    const seen: GatewayRequest[] = []
    const handler = nodeHandler(answering(seen))
    mounted = await listen((request, response) => {
      prepare(request)
      handler(request, response)
    })
    await fetch(mounted.origin, { method: 'POST', body: 'x'.repeat(200_000) })
    return seen[0]?.ownsBody
  }

  it("is the gateway's alone where nobody else listens", async () => {
    expect(await owned(() => undefined)).toBe(true)
  })

  it.each<[string, (request: IncomingMessage) => void]>([
    ['data', (request) => request.on('data', () => undefined)],
    ['what is readable', (request) => request.on('readable', () => request.read())],
    ['data, from later on', (request) => queueMicrotask(() => request.on('data', () => undefined))],
  ])('is not where somebody listens for %s', async (_event, prepare) => {
    expect(await owned(prepare)).toBe(false)
  })
})
