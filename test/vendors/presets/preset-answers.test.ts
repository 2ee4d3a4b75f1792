import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { createMessagesOperation } from '../../../src/endpoints/messages/messages-operation.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { passThrough } from '../../../src/endpoints/operation.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { callFromRequest, textOf } from '../shared/vendor-call.ts'
import { vendorOf } from './preset-vendor.ts'

type Json = Record<string, unknown>

function callOf(stream: boolean): VendorCall<ChatRequest> {
  return callFromRequest<ChatRequest>({ model: 'public', messages: [{ role: 'user', content: 'Hi' }], stream })
}

/** Returns the bytes of a stream: chunks with these deltas, a finish reason, and more members. */
function streamOf(deltas: readonly Json[], last: Json = {}, members: Json = {}): Buffer {
  const chunks = deltas.map((delta) => ({
    id: 'c',
    created: 5,
    model: 'm',
    choices: [{ index: 0, delta }],
    ...members,
  }))
  const end = {
    id: 'c',
    created: 5,
    model: 'm',
    choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...last }],
    ...members,
  }
  return Buffer.from([...chunks, end].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''))
}

function streamed(preset: Preset, pieces: readonly Uint8Array[]) {
  const call = callOf(true)
  const { chat } = vendorOf(preset)
  const transform = passThrough(chat!.toWire(call), chat!.passThrough!, call).stream()
  const text = textOf([...pieces.map((piece) => transform.push(piece)), transform.end()])
  const chunks = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as Json)
  const deltas = chunks.flatMap((chunk) => chunk['choices'] as Json[]).map((choice) => choice['delta'] as Json)
  const joined = (member: string) => deltas.map((delta) => delta[member] ?? '').join('')
  return { transform, chunks, text: joined('content'), reasoning: joined('reasoning_content') }
}

describe('reasoning between tags', () => {
  for (const preset of [presets.minimax]) {
    for (const cut of CUTS) {
      it(`is removed from the text of ${preset.name}, however it is cut, fed ${cut}`, () => {
        for (const contents of [
          ['<think>Hm, <b> a</think>\n\nPa', 'ris </think>'],
          [...'<think>Hm, <b> a</think>\n\nParis </think>'],
          ['<th', 'ink>Hm, <b', '> a<', '/think', '>\n', '\nParis <', '/think>'],
        ]) {
          const wire = streamOf(contents.map((content) => ({ content })))
          const { text, reasoning, transform } = streamed(preset, cutBytes(wire, cut))

          expect({ text, reasoning }).toEqual({ text: 'Paris </think>', reasoning: 'Hm, <b> a' })
          expect(transform).toMatchObject({ isComplete: true, outputBytesSeen: 14 + 9 })
        }
      })
    }

    it(`is only searched at the start of an answer of ${preset.name}, and held text is not lost`, () => {
      expect(streamed(preset, [streamOf([{ content: 'A <think> tag' }])])).toMatchObject({
        text: 'A <think> tag',
        reasoning: '',
      })
      expect(streamed(preset, [streamOf([{ content: '<thi' }])]).text).toBe('<thi')
    })

    it(`is removed from whole answers of ${preset.name}, and reaches Messages callers as thinking`, () => {
      const vendor = vendorOf(preset)
      const answer = {
        model: 'm',
        choices: [{ message: { content: '<think>Hm</think>\nParis' }, finish_reason: 'stop' }],
      }
      const bytes = Buffer.from(JSON.stringify(answer))
      const whole = vendor.chat!.passThrough!.fromWire([bytes], callOf(false))
      const thinking = { type: 'enabled', budget_tokens: 1024 }
      const request = { model: 'public', max_tokens: 2000, messages: [{ role: 'user', content: 'Hi' }], thinking }
      const call = { ...callOf(false), request } as unknown as VendorCall<MessagesRequest>
      const message = createMessagesOperation(vendor, call)!.whole([{ status: 200, headers: {}, chunks: [bytes] }])

      expect(JSON.parse(textOf(whole!.chunks))).toMatchObject({
        choices: [{ message: { content: 'Paris', reasoning_content: 'Hm' } }],
      })
      expect(JSON.parse(textOf(message!.chunks))).toMatchObject({
        content: [
          { type: 'thinking', thinking: 'Hm' },
          { type: 'text', text: 'Paris' },
        ],
      })
    })
  }
})

