import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { CHAT_MODELS, CITY_SCHEMA, FORECAST, FORECAST_SCHEMA } from './support/models.ts'
import { OPENAI_VERSIONS, type OpenAIClient, openaiClient } from './support/openai-clients.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ disconnect: 'cancel', drainMs: 200 })
})
afterAll(() => started.close())

const LOOK_UP = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: CITY_SCHEMA,
  strict: true,
} as const

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  let client: OpenAIClient

  beforeAll(() => {
    client = openaiClient(OpenAI, started.url)
  })

  describe.each(CHAT_MODELS)('model %s', (model) => {
    test('gets a whole answer', async () => {
      const response = await client.responses.create({ model, instructions: 'Be brief.', input: 'good morning' })

      expect(response.model).toBe(model)
      expect(response.status).toBe('completed')
      expect(response.output_text).toBe('You said: good morning')
      expect(response.usage?.output_tokens).toBeGreaterThan(0)
      expect(response.usage?.total_tokens).toBe(response.usage!.input_tokens + response.usage!.output_tokens)
    })

    test('reads the events of a stream, and its final response', async () => {
      const stream = client.responses.stream({ model, input: 'good morning to you' })
      const deltas: string[] = []
      stream.on('response.output_text.delta', ({ delta }) => void deltas.push(delta))
      const response = await stream.finalResponse()

      expect(deltas.length).toBeGreaterThan(1)
      expect(deltas.join('')).toBe('You said: good morning to you')
      expect(response.output_text).toBe('You said: good morning to you')
      expect(response.usage?.total_tokens).toBeGreaterThan(0)
    })

    test('parses an answer that follows a schema', async () => {
      const response = await client.responses.parse({
        model,
        input: 'forecast',
        text: { format: { type: 'json_schema', name: 'forecast', strict: true, schema: FORECAST_SCHEMA } },
      })

      expect(JSON.parse(response.output_text)).toEqual(FORECAST)
    })

    test.each([false, true])('calls a tool and answers with its output (streamed: %s)', async (isStream) => {
      const input: ResponseInputItem[] = [{ role: 'user', content: 'call get_weather' }]
      const body = { model, tools: [LOOK_UP], tool_choice: { type: 'function', name: 'get_weather' } as const }
      const first = isStream
        ? await client.responses.stream({ ...body, input }).finalResponse()
        : await client.responses.create({ ...body, input })
      const call = first.output.flatMap((item) => (item.type === 'function_call' ? [item] : []))[0]!
      expect(JSON.parse(call.arguments)).toHaveProperty('city')
      const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny' } as const
      const second = await client.responses.create({
        model,
        tools: [LOOK_UP],
        input: [...input, ...(first.output as ResponseInputItem[]), output],
      })

      expect(second.status).toBe('completed')
      expect(second.output_text).toContain('sunny')
    })
  })
})
