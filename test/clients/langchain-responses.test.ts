import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, CITY_SCHEMA, FORECAST, FORECAST_SCHEMA } from './support/models.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

const chat = (model: string): ChatOpenAI =>
  new ChatOpenAI({
    model,
    apiKey: TEST_KEY,
    maxRetries: 0,
    useResponsesApi: true,
    configuration: { baseURL: `${started.url}/v1` },
  })

const TOOLS = ['get_weather', 'get_time'].map((name) => ({
  type: 'function' as const,
  function: { name, description: 'Tells something about a city.', parameters: CITY_SCHEMA },
}))
const CALLS = [
  { name: 'get_weather', args: { city: 'sample city' } },
  { name: 'get_time', args: { city: 'sample city' } },
]

describe.each(CHAT_MODELS)('@langchain/openai with useResponsesApi and %s', (model) => {
  test('invokes', async () => {
    const message = await chat(model).invoke([
      ['system', 'Be brief.'],
      ['human', 'good morning'],
    ])

    expect(message.text).toBe('You said: good morning')
    expect(message.response_metadata).toMatchObject({ status: 'completed', id: expect.stringMatching(/^resp_/) })
    expect(message.usage_metadata).toMatchObject({ output_tokens: expect.any(Number) })
  })

  test('streams', async () => {
    const texts: string[] = []
    for await (const chunk of await chat(model).stream('good morning to you'))
      if (chunk.text !== '') texts.push(chunk.text)

    expect(texts.join('')).toBe('You said: good morning to you')
    expect(texts.length).toBeGreaterThan(1)
  })

  test.each([false, true])('calls tools, and answers with their results (streamed: %s)', async (isStream) => {
    const bound = chat(model).bindTools(TOOLS)
    const question = new HumanMessage('call get_weather and get_time')
    let asking: Awaited<ReturnType<typeof bound.invoke>> | undefined
    if (isStream)
      for await (const chunk of await bound.stream([question]))
        asking = asking === undefined ? chunk : asking.concat(chunk)
    else asking = await bound.invoke([question])
    expect(asking?.tool_calls).toMatchObject(CALLS)
    const results = (asking?.tool_calls ?? []).map(
      (call) => new ToolMessage({ tool_call_id: call.id ?? '', content: `${call.name} of ${call.args['city']}` }),
    )
    const answer = await bound.invoke([question, asking!, ...results])

    expect(answer.text).toBe('The tools answered: get_weather of sample city | get_time of sample city')
  })

  test('gets an object that fits a schema', async () => {
    const structured = chat(model).withStructuredOutput(FORECAST_SCHEMA, { name: 'forecast', method: 'jsonSchema' })

    expect(await structured.invoke('The forecast as JSON, please.')).toEqual(FORECAST)
  })
})

test('@langchain/openai with useResponsesApi throws what the gateway says about an unknown model', async () => {
  await expect(chat('no-such-model').invoke('hello')).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
})
