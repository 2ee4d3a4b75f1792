import { createGateway } from '../../../../src/gateway/gateway.ts'
import { sandboxVendors } from '../../../../src/testing/index.ts'
import { anthropic } from '../../../../src/vendors/anthropic/anthropic.ts'

// Nothing but the answer keeps this process alive: no server, no test runner.
const sandbox = sandboxVendors({ eventDelayMs: 20 })
const gateway = createGateway({
  vendors: [anthropic({ apiKey: 'any' })],
  transport: sandbox.transport(),
  billing: 'off',
})
const client = gateway.client({ accountId: 'acct_1', keyId: 'key_1', tier: 'paid' })
sandbox.reply({ text: 'late', afterMs: 300 })
sandbox.reply({ chunks: ['one', ' two'], afterMs: 100 })
const model = 'cl-sonnet-4-6'
const messages = [{ role: 'user' as const, content: 'hello' }]

const whole = await client.chat.completions.create({ model, messages })
let streamed = ''
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true }))
  streamed += chunk.choices[0]?.delta.content ?? ''
process.stdout.write(JSON.stringify([whole.choices[0]?.message.content, streamed]))
