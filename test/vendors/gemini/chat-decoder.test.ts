import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { ChatStreamDecoder } from '../../../src/endpoints/chat/chat-stream-writer.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { recordingWriter, type WriterCall } from '../../support/recording-writer.ts'
import { chatCall, jsonAnswer, vendor } from './gemini-call.ts'

function fixture(name: string): Uint8Array {
  return readFileSync(new URL(`./fixtures/streams/${name}.sse`, import.meta.url))
}

function decode(chunks: readonly Uint8Array[]): { calls: WriterCall[]; decoder: ChatStreamDecoder } {
  const writer = recordingWriter()
  const decoder = vendor.chat?.decoder(chatCall({}, { stream: true }), writer)
  if (decoder === undefined) throw new Error('the vendor has no chat')
  for (const chunk of chunks) decoder.push(chunk)
  decoder.end()
  return { calls: writer.calls, decoder }
}

function decodeText(text: string) {
  return decode([new TextEncoder().encode(text)])
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\r\n\r\n`

const GOLDEN: readonly (readonly [name: string, calls: WriterCall[], usage: object])[] = [
  [
    'text',
    [
      ['start', 's-1'],
      ['reasoning', 'Hmm, grüßen …', 0],
      ['text', 'Schöne ', 0],
      ['text', 'Grüße 👋🏽 日本', 0],
      ['extraContent', { google: { thought_signature: 'RU5E' } }, 0],
      ['finish', 'stop', 0],
    ],
    { inputTokens: 8, cachedInputTokens: 4, outputTokens: 21, reasoningTokens: 12 },
  ],
  [
    'tools',
    [
      ['start', 's-2'],
      ['reasoning', 'Plan: ask twice.', 0],
      [
        'toolCall',
        { index: 0, id: 'call_s-2_0_0', name: 'weather', extra: { google: { thought_signature: 'U0lC' } } },
        0,
      ],
      ['toolCallArguments', 0, '{"city":"Tromsø"}', 0],
      ['toolCall', { index: 1, id: 'own-id', name: 'weather' }, 0],
      ['toolCallArguments', 1, '{"city":"Bodø"}', 0],
      ['toolCall', { index: 2, id: 'call_s-2_0_2', name: 'now' }, 0],
      ['toolCallArguments', 2, '{}', 0],
      ['finish', 'tool_calls', 0],
    ],
    { inputTokens: 50, outputTokens: 50, reasoningTokens: 30 },
  ],
  [
    'several-candidates',
    [
      ['start', 's-3'],
      ['text', 'Ro', 0],
      ['text', 'Bl', 1],
      ['text', 'å', 1],
      ['text', 't', 0],
      ['finish', 'stop', 0],
      ['finish', 'content_filter', 1],
    ],
    { inputTokens: 5, outputTokens: 4 },
  ],
]

describe('golden streams', () => {
  for (const [name, calls, usage] of GOLDEN) {
    test.each(CUTS)(`${name} reads the same however it is cut: %s (E1)`, (cut) => {
      const result = decode(cutBytes(fixture(name), cut))

      expect(result.calls).toEqual(calls)
      expect(result.decoder.usage).toEqual(usage)
      expect(result.decoder.isComplete).toBe(true)
      expect(result.decoder.failure).toBeUndefined()
    })
  }

  test('the same answer has the same usage whole and streamed', () => {
    const usageMetadata = {
      promptTokenCount: 100,
      toolUsePromptTokenCount: 7,
      cachedContentTokenCount: 60,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 9,
      totalTokenCount: 121,
    }
    const response = { candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP' }], usageMetadata }

    const whole = vendor.chat?.fromWire(jsonAnswer(response), chatCall())
    const streamed = decodeText(
      event({ candidates: [{ content: { parts: [{ text: '' }] } }], usageMetadata: { promptTokenCount: 100 } }) +
        event(response),
    )

    expect(streamed.decoder.usage).toEqual(whole?.usage)
    expect(whole?.usage).toEqual({ inputTokens: 107, cachedInputTokens: 60, outputTokens: 14, reasoningTokens: 9 })
  })
})

describe('usage in the middle of a stream', () => {
  const text = (words: string) => ({ candidates: [{ content: { parts: [{ text: words }] }, index: 0 }] })
  const counts = { promptTokenCount: 8, candidatesTokenCount: 3, thoughtsTokenCount: 40, totalTokenCount: 51 }
  const whole = { inputTokens: 8, outputTokens: 43, reasoningTokens: 40 }

  // Vertex AI sends the kind of traffic with each event, some models send zeros, and the counts are in the last event.
  test.each([
    ['an empty report', {}],
    ['the kind of traffic', { trafficType: 'ON_DEMAND' }],
    ['zeros', { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 }],
  ])('ignores %s as a report', (_what, usageMetadata) => {
    const early = event({ ...text('Hel'), usageMetadata })
    const last = event({ candidates: [{ finishReason: 'STOP', index: 0 }], usageMetadata: counts })

    expect(decodeText(early).decoder.usage).toBeUndefined()
    expect(decodeText(early + last).decoder.usage).toEqual(whole)
    expect(decodeText(last + event({ usageMetadata })).decoder.usage).toEqual(whole)
    expect(decodeText(event({ ...text('Hel'), usageMetadata: counts }) + early).decoder.usage).toEqual(whole)
  })

  test('zeros that come with the end of an answer are the report', () => {
    const usageMetadata = { promptTokenCount: 0, candidatesTokenCount: 0 }
    const { decoder } = decodeText(event({ candidates: [{ finishReason: 'STOP' }], usageMetadata }))

    expect(decoder.usage).toEqual({ inputTokens: 0, outputTokens: 0 })
  })
})

describe('how a stream ends', () => {
  const piece = event({ candidates: [{ content: { parts: [{ text: 'Half an ans' }] }, index: 0 }] })

  test('without a finish reason it was cut', () => {
    const { decoder } = decodeText(piece)

    expect(decoder.isComplete).toBe(false)
    expect(decoder.failure).toBeUndefined()
  })

  test('is cut if one of two candidates is unfinished', () => {
    const { decoder } = decodeText(
      event({
        candidates: [
          { content: {}, index: 1 },
          { finishReason: 'STOP', index: 0 },
        ],
      }),
    )

    expect(decoder.isComplete).toBe(false)
  })

  test('an empty body is not complete', () => {
    expect(decodeText('').decoder.isComplete).toBe(false)
  })

  test('a blocked prompt is complete, however often it is said', () => {
    const blocked = event({
      promptFeedback: { blockReason: 'SAFETY' },
      responseId: 'b',
      usageMetadata: { promptTokenCount: 3 },
    })
    const { calls, decoder } = decodeText(blocked + blocked)

    expect(calls).toEqual([
      ['start', 'b'],
      ['finish', 'content_filter', 0],
    ])
    expect(decoder.isComplete).toBe(true)
    expect(decoder.usage).toEqual({ inputTokens: 3, outputTokens: 0 })
  })

  test('a last event without its closing blank line counts', () => {
    const { decoder } = decodeText(event({ candidates: [{ finishReason: 'STOP' }] }).trimEnd())

    expect(decoder.isComplete).toBe(true)
  })

  test('an end mark of another dialect is passed over', () => {
    const { decoder } = decodeText(`${event({ candidates: [{ finishReason: 'STOP' }] })}data: [DONE]\n\n`)

    expect(decoder.isComplete).toBe(true)
    expect(decoder.failure).toBeUndefined()
  })
})

describe('failures inside a stream', () => {
  const piece = event({ candidates: [{ content: { parts: [{ text: 'Half' }] }, index: 0 }], responseId: 'r' })
  const error = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }

  test.each([
    ['an event', event(error)],
    ['an event with a list', event([error])],
    ['plain JSON behind the events', JSON.stringify(error, null, 2)],
    ['a plain list behind the events', `[${JSON.stringify(error)}\n]\n`],
  ])('an error as %s ends it', (_case, text) => {
    for (const cut of CUTS) {
      const { calls, decoder } = decode(cutBytes(new TextEncoder().encode(piece + text), cut))

      expect(calls).toEqual([
        ['start', 'r'],
        ['text', 'Half', 0],
      ])
      expect(decoder.failure).toMatchObject({ kind: 'unavailable', status: 0, message: 'The model is overloaded.' })
      expect(decoder.isComplete).toBe(false)
    }
  })

  test('a malformed function call is a failure, not an answer', () => {
    const { decoder } = decodeText(
      piece + event({ candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'call:f(' }] }),
    )

    expect(decoder.failure).toMatchObject({ kind: 'invalid_response', code: 'MALFORMED_FUNCTION_CALL' })
    expect(decoder.isComplete).toBe(false)
  })

  test.each([
    ['text that is no JSON', 'data: oops\n\n'],
    ['JSON that is no object', 'data: 12\n\n'],
    ['plain text behind a brace', '{ not json'],
  ])('%s is a failure', (_case, text) => {
    expect(decodeText(piece + text).decoder.failure).toMatchObject({ kind: 'invalid_response', status: 0 })
  })

  test('nothing is read after a failure', () => {
    const { calls } = decodeText(event(error) + piece)

    expect(calls).toEqual([])
  })

  test('removes the key from the text of a failure', () => {
    const { decoder } = decodeText(
      event({ error: { code: 400, message: 'bad key test-key-0001', status: 'INVALID_ARGUMENT' } }),
    )

    expect(decoder.failure?.message).toBe('bad key [redacted]')
  })
})
