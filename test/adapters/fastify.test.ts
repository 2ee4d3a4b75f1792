import { Agent, request } from 'node:http'
import { PassThrough, type Readable, Transform } from 'node:stream'
import { createGunzip, createGzip, gunzipSync, gzipSync } from 'node:zlib'
import cors from '@fastify/cors'
import fastify, { type FastifyInstance, type onSendAsyncHookHandler } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { type FastifyShape, fastifyGateway } from '../../src/adapters/fastify.ts'
import type { ExchangeHandler } from '../../src/core/exchange.ts'
import { listen } from '../support/listen.ts'
import type { Mounted } from './support/mounts.ts'
import { type EchoAnswer, StandInGateway } from './support/stand-in-gateway.ts'

describe('fastifyGateway', () => {
  let app: FastifyInstance
  let gateway: StandInGateway
  let mounted: Mounted | undefined

  beforeEach(() => {
    app = fastify()
    gateway = new StandInGateway()
  })

  afterEach(async () => {
    await mounted?.close()
    await app.close()
    mounted = undefined
  })

  const start = async (): Promise<string> => {
    await app.ready()
    mounted = await listen(app.server)
    return mounted.origin
  }

  const postJson = (url: string, body: string): Promise<Response> =>
    fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })

  it('leaves the parsers of the rest of the app alone', async () => {
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    app.post('/own', async (request) => ({ parsed: request.body }))
    const origin = await start()

    const own = await postJson(`${origin}/own`, '{"a":1}')
    const foreign = await fetch(`${origin}/own`, { method: 'POST', headers: { 'content-type': 'a/b' }, body: 'x' })
    const ai = await postJson(`${origin}/ai/v1/x`, '{ "a": 1 }')

    expect(await own.json()).toEqual({ parsed: { a: 1 } })
    expect(foreign.status).toBe(415)
    expect(((await ai.json()) as EchoAnswer).body).toBe('{ "a": 1 }')
  })

  it("gives the gateway Fastify's own request, with what hooks have put on it", async () => {
    const seen: unknown[] = []
    app.decorateRequest('user', '')
    app.addHook('onRequest', async (request) => {
      Object.assign(request, { user: 'ada' })
    })
    const noting: ExchangeHandler = {
      handle: (request, sink) => {
        seen.push((request.hostRequest as { user?: string }).user)
        gateway.handle(request, sink)
      },
    }
    await app.register(fastifyGateway, { gateway: noting, prefix: '/ai', logLevel: 'warn' })
    const origin = await start()
    const answer = await postJson(`${origin}/ai/v1/x`, '{}')

    expect([answer.status, seen]).toEqual([200, ['ada']])
  })

  it('is not registered with an option that does not exist', async () => {
    await expect(app.register(fastifyGateway, { gateway, base: '/ai' } as never)).rejects.toThrow(
      'fastifyGateway: base is unknown; did you mean basePath?',
    )
  })

  it('reads bodies larger than the limit of the app', async () => {
    app = fastify({ bodyLimit: 100 })
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    const origin = await start()

    const answer = (await (await postJson(`${origin}/ai/v1/x`, 'x'.repeat(5000))).json()) as EchoAnswer

    expect(answer.body).toHaveLength(5000)
  })

  it('runs the hooks of the app and keeps the headers they set', async () => {
    const ran: string[] = []
    app.addHook('onRequest', async (_request, reply) => {
      ran.push('onRequest')
      reply.header('x-hook', 'yes').header('set-cookie', ['a=1', 'b=2'])
      reply.raw.setHeader('x-raw', '1')
    })
    app.addHook('preHandler', async () => {
      ran.push('preHandler')
    })
    const responded = new Promise<number>((resolve) => {
      app.addHook('onResponse', async (_request, reply) => resolve(reply.raw.statusCode))
    })
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    const origin = await start()

    const response = await postJson(`${origin}/ai/v1/x`, '{}')

    expect([response.headers.get('x-hook'), response.headers.get('x-raw')]).toEqual(['yes', '1'])
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(ran).toEqual(['onRequest', 'preHandler'])
    expect(await responded).toBe(200)
  })

  it('does not reach the gateway when a hook has answered', async () => {
    app.addHook('preHandler', async (_request, reply) => reply.code(403).send({ refused: true }))
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    const origin = await start()

    const response = await postJson(`${origin}/ai/v1/x`, '{}')

    expect([response.status, gateway.handled]).toEqual([403, 0])
  })

  it.each([{ prefix: '/ai' }, {}])('keeps CORS headers, on streams too, and preflight works (%j)', async (mount) => {
    await app.register(cors, { origin: 'https://app.example', credentials: true })
    await app.register(fastifyGateway, { gateway, ...mount })
    const origin = await start()
    const url = `${origin}${mount.prefix ?? ''}/v1/stream`
    const headers = { origin: 'https://app.example' }

    const stream = await fetch(url, { headers })
    const preflight = await fetch(url, {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'POST' },
    })

    expect(stream.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(stream.headers.get('access-control-allow-credentials')).toBe('true')
    expect(await stream.text()).toContain('[DONE]')
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
  })

  it('knows its path in nested plugins, at the root, and under a prefix with parameters', async () => {
    await app.register(
      async (scope) => {
        await scope.register(fastifyGateway, { gateway, prefix: '/ai' })
      },
      { prefix: '/api/v1' },
    )
    await app.register(fastifyGateway, { gateway })
    await app.register(fastifyGateway, { gateway, prefix: '/tenants/:tenant', basePath: '/tenants/7' })
    app.get('/', async () => 'the app')
    const origin = await start()
    const pathOf = async (path: string): Promise<string> =>
      ((await (await fetch(`${origin}${path}`)).json()) as EchoAnswer).path

    expect(await pathOf('/api/v1/ai/v1/files/a%2Fb')).toBe('/v1/files/a%2Fb')
    expect(await pathOf('/v1/models?x=1')).toBe('/v1/models')
    expect(await pathOf('/tenants/7/v1/models')).toBe('/v1/models')
    expect(await (await fetch(origin)).text()).toBe('the app')
  })

  describe('the path of the mount itself', () => {
    const atMount = () => Object.assign(new StandInGateway(), { answersAtMount: true })
    const echo = async (url: string, method = 'GET'): Promise<string> => {
      const { path, query, ...rest } = (await (await fetch(url, { method })).json()) as EchoAnswer
      return `${rest.method} ${path}${query}`
    }

    it.each([
      {},
      { routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true } },
      { exposeHeadRoutes: false },
    ])('is served with and without a slash where the handler answers there, in an app with %j', async (options) => {
      app = fastify(options)
      await app.register(fastifyGateway, { gateway: atMount(), prefix: '/ops' })
      await app.register(fastifyGateway, { gateway, prefix: '/ai' })
      app.get('/opsx', async () => ({ method: 'the', path: ' app', query: '' }))
      const origin = await start()

      for (const slash of ['', '/'])
        for (const method of ['GET', 'POST', 'OPTIONS'])
          expect(await echo(`${origin}/ops${slash}?x`, method)).toBe(`${method} /x`)
      expect((await fetch(`${origin}/ops`, { method: 'HEAD' })).status).toBe(200)
      expect(await echo(`${origin}/ops/a`)).toBe('GET /a')
      expect(await echo(`${origin}/opsx`)).toBe('the  app')
      expect((await fetch(`${origin}/ai`)).status).toBe(404)
    })

    it('is left to a route that the app has there, and its other methods are served', async () => {
      app.get('/ops', async (_request, reply) => reply.redirect('/ops/'))
      await app.register(fastifyGateway, { gateway: atMount(), prefix: '/ops' })
      const origin = await start()
      const own = await fetch(`${origin}/ops`, { redirect: 'manual' })

      expect([own.status, own.headers.get('location')]).toEqual([302, '/ops/'])
      expect(await echo(`${origin}/ops`, 'POST')).toBe('POST /')
    })

    it("stays the app's if Fastify does not list its routes", async () => {
      app.get('/ops', async () => 'the app')
      await app.register(
        async (scope) => {
          const early = Object.create(scope, { hasRoute: { value: undefined } }) as FastifyShape
          fastifyGateway(early, { gateway: atMount() }, () => undefined)
        },
        { prefix: '/ops' },
      )
      const origin = await start()

      expect(await (await fetch(`${origin}/ops`)).text()).toBe('the app')
      expect(await echo(`${origin}/ops/a`)).toBe('GET /a')
    })

    it('is served together with a CORS plugin, at a nested prefix, and under one with parameters', async () => {
      await app.register(cors)
      await app.register(
        async (scope) => {
          await scope.register(fastifyGateway, { gateway: atMount(), prefix: '/ops' })
        },
        { prefix: '/api' },
      )
      await app.register(fastifyGateway, { gateway: atMount(), prefix: '/tenants/:tenant', basePath: '/tenants/7' })
      const origin = await start()

      expect(await echo(`${origin}/api/ops`)).toBe('GET /')
      expect(await echo(`${origin}/tenants/7`)).toBe('GET /')
    })
  })

  it('lets the gateway answer OPTIONS below a prefix', async () => {
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    const origin = await start()

    const response = await fetch(`${origin}/ai/v1/x`, { method: 'OPTIONS' })

    expect(await response.json()).toMatchObject({ method: 'OPTIONS', path: '/v1/x' })
  })

  it('works with inject, which has no socket', async () => {
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })

    const answer = await app.inject({ method: 'POST', url: '/ai/v1/x?q', payload: { a: 1 } })

    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toMatchObject({ path: '/v1/x', query: 'q', body: '{"a":1}' })
  })
})

