import { afterAll, beforeAll, expect, test } from 'vitest'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream, json } from '../streams/answering-vendor.ts'

let started: StartedGateway
let vendor: AnsweringVendor

const CALLS = [
  { index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: { at: 'the sky' } } },
  { index: 1, id: 'call_2', type: 'function', function: { name: 'look', arguments: {} } },
]
const FACTS = { id: 'c1', created: 1, model: 'one' }
const USAGE = { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 }

beforeAll(async () => {
  vendor = await answeringVendor((response, { stream }) => {
    if (stream !== true) {
      const message = { role: 'assistant', content: null, refusal: null, tool_calls: CALLS }
      const choices = [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }]
      return json(response, { ...FACTS, object: 'chat.completion', choices, usage: USAGE })
    }
    eventStream(response)
    const events = [
      ...CALLS.map((call) => ({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }], usage: USAGE },
    ]
    for (const event of events)
      response.write(`data: ${JSON.stringify({ ...FACTS, object: 'chat.completion.chunk', ...event })}\n\n`)
    response.end('data: [DONE]\n\n')
  })
  const models = [{ id: 'one', kind: 'chat', upstream: 'one' }] as const
  const vendors = [openaiCompatible({ id: 'server', baseURL: vendor.origin, apiKey: 'key-of-server', models })]
  started = await startGateway({ vendors, models: [], billing: 'off' })
})
afterAll(async () => {
  await started.close()
  await vendor.close()
})

const messages = [{ role: 'user', content: 'look' }]

test.each([
  ['/v1/chat/completions', { messages }, ['"{\\"at\\":\\"the sky\\"}"', '"{}"']],
  ['/v1/messages', { messages, max_tokens: 50 }, ['{"at":"the sky"}', '{}']],
  ['/v1/responses', { input: 'look', store: false }, ['"{\\"at\\":\\"the sky\\"}"', '"{}"']],
])('arguments that a server gives as an object are those of the call at %s', async (path, body, [first, second]) => {
  const whole = await (await started.post(path, { model: 'one', ...body })).text()
  const stream = await (await started.post(path, { model: 'one', ...body, stream: true })).text()

  const member = path === '/v1/messages' ? 'input' : 'arguments'
  expect(whole).toContain(`"${member}":${first}`)
  expect(whole).toContain(`"${member}":${second}`)
  const sent = path === '/v1/messages' ? `"partial_json":${JSON.stringify(first)}` : `"arguments":${first}`
  expect(stream).toContain(sent)
})
