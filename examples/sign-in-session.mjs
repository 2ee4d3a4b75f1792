// @ts-check
/*
 * An Express app whose users call the gateway with the app's own session cookie, and its servers with API keys.
 *
 *   npm run build && node examples/sign-in-session.mjs
 *
 * Runs offline. The middleware `session` stands in for express-session, which puts the same `request.session` on a request.
 */

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import express from 'express'
import { createGateway, firstOf, gatewayKeys, openai } from 'signalbox'
import { expressHandler } from 'signalbox/express'
import { sandboxVendors } from 'signalbox/testing'

/** @type {Map<string, { userId?: string, plan?: string }>} */
const sessions = new Map()

/** @type {(...parameters: Parameters<import('express').RequestHandler>) => void} */
const session = (request, response, next) => {
  const id = /(?:^|; )sid=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? randomUUID()
  if (!sessions.has(id)) sessions.set(id, {})
  // SameSite keeps pages of other sites from spending a user's money with the user's cookie.
  response.cookie('sid', id, { httpOnly: true, sameSite: 'lax' })
  Object.assign(request, { session: sessions.get(id) })
  next()
}

/** @type {import('signalbox').Authenticate} */
const bySession = ({ request }) => {
  const { userId, plan = null } = /** @type {any} */ (request).session ?? {}
  if (userId === undefined) return null // nobody has signed in: the next way is asked
  return { accountId: 'acct_shop', keyId: `user:${userId}`, tier: 'paid', endUser: userId, plan, tags: ['web'] }
}

const gateway = createGateway({
  vendors: [openai({ apiKey: 'stand-in' })],
  transport: sandboxVendors().transport(),
  models: [{ id: 'assistant', kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol' }],
  billing: 'off',
  authenticate: firstOf(bySession, gatewayKeys()),
  plans: { trial: { limits: { perEndUser: { requestsPerMinute: 1 } } } },
})
await gateway.accounts.create({ id: 'acct_shop' })
const { key } = await gateway.keys.create({ accountId: 'acct_shop', label: 'nightly job' })

const app = express()
app.use(session)
app.post('/login/:user', (request, response) => {
  Object.assign(/** @type {any} */ (request).session, { userId: request.params.user, plan: 'trial' })
  response.sendStatus(204)
})
app.use('/ai', expressHandler(gateway))
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`

/** @type {(headers: Record<string, string>) => Promise<number>} */
const chat = async (headers) => {
  const response = await fetch(`${origin}/ai/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'Say hello' }] }),
  })
  await response.text()
  return response.status
}

console.log(`nobody     ${await chat({})}`)
const login = await fetch(`${origin}/login/ada`, { method: 'POST' })
const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
console.log(`session    ${await chat({ cookie })}`)
console.log(`over plan  ${await chat({ cookie })}`)
console.log(`key        ${await chat({ authorization: `Bearer ${key}` })}`)

server.close()
server.closeAllConnections()
await gateway.close()
