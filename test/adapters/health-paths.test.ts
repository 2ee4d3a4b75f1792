import { createServer } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import { afterEach, expect, test } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { fastifyGateway } from '../../src/adapters/fastify.ts'
import { fetchHandler } from '../../src/adapters/fetch.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import { listen } from '../support/listen.ts'
import type { Mounted } from './support/mounts.ts'

let mounted: Mounted | undefined
let gateway: Gateway | undefined
afterEach(async () => {
  await mounted?.close()
  await gateway?.close()
  mounted = undefined
})

type Get = (path: string) => Promise<Response>

async function served(server: Parameters<typeof listen>[0]): Promise<Get> {
  mounted = await listen(server)
  const { origin } = mounted
  return (path) => fetch(`${origin}${path}`)
}

const mounts: Readonly<Record<string, (gateway: Gateway) => Promise<Get>>> = {
  'node:http': (gateway) => served(createServer(nodeHandler(gateway, { basePath: '/ai' }))),
  Express: (gateway) => served(createServer(express().use('/ai', expressHandler(gateway)))),
  Fastify: async (gateway) => {
    const app = fastify()
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    await app.ready()
    return served(app.server)
  },
  fetch: async (gateway) => {
    const handle = fetchHandler(gateway, { basePath: '/ai' })
    return (path) => handle(new Request(`http://host.test${path}`))
  },
}

test.each(Object.entries(mounts))('%s serves the health paths below its base path', async (_name, mount) => {
  gateway = createGateway({ vendors: [], billing: 'off' })
  const get = await mount(gateway)

  const before = await Promise.all(['/ai/livez', '/ai/readyz', '/ai/healthz'].map(get))
  await gateway.close()
  const after = await Promise.all(['/ai/livez', '/ai/readyz', '/ai/healthz'].map(get))

  expect(before.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(after.map(({ status }) => status)).toEqual([200, 503, 503])
})
