import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

const KEY = 'sk-example-0123456789'

let route: typeof import('../../examples/next-route.mjs')
let client: OpenAI

beforeAll(async () => {
  for (const vendor of ['OPENAI', 'ANTHROPIC', 'GEMINI', 'DASHSCOPE', 'VOYAGE'])
    vi.stubEnv(`${vendor}_API_KEY`, undefined)
  vi.stubEnv('GATEWAY_KEY', KEY)
  route = await import('../../examples/next-route.mjs')
  // As Next does: every request goes to the exported function of its method.
  const answer: typeof fetch = (input, init) => {
    const request = new Request(input, init)
    return request.method === 'POST' ? route.POST(request) : route.GET(request)
  }
  client = new OpenAI({ baseURL: 'http://app.example/ai/v1', apiKey: KEY, maxRetries: 0, fetch: answer })
})
afterAll(() => {
  vi.unstubAllEnvs()
})

describe('the example next-route', () => {
  test('answers a chat', async () => {
    const completion = await client.chat.completions.create({
      model: 'gmn-2.5-flash',
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

  test('lists models through GET', async () => {
    const page = await client.models.list()

    expect(page.data.map((model) => model.id)).toContain('vy-4')
  })

  test('answers 404 for a path that is not the gateway’s', async () => {
    const response = await route.GET(new Request('http://app.example/ai/v1/nothing'))

    expect(response.status).toBe(404)
  })

  test('tells Next to run it on Node and to keep no answer', () => {
    expect([route.runtime, route.dynamic]).toEqual(['nodejs', 'force-dynamic'])
  })
})
