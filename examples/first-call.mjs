// @ts-check
/*
 * The first calls of docs/getting-started.md, to the gateway of examples/first-gateway.mjs.
 *
 *   BASE_URL=http://127.0.0.1:8787/v1 API_KEY=sk-… node examples/first-call.mjs
 */
// #region shown
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY })

const { data, response } = await client.chat.completions
  .create({ model: 'gpt-6-sol', messages: [{ role: 'user', content: 'Say hello' }] })
  .withResponse()
console.log(data.choices[0]?.message.content)
console.log(`cost: ${response.headers.get('x-signalbox-cost')}`)

const stream = await client.chat.completions.create({
  model: 'claude-sonnet-5-5',
  messages: [{ role: 'user', content: 'Say hello' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')
console.log()
console.log(await client.get('/account'))
// #endregion
