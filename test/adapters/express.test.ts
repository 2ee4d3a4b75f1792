import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'

import express5, { type Express } from 'express'
import { afterEach, describe, expect, it } from 'vitest'

import { type ExpressRequest, expressHandler } from '../../src/adapters/express.ts'
import { listen } from '../support/listen.ts'
import { compression, cors, express4, type Mounted } from './support/mounts.ts'
import { RawClient } from './support/raw-client.ts'
import { type EchoAnswer, StandInGateway } from './support/stand-in-gateway.ts'

describe.each([
  ['5', express5, '/*splat'],
  ['4', express4, '/*'],
] as const)('expressHandler in Express %s', (_version, express, wildcard) => {
  let mounted: Mounted | undefined

  afterEach(async () => {
    await mounted?.close()
    mounted = undefined
  })

  const serve = async (build: (app: Express, gateway: StandInGateway) => void): Promise<StandInGateway> => {
    const gateway = new StandInGateway()
    const app = express()
    build(app, gateway)
    mounted = await listen(app)
    return gateway
  }

  const echo = async (path: string, init?: RequestInit): Promise<EchoAnswer> =>
    (await (await fetch(`${mounted?.origin}${path}`, init)).json()) as EchoAnswer

  const postJson = (path: string, body: string, headers: Record<string, string> = {}): Promise<EchoAnswer> =>
    echo(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })

  it.each<[string, string, (app: Express, gateway: StandInGateway) => void]>([
    ['app.use with a path', '/ai', (app, gateway) => app.use('/ai', expressHandler(gateway))],
    ['app.use without a path', '', (app, gateway) => app.use(expressHandler(gateway))],
    [
      'app.use with the base path named twice',
      '/ai',
      (app, gateway) => app.use('/ai', expressHandler(gateway, { basePath: '/ai' })),
    ],
    [
      'app.use without a path, but a base path',
      '/ai',
      (app, gateway) => app.use(expressHandler(gateway, { basePath: '/ai' })),
    ],
    ['app.all', '/ai', (app, gateway) => app.all(`/ai${wildcard}`, expressHandler(gateway))],
    [
      'app.all with a base path',
      '/api/v1/ai',
      (app, gateway) => app.all(`/api/v1/ai${wildcard}`, expressHandler(gateway, { basePath: '/api/v1/ai' })),
    ],
    [
      'nested routers',
      '/api/v1/ai',
      (app, gateway) =>
        app.use('/api', express.Router().use('/v1', express.Router().use('/ai', expressHandler(gateway)))),
    ],
    [
      'a nested router with all',
      '/api/ai',
      (app, gateway) => app.use('/api', express.Router().all(`/ai${wildcard}`, expressHandler(gateway))),
    ],
    [
      'a nested router with all and a base path of its own',
      '/api/ai',
      (app, gateway) =>
        app.use('/api', express.Router().all(`/ai${wildcard}`, expressHandler(gateway, { basePath: '/ai' }))),
    ],
    ['a mount written in other case', '/AI', (app, gateway) => app.use('/ai', expressHandler(gateway))],
  ])('finds the path under %s', async (_mount, prefix, build) => {
    await serve(build)

    const chat = await postJson(`${prefix}/v1/files/a%2Fb?x=1`, '{"a":1}')
    const health = await echo(`${prefix}/healthz`)

    expect(chat).toMatchObject({ path: '/v1/files/a%2Fb', query: 'x=1', body: '{"a":1}' })
    expect(health).toMatchObject({ path: '/healthz' })
  })

  it('lets the gateway answer what lies outside its base path', async () => {
    await serve((app, gateway) => app.use(expressHandler(gateway, { basePath: '/ai' })))

    expect((await echo('/other/v1/models')).path).toBe('/other/v1/models')
    expect((await echo('/v1/models')).path).toBe('/')
  })

  it('passes on what is not its own when asked to', async () => {
    const gateway = await serve((app, stand) => {
      app.use(expressHandler(stand, { passUnknown: true }))
      app.get('/users/v1/x', (_request, response) => void response.json({ path: 'of the app' }))
    })

    expect((await echo('/v1/models')).path).toBe('/v1/models')
    expect((await echo('/users/v1/x')).path).toBe('of the app')
    expect(gateway.handled).toBe(1)
  })

  it('passes on what is outside its base path when asked to', async () => {
    await serve((app, gateway) => {
      app.use(expressHandler(gateway, { basePath: '/ai', passUnknown: true }))
      app.get('/v1/models', (_request, response) => void response.json({ path: 'of the app' }))
    })

    expect((await echo('/ai/v1/models')).path).toBe('/v1/models')
    expect((await echo('/v1/models')).path).toBe('of the app')
  })

  it('reads the body behind express.json()', async () => {
    await serve((app, gateway) => app.use(express.json()).use('/ai', expressHandler(gateway)))

    const answer = await postJson('/ai/v1/x', '{ "model": "wv2.7-t2v",\n "text": "ü" }')

    expect(answer).toMatchObject({ failure: null, body: '{"model":"wv2.7-t2v","text":"ü"}', contentLength: null })
  })

  it('keeps the exact bytes behind express.raw()', async () => {
    await serve((app, gateway) => app.use(express.raw({ type: '*/*' })).use('/ai', expressHandler(gateway)))

    expect(await postJson('/ai/v1/x', '{ "a" : 1 }')).toMatchObject({ failure: null, body: '{ "a" : 1 }' })
  })

  it('reads forms and everything else behind express.urlencoded()', async () => {
    await serve((app, gateway) => app.use(express.urlencoded({ extended: true })).use('/ai', expressHandler(gateway)))

    const form = await echo('/ai/v1/x', { method: 'POST', body: new URLSearchParams({ a: 'x y' }) })
    const json = await postJson('/ai/v1/x', '{"a":1}')

    expect([form.body, json.body]).toEqual(['a=x+y', '{"a":1}'])
  })

  it('leaves a body alone that no parser took', async () => {
    await serve((app, gateway) => app.use(express.json()).use('/ai', expressHandler(gateway)))

    const text = await echo('/ai/v1/x', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'plain' })
    const none = await echo('/ai/v1/x', { method: 'POST' })

    expect(text).toMatchObject({ failure: null, body: 'plain' })
    expect(none).toMatchObject({ failure: null, body: '' })
  })

  it('a compressed body that a parser has unpacked no longer counts as compressed', async () => {
    await serve((app, gateway) => app.use(express.json()).use('/ai', expressHandler(gateway)))

    const answer = (await (
      await fetch(`${mounted?.origin}/ai/v1/x`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        body: gzipSync('{"a":1}'),
      })
    ).json()) as EchoAnswer

    expect(answer).toMatchObject({ body: '{"a":1}', contentEncoding: null, failure: null })
  })

  it('holds a parsed body to the limit', async () => {
    const gateway = await serve((app, stand) => app.use(express.json()).use('/ai', expressHandler(stand)))
    gateway.limitBytes = 10

    expect(await postJson('/ai/v1/x', '{"text":"too long for it"}')).toMatchObject({ failure: 'too_large', body: '' })
  })

  it('says "consumed" at once when a middleware read the body and kept nothing', async () => {
    await serve((app, gateway) => {
      app.use((request, _response, next) => {
        request.on('data', () => undefined)
        request.on('end', () => next())
      })
      app.use('/ai', expressHandler(gateway))
    })

    expect(await postJson('/ai/v1/x', '{"a":1}')).toMatchObject({ failure: 'consumed' })
  })

  it('says "consumed" although express.json() then left an empty object', async () => {
    await serve((app, gateway) => {
      app.use((request, _response, next) => {
        request.on('data', () => undefined)
        request.on('end', () => next())
      })
      app.use((request: ExpressRequest & { body?: unknown }, _response: ServerResponse, next: () => void) => {
        // Effect of Express 4's body-parser on an unsupported content type.
        request.body = request.body ?? {}
        next()
      })
      app.use('/ai', expressHandler(gateway))
    })

    expect(await postJson('/ai/v1/x', '{"model":"cl-opus-4-7"}')).toMatchObject({ failure: 'consumed' })
  })

  it('keeps the headers of cors() and of Express itself', async () => {
    await serve((app, gateway) =>
      app.use(cors({ origin: 'https://app.example', credentials: true })).use('/ai', expressHandler(gateway)),
    )

    const { headers } = await fetch(`${mounted?.origin}/ai/v1/x`)

    expect(headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(headers.get('vary')).toBe('Origin, x-api-key')
    expect(headers.get('x-powered-by')).toBe('Express')
    expect(headers.get('content-type')).toBe('application/json')
  })

  it('streams event by event with compression() mounted', async () => {
    const gateway = await serve((app, stand) => {
      app.disable('x-powered-by')
      app.use(compression()).use('/ai', expressHandler(stand))
    })
    const client = await RawClient.open(mounted!.port)
    client.send('GET', '/ai/v1/hang', ['accept-encoding: gzip'])

    const text = await client.until('data: one')
    const left = gateway.next('left')
    client.leave()

    expect(text).not.toContain('content-encoding')
    expect(await left).toBe(true)
  })

  it('sends whole and large answers right with compression() mounted', async () => {
    const gateway = await serve((app, stand) => {
      app.disable('x-powered-by')
      app.use(compression()).use('/ai', expressHandler(stand))
    })

    const json = await fetch(`${mounted?.origin}/ai/v1/x`, { method: 'POST', body: 'x'.repeat(5000) })
    const flood = await fetch(`${mounted?.origin}/ai/v1/flood`, { headers: { 'accept-encoding': 'gzip' } })

    expect(json.headers.get('content-encoding')).not.toBeNull()
    expect(((await json.json()) as EchoAnswer).body).toHaveLength(5000)
    expect((await flood.arrayBuffer()).byteLength).toBe(64 * 1024 * 1024)
    expect(gateway.left).toEqual([])
  })
})
