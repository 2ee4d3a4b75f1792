// @ts-check
/*
 * Users of better-auth call the gateway with their session cookie, servers with API keys.
 *
 *   npm run build && node examples/sign-in-better-auth.mjs
 *
 * Runs offline and without better-auth: `auth` stands in for `betterAuth(…)` and answers `auth.api.getSession({ headers })` as it
 * does, with `{ session, user }` or null. With the package, import your own `auth` and delete the stand-in.
 */
import { createGateway, firstOf, gatewayKeys, openai } from 'signalbox'
import { fetchHandler } from 'signalbox/fetch'
import { sandboxVendors } from 'signalbox/testing'

const auth = {
  api: {
    /** @type {(options: { headers: Headers }) => Promise<{ session: { id: string }, user: { id: string, email: string } } | null>} */
    async getSession({ headers }) {
      const isAda = /(?:^|; )better-auth\.session_token=ada-token(?:;|$)/.test(headers.get('cookie') ?? '')
      return isAda ? { session: { id: 'session-1' }, user: { id: 'ada', email: 'ada@example.com' } } : null
    },
  },
}

/** @type {import('signalbox').Authenticate} */
const byBetterAuth = async ({ header }) => {
  const cookie = header('cookie')
  if (cookie === undefined) return null // no look-up for calls with keys
  const found = await auth.api.getSession({ headers: new Headers({ cookie }) })
  if (found === null) return null
  const accountId = `acct_${found.user.id}`
  return { accountId, keyId: `session:${found.session.id}`, tier: 'paid', endUser: found.user.id }
}

const gateway = createGateway({
  vendors: [openai({ apiKey: 'stand-in' })],
  transport: sandboxVendors().transport(),
  models: [{ id: 'assistant', kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol' }],
  prices: {
    currency: 'USD',
    prices: [
      { model: 'assistant', meter: 'input_token', amount: '1', per: 1_000_000 },
      { model: 'assistant', meter: 'output_token', amount: '4', per: 1_000_000 },
    ],
  },
  authenticate: firstOf(byBetterAuth, gatewayKeys()),
})
// In better-auth: databaseHooks.user.create.after, so that every user has an account that pays.
await gateway.accounts.create({ id: 'acct_ada' })
await gateway.accounts.credit('acct_ada', '5.00', { creditId: 'welcome-ada' })
const { key } = await gateway.keys.create({ accountId: 'acct_ada' })

// A route of Next, Hono, SvelteKit or any other host of web requests.
const handler = fetchHandler(gateway, { basePath: '/api/ai' })

/** @type {(headers: Record<string, string>) => Promise<number>} */
const chat = async (headers) => {
  const response = await handler(
    new Request('http://app.example/api/ai/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'Say hello' }] }),
    }),
  )
  await response.text()
  return response.status
}

console.log(`nobody   ${await chat({})}`)
console.log(`session  ${await chat({ cookie: 'better-auth.session_token=ada-token' })}`)
console.log(`signed out ${await chat({ cookie: 'better-auth.session_token=old' })}`)
console.log(`key      ${await chat({ authorization: `Bearer ${key}` })}`)
const { records } = await gateway.usage.records({ accountId: 'acct_ada' })
console.log(
  `end user ${records
    .map(({ endUser }) => endUser ?? '-')
    .sort()
    .join(' ')}`,
)

await gateway.close()
