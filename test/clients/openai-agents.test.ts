import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, FORECAST } from './support/models.ts'

let started: StartedGateway
let runner: Runner

beforeAll(async () => {
  started = await startGateway()
  // The default of the provider is Responses. Traces would go to OpenAI, whatever the base URL.
  const modelProvider = new OpenAIProvider({ apiKey: TEST_KEY, baseURL: `${started.url}/v1` })
  runner = new Runner({ modelProvider, tracingDisabled: true })
})
afterAll(() => started.close())

let called: string[]
beforeEach(() => {
  called = []
})

const cityTool = (name: string) =>
  tool({
    name,
    description: 'Tells something about a city.',
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => {
      called.push(name)
      return `${name} of ${city}`
    },
  })

describe.each(CHAT_MODELS)('@openai/agents with %s', (model) => {
  test('runs an agent', async () => {
    const agent = new Agent({ name: 'Assistant', instructions: 'Be brief.', model })
    const result = await runner.run(agent, 'good morning')

    expect(result.finalOutput).toBe('You said: good morning')
    expect(result.lastResponseId).toMatch(/^resp_/)
    expect(result.rawResponses[0]?.usage.outputTokens).toBeGreaterThan(0)
  })

  test('runs the tools that an agent calls, and answers with their results', async () => {
    const agent = new Agent({ name: 'Assistant', model, tools: [cityTool('get_weather'), cityTool('get_time')] })
    const result = await runner.run(agent, 'call get_weather and get_time')

    expect(called.sort()).toEqual(['get_time', 'get_weather'])
    expect(result.finalOutput).toBe('The tools answered: get_weather of sample city | get_time of sample city')
  })

  test('streams an agent with a tool', async () => {
    const agent = new Agent({ name: 'Assistant', model, tools: [cityTool('get_weather')] })
    const stream = await runner.run(agent, 'call get_weather', { stream: true })
    const deltas: string[] = []
    for await (const event of stream)
      if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta')
        deltas.push(event.data.delta)
    await stream.completed

    expect(called).toEqual(['get_weather'])
    expect(stream.finalOutput).toBe('The tools answered: get_weather of sample city')
    expect(deltas.length).toBeGreaterThan(1)
    expect(deltas.join('')).toBe(stream.finalOutput)
  })

  test.each([false, true])('hands a conversation over to another agent (streamed: %s)', async (stream) => {
    const weather = new Agent({ name: 'Weather', instructions: 'You know the weather.', model })
    const triage = new Agent({ name: 'Triage', model, handoffs: [weather] })
    const input = 'call transfer_to_Weather'
    const result = stream ? await runner.run(triage, input, { stream }) : await runner.run(triage, input)
    if ('completed' in result) await result.completed

    expect(result.lastAgent?.name).toBe('Weather')
    expect(result.finalOutput).toContain('The tools answered:')
  })

  test('continues a conversation by the id of an answer', async () => {
    const agent = new Agent({ name: 'Assistant', model })
    const first = await runner.run(agent, 'good morning')
    const second = await runner.run(agent, 'good night', { previousResponseId: first.lastResponseId! })

    expect(second.finalOutput).toBe('You said: good night')
  })

  test('gets an object that fits a schema', async () => {
    const outputType = z.object({ city: z.string(), degrees: z.number(), days: z.array(z.enum(['sunny', 'rainy'])) })
    const agent = new Agent({ name: 'Assistant', model, outputType })
    const result = await runner.run(agent, 'The forecast as JSON, please.')

    expect(result.finalOutput).toEqual(FORECAST)
  })
})

test('@openai/agents throws what the gateway says about an unknown model', async () => {
  const agent = new Agent({ name: 'Assistant', model: 'no-such-model' })

  await expect(runner.run(agent, 'hello')).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
})