describe('usage that is only under x_groq', () => {
  it('is read in streams that pass, and in those that are translated', () => {
    const usage = { prompt_tokens: 23, completion_tokens: 19, total_tokens: 42 }
    const wire = streamOf([{ content: 'Hi' }], {}, { x_groq: { id: 'req_1', usage } })
    const request = { model: 'public', max_tokens: 2000, messages: [{ role: 'user', content: 'Hi' }], stream: true }
    const call = { ...callOf(true), request } as unknown as VendorCall<MessagesRequest>
    const translated = createMessagesOperation(vendorOf(presets.groq), call)!.stream()
    translated.push(wire)
    translated.end()

    expect(translated.usage).toEqual({ inputTokens: 23, outputTokens: 19 })
    expect(streamed(presets.groq, [wire]).transform.usage).toEqual({ inputTokens: 23, outputTokens: 19 })
  })
})

describe('times with a fraction', () => {
  it('are cut to seconds', () => {
    const wire = streamOf([{ role: 'assistant', content: 'Hi' }, { content: ' there' }], {}, { created: 1_731_000.75 })
    const whole = { model: 'm', created: 1_731_000.75, choices: [{ message: { content: 'x' }, finish_reason: 'stop' }] }
    const answer = vendorOf(presets.sambanova).chat!.passThrough!.fromWire(
      [Buffer.from(JSON.stringify(whole))],
      callOf(false),
    )

    expect(streamed(presets.sambanova, [wire]).chunks.map(({ created }) => created)).toEqual([
      1_731_000, 1_731_000, 1_731_000,
    ])
    expect(JSON.parse(textOf(answer!.chunks))).toMatchObject({ created: 1_731_000 })
  })
})

describe('usage', () => {
  const reports: readonly (readonly [Preset, Json, object])[] = [
    [
      presets.xai,
      {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 303,
        completion_tokens_details: { reasoning_tokens: 290 },
      },
      { inputTokens: 12, outputTokens: 291, reasoningTokens: 290 },
    ],
    [
      presets.xai,
      { prompt_tokens: 5, completion_tokens: 3, total_tokens: 28, prompt_tokens_details: { cached_tokens: 20 } },
      { inputTokens: 25, cachedInputTokens: 20, outputTokens: 3 },
    ],
    [
      presets.deepseek,
      { prompt_tokens: 13, completion_tokens: 219, total_tokens: 232, prompt_cache_hit_tokens: 8 },
      { inputTokens: 13, cachedInputTokens: 8, outputTokens: 219 },
    ],
    [
      presets.moonshot,
      { prompt_tokens: 13, completion_tokens: 2, total_tokens: 15, cached_tokens: 9 },
      { inputTokens: 13, cachedInputTokens: 9, outputTokens: 2 },
    ],
    [
      presets.mistral,
      { prompt_tokens: 13, completion_tokens: 2, total_tokens: 15, num_cached_tokens: 4 },
      { inputTokens: 13, cachedInputTokens: 4, outputTokens: 2 },
    ],
    [
      presets.mistral,
      { prompt_tokens: 13, completion_tokens: 2, total_tokens: 15, prompt_token_details: { cached_tokens: 5 } },
      { inputTokens: 13, cachedInputTokens: 5, outputTokens: 2 },
    ],
  ]
  for (const [preset, usage, expected] of reports) {
    it(`is read for ${preset.name} as ${JSON.stringify(expected)}, in a stream and in a whole answer`, () => {
      const { transform } = streamed(preset, [streamOf([{ content: 'x' }], {}, { usage })])
      const whole = { model: 'm', choices: [{ message: { content: 'x' }, finish_reason: 'stop' }], usage }
      const answer = vendorOf(preset).chat!.passThrough!.fromWire([Buffer.from(JSON.stringify(whole))], callOf(false))

      expect(transform.usage).toEqual(expected)
      expect(answer?.usage).toEqual(expected)
    })
  }

  it('in every chunk is not repeated to callers who did not ask', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
    const { chunks, transform } = streamed(presets.mistral, [streamOf([{ content: 'x' }], {}, { usage })])

    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
    expect(transform.usage).toEqual({ inputTokens: 3, outputTokens: 1 })
  })
})

it('an answer that stops with an empty chunk and no finish reason was cut', () => {
  const start = { id: 'c', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hal' } }] }
  const empty = { id: 'c', model: 'm', choices: [{ index: 0, delta: { content: '' }, finish_reason: null }] }
  const wire = Buffer.from([start, empty].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''))
  const { transform } = streamed(presets.ollama, [wire])

  expect(transform).toMatchObject({ isComplete: false, usage: undefined })
})
