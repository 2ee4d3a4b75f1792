import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, CITY_SCHEMA } from './support/models.ts'

let started: StartedGateway
let client: Anthropic

beforeAll(async () => {
  started = await startGateway()
  client = new Anthropic({ apiKey: TEST_KEY, baseURL: started.url, maxRetries: 0 })
})
afterAll(() => started.close())
beforeEach(() => started.sandbox.reset())

const cityTool = (name: string, called: string[]) => ({
  name,
  description: 'Tells something about a city.',
  input_schema: { ...CITY_SCHEMA, required: ['city'] },
  parse: (input: unknown) => input as { city: string },
  run: ({ city }: { city: string }) => {
    called.push(name)
    return `${name} of ${city}`
  },
})

const textOf = ({ content }: Pick<Anthropic.Beta.BetaMessage, 'content'>): string =>
  content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')

/** Returns `thread` of each request that a vendor got. */
const threadsSent = (): unknown[] =>
  started.sandbox.requests.map(({ body }) => (body as { thread?: { type: string } }).thread?.type)

const statusesOfVendor = (): (number | undefined)[] =>
  started.events.flatMap((event) => (event.type === 'attempt-failed' ? [event.status] : []))

describe.each(CHAT_MODELS)(
  'the tool runner of @anthropic-ai/sdk 1, which holds its conversation in a thread, with %s',
  (model) => {
    test.each([false, true])('answers with the results of all its tools (streamed: %s)', async (stream) => {
      const called: string[] = []
      const runner = client.beta.messages.toolRunner({
        model,
        max_tokens: 500,
        system: 'Be brief.',
        stream,
        messages: [{ role: 'user', content: 'call get_weather and get_time' }],
        tools: [cityTool('get_weather', called), cityTool('get_time', called)],
      })
      const message = await runner.runUntilDone()

      expect(called).toEqual(['get_weather', 'get_time'])
      expect(textOf(message as Anthropic.Beta.BetaMessage)).toBe(
        'The tools answered: get_weather of sample city | get_time of sample city',
      )
      // The dialect's own vendor holds the conversation; any other gets all of it, and no vendor gets a needless request.
      expect(threadsSent()).toEqual(model === 'cl-sonnet-4-6' ? ['create', 'continue'] : [undefined, undefined])
      expect(statusesOfVendor()).toEqual([])
    })
  },
)

describe('a thread of @anthropic-ai/sdk 1', () => {
  const thread = (model: string, unsupportedRequestBehavior: 'error' | 'continue_unthreaded' = 'error') =>
    client.beta.messages.thread({ model, max_tokens: 100, unsupportedRequestBehavior })

  test('sends only new messages where its vendor holds it', async () => {
    const conversation = thread('cl-sonnet-4-6')
    await conversation.send({ role: 'user', content: 'good morning' })
    const reply = await conversation.send({ role: 'user', content: 'good night' })

    expect(textOf(reply)).toBe('You said: good night')
    expect(started.sandbox.requests.map(({ body }) => (body as { messages: unknown[] }).messages.length)).toEqual([
      1, 1,
    ])
    expect(conversation.messages).toHaveLength(4)
  })

  test('starts again with all messages if its vendor has lost it', async () => {
    const conversation = thread('cl-sonnet-4-6')
    const first = await conversation.send({ role: 'user', content: 'good morning' })
    // Somebody else goes on from the same answer.
    await client.beta.messages.create({
      model: 'cl-sonnet-4-6',
      max_tokens: 100,
      betas: ['message-threads-2026-08-12'],
      thread: { type: 'continue', previous_message_id: first.id },
      messages: [{ role: 'user', content: 'me first' }],
    })
    const reply = await conversation.send({ role: 'user', content: 'good night' })

    expect(textOf(reply)).toBe('You said: good night')
    expect(threadsSent()).toEqual(['create', 'continue', 'continue', 'create'])
    expect(started.sandbox.requests.at(-1)?.body).toMatchObject({ messages: [{}, {}, {}] })
  })

  test('goes on without one where no vendor would hold it, if that is wanted', async () => {
    const conversation = thread('gmn-2.5-flash', 'continue_unthreaded')
    await conversation.send({ role: 'user', content: 'good morning' })
    const reply = await conversation.send({ role: 'user', content: 'good night' })

    expect(textOf(reply)).toBe('You said: good night')
    expect(started.sandbox.requests).toHaveLength(2)
    expect(JSON.stringify(started.sandbox.requests.at(-1)?.body)).toContain('You said: good morning')
  })

  test('is refused as unsupported where no vendor would hold it, before anything is charged', async () => {
    const before = await started.account()
    const failure = thread('gmn-2.5-flash').send({ role: 'user', content: 'good morning' })

    await expect(failure).rejects.toBeInstanceOf(Anthropic.BadRequestError)
    await expect(failure).rejects.toMatchObject({
      status: 400,
      error: { error: { details: { error_code: 'thread_unsupported_request' } } },
    })
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toEqual(before)
  })
})
