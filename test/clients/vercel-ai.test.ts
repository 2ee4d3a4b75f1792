import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, embedMany, generateText, Output, stepCountIs, streamText, tool } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { CHAT_MODELS, EMBEDDING_MODELS, FORECAST } from './support/models.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ disconnect: 'cancel', drainMs: 200 })
})
afterAll(() => started.close())

const connect = (apiKey = TEST_KEY) =>
  createOpenAICompatible({
    name: 'gateway',
    baseURL: `${started.url}/v1`,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  })

const forecast = z.object({ city: z.string(), degrees: z.number(), days: z.array(z.enum(['sunny', 'rainy'])) })

describe.each(CHAT_MODELS)('ai with %s', (modelId) => {
  test('generates a text', async () => {
    const result = await generateText({
      model: connect()(modelId),
      system: 'Be brief.',
      prompt: 'good morning',
      maxOutputTokens: 200,
    })

    expect(result.text).toBe('You said: good morning')
    expect(result.finishReason).toBe('stop')
    expect(result.usage.outputTokens).toBeGreaterThan(0)
    expect(result.response.modelId).toBe(modelId)
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

  test('gets an object that fits a schema', async () => {
    const result = await generateText({
      model: connect()(modelId),
      output: Output.object({ schema: forecast }),
      prompt: 'The forecast as JSON, please.',
    })

    expect(result.output).toEqual(FORECAST)
  })

  test('closes the call at the vendor when a stream is aborted', async () => {
    started.sandbox.reset()
    const controller = new AbortController()
    const result = streamText({
      model: connect()(modelId),
      prompt: '[[fault:hang-body=8]] one two three four five six seven eight',
      abortSignal: controller.signal,
    })
    for await (const _part of result.textStream) controller.abort()
    await started.sandbox.nextAbort()

    expect(started.sandbox.openCalls).toBe(0)
  })
})

test.each(EMBEDDING_MODELS)('ai embeds many texts with %s, in their order', async (modelId, dimensions) => {
  const values = Array.from({ length: 23 }, (_, index) => `text number ${index}`)

  const many = await embedMany({ model: connect().embeddingModel(modelId), values })
  const alone = await embedMany({ model: connect().embeddingModel(modelId), values: ['text number 17'] })

  expect(many.embeddings).toHaveLength(23)
  expect(new Set(many.embeddings.map((vector) => vector.length))).toEqual(new Set([dimensions]))
  expect(many.embeddings[17]).toEqual(alone.embeddings[0])
  expect(many.usage.tokens).toBeGreaterThan(0)
})

test('ai does not retry a model without a price', async () => {
  const unpriced = await startGateway({ prices: { currency: 'USD', prices: [] } })
  let requests = 0
  const provider = createOpenAICompatible({
    name: 'gateway',
    baseURL: `${unpriced.url}/v1`,
    apiKey: TEST_KEY,
    fetch: (...sent) => {
      requests++
      return fetch(...sent)
    },
  })
  const failure = generateText({ model: provider('chat-relayed'), prompt: 'hello' })

  await expect(failure).rejects.toMatchObject({
    statusCode: 400,
    message: 'There is no price for the model "chat-relayed" on the endpoint "chat", and billing is on.',
  })
  expect(requests).toBe(1)
  await unpriced.close()
})

describe('ai throws APICallError with the text of the gateway', () => {
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

  test('throws it for a vendor that breaks off in mid-stream', async () => {
    const errors: unknown[] = []
    const result = streamText({
      model: connect()('chat-relayed'),
      prompt: '[[fault:reset-mid-stream=6]] one two three four five six seven eight',
      onError: ({ error }) => {
        errors.push(error)
      },
    })

    await result.consumeStream()

    expect(errors).toHaveLength(1)
    expect(await result.finishReason).toBe('error')
  })
})
