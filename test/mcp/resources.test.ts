import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { ERAS, type Era } from './support/mcp-client.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'

let started: StartedMcp
let client: Client

/** Members of resources that tests name. */
interface Read {
  readonly models: readonly { readonly id: string }[]
  readonly aliases: readonly string[]
  readonly prices: readonly { readonly when: object }[]
  readonly requests: readonly [
    {
      readonly path: string
      readonly schema: { readonly properties: Readonly<Record<string, unknown>> }
    },
  ]
}

async function read(uri: string): Promise<Read> {
  const { contents } = await client.readResource({ uri })
  const [content] = contents
  expect(content).toMatchObject({ uri, mimeType: 'application/json' })
  return JSON.parse(content !== undefined && 'text' in content ? content.text : 'null') as Read
}

function complete(uri: string, name: string, value: string) {
  return client.complete({ ref: { type: 'ref/resource', uri }, argument: { name, value } })
}

describe.each(Object.keys(ERAS) as Era[])('in revision %s', (era) => {
  beforeAll(async () => {
    started = await startMcp()
    client = await started.connect({ era })
  })
  afterAll(() => started.close())

  test('the lists name what can be read, and all of it can be', async () => {
    const { resources } = await client.listResources()
    const { resourceTemplates } = await client.listResourceTemplates()

    expect(resourceTemplates.map((template) => template.uriTemplate)).toEqual([
      'gateway://catalog/{model}',
      'gateway://pricing/{model}',
      'gateway://reference/{endpoint}',
    ])
    expect(resources.map((resource) => resource.uri)).toEqual([
      'gateway://catalog',
      'gateway://pricing',
      ...[...new Set(ENDPOINTS.map((endpoint) => `gateway://reference/${endpoint.id}`))],
    ])
    for (const { uri } of resources) expect(await read(uri), uri).toBeTypeOf('object')
  })

  test('the catalog lists every model, and tells the abilities of one by id or alias', async () => {
    const { models } = await read('gateway://catalog')
    const boat = await read('gateway://catalog/wv2.6-t2v')
    const alias = await read(`gateway://catalog/${boat.aliases[0]}`)

    // MCP names a model once, by its public id.
    const ids = started.gateway.models().map((row) => row.id)
    expect(models.map((row) => row.id)).toEqual(ids.filter((id) => started.gateway.catalog.find(id)?.id === id))
    expect(boat).toMatchObject({ id: 'wv2.6-t2v', kinds: ['video'], available: true, video: { task: 't2v' } })
    expect(boat).not.toHaveProperty('upstream')
    expect(alias).toEqual(boat)
  })

  test('prices are those of the list, each with its conditions', async () => {
    const all = await read('gateway://pricing')
    const video = await read('gateway://pricing/wv2.6-t2v')
    const picture = await read('gateway://pricing/qw-image-2.0')
    const chat = await read('gateway://pricing/cl-sonnet-4-6')

    expect(all).toMatchObject({ billing: 'on', currency: 'USD' })
    expect(video.prices).toEqual([
      { model: 'wv2.6-t2v', when: { resolution: '720p' }, prices: [{ meter: 'video_second', amount: '0.10', per: 1 }] },
      {
        model: 'wv2.6-t2v',
        when: { resolution: '1080p' },
        prices: [{ meter: 'video_second', amount: '0.15', per: 1 }],
      },
    ])
    expect(picture.prices).toContainEqual({
      model: 'qw-image-2.0',
      when: { size: '1664*928' },
      prices: [{ meter: 'image', amount: '0.08', per: 1 }],
    })
    expect(chat.prices).toMatchObject([
      { when: {}, prices: [{ meter: 'input_token', amount: '3.00', per: 1_000_000 }, {}, {}] },
    ])
  })

  test('the reference gives the schemas by which bodies are checked', async () => {
    const chat = await read('gateway://reference/chat')
    const images = await read('gateway://reference/images')

    expect(chat).toMatchObject({ endpoint: 'chat', requests: [{ method: 'POST', path: '/v1/chat/completions' }] })
    expect(chat.requests[0].schema).toMatchObject({ type: 'object', required: ['model', 'messages'] })
    expect(chat.requests[0].schema.properties['temperature']).toMatchObject({
      anyOf: [{ minimum: 0, maximum: 2 }, { type: 'null' }],
    })
    expect(images.requests).toHaveLength(3)
  })

  test('lists every path that accepts a body in the reference of its endpoint', async () => {
    for (const { id, path } of ENDPOINTS) {
      const { requests } = await read(`gateway://reference/${id}`)
      expect(requests.map((request) => request.path)).toContain(path)
    }
  })

  test.each([
    'gateway://catalog/no-such-model',
    'gateway://catalog/__proto__',
    'gateway://catalog/',
    'gateway://catalog/%',
    'gateway://pricing/no-such-model',
    'gateway://reference/constructor',
    'gateway://elsewhere',
    'file:///etc/passwd',
  ])('%s does not exist', async (uri) => {
    await expect(client.readResource({ uri })).rejects.toThrow()
  })

  test('names are completed', async () => {
    const models = await complete('gateway://catalog/{model}', 'model', 'wv2.7')
    const priced = await complete('gateway://pricing/{model}', 'model', 'vy-')
    const endpoints = await complete('gateway://reference/{endpoint}', 'endpoint', 'c')

    expect(models.completion.values).toContain('wv2.7-t2v')
    expect(models.completion.values.every((name) => name.startsWith('wv2.7'))).toBe(true)
    expect(priced.completion).toMatchObject({
      values: ['vy-4-large', 'vy-4', 'vy-4-lite', 'vy-rerank-2.5', 'vy-rerank-2.5-lite'],
      total: 5,
      hasMore: false,
    })
    expect(endpoints.completion.values).toContain('chat')
  })

  test('there is nothing to complete for a template that does not exist', async () => {
    await expect(complete('gateway://elsewhere/{model}', 'model', 'a')).rejects.toThrow()
  })
})

test('a model whose id has a slash is read with the slash as it is, and encoded', async () => {
  const model = { id: 'ours/fast', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' } as const
  started = await startMcp({ gateway: { billing: 'off', models: [model] } })
  client = await started.connect()

  for (const folder of ['gateway://catalog', 'gateway://pricing']) {
    const written = await read(`${folder}/ours/fast`)
    expect(await read(`${folder}/ours%2Ffast`)).toEqual(written)
  }
  await started.close()
})

test('without billing there are no prices, and an estimate says so', async () => {
  const free = await startMcp({ gateway: { billing: 'off' } })
  const caller = await free.connect()
  const { contents } = await caller.readResource({ uri: 'gateway://pricing' })
  const request = { model: 'cl-sonnet-4-6', messages: [{ role: 'user', content: 'hello' }] }
  const { structuredContent } = await caller.callTool({
    name: 'estimate_cost',
    arguments: { endpoint: 'chat', request },
  })
  await free.close()

  expect(JSON.parse((contents[0] as { text: string }).text)).toEqual({ billing: 'off', currency: 'USD', prices: [] })
  expect(structuredContent).toMatchObject({ billing: 'off', cost: null })
})
