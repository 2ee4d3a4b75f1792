// Amazon Bedrock: Converse with requests that are signed with AWS keys, Claude's own Messages, and embeddings. Offline: a stand-in
// checks each signature and streams in binary frames.
// Run: node examples/bedrock.mjs
import { amazonBedrock, anthropicBedrock, createGateway, listPrices } from 'signalbox'
import { awsSignature } from 'signalbox/credentials'
import { sandboxVendors } from 'signalbox/testing'

const sandbox = sandboxVendors()
const { origin } = await sandbox.listen()

// With the real service: awsSignature({ region: 'eu-central-1' }) finds keys like AWS's tools, and `region` replaces `endpoint`.
const apiKey = awsSignature({
  region: 'us-east-1',
  credentials: () => ({ accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }),
})
const bedrock = { endpoint: `${origin}/bedrock`, apiKey }
const gateway = createGateway({
  vendors: [anthropicBedrock(bedrock), amazonBedrock(bedrock)],
  prices: listPrices(),
  keys: [{ key: 'sk-example', account: 'acct_example' }],
})
await gateway.start()
await gateway.accounts.credit('acct_example', '1')

const post = (path, body) =>
  gateway.fetch(
    new Request(`http://gateway.example${path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-example', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  )
const messages = [{ role: 'user', content: 'Say hello' }]

const chat = await post('/v1/chat/completions', { model: 'amazon.nova-pro-v1:0', max_tokens: 50, messages })
console.log('chat:', (await chat.json()).choices[0].message.content)

const stream = await post('/v1/chat/completions', {
  model: 'amazon.nova-pro-v1:0',
  max_tokens: 50,
  messages,
  stream: true,
})
const events = (await stream.text()).split('\n\n').filter((event) => event.startsWith('data: {'))
const pieces = events.map((event) => JSON.parse(event.slice('data: '.length)).choices[0]?.delta.content ?? '')
console.log('stream:', pieces.join(''))

const claude = 'us.anthropic.claude-haiku-5-5'
const message = await post('/v1/messages', { model: claude, max_tokens: 50, messages })
console.log('messages:', (await message.json()).content.at(-1).text)

const vectors = await post('/v1/embeddings', {
  model: 'amazon.titan-embed-text-v2:0',
  input: ['one', 'two'],
  dimensions: 256,
})
console.log('embeddings:', (await vectors.json()).data.map(({ embedding }) => embedding.length).join(' and '))

console.log('asked:', [...new Set(sandbox.requests.map(({ path }) => path.split('/').at(-1)))].join(', '))
await gateway.close()
await sandbox.close()
