import { createServer } from 'node:http'
import { importBuilt } from '../../built.mjs'
import { startGateway } from '../gateway.mjs'

export const name = 'mounts/express'
export const title = 'Express 5, `app.use`'
export const isTranslating = true
export const isOwn = true
export const basePath = '/ai'

/** The gateway as a middleware of Express, before any body parser. */
export async function serve({ upstreamPort }) {
  const { default: express } = await import('express')
  const { expressHandler } = await importBuilt('express')
  const { gateway, account } = await startGateway({ upstreamPort })
  const app = express()
  app.use(basePath, expressHandler(gateway))
  return { server: createServer(app), account }
}
