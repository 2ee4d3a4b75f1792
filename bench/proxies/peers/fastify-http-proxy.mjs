import { peerVersion, requirePeer } from '../../peer-packages.mjs'

export const name = 'peers/fastify-http-proxy'
export const title = '@fastify/http-proxy'
export const isPeer = true
export const isTranslating = false
export const version = () => peerVersion('@fastify/http-proxy')

/** Fastify's proxy plugin, with as many connections to the vendor as are needed: its own limit is 128. */
export async function serve({ upstreamPort }) {
  const fastify = requirePeer('fastify')
  const app = fastify()
  await app.register(requirePeer('@fastify/http-proxy'), {
    upstream: `http://127.0.0.1:${upstreamPort}`,
    undici: { connections: null, pipelining: 1 },
  })
  await app.ready()
  return { server: app.server }
}
