import { Anthropic } from '@anthropic-ai/sdk'
import type { ChatCompletionMessage, ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CITY_SCHEMA } from './support/models.ts'
import { OPENAI_VERSIONS, openaiClient } from './support/openai-clients.ts'

/** Offered by Responses only. The stand-in refuses reasoning that is not what it gave, or not where it was. */
const MODEL = 'chat-pro'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

/** The types of the items of each request that the vendor got. */
function sentItems(): unknown[][] {
  return started.sandbox.requests.map(({ path, body }) => {
    expect(path).toBe('/v1/responses')
    const { input, store } = body as { input: { type: string }[]; store: boolean }
    expect(store).toBe(false)
    return input.map(({ type }) => type)
  })
}

const LOOP = [['message'], ['message', 'reasoning', 'function_call', 'function_call_output']]

describe.each(OPENAI_VERSIONS)('a tool loop by %s', (_name, OpenAI) => {
  const tools = [
    {
      type: 'function' as const,
      function: { name: 'get_weather', description: 'Tells the weather.', parameters: CITY_SCHEMA },
    },
  ]

  test.each([false, true])(
    'carries the reasoning in the message that it sends back (streamed: %s)',
    async (isStream) => {
      const { completions } = openaiClient(OpenAI, started.url).chat
      const ask = async (messages: ChatCompletionMessageParam[]): Promise<ChatCompletionMessage> => {
        const request = { model: MODEL, messages, tools }
        const { choices } = isStream
          ? await completions.stream(request).finalChatCompletion()
          : await completions.create(request)
        return choices[0]!.message
      }
      const question = { role: 'user' as const, content: 'call get_weather' }
      const called = await ask([question])
      const result = { role: 'tool' as const, tool_call_id: called.tool_calls![0]!.id, content: 'sunny' }
      const last = await ask([question, called, result])

      expect(last.content).toBe('The tools answered: sunny')
      expect(sentItems()).toEqual(LOOP)
    },
  )

  test('shows a summary of the reasoning if an effort is asked for, and logprobs and sources', async () => {
    const client = openaiClient(OpenAI, started.url)
    const body = { model: MODEL, messages: [{ role: 'user' as const, content: 'hello' }] }
    const whole = await client.chat.completions.create({ ...body, reasoning_effort: 'high', logprobs: true })
    const streamed = await client.chat.completions
      .stream({ ...body, reasoning_effort: 'high', logprobs: true })
      .finalChatCompletion()

    for (const { choices } of [whole, streamed]) {
      expect(choices[0]?.message).toMatchObject({
        content: 'You said: hello',
        reasoning_content: expect.stringMatching(/\w/),
      })
      expect(choices[0]?.logprobs?.content?.map(({ token }) => token)).toEqual(['You', ' said:', ' hello'])
    }
  })
})

test.each([false, true])('a tool loop by @anthropic-ai/sdk carries the reasoning (streamed: %s)', async (isStream) => {
  const client = new Anthropic({ apiKey: TEST_KEY, baseURL: started.url, maxRetries: 0 })
  const tools = [{ name: 'get_weather', description: 'Tells the weather.', input_schema: CITY_SCHEMA }]
  const ask = async (messages: Anthropic.MessageParam[]): Promise<Anthropic.Message> => {
    const request = { model: MODEL, max_tokens: 500, messages, tools }
    return isStream ? client.messages.stream(request).finalMessage() : client.messages.create(request)
  }
  const question = { role: 'user' as const, content: 'call get_weather' }
  const { content } = await ask([question])
  const call = content.find((block) => block.type === 'tool_use')!
  const result = { type: 'tool_result' as const, tool_use_id: call.id, content: 'sunny' }
  const last = await ask([question, { role: 'assistant', content }, { role: 'user', content: [result] }])

  expect(last.content).toContainEqual({ type: 'text', text: 'The tools answered: sunny' })
  expect(sentItems()).toEqual(LOOP)
})
