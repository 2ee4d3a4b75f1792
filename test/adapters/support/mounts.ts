import type { Server } from 'node:http'
import { createRequire } from 'node:module'

import { createAdaptorServer } from '@hono/node-server'
import express5 from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'

import { expressHandler } from '../../../src/adapters/express.ts'
import { fastifyGateway } from '../../../src/adapters/fastify.ts'
import { fetchHandler } from '../../../src/adapters/fetch.ts'
import { type MountOptions, nodeHandler } from '../../../src/adapters/node.ts'
import type { ExchangeHandler } from '../../../src/core/exchange.ts'
import { type Listening, listen } from '../../support/listen.ts'

const require = createRequire(import.meta.url)

/** The modules below ship no types. */
export const express4 = require('express4') as typeof express5
export const compression = require('compression') as () => express5.RequestHandler
export const cors = require('cors') as (options?: { origin?: string; credentials?: boolean }) => express5.RequestHandler

/** A server with a gateway. */
export type Mounted = Listening

/** Mounts a gateway under `/ai`. */
export type Mount = (gateway: ExchangeHandler, options?: Pick<MountOptions, 'cors'>) => Promise<Mounted>

/** Every framework, with the gateway under `/ai`. */
export const MOUNTS: Readonly<Record<string, Mount>> = {
  node: (gateway, options) => listen(nodeHandler(gateway, { ...options, basePath: '/ai' })),
  'express 5': (gateway, options) => listen(express5().use('/ai', expressHandler(gateway, options))),
  'express 4': (gateway, options) => listen(express4().use('/ai', expressHandler(gateway, options))),
  fastify: async (gateway, options) => {
    const app = fastify()
    await app.register(fastifyGateway, { ...options, gateway, prefix: '/ai' })
    await app.ready()
    const mounted = await listen(app.server)
    return { ...mounted, close: () => mounted.close().then(() => app.close()) }
  },
  hono: (gateway, options) => {
    const handler = fetchHandler(gateway, options)
    const app = new Hono().all('/ai/*', (context) => handler(context.req.raw))
    return listen(createAdaptorServer({ fetch: app.fetch }) as Server)
  },
}
