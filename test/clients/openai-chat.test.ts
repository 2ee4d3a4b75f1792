import type { RunnableToolFunctionWithParse } from 'openai/lib/RunnableFunction'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { CHAT_MODELS, CITY_SCHEMA, FORECAST, FORECAST_SCHEMA } from './support/models.ts'
import { OPENAI_VERSIONS, type OpenAIClient, openaiClient } from './support/openai-clients.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ disconnect: 'cancel', drainMs: 200 })
})
afterAll(() => started.close())

const FORECAST_FORMAT = {
  type: 'json_schema',
  json_schema: { name: 'forecast', strict: true, schema: FORECAST_SCHEMA },
} as const

const WEATHER_FUNCTION = { name: 'get_weather', description: 'Tells something about a city.', parameters: CITY_SCHEMA }

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  let client: OpenAIClient

  beforeAll(() => {
    client = openaiClient(OpenAI, started.url)
  })

  describe.each(CHAT_MODELS)('model %s', (model) => {
    test('gets a whole answer', async () => {
      const completion = await client.chat.completions.create({
        model,
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'good morning' },
        ],
      })

      expect(completion.model).toBe(model)
      expect(completion.choices[0]).toMatchObject({
        message: { role: 'assistant', content: 'You said: good morning', refusal: null },
        finish_reason: 'stop',
      })
      expect(completion.usage?.completion_tokens).toBeGreaterThan(0)
      expect((completion as { _request_id?: string })._request_id).toMatch(/^req_/)
    })

    test('reads a stream to its end', async () => {
      const stream = await client.chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'good morning to you' }],
        stream: true,
        stream_options: { include_usage: true },
      })

      const chunks = await all(stream)
      const choices = chunks.flatMap((chunk) => chunk.choices)

      expect(choices.map((choice) => choice.delta.content ?? '').join('')).toBe('You said: good morning to you')
      expect(choices.filter((choice) => (choice.delta.content ?? '') !== '').length).toBeGreaterThan(1)
      expect(choices.at(-1)?.finish_reason).toBe('stop')
      expect(chunks.at(-1)?.usage?.total_tokens).toBeGreaterThan(0)
      expect(new Set(chunks.map((chunk) => chunk.model))).toEqual(new Set([model]))
      expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
    })

    test('puts a streamed answer together with the stream helper', async () => {
      const stream = client.chat.completions.stream({ model, messages: [{ role: 'user', content: 'good morning' }] })
      const deltas: string[] = []
      stream.on('content', (delta) => deltas.push(delta))

      const completion = await stream.finalChatCompletion()

      expect(deltas.join('')).toBe('You said: good morning')
      expect(completion.choices[0]).toMatchObject({
        finish_reason: 'stop',
        message: { role: 'assistant', content: 'You said: good morning' },
      })
    })

    test.each(['whole', 'streamed'] as const)('runs one tool to the final answer, %s', async (way) => {
      const called: unknown[] = []
      const weather = weatherTool('get_weather', called)

      const answer = await runTools(client, way, model, 'please call get_weather', [weather])

      expect(called).toEqual([{ tool: 'get_weather', city: 'sample city' }])
      expect(answer).toBe('The tools answered: get_weather of sample city')
    })

    test.each(['whole', 'streamed'] as const)('runs tools called in parallel, %s', async (way) => {
      const called: unknown[] = []
      const tools = [weatherTool('get_weather', called), weatherTool('get_time', called)]

      const answer = await runTools(client, way, model, 'call get_weather and get_time', tools)

      expect(called).toEqual([
        { tool: 'get_weather', city: 'sample city' },
        { tool: 'get_time', city: 'sample city' },
      ])
      expect(answer).toBe('The tools answered: get_weather of sample city | get_time of sample city')
    })

    test('answers a call by a history with the message as it came', async () => {
      const request = { model, tools: [{ type: 'function' as const, function: WEATHER_FUNCTION }] }
      const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: 'call get_weather' }]
      const first = await client.chat.completions.create({ ...request, messages })
      const message = first.choices[0]!.message
      messages.push(message)
      for (const { id } of message.tool_calls ?? []) messages.push({ role: 'tool', tool_call_id: id, content: 'sunny' })
      const second = await client.chat.completions.create({ ...request, messages })

      expect(second.choices[0]?.message.content).toBe('The tools answered: sunny')
    })

    test('gets JSON when it asks for an object', async () => {
      const completion = await client.chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Answer in JSON, please.' }],
        response_format: { type: 'json_object' },
      })

      expect(JSON.parse(completion.choices[0]?.message.content ?? '')).toBeTypeOf('object')
    })

    test('parses an answer that fits a JSON schema', async () => {
      const completion = await client.chat.completions.parse({
        model,
        messages: [{ role: 'user', content: 'The forecast as JSON, please.' }],
        response_format: FORECAST_FORMAT,
      })

      expect(completion.choices[0]?.message.parsed).toEqual(FORECAST)
    })

    test('gets a streamed answer that fits a JSON schema', async () => {
      const stream = client.chat.completions.stream({
        model,
        messages: [{ role: 'user', content: 'The forecast as JSON, please.' }],
        response_format: FORECAST_FORMAT,
      })

      const completion = await stream.finalChatCompletion()

      // Version 6 parses whole answers only.
      expect(JSON.parse(completion.choices[0]?.message.content ?? '')).toEqual(FORECAST)
    })

    test('closes the call at the vendor when it leaves a stream', async () => {
      started.sandbox.reset()
      const stream = await client.chat.completions.create({
        model,
        messages: [{ role: 'user', content: '[[fault:hang-body=9]] one two three four five six seven eight' }],
        stream: true,
      })
      for await (const _chunk of stream) break
      await started.sandbox.nextAbort()

      expect(started.sandbox.aborted).toBe(1)
      expect(started.sandbox.openCalls).toBe(0)
    })

    test('closes the call at the vendor when it aborts before the answer', async () => {
      started.sandbox.reset()
      const controller = new AbortController()
      const answer = client.chat.completions.create(
        { model, messages: [{ role: 'user', content: '[[fault:hang]] hello' }] },
        { signal: controller.signal },
      )
      const failure = answer.then(
        () => undefined,
        (error: unknown) => error,
      )
      await started.sandbox.nextRequest()
      controller.abort()
      await started.sandbox.nextAbort()

      expect(await failure).toBeInstanceOf(OpenAI.APIUserAbortError)
      expect(started.sandbox.aborted).toBe(1)
    })

    test('throws when the vendor breaks off in mid-stream', async () => {
      const stream = await client.chat.completions.create({
        model,
        messages: [{ role: 'user', content: '[[fault:reset-mid-stream=8]] one two three four five six seven eight' }],
        stream: true,
      })

      await expect(all(stream)).rejects.toBeInstanceOf(OpenAI.APIError)
    })
  })
})

interface CityArguments {
  readonly city: string
}

function weatherTool(name: string, called: unknown[]): RunnableToolFunctionWithParse<CityArguments> {
  return {
    type: 'function',
    function: {
      name,
      description: 'Tells something about a city.',
      parameters: CITY_SCHEMA,
      parse: (json: string) => JSON.parse(json) as CityArguments,
      function: ({ city }: CityArguments) => {
        called.push({ tool: name, city })
        return `${name} of ${city}`
      },
    },
  }
}

/** The client's own loop: it runs the tools and asks again until the model says something. */
function runTools(
  client: OpenAIClient,
  way: 'whole' | 'streamed',
  model: string,
  text: string,
  tools: RunnableToolFunctionWithParse<CityArguments>[],
): Promise<string | null> {
  const request = { model, messages: [{ role: 'user' as const, content: text }], tools }
  return way === 'whole'
    ? client.chat.completions.runTools(request).finalContent()
    : client.chat.completions.runTools({ ...request, stream: true }).finalContent()
}

async function all<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}
