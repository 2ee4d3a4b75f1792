// @ts-check
/*
 * Callers who sign in with a JSON Web Token of your identity provider, and servers with API keys.
 *
 *   npm run build && node examples/sign-in-jwt.mjs
 *
 * Runs offline, without a package: node:crypto checks the signature. `issuer` is a stand-in for the provider.
 */
import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { createGateway, firstOf, gatewayKeys, openai } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const ISSUER = 'https://id.example.com'
const AUDIENCE = 'ai-gateway'
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** @type {(text: string | undefined) => any} */
const parsed = (text) => JSON.parse(Buffer.from(text ?? '', 'base64url').toString())

/**
 * The claims of a token that the provider has signed for this service; null for every other text.
 * @type {(token: string, nowSeconds: number) => any}
 */
function claimsOf(token, nowSeconds) {
  const parts = token.split('.')
  if (parts.length !== 3) return null // no JWT: perhaps a key of the gateway
  try {
    const signed = Buffer.from(`${parts[0]}.${parts[1]}`)
    const signature = Buffer.from(parts[2] ?? '', 'base64url')
    // The algorithm is the one of our key, whatever the token says.
    if (parsed(parts[0]).alg !== 'ES256') return null
    if (!verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)) return null
    const claims = parsed(parts[1])
    const isExpected = claims.iss === ISSUER && claims.aud === AUDIENCE
    // A token without `nbf` is valid immediately; a token without `exp` is never valid.
    const isValidNow = claims.exp > nowSeconds && (claims.nbf ?? 0) <= nowSeconds
    return isExpected && isValidNow ? claims : null
  } catch {
    return null // not JSON
  }
}

/** @type {import('signalbox').Authenticate} */
const byToken = ({ apiKey }) => {
  const claims = apiKey === undefined ? null : claimsOf(apiKey, Date.now() / 1000)
  if (claims === null) return null
  return {
    accountId: claims.org,
    keyId: `user:${claims.sub}`,
    tier: 'paid',
    endUser: claims.sub,
    // No claim, no model: scopes without `models` would allow every model.
    scopes: { models: claims.models ?? [] },
  }
}

const gateway = createGateway({
  vendors: [openai({ apiKey: 'stand-in' })],
  transport: sandboxVendors().transport(),
  models: ['small', 'large'].map((id) => ({ id, kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol' })),
  billing: 'off',
  authenticate: firstOf(byToken, gatewayKeys()),
})
await gateway.accounts.create({ id: 'acct_acme' })
const { key } = await gateway.keys.create({ accountId: 'acct_acme' })

/** Signs a token, like the identity provider. @type {(claims: object) => string} */
const issue = (claims) => {
  const signed = [
    { alg: 'ES256', typ: 'JWT' },
    { iss: ISSUER, aud: AUDIENCE, ...claims },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

/** @type {(token: string, model: string) => Promise<number>} */
const chat = async (token, model) => {
  const response = await gateway.fetch(
    new Request('http://gateway.example/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Say hello' }] }),
    }),
  )
  await response.text()
  return response.status
}

const inAnHour = Math.floor(Date.now() / 1000) + 3600
const ada = { sub: 'ada', org: 'acct_acme', models: ['small'], exp: inAnHour }
const token = issue(ada)
console.log(`token          ${await chat(token, 'small')}`)
console.log(`out of scope   ${await chat(token, 'large')}`)
console.log(`expired        ${await chat(issue({ ...ada, exp: inAnHour - 7200 }), 'small')}`)
console.log(`not yet valid  ${await chat(issue({ ...ada, nbf: inAnHour - 1800 }), 'small')}`)
console.log(`no models      ${await chat(issue({ ...ada, models: undefined }), 'small')}`)
console.log(`other service  ${await chat(issue({ ...ada, aud: 'shop' }), 'small')}`)
console.log(`forged         ${await chat(`${token.slice(0, -8)}AAAAAAAA`, 'small')}`)
console.log(`key            ${await chat(key, 'large')}`)

await gateway.close()
