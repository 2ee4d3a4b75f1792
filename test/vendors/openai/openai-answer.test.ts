import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { recordingWriter } from '../../support/recording-writer.ts'
import { callFromRequest, fixture, NOW_MS, textOf, wireAnswer } from '../shared/vendor-call.ts'

const vendor = openai({ apiKey: 'sk-test-0123456789abcdef' })
const chat = vendor.chat!
const call = callFromRequest<ChatRequest>({ model: 'gp-5.4', messages: [{ role: 'user', content: 'Hi' }] })
const USAGE = { inputTokens: 312, cachedInputTokens: 256, cacheWriteTokens: 0, outputTokens: 21, reasoningTokens: 0 }

function wire(name: string): Buffer {
  return fixture(new URL('../shared/', import.meta.url).href, name)
}

const TOOL_CALLS = [
  ['start', 'chatcmpl-Q7xb2'],
  ['toolCall', { index: 0, id: 'call_a1', name: 'find_tag' }, 0],
  ['toolCallArguments', 0, '{"q":', 0],
  ['toolCallArguments', 0, '"boat"}', 0],
  ['toolCall', { index: 1, id: 'call_b2', name: 'now' }, 0],
  ['toolCallArguments', 1, '{}', 0],
  ['finish', 'tool_calls', 0],
]

describe('openai whole answers, relayed', () => {
  it('changes nothing but the model', () => {
    const bytes = wire('openai-text.json')

    const relayed = chat.passThrough!.fromWire([bytes.subarray(0, 99), bytes.subarray(99)], call)

    expect(textOf(relayed?.chunks ?? [])).toBe(bytes.toString('utf8').replace('gpt-5.4-2026-03-05', 'gp-5.4'))
    expect(relayed?.usage).toEqual(USAGE)
  })

  it('gives the very same chunks when the vendor writes the public id', () => {
    const chunks = [wire('openai-text.json')]

    const relayed = chat.passThrough!.fromWire(chunks, { ...call, publicModel: 'gpt-5.4-2026-03-05' })

    expect(relayed?.chunks).toBe(chunks)
  })

  it('adds the members that some servers leave out, and replaces an unknown finish reason', () => {
    const body = {
      id: 'c',
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'eos' }],
    }

    const relayed = chat.passThrough!.fromWire([Buffer.from(JSON.stringify(body))], call)

    expect(JSON.parse(textOf(relayed?.chunks ?? []))).toEqual({
      id: 'c',
      model: 'gp-5.4',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'x', refusal: null },
          finish_reason: 'stop',
          logprobs: null,
        },
      ],
    })
  })

  it('ends an answer without a finish reason by what it holds', () => {
    const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }]
    for (const [message, expected] of [
      [{ content: 'x' }, 'stop'],
      [{ content: null, tool_calls: calls }, 'tool_calls'],
    ] as const) {
      const body = { id: 'c', choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: null }] }

      const relayed = chat.passThrough!.fromWire([Buffer.from(JSON.stringify(body))], call)

      expect(JSON.parse(textOf(relayed?.chunks ?? []))).toMatchObject({ choices: [{ finish_reason: expected }] })
      expect(chat.fromWire(wireAnswer(body), call)?.completion.choices[0]?.finish_reason).toBe(expected)
    }
  })

  for (const [what, body] of [
    ['half an answer', '{"id":"c","choices":[{"message":{'],
    ['a page', '<html></html>'],
    ['an error in disguise', '{"error":{"message":"overloaded","type":"server_error"},"choices":[{"message":{}}]}'],
    ['a code without output', '{"code":"InternalError","message":"no","request_id":"r"}'],
    ['an answer without choices', '{"id":"c","choices":[]}'],
    ['a choice without a message', '{"id":"c","choices":[{"index":0}]}'],
    ['null', 'null'],
  ] as const) {
    it(`does not take ${what} for an answer, and reports no usage for it`, () => {
      expect(chat.passThrough!.fromWire([Buffer.from(body)], call)).toBeUndefined()
      expect(chat.fromWire(wireAnswer(body), call)).toBeUndefined()
    })
  }
})

