import { describe, expect, test } from 'vitest'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { gatewayBeforeVendor } from '../models/gateway-before-vendor.ts'
import { type AnswerCall, eventStream, json } from '../streams/answering-vendor.ts'

const CHAT = '/v1/chat/completions'

const bench = gatewayBeforeVendor()

describe('an answer without a report of usage', () => {
  const text = 'The quiet harbour wakes before the city does, and its cranes begin to move. '.repeat(100)

  const answerWithout: AnswerCall = (response, { stream }) => {
    const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
    if (stream !== true) {
      const message = { role: 'assistant', content: text, refusal: null }
      return json(response, { ...answer, choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }] })
    }
    eventStream(response)
    for (const [delta, finish] of [
      [{ role: 'assistant', content: text }, null],
      [{}, 'stop'],
    ] as const)
      response.write(
        `data: ${JSON.stringify({ ...answer, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      )
    response.end('data: [DONE]\n\n')
  }

  // Before: 2,000 tokens as a whole (the bound of the hold, by the bytes of its JSON), 2 in a stream (its chunks).
  test.each(['chat-relayed', 'messages'])(
    'costs the same whole and streamed, and is reported (%s: 2,000 and 2 tokens before, now 1,900 each)',
    async (shape) => {
      await bench.start(answerWithout, (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })] }))
      const used: (number | undefined)[] = []
      for (const stream of [false, true]) {
        const body = chatBody('chat-relayed', 'Tell me of the harbour.', { max_tokens: 2000, stream })
        const response = await bench.started.post(shape === 'messages' ? '/v1/messages' : CHAT, body)
        await response.text()
        used.push((await bench.started.ended(response)).usage?.outputTokens)
      }

      expect(used).toEqual([text.length / 4, text.length / 4])
      expect(bench.eventsOf('usage-missing')).toEqual(
        [1, 2].map(() => ({
          type: 'usage-missing',
          requestId: expect.stringMatching(/./),
          vendor: 'openai',
          model: 'chat-relayed',
          usage: { inputTokens: expect.any(Number), outputTokens: 1_900 },
        })),
      )
    },
  )
})

test.each(['cut', 'whole'])('sound of a chat without a report of usage is charged by its length (%s)', async (end) => {
  const second = Buffer.alloc(48_000).toString('base64')
  const answer = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const deltas = [
    { role: 'assistant', content: null },
    ...Array.from({ length: 3 }, () => ({ audio: { id: 'audio_1', data: second } })),
    { audio: { transcript: 'Good day to you all.' } },
  ]
  const speak: AnswerCall = (response) => {
    eventStream(response)
    for (const delta of deltas)
      response.write(`data: ${JSON.stringify({ ...answer, choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`)
    response.end(end === 'cut' ? undefined : 'data: [DONE]\n\n')
  }
  await bench.start(speak, (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })], billing: 'off' }))
  const sound = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'pcm16' }, stream: true }
  const response = await bench.started.post(CHAT, chatBody('chat-relayed', 'Greet us.', { ...sound, max_tokens: 2000 }))
  await response.text().catch(() => undefined)

  // 20 tokens for each of three seconds, and the transcript's 20 bytes.
  expect((await bench.started.ended(response)).usage?.outputTokens).toBe(3 * 20 + 5)
})

describe('the usage that a caller reads is the usage that is charged', () => {
  const faults = ['no-usage', 'usage=-1', "usage='12'", 'usage=5']

  test.each(
    faults.flatMap((fault) =>
      ['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-relayed'].map((model) => [model, fault] as const),
    ),
  )('in a whole chat of %s (%s)', async (model, fault) => {
    await bench.startAlone()
    const response = await bench.started.post(CHAT, chatBody(model, `[[fault:${fault}]] hello`, { max_tokens: 50 }))
    const { usage } = (await response.json()) as { usage: Record<string, number> }
    const charged = (await bench.started.ended(response)).usage

    expect(usage).toMatchObject({ prompt_tokens: charged?.inputTokens, completion_tokens: charged?.outputTokens })
    expect(usage['prompt_tokens']).toBeGreaterThan(0)
  })

  test.each([
    ...faults.flatMap((fault) => ['cl-sonnet-4-6', 'gmn-2.5-flash'].map((model) => [model, fault] as const)),
    ['chat-relayed', 'no-usage'] as const,
  ])('in a streamed chat of %s (%s)', async (model, fault) => {
    await bench.startAlone()
    const fields = { max_tokens: 50, stream: true, stream_options: { include_usage: true } }
    const response = await bench.started.post(CHAT, chatBody(model, `[[fault:${fault}]] hello`, fields))
    const usage = JSON.parse(/"usage":(\{.*?\})\}\n\ndata: \[DONE\]/s.exec(await response.text())?.[1] ?? '{}')
    const charged = (await bench.started.ended(response)).usage

    expect(usage).toMatchObject({ prompt_tokens: charged?.inputTokens, completion_tokens: charged?.outputTokens })
  })

  test.each(faults)('in a message that was translated (%s)', async (fault) => {
    await bench.startAlone()
    const response = await bench.started.post(
      '/v1/messages',
      chatBody('chat-relayed', `[[fault:${fault}]] hello`, { max_tokens: 50 }),
    )
    const { usage } = (await response.json()) as { usage: Record<string, number> }
    const charged = (await bench.started.ended(response)).usage

    expect((usage['input_tokens'] ?? 0) + (usage['cache_read_input_tokens'] ?? 0)).toBe(charged?.inputTokens)
    expect(usage['output_tokens']).toBe(charged?.outputTokens)
  })

  test.each(['gmn-embedding-001', 'embedding-relayed', 'text-embedding-v4'])(
    'in embeddings of %s without a report (5 tokens read and 17 paid before)',
    async (model) => {
      await bench.startAlone()
      const response = await bench.started.post('/v1/embeddings', { model, input: '[[fault:no-usage]] hello' })
      const { usage } = (await response.json()) as { usage: Record<string, number> }
      const charged = (await bench.started.ended(response)).usage

      expect(usage).toEqual({ prompt_tokens: charged?.inputTokens, total_tokens: charged?.inputTokens })
      expect(bench.eventsOf('usage-missing')).toHaveLength(1)
    },
  )
})
