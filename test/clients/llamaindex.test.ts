import { OpenAIResponses } from '@llamaindex/openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, CITY_SCHEMA } from './support/models.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

const connect = (model: string, apiKey = TEST_KEY): OpenAIResponses =>
  new OpenAIResponses({ model, apiKey, baseURL: `${started.url}/v1`, maxRetries: 0 })

const TOOL = {
  metadata: { name: 'get_weather', description: 'Tells the weather of a city.', parameters: CITY_SCHEMA },
  call: ({ city }: { city: string }) => `get_weather of ${city}`,
}

// It always sends `top_p`, which OpenAI's models with Responses only refuse.
const MODELS = CHAT_MODELS.filter((model) => model !== 'chat-pro')

describe.each(MODELS)("LlamaIndex's OpenAIResponses with %s", (model) => {
  test('chats', async () => {
    const { message } = await connect(model).chat({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'good morning' },
      ],
    })

    expect(message.role).toBe('assistant')
    expect(message.content).toBe('You said: good morning')
  })

  test('streams', async () => {
    const stream = await connect(model).chat({
      messages: [{ role: 'user', content: 'good morning to you' }],
      stream: true,
    })
    const deltas: string[] = []
    // It gives the last delta again with each event of another type.
    for await (const { delta, raw } of stream)
      if ((raw as { type: string }).type === 'response.output_text.delta') deltas.push(delta)

    expect(deltas.join('')).toBe('You said: good morning to you')
    expect(deltas.length).toBeGreaterThan(1)
  })

  test.each([false, true])('calls a tool, and answers with its result (streamed: %s)', async (stream) => {
    const llm = connect(model)
    const question = { role: 'user' as const, content: 'call get_weather' }
    const request = { messages: [question], tools: [TOOL] }
    let options: Record<string, unknown> | undefined
    if (stream)
      for await (const chunk of await llm.chat({ ...request, stream })) options = { ...options, ...chunk.options }
    else options = (await llm.chat(request)).message.options
    const [call] = (options as { toolCall: { name: string; id: string; input: string | object }[] }).toolCall
    const input = (typeof call!.input === 'string' ? JSON.parse(call!.input) : call!.input) as { city: string }
    expect(call).toMatchObject({ name: 'get_weather', id: expect.any(String) })

    const { message } = await llm.chat({
      tools: [TOOL],
      messages: [
        question,
        { role: 'assistant', content: '', options: { toolCall: [{ ...call!, input }] } },
        {
          role: 'user',
          content: TOOL.call(input),
          options: { toolResult: { id: call!.id, result: TOOL.call(input), isError: false } },
        },
      ],
    })
    expect(message.content).toBe('The tools answered: get_weather of sample city')
  })
})

test("LlamaIndex's OpenAIResponses throws what the gateway says about an unknown model", async () => {
  const failure = connect('no-such-model').chat({ messages: [{ role: 'user', content: 'hello' }] })

  await expect(failure).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
})
