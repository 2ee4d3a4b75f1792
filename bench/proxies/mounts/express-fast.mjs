import { createServer } from 'node:http'
import { importBuilt } from '../../built.mjs'
import { startGateway } from '../gateway.mjs'

export const name = 'mounts/express-fast'
export const title = 'Express 5, fast mount'
export const isTranslating = true
export const isOwn = true
export const basePath = '/ai'

/** The gateway in front of an Express app, which never sees its requests. */
export async function serve({ upstreamPort }) {
  const { default: express } = await import('express')
  const { nodeHandler } = await importBuilt('node')
  const { gateway, account } = await startGateway({ upstreamPort })
  const app = express()
  const ai = nodeHandler(gateway, { basePath })
  const server = createServer((request, response) =>
    ai.handles(request) ? ai(request, response) : app(request, response),
  )
  return { server, account }
}