describe('onSend hooks', () => {
  let app: FastifyInstance
  let mounted: Mounted
  let gateway: StandInGateway
  const sent: { url: string; payload: string }[] = []

  beforeEach(async () => {
    sent.length = 0
    app = fastify()
    gateway = new StandInGateway()
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('vary', 'origin')
    })
    app.addHook('onSend', async (request, reply, payload) => {
      sent.push({ url: request.url, payload: String(payload) })
      reply.header('x-plugin', 'yes')
      return request.url.endsWith('/v1/rewritten') ? '{"rewritten":true}' : payload
    })
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    await app.ready()
    mounted = await listen(app.server)
  })

  afterEach(async () => {
    await mounted.close()
    await app.close()
  })

  it('run for whole answers, and may change them', async () => {
    const whole = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'POST', body: 'é' })
    const rewritten = await fetch(`${mounted.origin}/ai/v1/rewritten`)
    const refused = await fetch(`${mounted.origin}/ai/v1/refuse`)
    const empty = await fetch(`${mounted.origin}/ai/v1/empty`)
    const head = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'HEAD' })

    expect([whole.headers.get('x-plugin'), whole.headers.get('content-type')]).toEqual(['yes', 'application/json'])
    expect(whole.headers.get('vary')).toBe('origin, x-api-key')
    expect(((await whole.json()) as EchoAnswer).body).toBe('é')
    expect([rewritten.headers.get('content-length'), await rewritten.json()]).toEqual(['18', { rewritten: true }])
    expect([refused.status, refused.headers.get('x-plugin')]).toEqual([401, 'yes'])
    expect([empty.status, empty.headers.get('x-request-id'), empty.headers.get('x-plugin')]).toEqual([
      204,
      'req_1',
      'yes',
    ])
    expect([head.status, head.headers.get('x-plugin'), await head.text()]).toEqual([200, 'yes', ''])
    expect(sent[0]?.payload).toContain('"path":"/v1/x"')
  })

  it('run once for a stream, before its first byte, and their headers are sent', async () => {
    const stream = await fetch(`${mounted.origin}/ai/v1/stream`)

    expect(await stream.text()).toBe('data: one\n\ndata: zwei – ünï\n\ndata: [DONE]\n\n')
    expect([stream.headers.get('x-plugin'), stream.headers.get('vary')]).toEqual(['yes', 'origin'])
    expect(stream.headers.get('content-type')).toBe('text/event-stream')
    expect(sent).toEqual([{ url: '/ai/v1/stream', payload: '[object Object]' }])
  })

  it('are answered by the app, once, if they fail', async () => {
    const failing = fastify()
    failing.addHook('onSend', async (request) => {
      if (request.url.startsWith('/ai')) throw new Error('the plugin failed')
    })
    await failing.register(fastifyGateway, { gateway, prefix: '/ai' })

    const answer = await failing.inject({ url: '/ai/v1/x' })
    await failing.close()

    expect([answer.statusCode, answer.json().message]).toEqual([500, 'the plugin failed'])
  })

  it('run for the answer to a refused body, which ends with its connection', async () => {
    gateway.limitBytes = 10

    const refused = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'POST', body: 'x'.repeat(100_000) })

    expect([refused.status, refused.headers.get('connection')]).toEqual([413, 'close'])
    expect([await refused.json(), refused.headers.get('x-plugin')]).toMatchObject([{ failure: 'too_large' }, 'yes'])
  })
})

