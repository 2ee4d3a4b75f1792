import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TOOLS } from '../../src/mcp/tools/tools.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { listen } from '../support/listen.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import { ERAS, type Era } from './support/mcp-client.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'
import { callTool, errorIn } from './support/tool-result.ts'

const SAID = [{ role: 'user', content: 'good morning, Zoë' }]

describe.each(Object.keys(ERAS) as Era[])('in revision %s', (era) => {
  let started: StartedMcp
  let client: Client

  beforeAll(async () => {
    started = await startMcp()
    client = await started.connect({ era })
  })
  afterAll(() => started.close())

  test('every tool is listed with both schemas and all hints', async () => {
    const { tools } = await client.listTools()

    expect(tools.map((tool) => tool.name)).toEqual(TOOLS.map((tool) => tool.name))
    for (const { name, description, inputSchema, outputSchema, annotations } of tools) {
      expect(inputSchema.type, name).toBe('object')
      expect(outputSchema?.type, name).toBe('object')
      expect(description, name).toMatch(/\.$/)
      expect(Object.keys(annotations ?? {}).sort(), name).toEqual([
        'destructiveHint',
        'idempotentHint',
        'openWorldHint',
        'readOnlyHint',
        'title',
      ])
    }
  })

  test('chat_complete answers as the chat endpoint does, with a copy as text', async () => {
    const result = await callTool(client, 'chat_complete', { model: 'cl-sonnet-4-6', messages: SAID, max_tokens: 100 })

    expect(result.structured.choices[0].message.content).toBe('You said: good morning, Zoë')
    expect(result.structured).toMatchObject({ object: 'chat.completion', model: 'cl-sonnet-4-6' })
    expect(JSON.parse(result.text)).toEqual(result.structured)
  })

  test('fields that the tool does not name reach the vendor', async () => {
    started.sandbox.reset()
    await callTool(client, 'chat_complete', {
      model: 'chat-relayed',
      messages: SAID,
      seed: 7,
      idempotency_key: `k-${era}`,
    })

    expect(started.sandbox.requests[0]?.body).toMatchObject({ seed: 7 })
    expect(started.sandbox.requests[0]?.body).not.toHaveProperty('idempotency_key')
  })

  test('a call is charged like the same call by HTTP', async () => {
    const body = { model: 'cl-sonnet-4-6', messages: SAID, max_tokens: 50 }
    const first = await started.account()
    await started.ended(await started.post('/v1/chat/completions', body))
    const second = await started.account()
    await callTool(client, 'chat_complete', body)
    const third = await started.account()

    expect(first.balance - second.balance).toBeGreaterThan(0n)
    expect(second.balance - third.balance).toBe(first.balance - second.balance)
    expect(third.held).toBe(0n)
  })

  test('calls with one idempotency_key are carried out and charged once', async () => {
    const args = { model: 'cl-sonnet-4-6', messages: SAID, idempotency_key: `once-${era}` }
    const first = await callTool(client, 'chat_complete', args)
    const { balance } = await started.account()
    const again = await callTool(client, 'chat_complete', args)

    expect(again.structured).toEqual(first.structured)
    expect((await started.account()).balance).toBe(balance)
  })

  test('create_embeddings gives vectors in the order of the input', async () => {
    const { structured } = await callTool(client, 'create_embeddings', {
      model: 'vy-4',
      input: ['one', 'two'],
      dimensions: 256,
    })

    expect(structured.data.map((row) => [row.index, row.embedding.length])).toEqual([
      [0, 256],
      [1, 256],
    ])
  })

  test('rerank gives the best documents first', async () => {
    const { structured } = await callTool(client, 'rerank', {
      model: 'vy-rerank-2.5',
      query: 'capital of Peru',
      documents: ['Quito', { text: 'Lima is the capital of Peru' }, 'Peru'],
      top_n: 2,
      top_k: 1,
    })

    expect(structured.results.map(({ index }) => index)).toEqual([1, 2])
  })

  test('list_models narrows the list down by kind', async () => {
    const { structured } = await callTool(client, 'list_models', { kind: 'video' })

    expect(structured.models.length).toBeGreaterThan(5)
    expect(structured.models.every((row) => row.kinds.includes('video'))).toBe(true)
  })

  test('get_balance says what the account has', async () => {
    const { structured } = await callTool(client, 'get_balance', {})

    expect(structured).toMatchObject({ id: TEST_ACCOUNT, currency: 'USD', held: '0', tier: 'paid' })
    expect(Number(structured.balance)).toBeGreaterThan(90)
  })

  test('estimate_cost says what would be held, and holds and sends nothing', async () => {
    started.sandbox.reset()
    const before = await started.account()
    const { structured } = await callTool(client, 'estimate_cost', {
      endpoint: 'videos',
      request: { model: 'wv2.6-t2v', duration: 5, resolution: '720p', input: { prompt: 'a boat' } },
    })

    expect(structured).toEqual({
      endpoint: 'videos',
      model: 'wv2.6-t2v',
      billing: 'on',
      currency: 'USD',
      cost: '0.5',
      usage: { videoSeconds: 5 },
    })
    expect(await started.account()).toEqual(before)
    expect(started.sandbox.requests).toEqual([])
  })

  test('offers estimate_cost for no endpoint whose requests are not JSON', async () => {
    const { tools } = await client.listTools()
    const { properties } = tools.find(({ name }) => name === 'estimate_cost')?.inputSchema ?? {}
    const { enum: offered } = { ...(properties?.['endpoint'] as object) } as { readonly enum?: readonly string[] }

    expect(offered).toContain('image_edits')
    expect(offered).not.toContain('transcriptions')
  })

  test('arguments that do not fit are an error of the tool that names the argument', async () => {
    const bad = await callTool(client, 'chat_complete', { model: 'cl-sonnet-4-6', messages: SAID, temperature: 3 })
    const streamed = await callTool(client, 'chat_complete', { model: 'cl-sonnet-4-6', messages: SAID, stream: true })
    const missing = await callTool(client, 'create_embeddings', { model: 'vy-4' })

    expect(errorIn(bad)).toMatchObject({ code: 'invalid_request', param: 'temperature', status: 400 })
    expect(errorIn(streamed)).toMatchObject({ code: 'invalid_request', param: 'stream' })
    expect(errorIn(missing)).toMatchObject({ code: 'invalid_request', param: 'input' })
  })

  test('what the gateway refuses is an error of the tool, with the code and text of the HTTP API', async () => {
    const body = { model: 'no-such-model', messages: SAID }
    const answer = await started.post('/v1/chat/completions', body)
    const { error } = (await answer.json()) as { error: { code: string; message: string; param: string } }

    const result = await callTool(client, 'chat_complete', body)

    expect(errorIn(result)).toEqual({ code: error.code, message: error.message, status: 404, param: error.param })
  })

  test('a tool that does not exist is an error of the protocol', async () => {
    await expect(client.callTool({ name: 'constructor', arguments: {} })).rejects.toMatchObject({ code: -32602 })
    await expect(client.callTool({ name: 'no_such_tool' })).rejects.toMatchObject({ code: -32602 })
  })

  test('a balance that is too low is an error of the tool', async () => {
    const { id: accountId } = await started.gateway.accounts.create()
    const { key } = await started.gateway.keys.create({ accountId })
    const poor = await started.connect({ era, apiKey: key })

    const result = await callTool(poor, 'chat_complete', { model: 'cl-sonnet-4-6', messages: SAID })

    expect(errorIn(result)).toMatchObject({ code: 'insufficient_balance', status: 402 })
  })
})

