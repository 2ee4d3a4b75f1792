import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatDollars } from '../../../src/core/money.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

const MODELS = ['chat-relayed', 'chat-qwen', 'cl-sonnet-4-6', 'gmn-2.5-flash'] as const

describe.each(MODELS)('a chat with %s', (model) => {
  test('answers with the public model id, the text and the usage', async () => {
    const response = await started.post('/v1/chat/completions', chatBody(model, 'good morning'))
    const body = await response.json()

    expect(response.status).toBe(200)
    expect(body).toMatchObject({
      object: 'chat.completion',
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'You said: good morning' }, finish_reason: 'stop' }],
    })
    expect(body.usage.total_tokens).toBe(body.usage.prompt_tokens + body.usage.completion_tokens)
    expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
  })

  test('streams chunks, with usage only when it is asked for', async () => {
    const without = await readEvents(
      await started.post('/v1/chat/completions', chatBody(model, 'good morning', { stream: true })),
    )
    const withUsage = await readEvents(
      await started.post(
        '/v1/chat/completions',
        chatBody(model, 'good morning', { stream: true, stream_options: { include_usage: true } }),
      ),
    )

    expect(without.at(-1)).toBe('[DONE]')
    expect(textOf(without)).toBe('You said: good morning')
    expect(chunksOf(without).every((chunk) => chunk.model === model && chunk.choices.length > 0)).toBe(true)
    expect(textOf(withUsage)).toBe('You said: good morning')
    const last = chunksOf(withUsage).at(-1)
    expect(last).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number), completion_tokens: 4 } })
    expect(chunksOf(withUsage).slice(0, -1)).toSatisfy((chunks: { usage?: unknown }[]) =>
      chunks.every(({ usage }) => usage === null),
    )
  })

  test('tells what it cost: a whole answer in a header, a stream in its last chunk', async () => {
    const whole = await started.post('/v1/chat/completions', chatBody(model, 'good morning'))
    const stream = { stream: true, stream_options: { include_usage: true } }
    const streamed = await started.post('/v1/chat/completions', chatBody(model, 'good morning', stream))
    const last = chunksOf(await readEvents(streamed)).at(-1)
    const { costNanoDollars } = await started.ended(streamed)

    expect(whole.headers.get('x-signalbox-cost')).toBe(formatDollars(costNanoDollars))
    expect(whole.headers.get('x-signalbox-cost-due')).toBeNull()
    expect(last).toMatchObject({ usage: { cost: formatDollars(costNanoDollars) } })
  })

  test('a streamed answer costs the same as the whole one, cached tokens included', async () => {
    const text = 'cached words cost less than the fresh words of a long prompt'
    const wholeAnswer = await started.post('/v1/chat/completions', chatBody(model, text))
    const streamedAnswer = await started.post('/v1/chat/completions', chatBody(model, text, { stream: true }))
    await streamedAnswer.text()
    const whole = await started.ended(wholeAnswer)
    const streamed = await started.ended(streamedAnswer)

    expect(whole.usage?.cachedInputTokens).toBeGreaterThan(0)
    const { inputTokens, cachedInputTokens, outputTokens } = whole.usage ?? {}
    expect(streamed.usage).toMatchObject({ inputTokens, cachedInputTokens, outputTokens })
    expect(streamed.costNanoDollars).toBe(whole.costNanoDollars)
    expect(whole.costNanoDollars).toBeGreaterThan(0n)
  })
})

interface Chunk {
  model: string
  choices: { delta: { content?: string } }[]
}

function chunksOf(events: readonly string[]): Chunk[] {
  return events.filter((event) => event !== '[DONE]').map((event) => JSON.parse(event) as Chunk)
}

function textOf(events: readonly string[]): string {
  return chunksOf(events)
    .map((chunk) => chunk.choices[0]?.delta.content ?? '')
    .join('')
}

test.each([
  ['relayed-alias', 'relayed'],
  ['relayed', 'relayed'],
  ['claude-sonnet-4-6', 'claude-sonnet-4-6'],
  ['cl-sonnet-4-6', 'cl-sonnet-4-6'],
  ['gemini-2.5-flash', 'gemini-2.5-flash'],
])(
  '%s is answered as %s, whole and streamed: the vendor keeps its own id, other aliases become the public one',
  async (alias, model) => {
    const row = {
      id: 'relayed',
      kind: 'chat',
      vendor: 'openai',
      upstream: 'gpt-5.4',
      aliases: ['relayed-alias'],
    } as const
    const own = await startGateway({ billing: 'off', models: [row] })
    try {
      const whole = await own.post('/v1/chat/completions', chatBody(alias, 'good morning'))
      const streamed = await own.post('/v1/chat/completions', chatBody(alias, 'good morning', { stream: true }))

      expect(await whole.json()).toMatchObject({ model })
      expect(new Set(chunksOf(await readEvents(streamed)).map((chunk) => chunk.model))).toEqual(new Set([model]))
    } finally {
      await own.close()
    }
  },
)