describe('onSend hooks of a stream', () => {
  let app: FastifyInstance
  let mounted: Mounted
  let gateway: StandInGateway
  const logged: string[] = []

  const start = async (hook: onSendAsyncHookHandler<unknown>): Promise<string> => {
    logged.length = 0
    app = fastify({ logger: { level: 'info', stream: { write: (line: string) => void logged.push(line) } } })
    gateway = new StandInGateway()
    app.addHook('onSend', hook)
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    await app.ready()
    mounted = await listen(app.server)
    return `${mounted.origin}/ai`
  }

  afterEach(async () => {
    await mounted.close()
    await app.close()
  })

  it('may return another stream, and slow readers of it stop the gateway', async () => {
    const origin = await start(async (_request, _reply, payload) => (payload as Readable).pipe(createGzip()))
    const stream = await fetch(`${origin}/v1/stream`, { headers: { 'accept-encoding': 'identity' } })
    const bytes = Buffer.from(await stream.arrayBuffer())
    const flood = await fetch(`${origin}/v1/flood`)
    const flooded = Buffer.from(await flood.arrayBuffer())

    expect(gunzipSync(bytes).toString()).toBe('data: one\n\ndata: zwei – ünï\n\ndata: [DONE]\n\n')
    expect(gunzipSync(flooded).length).toBe(64 * 1024 * 1024)
    expect(gateway.drains).toBeGreaterThan(10)
  })

  it('may take longer than the stream, which follows whole', async () => {
    const origin = await start(async (_request, reply) => {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      reply.header('x-late', 'yes')
    })
    const stream = await fetch(`${origin}/v1/stream`)
    const flood = await fetch(`${origin}/v1/flood`)

    expect([stream.headers.get('x-late'), await stream.text()]).toEqual([
      'yes',
      'data: one\n\ndata: zwei – ünï\n\ndata: [DONE]\n\n',
    ])
    expect((await flood.arrayBuffer()).byteLength).toBe(64 * 1024 * 1024)
  })

  it('are answered by the app if they fail, and the gateway sees a disconnect', async () => {
    const origin = await start(async (request) => {
      if (request.url.endsWith('/v1/hang')) throw new Error('the plugin failed')
    })
    const answer = await fetch(`${origin}/v1/hang`)

    expect(answer.status).toBe(500)
    expect(gateway.left).toEqual(['/v1/hang'])
  })

  it('leave a cut stream and a caller who disconnects without an entry in the log of errors', async () => {
    const origin = await start(async () => undefined)
    await expect(fetch(`${origin}/v1/cut`).then((answer) => answer.text())).rejects.toThrow()
    const left = gateway.next('left')
    const sent = request(`${origin}/v1/hang`, (response) => response.once('data', () => sent.destroy()))
    sent.on('error', () => undefined).end()
    await left
    await (await fetch(`${origin}/v1/stream`)).text()

    expect(logged.filter((line) => /prematur|terminated|"err"/i.test(line))).toEqual([])
  })
})

