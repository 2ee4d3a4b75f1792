// @ts-check
/*
 * API keys only: what the gateway does without the option `authenticate`.
 *
 *   npm run build && node examples/sign-in-keys.mjs
 *
 * Runs offline.
 */
import { createGateway, openai } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const gateway = createGateway({
  vendors: [openai({ apiKey: 'stand-in' })],
  transport: sandboxVendors().transport(),
  models: ['small', 'large'].map((id) => ({ id, kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol' })),
  billing: 'off',
})
await gateway.accounts.create({ id: 'acct_acme' })
const { key, record } = await gateway.keys.create({
  accountId: 'acct_acme',
  label: 'backend',
  scopes: { endpoints: ['chat'], models: ['small'] },
  tags: ['backend'],
})

/** @type {(headers: Record<string, string>, model: string) => Promise<number>} */
const chat = async (headers, model) => {
  const response = await gateway.fetch(
    new Request('http://gateway.example/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Say hello' }] }),
    }),
  )
  await response.text()
  return response.status
}

const bearer = { authorization: `Bearer ${key}` }
console.log(`no key        ${await chat({}, 'small')}`)
console.log(`key           ${await chat(bearer, 'small')}`)
console.log(`out of scope  ${await chat(bearer, 'large')}`)
await gateway.keys.revoke(record.id)
console.log(`revoked       ${(await gateway.keys.list('acct_acme'))[0]?.revokedAtMs !== undefined}`)

await gateway.close()
