import { afterEach, describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../../src/catalog/model.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, json } from '../streams/answering-vendor.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const ENDPOINTS = [
  ['embedding', '/v1/embeddings', { input: 'a' }],
  ['rerank', '/v1/rerank', { query: 'a', documents: ['b'] }],
] as const

interface Server extends AnsweringVendor {
  readonly models: unknown[]
}

async function server(isDown: boolean): Promise<Server> {
  const models: unknown[] = []
  const vendor = await answeringVendor((response, body) => {
    models.push(body['model'])
    if (isDown) return json(response, { error: { message: 'overloaded' } }, 503)
    const data = [{ object: 'embedding', index: 0, embedding: [1, 0] }]
    const results = [{ index: 0, relevance_score: 0.5 }]
    json(response, { object: 'list', data, results, model: 'own', usage: { prompt_tokens: 1, total_tokens: 1 } })
  })
  closers.push(vendor.close)
  return Object.assign(vendor, { models })
}

async function start(models: readonly ModelDefinition[]): Promise<StartedGateway & { readonly servers: Server[] }> {
  const servers = [await server(true), await server(false)]
  const started = await startGateway({
    billing: 'off',
    models,
    vendors: servers.map(({ origin }, index) =>
      openaiCompatible({ id: ['one', 'two'][index]!, baseURL: origin, apiKey: 'key-0123456789', models: [] }),
    ),
  })
  closers.push(started.close)
  return { ...started, servers }
}

describe.each(ENDPOINTS)('fallbacks of %s models', (kind, path, body) => {
  const first = { id: 'first', kind, vendor: 'one', upstream: 'maker/bge-m3' } as const

  test('go to the same model of another row at another vendor', async () => {
    const second = { id: 'second', kind, vendor: 'two', upstream: 'bge-m3' } as const
    const gateway = await start([{ ...first, fallbacks: ['second'] }, second])
    const answer = await gateway.post(path, { model: 'first', ...body })

    expect([answer.status, answer.headers.get('x-signalbox-vendor')]).toEqual([200, 'two'])
    expect(gateway.servers.map(({ models }) => models.at(-1))).toEqual(['maker/bge-m3', 'bge-m3'])
  })

  test('reject another model when the gateway is created', () => {
    const models = [
      { ...first, fallbacks: ['second'] },
      { id: 'second', kind, vendor: 'one', upstream: 'e5-large' },
    ] as const
    const vendors = [openaiCompatible({ id: 'one', baseURL: 'http://127.0.0.1:9', apiKey: 'k-0123456789', models: [] })]

    expect(() => createGateway({ vendors, models, billing: 'off' })).toThrow(
      `model "first": the fallback "second" is another ${kind} model, whose results cannot be compared`,
    )
  })

  test('ignore other models that a caller names in models', async () => {
    const other = { id: 'other', kind, vendor: 'two', upstream: 'e5-large' } as const
    const gateway = await start([first, other])
    const answer = await gateway.post(path, { model: 'first', models: ['first', 'other'], ...body })

    expect(answer.status).toBe(503)
    expect(gateway.servers.map(({ calls }) => calls > 0)).toEqual([true, false])
  })
})

test('rejects models in embeddings at a router that would choose among them', async () => {
  const router = await server(false)
  const models = [{ id: 'embed', kind: 'embedding', upstream: 'maker/bge-m3' }] as const
  const vendor = openaiCompatible(presets.openrouter, { apiKey: 'k-0123456789', baseURL: router.origin, models })
  const started = await startGateway({ billing: 'off', models: [], vendors: [vendor] })
  closers.push(started.close)
  const answer = await started.post('/v1/embeddings', { model: 'embed', input: 'a', models: ['maker/other'] })

  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({ error: { code: 'unsupported_parameter', param: 'models' } })
  expect(router.calls).toBe(0)
})
