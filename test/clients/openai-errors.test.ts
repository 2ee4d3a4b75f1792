import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fakeClock } from '../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import {
  type CountedFetch,
  countedFetch,
  OPENAI_VERSIONS,
  type OpenAIClass,
  openaiClient,
} from './support/openai-clients.ts'

const POOR_KEY = 'sk-test-without-money'
const LIMITED_KEY = 'sk-test-one-at-a-time'

let started: StartedGateway
let counted: CountedFetch

beforeAll(async () => {
  started = await startGateway({
    drainMs: 200,
    keys: [
      { key: TEST_KEY, account: TEST_ACCOUNT },
      { key: POOR_KEY, account: 'acct_poor' },
      { key: LIMITED_KEY, account: TEST_ACCOUNT, limits: { concurrency: 1 } },
    ],
  })
})
afterAll(() => started.close())

beforeEach(() => {
  started.sandbox.reset()
  counted = countedFetch()
})

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  test('throws AuthenticationError for an unknown key, once', async () => {
    const error = await failureOf(OpenAI, { apiKey: 'sk-unknown', maxRetries: 2 }, chatBody('chat-relayed', 'hello'))

    expect(error).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(error).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'authentication_error' })
    expect(counted.sentAtMs).toHaveLength(1)
  })

  test('throws NotFoundError for an unknown model', async () => {
    const error = await failureOf(OpenAI, {}, chatBody('no-such-model', 'hello'))

    expect(error).toBeInstanceOf(OpenAI.NotFoundError)
    expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
  })

  test.each([
    ['temperature', { temperature: 3 }],
    ['stop', { stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['presence_penalty', { presence_penalty: -2.5 }],
    ['messages', { messages: 'hello' }],
  ])('throws BadRequestError that names %s, before any vendor is called', async (param, rest) => {
    const error = await failureOf(OpenAI, {}, chatBody('chat-relayed', 'hello', rest))

    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', param })
    expect((error as Error).message).toContain(param)
    expect(started.sandbox.requests).toHaveLength(0)
  })

  test('throws APIError with status 402 for an account without money, and does not retry', async () => {
    const error = await failureOf(OpenAI, { apiKey: POOR_KEY, maxRetries: 2 }, chatBody('chat-relayed', 'hello'))

    expect(error).toBeInstanceOf(OpenAI.APIError)
    expect(error).toMatchObject({ status: 402 })
    expect((error as Error).message).toMatch(/add credit/i)
    expect(counted.sentAtMs).toHaveLength(1)
    expect(started.sandbox.requests).toHaveLength(0)
  })

  test('throws RateLimitError when a limit of the key is reached', async () => {
    const holding = new AbortController()
    const client = openaiClient(OpenAI, started.url, { apiKey: LIMITED_KEY })
    const held = client.chat.completions
      .create(
        { model: 'chat-relayed', messages: [{ role: 'user', content: '[[fault:hang]] hello' }] },
        { signal: holding.signal },
      )
      .catch((error: unknown) => error)
    await started.sandbox.nextRequest()

    const error = await failureOf(OpenAI, { apiKey: LIMITED_KEY }, chatBody('chat-relayed', 'hello'))
    holding.abort()
    await held
    await started.sandbox.nextAbort()

    expect(error).toBeInstanceOf(OpenAI.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
    expect(Number((error as { headers?: Headers }).headers?.get('retry-after'))).toBeGreaterThan(0)
  })

  test('throws InternalServerError with status 503 when the vendor is down', async () => {
    const error = await failureOf(OpenAI, {}, chatBody('chat-relayed', '[[fault:status=503]] hello'))

    expect(error).toBeInstanceOf(OpenAI.InternalServerError)
    expect(error).toMatchObject({ status: 503, code: 'upstream_unavailable' })
    expect(Number((error as { headers?: Headers }).headers?.get('retry-after'))).toBeGreaterThan(0)
  })
})

// A real second passes while the client waits, so both versions wait at the same time.
test.concurrent.each(OPENAI_VERSIONS)('%s obeys retry-after and then gets its answer', async (_name, OpenAI) => {
  const clock = fakeClock()
  const limited = await startGateway({ limits: { requestsPerMinute: 60 }, clock })
  const calls = countedFetch()
  const statuses: number[] = []
  const client = openaiClient(OpenAI, limited.url, {
    maxRetries: 1,
    fetch: async (input, init) => {
      const response = await calls.fetch(input, init)
      statuses.push(response.status)
      // The gateway's own time stands still, so that only this moves its limits on.
      if (response.status === 429) clock.advance(Number(response.headers.get('retry-after')) * 1000)
      return response
    },
  })
  await useUpLimit(limited)

  const completion = await client.chat.completions.create({
    model: 'chat-relayed',
    messages: [{ role: 'user', content: 'hello' }],
  })
  await limited.close()

  expect(completion.choices[0]?.message.content).toBe('You said: hello')
  expect(statuses).toEqual([429, 200])
  // Left to itself the client waits half a second at most; timers may fire a little early.
  expect((calls.sentAtMs[1] ?? 0) - (calls.sentAtMs[0] ?? 0)).toBeGreaterThanOrEqual(950)
})

async function useUpLimit(limited: StartedGateway): Promise<void> {
  for (;;) {
    const response = await limited.post('/v1/embeddings', { model: 'vy-4', input: 'x' })
    await response.text()
    if (response.status === 429) return
  }
}

async function failureOf(
  OpenAI: OpenAIClass,
  options: Parameters<typeof openaiClient>[2],
  body: Record<string, unknown>,
): Promise<unknown> {
  const client = openaiClient(OpenAI, started.url, { fetch: counted.fetch, ...options })
  try {
    return await client.post('/chat/completions', { body })
  } catch (error) {
    return error
  }
}