describe('a stream that a preParsing hook returns', () => {
  let app: FastifyInstance
  let mounted: Mounted
  let gateway: StandInGateway

  const start = async (replace: (payload: Readable) => Readable): Promise<string> => {
    app = fastify()
    gateway = new StandInGateway()
    app.addHook('preParsing', async (_request, _reply, payload) => replace(payload))
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    await app.ready()
    mounted = await listen(app.server)
    return `${mounted.origin}/ai`
  }

  afterEach(async () => {
    await mounted.close()
    await app.close()
  })

  const post = (url: string, body: string | Uint8Array<ArrayBuffer>, headers = {}): Promise<Response> =>
    fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })

  it('is read in place of the request', async () => {
    const upper = (): Transform =>
      new Transform({ transform: (chunk, _encoding, done) => done(null, String(chunk).toUpperCase()) })
    const origin = await start((payload) => payload.pipe(upper()))

    expect(await (await post(`${origin}/v1/x`, '{"a":"b"}')).json()).toMatchObject({ body: '{"A":"B"}' })
  })

  it('is read without the headers of the compressed bytes', async () => {
    const origin = await start((payload) => payload.pipe(createGunzip()))
    const answer = await post(`${origin}/v1/x`, gzipSync('{"a":"é"}'), { 'content-encoding': 'gzip' })

    expect(await answer.json()).toMatchObject({ body: '{"a":"é"}', contentEncoding: null, contentLength: null })
  })

  it('gets 400 if it cannot be decoded, and the process lives on', async () => {
    const origin = await start((payload) => payload.pipe(createGunzip()))
    const broken = await post(`${origin}/v1/x`, 'not gzip', { 'content-encoding': 'gzip' })
    const unread = await post(`${origin}/v1/refuse`, 'not gzip', { 'content-encoding': 'gzip' })

    expect([broken.status, await broken.json()]).toMatchObject([400, { failure: 'unreadable' }])
    expect([unread.status, (await post(`${origin}/v1/empty`, gzipSync('{}'))).status]).toEqual([401, 204])
  })

  it('is refused when it grows larger than the limit, and the connection ends', async () => {
    const origin = await start((payload) => payload.pipe(createGunzip()))
    gateway.limitBytes = 100
    const refused = await post(`${origin}/v1/x`, gzipSync('x'.repeat(1_000_000)))

    expect([refused.status, refused.headers.get('connection')]).toEqual([413, 'close'])
    expect((await post(`${origin}/v1/empty`, gzipSync('{}'))).status).toBe(204)
  })

  it('does not block the next request of the connection if it is not read', async () => {
    const origin = await start((payload) => payload.pipe(new PassThrough()))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const status = (path: string, body: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json' }
        const sent = request(`${origin}${path}`, { method: 'POST', agent, headers }, (response) => {
          response.resume()
          response.on('end', () => resolve([response.statusCode, sent.reusedSocket]))
        })
        sent.on('error', reject)
        sent.end(body)
      })

    expect(await status('/v1/refuse', 'x'.repeat(2_000_000))).toEqual([401, false])
    expect(await status('/v1/empty', '{}')).toEqual([204, true])
    agent.destroy()
  })

  it('ends with the caller who disconnects in the middle of it', async () => {
    const origin = await start((payload) => payload.pipe(new PassThrough()))
    const read = gateway.next('read')
    const handled = gateway.next('handled')
    const headers = { 'content-type': 'application/json', 'content-length': 1_000 }
    const sent = request(`${origin}/v1/x`, { method: 'POST', headers }).on('error', () => undefined)
    sent.write('{')
    await handled
    sent.destroy()

    expect(await read).toBe('aborted')
  })
})
