import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endOfExample, type RunningExample, runExample } from './support/run-example.ts'

const EXAMPLES = ['express', 'fastify', 'node-http', 'hono'] as const

describe.each(EXAMPLES)('the example %s', (name) => {
  let example: RunningExample
  let client: OpenAI

  beforeAll(async () => {
    example = await runExample(name)
    client = new OpenAI({ baseURL: example.baseURL, apiKey: example.apiKey, maxRetries: 0 })
  })
  afterAll(() => example.stop())

  test.each(['cl-sonnet-4-6', 'gmn-2.5-flash'])('answers a chat with %s', async (model) => {
    const completion = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'good morning' }],
    })

    expect(completion.choices[0]?.message.content).toBe('You said: good morning')
  })

  test('streams', async () => {
    const stream = client.chat.completions.stream({
      model: 'cl-sonnet-4-6',
      messages: [{ role: 'user', content: 'good morning' }],
    })

    expect(await stream.finalContent()).toBe('You said: good morning')
  })

  test('embeds', async () => {
    const answer = await client.embeddings.create({ model: 'vy-4', input: ['one', 'two'] })

    expect(answer.data.map((entry) => entry.embedding.length)).toEqual([1024, 1024])
  })

  test('knows its own key only', async () => {
    const stranger = new OpenAI({ baseURL: example.baseURL, apiKey: 'sk-unknown', maxRetries: 0 })

    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError)
  })

  test("serves the host's own routes alongside the gateway", async () => {
    const path = name === 'express' ? '/balance' : '/'

    const response = await fetch(new URL(path, example.baseURL))

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('application/json')
  })
})

test('the example express charges what its price file says', async () => {
  const example = await runExample('express')
  const client = new OpenAI({ baseURL: example.baseURL, apiKey: example.apiKey, maxRetries: 0 })
  await client.chat.completions.create({ model: 'cl-sonnet-4-6', messages: [{ role: 'user', content: 'hello' }] })

  const balance = (await (await fetch(new URL('/balance', example.baseURL))).json()) as { dollars: string }
  await example.stop()

  expect(Number(balance.dollars)).toBeLessThan(5)
  expect(Number(balance.dollars)).toBeGreaterThan(4.99)
})

test.each(EXAMPLES)('exits the example %s with status 0 on SIGTERM', async (name) => {
  const example = await runExample(name)
  const client = new OpenAI({ baseURL: example.baseURL, apiKey: example.apiKey, maxRetries: 0 })
  await client.models.list()

  const { code, output } = await example.stop()

  expect([code, output]).toEqual([0, expect.not.stringMatching(/error/i)])
})

test.each(EXAMPLES)('the example %s fails with a status when its port is taken', async (name) => {
  const other = createServer()
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')

  const { code, output } = await endOfExample(name, { PORT: String((other.address() as AddressInfo).port) })
  other.close()

  expect(code).toBe(1)
  expect(output).toContain('EADDRINUSE')
})
