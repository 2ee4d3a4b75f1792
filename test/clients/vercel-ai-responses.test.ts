import { createOpenAI, type OpenAIProvider } from '@ai-sdk/openai'
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, FORECAST } from './support/models.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ disconnect: 'cancel', drainMs: 200 })
})
afterAll(() => started.close())

/** Called with a model id, the provider speaks Responses; `.chat` would speak chat completions. */
const connect = (apiKey = TEST_KEY): OpenAIProvider => createOpenAI({ baseURL: `${started.url}/v1`, apiKey })

const forecast = z.object({ city: z.string(), degrees: z.number(), days: z.array(z.enum(['sunny', 'rainy'])) })

describe.each(CHAT_MODELS)('@ai-sdk/openai with %s', (modelId) => {
  test('generates a text', async () => {
    const result = await generateText({ model: connect()(modelId), system: 'Be brief.', prompt: 'good morning' })

    expect(result.text).toBe('You said: good morning')
    expect(result.finishReason).toBe('stop')
    expect(result.usage.outputTokens).toBeGreaterThan(0)
    expect(result.response.modelId).toBe(modelId)
    expect(result.response.id).toMatch(/^resp_/)
  })

  test('streams a text', async () => {
    const result = streamText({ model: connect()(modelId), prompt: 'good morning to you' })
    const parts: string[] = []
    for await (const part of result.textStream) parts.push(part)

    expect(parts.join('')).toBe('You said: good morning to you')
    expect(parts.length).toBeGreaterThan(1)
    expect(await result.finishReason).toBe('stop')
    expect((await result.usage).outputTokens).toBeGreaterThan(0)
  })

  // By default the second step refers to the items of the first by their ids.
  test.each(['whole', 'streamed'] as const)('runs tools called in parallel to the final answer, %s', async (way) => {
    const called: string[] = []
    const look = (name: string) =>
      tool({
        description: 'Tells something about a city.',
        inputSchema: z.object({ city: z.string() }),
        execute: ({ city }) => {
          called.push(name)
          return `${name} of ${city}`
        },
      })
    const request = {
      model: connect()(modelId),
      tools: { get_weather: look('get_weather'), get_time: look('get_time') },
      stopWhen: stepCountIs(3),
      prompt: 'call get_weather and get_time',
    }
    const text = way === 'whole' ? (await generateText(request)).text : await streamText(request).text

    expect(called).toEqual(['get_weather', 'get_time'])
    expect(text).toBe('The tools answered: get_weather of sample city | get_time of sample city')
  })

  test('runs a tool without anything kept', async () => {
    const result = await generateText({
      model: connect()(modelId),
      providerOptions: { openai: { store: false } },
      tools: { get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: () => 'sunny' }) },
      stopWhen: stepCountIs(3),
      prompt: 'call get_weather',
    })

    expect(result.steps).toHaveLength(2)
    expect(result.text).toContain('sunny')
  })

  test('continues an answer by its id', async () => {
    const first = await generateText({ model: connect()(modelId), prompt: 'good morning' })
    const previousResponseId = String(first.providerMetadata?.['openai']?.['responseId'])
    const second = await generateText({
      model: connect()(modelId),
      prompt: 'good night',
      providerOptions: { openai: { previousResponseId } },
    })

    expect(second.text).toBe('You said: good night')
    expect(second.usage.inputTokens).toBeGreaterThan(0)
  })

  test.each(['whole', 'streamed'] as const)('gets an object that fits a schema, %s', async (way) => {
    const request = {
      model: connect()(modelId),
      output: Output.object({ schema: forecast }),
      prompt: 'The forecast as JSON, please.',
    }
    const output = way === 'whole' ? (await generateText(request)).output : await streamText(request).output

    expect(output).toEqual(FORECAST)
  })

  test('closes the call at the vendor when a stream is aborted', async () => {
    started.sandbox.reset()
    const controller = new AbortController()
    const result = streamText({
      model: connect()(modelId),
      prompt: '[[fault:hang-body=8]] one two three four five six seven eight nine ten eleven twelve',
      abortSignal: controller.signal,
    })
    for await (const _part of result.textStream) controller.abort()
    await started.sandbox.nextAbort()

    expect(started.sandbox.openCalls).toBe(0)
  })
})

describe('@ai-sdk/openai throws APICallError with the text of the gateway', () => {
  test('throws it for an unknown key, without a retry', async () => {
    const failure = generateText({ model: connect('sk-unknown')('chat-relayed'), prompt: 'hello' })

    await expect(failure).rejects.toSatisfy(APICallError.isInstance)
    await expect(failure).rejects.toMatchObject({ statusCode: 401, isRetryable: false })
    await expect(failure).rejects.toThrow(/API key/)
  })

  test('throws it for an unknown model', async () => {
    const failure = generateText({ model: connect()('no-such-model'), prompt: 'hello' })

    await expect(failure).rejects.toMatchObject({ statusCode: 404, isRetryable: false })
    await expect(failure).rejects.toThrow(/no-such-model/)
  })

  test('throws it for a vendor that is down, with a retry', async () => {
    const failure = generateText({
      model: connect()('chat-relayed'),
      prompt: '[[fault:status=503]] hello',
      maxRetries: 0,
    })

    await expect(failure).rejects.toMatchObject({ statusCode: 503, isRetryable: true })
  })
})

test.each(['chat-relayed', 'chat-qwen'])('@ai-sdk/openai sees that %s broke off in mid-stream', async (modelId) => {
  const errors: unknown[] = []
  const result = streamText({
    model: connect()(modelId),
    prompt: '[[fault:reset-mid-stream=8]] one two three four five six seven eight nine ten',
    onError: ({ error }) => {
      errors.push(error)
    },
  })
  await result.consumeStream()

  expect(errors.length).toBeGreaterThan(0)
  expect(await result.finishReason).toBe('error')
})
