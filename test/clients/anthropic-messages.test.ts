import { Anthropic as Anthropic1 } from '@anthropic-ai/sdk'
import { Anthropic as Anthropic0 } from 'anthropic0'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, CITY_SCHEMA } from './support/models.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

type Client = InstanceType<typeof Anthropic1>
type MessageParam = Anthropic1.MessageParam

// Private members keep the two versions' types apart, though every call made here is the same.
const VERSIONS = [
  ['@anthropic-ai/sdk 0.137', Anthropic0 as unknown as typeof Anthropic1],
  ['@anthropic-ai/sdk 1', Anthropic1],
] as const

const TOOLS = ['get_weather', 'get_time'].map((name) => ({
  name,
  description: 'Tells something about a city.',
  input_schema: CITY_SCHEMA as { type: 'object' },
}))

describe.each(VERSIONS)('%s', (_name, Anthropic) => {
  const connect = (apiKey = TEST_KEY): Client => new Anthropic({ apiKey, baseURL: started.url, maxRetries: 0 })

  describe.each(CHAT_MODELS)('model %s', (model) => {
    test('gets a whole message, and its request id', async () => {
      const message = await connect().messages.create({
        model,
        max_tokens: 100,
        system: 'Be brief.',
        messages: [{ role: 'user', content: 'good morning' }],
      })

      expect(message).toMatchObject({ type: 'message', role: 'assistant', model, stop_reason: 'end_turn' })
      expect(textOf(message)).toBe('You said: good morning')
      expect(message.id).toMatch(/^msg_/)
      expect(message.usage.input_tokens).toBeGreaterThan(0)
      expect(message.usage.output_tokens).toBeGreaterThan(0)
      expect(message._request_id).toMatch(/^req_/)
    })

    test('puts a streamed message together with the stream helper', async () => {
      const stream = connect().messages.stream({
        model,
        max_tokens: 100,
        messages: [{ role: 'user', content: 'good morning to you' }],
      })
      const deltas: string[] = []
      stream.on('text', (delta) => deltas.push(delta))

      const message = await stream.finalMessage()

      expect(textOf(message)).toBe('You said: good morning to you')
      expect(deltas.join('')).toBe('You said: good morning to you')
      expect(deltas.length).toBeGreaterThan(1)
      expect(message).toMatchObject({ model, stop_reason: 'end_turn' })
      expect(message.usage.input_tokens).toBeGreaterThan(0)
      expect(message.usage.output_tokens).toBeGreaterThan(0)
    })

    test.each(['whole', 'streamed'] as const)('runs tools called in parallel to the final answer, %s', async (way) => {
      const answer = await runTools(connect(), way, model, 'call get_weather and get_time')

      expect(answer).toBe('The tools answered: get_weather of sample city | get_time of sample city')
    })

    test('counts tokens without being charged', async () => {
      const before = await started.account()
      const count = await connect().messages.countTokens({
        model,
        system: 'Be brief.',
        messages: [{ role: 'user', content: 'good morning' }],
        tools: TOOLS,
      })

      expect(count.input_tokens).toBeGreaterThan(0)
      expect(await started.account()).toEqual(before)
    })

    test('throws when the vendor breaks off in mid-stream', async () => {
      const stream = connect().messages.stream({
        model,
        max_tokens: 100,
        messages: [{ role: 'user', content: '[[fault:reset-mid-stream=6]] one two three four five six seven eight' }],
      })

      await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIError)
    })

    test('reads the status of a vendor that is down', async () => {
      const failure = await failureOf(
        connect().messages.create({
          model,
          max_tokens: 100,
          messages: [{ role: 'user', content: '[[fault:status=500]] hello' }],
        }),
      )

      expect(failure).toBeInstanceOf(Anthropic.InternalServerError)
      expect(failure).toMatchObject({ status: 503, type: 'api_error' })
    })
  })

  test('sends its beta headers on, and its own version of the API', async () => {
    started.sandbox.reset()
    await connect().beta.messages.create({
      model: 'cl-sonnet-4-6',
      max_tokens: 100,
      betas: ['context-management-2025-06-27'],
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      messages: [{ role: 'user', content: 'hello' }],
    })

    const { headers, body } = await started.sandbox.nextRequest()
    expect(headers['anthropic-beta']).toContain('context-management-2025-06-27')
    expect(headers['anthropic-version']).toMatch(/^20\d\d-\d\d-\d\d$/)
    expect(body).toHaveProperty('context_management')
  })

  test.each([
    ['an unknown key', 'AuthenticationError', 'authentication_error', () => connect('sk-unknown'), {}],
    ['an unknown model', 'NotFoundError', 'not_found_error', () => connect(), { model: 'no-such-model' }],
    ['a bad bound', 'BadRequestError', 'invalid_request_error', () => connect(), { max_tokens: -5 }],
  ] as const)('throws for %s', async (_what, error, type, client, change) => {
    const failure = await failureOf(
      client().messages.create({
        model: 'cl-sonnet-4-6',
        max_tokens: 100,
        messages: [{ role: 'user', content: 'hello' }],
        ...change,
      }),
    )

    expect(failure).toBeInstanceOf(Anthropic[error])
    expect(failure).toMatchObject({ type, requestID: expect.stringMatching(/^req_/) })
  })
})

function textOf(message: Anthropic1.Message): string {
  return message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
}

/** A client's own loop: it returns the content as it came, with all results in one turn, until the model calls no more. */
async function runTools(client: Client, way: 'whole' | 'streamed', model: string, text: string): Promise<string> {
  const messages: MessageParam[] = [{ role: 'user', content: text }]
  for (let round = 0; round < 3; round++) {
    const request = { model, max_tokens: 200, messages, tools: TOOLS }
    const message =
      way === 'whole' ? await client.messages.create(request) : await client.messages.stream(request).finalMessage()
    if (message.stop_reason !== 'tool_use') return textOf(message)
    const content = message.content.flatMap((block) =>
      block.type === 'tool_use'
        ? [
            {
              type: 'tool_result' as const,
              tool_use_id: block.id,
              content: `${block.name} of ${(block.input as { city: string }).city}`,
            },
          ]
        : [],
    )
    messages.push({ role: 'assistant', content: message.content }, { role: 'user', content })
  }
  throw new Error('the model calls tools without end')
}

async function failureOf(answer: Promise<unknown>): Promise<unknown> {
  return answer.then(
    () => undefined,
    (error: unknown) => error,
  )
}
