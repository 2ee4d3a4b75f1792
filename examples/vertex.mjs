// Gemini and Claude on Vertex AI, with the token of a service account. Offline: a stand-in answers, and gives the tokens.
// Run: node examples/vertex.mjs
import { generateKeyPairSync } from 'node:crypto'
import { anthropicVertex, createGateway, vertex } from 'signalbox'
import { googleServiceAccount } from 'signalbox/credentials'
import { sandboxVendors } from 'signalbox/testing'

const sandbox = sandboxVendors()
const { origin } = await sandbox.listen()

// With the real cloud: apiKey: googleDefaultCredentials(), and no baseURL.
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const key = {
  client_email: 'gateway@my-project.iam.gserviceaccount.com',
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  token_uri: `${origin}/token`,
}
const place = { project: 'my-project', location: 'global', apiKey: googleServiceAccount({ key }), baseURL: origin }

const gateway = createGateway({
  vendors: [vertex(place), anthropicVertex(place)],
  billing: 'off',
  keys: [{ key: 'sk-example', account: 'acct_example' }],
})
await gateway.start()

const ask = (path, body) =>
  gateway.fetch(
    new Request(`http://gateway.example${path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-example', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  )
const messages = [{ role: 'user', content: 'Say hello' }]

for (const model of ['gemini-3.8-flash', 'claude-haiku-4-5@20251001', 'openai/gpt-oss-120b-maas']) {
  const { choices } = await (await ask('/v1/chat/completions', { model, messages })).json()
  console.log(`${model}: ${choices[0].message.content}`)
}
const { content } = await (await ask('/v1/messages', { model: 'claude-sonnet-5', max_tokens: 50, messages })).json()
console.log(`claude-sonnet-5: ${content.at(-1).text}`)
const { data } = await (await ask('/v1/embeddings', { model: 'gemini-embedding-001', input: 'hello' })).json()
console.log(`gemini-embedding-001: ${data[0].embedding.length} numbers`)
console.log(`tokens asked for: ${sandbox.requests.filter(({ operation }) => operation === 'token').length}`)

await gateway.close()
await sandbox.close()
