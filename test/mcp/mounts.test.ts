import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import express5 from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterEach, describe, expect, test } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { fastifyGateway } from '../../src/adapters/fastify.ts'
import { fetchHandler } from '../../src/adapters/fetch.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import type { ExchangeHandler } from '../../src/core/exchange.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import { gatewayWithMcp, mcpHandler } from '../../src/mcp/index.ts'
import { compression, express4, MOUNTS, type Mounted } from '../adapters/support/mounts.ts'
import { listen } from '../support/listen.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { ERAS, type Era, mcpClient } from './support/mcp-client.ts'
import { callTool, errorIn } from './support/tool-result.ts'

/** The server alone, at `/mcp`. */
const ALONE: typeof MOUNTS = {
  node: (mcp) => listen(nodeHandler(mcp)),
  'node with a base path': (mcp) => listen(nodeHandler(mcp, { basePath: '/mcp' })),
  'express 5': (mcp) => listen(express5().use('/mcp', expressHandler(mcp))),
  'express 5 behind express.json()': (mcp) => listen(express5().use(express5.json()).use('/mcp', expressHandler(mcp))),
  'express 5 behind compression()': (mcp) => listen(express5().use(compression()).use('/mcp', expressHandler(mcp))),
  'express 4': (mcp) => listen(express4().use('/mcp', expressHandler(mcp))),
  fastify: async (mcp) => {
    const app = fastify()
    await app.register(fastifyGateway, { gateway: mcp })
    await app.ready()
    const mounted = await listen(app.server)
    return { ...mounted, close: () => mounted.close().then(() => app.close()) }
  },
  'fastify with a prefix': async (mcp) => {
    const app = fastify()
    await app.register(fastifyGateway, { gateway: mcp, prefix: '/mcp' })
    await app.ready()
    const mounted = await listen(app.server)
    return { ...mounted, close: () => mounted.close().then(() => app.close()) }
  },
  hono: (mcp) => {
    const handler = fetchHandler(mcp)
    const app = new Hono().all('/mcp', (context) => handler(context.req.raw))
    return listen(createAdaptorServer({ fetch: app.fetch }) as Server)
  },
}

/** Where the server is in each mount. */
const CASES: readonly [string, string, (gateway: Gateway) => Promise<Mounted>][] = [
  ...Object.entries(ALONE).map(([name, mount]): (typeof CASES)[number] => [
    name,
    '/mcp',
    (gateway) => mount(mcpHandler(gateway)),
  ]),
  ...Object.entries(MOUNTS).map(([name, mount]): (typeof CASES)[number] => [
    `${name}, beside the gateway`,
    '/ai/mcp',
    (gateway) => mount(gatewayWithMcp(gateway) satisfies ExchangeHandler),
  ]),
]

let started: StartedGateway
let mounted: Mounted

afterEach(async () => {
  await mounted.close()
  await started.close()
})

describe.each(CASES)('the official client through %s', (_name, path, mount) => {
  test.each(Object.keys(ERAS) as Era[])('calls tools and reads resources in revision %s', async (era) => {
    started = await startGateway({ taskPollIntervalMs: 20 }, { videoPendingMs: 60_000 })
    mounted = await mount(started.gateway)
    const client = await mcpClient(`${mounted.origin}${path}`, { era })
    const video = { model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } }

    const { tools } = await client.listTools()
    const chat = await callTool(client, 'chat_complete', {
      model: 'cl-sonnet-4-6',
      messages: [{ role: 'user', content: 'good morning, Zoë' }],
    })
    const refused = await callTool(client, 'create_embeddings', { model: 'cl-sonnet-4-6', input: 'one' })
    const task = await callTool(client, 'submit_video', video)
    const told: unknown[] = []
    const waited = await callTool(
      client,
      'wait_for_video',
      { task_id: task.structured.task_id, timeout_seconds: 0.05 },
      { onprogress: (progress) => told.push(progress) },
    )
    const catalog = await client.readResource({ uri: 'gateway://catalog' })
    await client.close()

    expect(tools).toHaveLength(14)
    expect(chat.structured.choices[0].message.content).toBe('You said: good morning, Zoë')
    expect(errorIn(refused)).toMatchObject({ code: 'endpoint_model_mismatch' })
    expect(waited.structured).toMatchObject({ task_id: task.structured.task_id, finished: false })
    expect(told.length).toBeGreaterThan(0)
    expect(catalog.contents[0]).toMatchObject({ mimeType: 'application/json' })
  })
})