test('a vendor that puts the key of the operator into its error text does not bring it to the caller', async () => {
  const started = await startMcp()
  try {
    const client = await started.connect()
    for (const model of ['chat-relayed', 'cl-sonnet-4-6', 'gmn-2.5-flash']) {
      started.sandbox.fault({ kind: 'leak-key' })
      const result = await callTool(client, 'chat_complete', { model, messages: SAID })

      expect(errorIn(result)).toMatchObject({ code: 'upstream_unavailable', status: 503 })
      expect(JSON.stringify(result)).not.toContain('canary')
    }
  } finally {
    await started.close()
  }
})

test.each([
  ['chat_complete', { messages: SAID }, { choices: [{ message: { content: 'hi' } }], usage: { prompt_tokens: 1 } }],
  ['create_embeddings', { input: 'hi' }, { object: 'list', data: [{ embedding: [1, 2] }] }],
])('lets the official client accept the result of %s from a server that omits members', async (name, args, answer) => {
  const server = await listen((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(JSON.stringify(answer)))
  })
  const rows = [
    { id: 'plain', kind: 'chat', upstream: 'plain' },
    { id: 'vectors', kind: 'embedding', upstream: 'vectors' },
  ] as const
  const vendor = openaiCompatible({ id: 'own', baseURL: server.origin, apiKey: 'k', models: rows })
  const started = await startMcp({ gateway: { billing: 'off', vendors: [vendor], models: [] } })
  const client = await started.connect()
  // It checks results against the schemas that it has read.
  await client.listTools()

  const result = await callTool(client, name, { model: name === 'chat_complete' ? 'plain' : 'vectors', ...args })

  expect(result.isError, result.text).toBe(false)
  await started.close()
  await server.close()
})