describe('openai answers, translated', () => {
  it('reads a whole answer', () => {
    const read = chat.fromWire(wireAnswer(wire('openai-text.json').toString('utf8')), call)

    expect(read).toEqual({
      completion: {
        id: 'chatcmpl-Q7xb2',
        object: 'chat.completion',
        created: 1795132800,
        model: 'gp-5.4',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: 'Grüße aus 東京 🚲', refusal: null },
            logprobs: null,
            finish_reason: 'stop',
          },
        ],
        usage: {
          prompt_tokens: 312,
          completion_tokens: 21,
          total_tokens: 333,
          prompt_tokens_details: { cached_tokens: 256, cache_write_tokens: 0 },
          completion_tokens_details: { reasoning_tokens: 0 },
        },
      },
      usage: USAGE,
    })
  })

  it('reads tool calls, reasoning under either name, and vendor state', () => {
    const toolCall = {
      id: 'c1',
      type: 'function',
      function: { name: 'f', arguments: '{}' },
      extra_content: { google: {} },
    }
    const body = {
      choices: [
        { message: { content: null, tool_calls: [toolCall], reasoning: 'hm' }, finish_reason: 'tool_calls' },
        { message: { content: 'x', reasoning_content: 'so' }, finish_reason: 'stop' },
      ],
    }

    const read = chat.fromWire(wireAnswer(body), call)

    expect(read?.completion.created).toBe(NOW_MS / 1000)
    expect(read?.completion.choices.map((choice) => [choice.index, choice.message])).toEqual([
      [0, { role: 'assistant', content: null, refusal: null, tool_calls: [toolCall], reasoning_content: 'hm' }],
      [1, { role: 'assistant', content: 'x', refusal: null, reasoning_content: 'so' }],
    ])
    expect(read?.completion.usage).toBeUndefined()
  })

  for (const cut of CUTS) {
    it(`reads a streamed text ${cut}`, () => {
      const writer = recordingWriter()
      const decoder = chat.decoder(call, writer)

      for (const chunk of cutBytes(wire('openai-text.sse'), cut)) decoder.push(chunk)
      decoder.end()

      expect(writer.calls).toEqual([
        ['start', 'chatcmpl-Q7xb2'],
        ['text', 'Grüße', 0],
        ['text', ' aus 東京 🚲', 0],
        ['text', ' say "model":"gpt-5.4-2026-03-05" {[}', 0],
        ['text', '\n\ndata: end', 0],
        ['finish', 'stop', 0],
      ])
      expect(decoder).toMatchObject({ isComplete: true, failure: undefined, usage: USAGE })
    })

    it(`reads streamed tool calls ${cut}`, () => {
      const writer = recordingWriter()
      const decoder = chat.decoder(call, writer)

      for (const chunk of cutBytes(wire('openai-tools.sse'), cut)) decoder.push(chunk)
      decoder.end()

      expect(writer.calls).toEqual(TOOL_CALLS)
    })
  }

  it('a stream and a whole answer of the same call give the same usage', () => {
    const relay = chat.passThrough!.stream!(call)
    const decoder = chat.decoder(call, recordingWriter())

    relay.push(wire('openai-text.sse'))
    decoder.push(wire('openai-text.sse'))

    expect(relay.usage).toEqual(chat.passThrough!.fromWire([wire('openai-text.json')], call)?.usage)
    expect(decoder.usage).toEqual(relay.usage)
  })

  it('a stream that was cut is not complete and gives no finish', () => {
    const writer = recordingWriter()
    const decoder = chat.decoder(call, writer)
    const bytes = wire('openai-text.sse')

    decoder.push(bytes.subarray(0, bytes.indexOf('"content":"\\n\\n') + 4))
    decoder.end()

    expect(decoder).toMatchObject({ isComplete: false, failure: undefined })
    expect(writer.calls.some(([method]) => method === 'finish')).toBe(false)
  })

  it('turns error events and garbage into failures', () => {
    for (const [text, kind] of [
      ['data: {"error":{"message":"slow","type":"server_error"}}\n\n', 'unavailable'],
      ['event: error\ndata: {"message":"slow"}\n\n', 'unavailable'],
      ['data: {"id":\n\n', 'invalid_response'],
    ] as const) {
      const decoder = chat.decoder(call, recordingWriter())

      decoder.push(Buffer.from(`${text}data: [DONE]\n\n`))

      expect(decoder.failure?.kind).toBe(kind)
      expect(decoder.isComplete).toBe(false)
    }
  })
})
