import { afterAll, beforeAll, expect, test } from 'vitest'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { anthropicFoundry } from '../../../src/vendors/anthropic/anthropic.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const sandbox = sandboxVendors()
let started: StartedGateway

beforeAll(async () => {
  const { origin: endpoint } = await sandbox.listen()
  const connection = { endpoint, apiKey: ['one-key-0123', 'two-key-0123'] }
  const models = (id: string) => [{ id, kind: 'chat' as const, upstream: 'my-gpt' }]
  started = await startGateway({
    billing: 'off',
    vendors: [
      azureOpenai({ ...connection, models: models('v1') }),
      azureOpenai({ ...connection, id: 'azure-dated', apiVersion: '2024-10-21', models: models('dated') }),
      anthropicFoundry(connection),
    ],
    models: [{ id: 'claude', kind: 'chat', vendor: 'anthropic-foundry', upstream: 'claude-haiku-4-5' }],
  })
})
afterAll(async () => {
  await started.close()
  await sandbox.close()
})

test.each(['v1', 'dated'])(
  'chat at the %s path streams choices with a delta, whatever the content filter adds',
  async (model) => {
    const whole = await started.post('/v1/chat/completions', chatBody(model, 'Hello'))
    const stream = await started.post('/v1/chat/completions', {
      ...chatBody(model, 'Hello'),
      stream: true,
      stream_options: { include_usage: true },
    })
    const events = await readEvents(stream)
    const chunks = events.slice(0, -1).map((data) => JSON.parse(data) as { choices: { delta: { content?: string } }[] })

    expect(await whole.json()).toMatchObject({ model, choices: [{ message: { content: 'You said: Hello' } }] })
    expect(events.at(-1)).toBe('[DONE]')
    expect(
      chunks.slice(0, -1).every(({ choices }) => choices.length === 1 && typeof choices[0]?.delta === 'object'),
    ).toBe(true)
    expect(chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join('')).toBe(
      'You said: Hello',
    )
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2 } })
  },
)

test('a prompt that the filter blocks is the caller’s, and is not sent elsewhere', async () => {
  const before = sandbox.requests.length
  const refused = await started.post('/v1/chat/completions', chatBody('v1', 'Hello [[fault:blocked]]'))

  expect(refused.status).toBe(400)
  expect(await refused.json()).toMatchObject({ error: { code: 'content_filter', param: 'prompt' } })
  expect(sandbox.requests.length - before).toBe(1)
})

test('Claude in Foundry answers Messages and chat callers', async () => {
  const body = { model: 'claude', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
  const message = await started.post('/v1/messages', body)
  const count = await started.post('/v1/messages/count_tokens', body)
  const chat = await started.post('/v1/chat/completions', body)

  expect(await message.json()).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'You said: Hello' }] })
  expect(await count.json()).toEqual({ input_tokens: expect.any(Number) })
  expect(await chat.json()).toMatchObject({ choices: [{ message: { content: 'You said: Hello' } }] })
})
