import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sandboxVendors } from '../../src/testing/index.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS } from './support/models.ts'

let started: StartedGateway
let client: OpenAI

beforeAll(async () => {
  started = await startGateway()
  client = new OpenAI({ baseURL: `${started.url}/v1`, apiKey: TEST_KEY, maxRetries: 0 })
})
afterEach(() => started.sandbox.reset())
afterAll(() => started.close())

describe.each(CHAT_MODELS)('openai with %s', (model) => {
  test('answers in a conversation, streamed and whole', async () => {
    const { id: conversation } = await client.conversations.create({
      items: [
        { role: 'user', content: 'My name is Ada.' },
        { role: 'assistant', content: 'Good to know.' },
      ],
    })
    const first = await client.responses.create({ model, conversation, input: 'good morning' })
    const second = await client.responses.stream({ model, conversation, input: 'good night' }).finalResponse()
    const items = []
    for await (const item of client.conversations.items.list(conversation, { limit: 2, order: 'asc' })) items.push(item)

    expect([first.output_text, second.output_text]).toEqual(['You said: good morning', 'You said: good night'])
    expect([first.conversation?.id, second.conversation?.id]).toEqual([conversation, conversation])
    const roles = items.flatMap((item) => (item.type === 'message' ? [item.role] : []))
    expect(roles).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant'])
  })

  test('polls an answer in the background, and takes up its stream', async () => {
    let answer = await client.responses.create({ model, input: 'good morning', background: true })
    expect(answer.status).toBe('queued')
    await started.taskEnded(answer.id)
    answer = await client.responses.retrieve(answer.id)
    const streamed = await client.responses.stream({ model, input: 'hello', background: true }).finalResponse()
    const again = await client.responses.stream({ response_id: streamed.id }).finalResponse()

    expect([answer.status, answer.output_text]).toEqual(['completed', 'You said: good morning'])
    expect([streamed.output_text, again.output_text]).toEqual(['You said: hello', 'You said: hello'])
  })
})

test('openai changes and deletes a conversation and its items', async () => {
  const { conversations } = client
  const { id } = await conversations.create({ metadata: { topic: 'a' } })
  const { data } = await conversations.items.create(id, { items: [{ role: 'user', content: 'hi' }] })
  const itemId = data[0]?.type === 'message' ? data[0].id : ''

  expect((await conversations.update(id, { metadata: { topic: 'b' } })).metadata).toEqual({ topic: 'b' })
  expect(await conversations.items.retrieve(itemId, { conversation_id: id })).toEqual(data[0])
  expect((await conversations.items.delete(itemId, { conversation_id: id })).id).toBe(id)
  expect((await conversations.retrieve(id)).metadata).toEqual({ topic: 'b' })
  expect((await conversations.delete(id)).deleted).toBe(true)
  await expect(conversations.retrieve(id)).rejects.toMatchObject({ status: 404, code: 'conversation_not_found' })
})

test('openai unwraps the webhook of an answer in the background as an event of its own', async () => {
  const receiver = sandboxVendors()
  const { origin } = await receiver.listen()
  const body = { model: 'cl-sonnet-4-6', input: 'hi', background: true, webhook_url: `${origin}/webhooks` }
  const { id } = await client.responses.create(body)
  const { bytes, headers } = await receiver.nextWebhook()
  const webhookSecret = await started.gateway.webhooks.secret(TEST_ACCOUNT)
  const event = await client.withOptions({ webhookSecret }).webhooks.unwrap(Buffer.from(bytes).toString(), headers)
  await receiver.close()

  expect(event).toMatchObject({
    id: headers['webhook-id'],
    object: 'event',
    type: 'response.completed',
    created_at: expect.any(Number),
    data: { id },
  })
  expect(Math.abs(event.created_at - Date.now() / 1000)).toBeLessThan(60)
})

test('openai cancels an answer in the background', async () => {
  started.sandbox.fault({ kind: 'hang' })
  const { id } = await client.responses.create({ model: 'cl-sonnet-4-6', input: 'hi', background: true })

  expect((await client.responses.cancel(id)).status).toBe('cancelled')
  expect((await client.responses.retrieve(id)).status).toBe('cancelled')
})
