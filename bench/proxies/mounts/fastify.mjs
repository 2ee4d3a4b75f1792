import { importBuilt } from '../../built.mjs'
import { startGateway } from '../gateway.mjs'

export const name = 'mounts/fastify'
export const title = 'Fastify plugin'
export const isTranslating = true
export const isOwn = true
export const basePath = '/ai'

/** The gateway as a Fastify plugin. */
export async function serve({ upstreamPort }) {
  const { fastify } = await import('fastify')
  const { fastifyGateway } = await importBuilt('fastify')
  const { gateway, account } = await startGateway({ upstreamPort })
  const app = fastify()
  await app.register(fastifyGateway, { gateway, prefix: basePath })
  await app.ready()
  return { server: app.server, account }
}
