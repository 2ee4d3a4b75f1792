import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import express5 from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterEach, describe, expect, it } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { fastifyGateway } from '../../src/adapters/fastify.ts'
import { fetchHandler } from '../../src/adapters/fetch.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import type { ByteSink, ExchangeHandler } from '../../src/core/exchange.ts'
import { type Listening, listen } from '../support/listen.ts'
import { express4 } from './support/mounts.ts'
import { RawClient } from './support/raw-client.ts'

// With it Node throws where bytes are written to an answer that has none.
const STRICT = { rejectNonStandardBodyWrites: true }

const MOUNTS: Readonly<Record<string, (gateway: ExchangeHandler) => Promise<Server>>> = {
  node: async (gateway) => createServer(STRICT, nodeHandler(gateway)),
  'express 5': async (gateway) => createServer(STRICT, express5().use(expressHandler(gateway))),
  'express 4': async (gateway) => createServer(STRICT, express4().use(expressHandler(gateway))),
  fastify: async (gateway) => {
    const app = fastify({ http: STRICT })
    await app.register(fastifyGateway, { gateway })
    await app.ready()
    return app.server
  },
  hono: async (gateway) => {
    const handler = fetchHandler(gateway)
    const app = new Hono().all('*', (context) => handler(context.req.raw))
    return createAdaptorServer({ fetch: app.fetch, serverOptions: STRICT }) as Server
  },
}

const SMALL = Buffer.alloc(10, 'x')
const LARGE = Buffer.alloc(20_000, 'x')

const ANSWERS: Readonly<Record<string, (sink: ByteSink) => void>> = {
  'a small answer': (sink) => {
    sink.head(200, ['content-type', 'text/plain', 'content-length', '10'])
    sink.end(SMALL)
  },
  'a text': (sink) => {
    sink.head(200, ['content-type', 'text/plain', 'content-length', '10'])
    sink.end(SMALL.toString())
  },
  'a large answer': (sink) => {
    sink.head(200, ['content-type', 'text/plain', 'content-length', '20000'])
    sink.end(LARGE)
  },
  'an answer in pieces': (sink) => {
    sink.head(200, ['content-type', 'text/plain', 'content-length', '20010'])
    sink.write(SMALL)
    setImmediate(() => sink.end(LARGE))
  },
  'a stream': (sink) => {
    sink.head(200, ['content-type', 'text/event-stream'])
    sink.write('data: one\n\n')
    setImmediate(() => sink.end('data: two\n\n'))
  },
}

function nothing(sink: ByteSink): void {
  sink.head(204, [])
  sink.end()
}

const LENGTHS = ['10', '10', '20000', '20010', undefined]

describe.each(Object.entries(MOUNTS))('HEAD in %s, on a server that is strict about bodies', (_name, mount) => {
  let mounted: Listening

  afterEach(() => mounted.close())

  it.each(Object.keys(ANSWERS).map((name, index) => [name, LENGTHS[index]]))(
    'has the headers of %s, no bytes, and a connection for the next request',
    async (name, length) => {
      mounted = await listen(
        await mount({ handle: ({ method }, sink) => (method === 'HEAD' ? ANSWERS[name!]!(sink) : nothing(sink)) }),
      )
      const client = await RawClient.open(mounted.port)

      client.send('HEAD', '/v1/models')
      const first = await client.until('\r\n\r\n')
      client.send('GET', '/v1/models')
      const both = await client.until('204 No Content')

      expect(first).toContain('HTTP/1.1 200 OK\r\n')
      if (length !== undefined) expect(first.toLowerCase()).toContain(`content-length: ${length}\r\n`)
      expect(both.slice(first.length)).toMatch(/^HTTP\/1\.1 204 No Content/)
      client.leave()
    },
  )
})
