import { describe, expect, it } from 'vitest'
import { chatCall, chatOperation, type LooseRequest, translated } from './chat-call.ts'

const HAIKU = { upstream: 'claude-haiku-4-5-20251001' }
const PREFILLED: LooseRequest = {
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'The answer is \n' },
  ],
}

describe('bound of the answer', () => {
  it.each([
    ['the model’s limit in the catalog when the request sets none', {}, { maxOutputTokens: 4096 }, 4096],
    ['the table’s limit when the catalog has none', {}, {}, 128_000],
    ['max_tokens', { max_tokens: 70 }, {}, 70],
    ['max_completion_tokens before max_tokens', { max_tokens: 70, max_completion_tokens: 80 }, {}, 80],
    ['the model’s limit when the request asks for more', { max_tokens: 999_999 }, { maxOutputTokens: 4096 }, 4096],
  ])('is %s', (_what, request, limits, expected) => {
    expect(translated(request, { limits }).body.max_tokens).toBe(expected)
  })
})

describe('sampling', () => {
  it.each([
    ['cuts a temperature above 1 and reports it', { temperature: 1.6 }, { temperature: 1 }, ['temperature']],
    ['keeps zero', { temperature: 0 }, { temperature: 0 }, []],
    ['keeps top_p alone', { top_p: 0.5 }, { top_p: 0.5 }, []],
    ['drops top_p beside temperature', { temperature: 1, top_p: 0.5 }, { temperature: 1 }, ['top_p']],
    [
      'drops both with thinking',
      { temperature: 0.5, top_p: 0.5, reasoning_effort: 'low' },
      {},
      ['temperature', 'top_p'],
    ],
  ])('%s', (_what, request, expected, dropped) => {
    const result = translated(request)

    const { temperature, top_p } = result.body
    expect(JSON.parse(JSON.stringify({ temperature, top_p }))).toEqual(expected)
    expect([...result.dropped].sort()).toEqual(dropped)
  })

  it.each(['claude-opus-4-7', 'claude-haiku-5-5', 'claude-unheard-of-9'])(
    'is dropped and reported on %s',
    (upstream) => {
      const { body, dropped } = translated({ temperature: 0.5 }, { upstream })

      expect(body.temperature).toBeUndefined()
      expect(dropped).toEqual(['temperature'])
    },
  )

  it('is dropped on every model under an API version that refuses it', () => {
    const wire = chatOperation({ apiKey: 'key-a', version: '2026-10-21' }).toWire(chatCall({ temperature: 0.5 }))

    expect(JSON.parse(String(wire.body))).not.toHaveProperty('temperature')
    expect(wire.dropped).toEqual(['temperature'])
  })
})

describe('stop sequences', () => {
  it('leave out blank ones, which the API refuses, and report it', () => {
    const { body, dropped } = translated({ stop: ['\n', 'END', ''] })

    expect(body.stop_sequences).toEqual(['END'])
    expect(dropped).toEqual(['stop'])
  })

  it('are absent when nothing is left', () => {
    expect(translated({ stop: '\n\n' }).body).not.toHaveProperty('stop_sequences')
  })
})

describe('user id', () => {
  it('is left out and reported when it is longer than the API takes', () => {
    const { body, dropped } = translated({ user: 'u'.repeat(257) })

    expect(body).not.toHaveProperty('metadata')
    expect(dropped).toEqual(['user'])
  })
})

describe('a conversation that ends with the assistant', () => {
  it('is continued by models that can, without the blanks at its end', () => {
    const { body } = translated(PREFILLED, HAIKU)

    expect(body.messages.at(-1)).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'The answer is' }] })
  })

  it.each(['claude-sonnet-4-6', 'claude-opus-4-7', 'claude-unheard-of-9'])('is refused for %s', (upstream) => {
    expect(() => translated(PREFILLED, { upstream })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: 'messages' }),
    )
  })

  it('rules out a thinking budget and structured output', () => {
    const { body, dropped } = translated(
      {
        ...PREFILLED,
        reasoning_effort: 'high',
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'a', schema: { type: 'object', properties: { a: {} } } },
        },
      },
      HAIKU,
    )

    expect(body).not.toHaveProperty('thinking')
    expect(body).not.toHaveProperty('output_config')
    expect(dropped).toEqual(['reasoning_effort'])
  })
})
