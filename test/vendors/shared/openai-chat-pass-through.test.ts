import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { OpenAIChatDialect } from '../../../src/vendors/shared/openai-chat-dialect.ts'
import { OpenAIChatPassThrough } from '../../../src/vendors/shared/openai-chat-pass-through.ts'
import { errorReader } from '../../../src/vendors/shared/openai-error.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { callFromRequest, fixture, textOf } from './vendor-call.ts'

const DIALECT: OpenAIChatDialect = {
  path: '/v1/chat/completions',
  rulesFor: () => ({}),
  streamFailure: errorReader({}, []).fromStream,
}
const VENDOR_MODEL = '"model":"gpt-5.4-2026-03-05","service_tier"'
const PUBLIC_MODEL = '"model":"gp-5.4","service_tier"'

function relayFor(request: Partial<ChatRequest> = {}, maxEventBytes?: number): OpenAIChatPassThrough {
  const call = callFromRequest<ChatRequest>({
    model: 'gp-5.4',
    messages: [{ role: 'user', content: 'Hi' }],
    stream: true,
    ...request,
  })
  return new OpenAIChatPassThrough(call, DIALECT, maxEventBytes)
}

function feed(relay: OpenAIChatPassThrough, chunks: readonly Uint8Array[]): string {
  return textOf([...chunks.map((chunk) => relay.push(chunk)), relay.end()])
}

function data(value: unknown): string {
  return `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
}

function chunk(delta: Record<string, unknown>, finishReason: string | null = null): Record<string, unknown> {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1795132800,
    model: 'vendor-model',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
  }
}

const FIRST = chunk({ role: 'assistant', content: '' })

describe('OpenAIChatPassThrough', () => {
  for (const cut of CUTS) {
    describe(`fed ${cut}`, () => {
      for (const [name, lineEnd] of [
        ['openai-text.sse', '\n'],
        ['openai-text-crlf.sse', '\r\n'],
      ] as const) {
        it(`passes ${name} through with only the model changed, and keeps the usage chunk to itself`, () => {
          const wire = fixture(import.meta.url, name)
          const relay = relayFor()

          const relayed = feed(relay, cutBytes(wire, cut))

          const expected = wire
            .toString('utf8')
            .replaceAll(VENDOR_MODEL, PUBLIC_MODEL)
            .split(`${lineEnd}${lineEnd}`)
            .filter((event) => !event.includes('"choices":[]'))
            .join(`${lineEnd}${lineEnd}`)
            .replace(/data: \[DONE\]\s*$/, 'data: [DONE]\n\n')
          expect(relayed).toBe(expected)
          expect(relay).toMatchObject({ isComplete: true, failure: undefined, hasContent: true, outputBytesSeen: 71 })
          expect(relay.usage).toEqual({
            inputTokens: 312,
            cachedInputTokens: 256,
            cacheWriteTokens: 0,
            outputTokens: 21,
            reasoningTokens: 0,
          })
        })
      }

      it('reads the event after a byte order mark, like clients', () => {
        const wire = `\uFEFF${data(chunk({ role: 'assistant', content: 'Hi' }))}${data(chunk({}, 'stop'))}${data('[DONE]')}`

        const relayed = feed(relayFor(), cutBytes(Buffer.from(wire), cut))

        expect(relayed).toBe(wire.slice(1).replaceAll('vendor-model', 'gp-5.4'))
      })

      it('forwards the usage chunk with empty choices when the caller asked for it', () => {
        const wire = fixture(import.meta.url, 'openai-tools.sse')
        const relay = relayFor({ stream_options: { include_usage: true } })

        const relayed = feed(relay, cutBytes(wire, cut))

        expect(relayed).toBe(wire.toString('utf8').replaceAll(VENDOR_MODEL, PUBLIC_MODEL))
        expect(relayed).toContain('"choices":[],"usage":{"prompt_tokens":312')
      })

      it('relays interleaved choices', () => {
        const wire = fixture(import.meta.url, 'openai-two-choices.sse')
        const relay = relayFor({ n: 2, stream_options: { include_usage: true } })

        expect(feed(relay, cutBytes(wire, cut))).toBe(wire.toString('utf8').replaceAll(VENDOR_MODEL, PUBLIC_MODEL))
        expect(relay.outputBytesSeen).toBe(6)
      })
    })
  }

  it('gives the very same bytes when the vendor already writes the public id', () => {
    const relay = relayFor({ model: 'vendor-model' })
    relay.push(Buffer.from(data(FIRST)))
    const bytes = Buffer.from(data(chunk({ content: 'a' })) + data(chunk({ content: 'b' })))

    expect(relay.push(bytes)).toBe(bytes)
  })

  it('changes the top-level model only, wherever it stands and however the text is spaced', () => {
    const nested = {
      choices: [{ index: 0, delta: { content: 'x', note: { model: 'vendor-model' } }, finish_reason: null }],
      extra: { model: 'vendor-model' },
      model: 'vendor-model',
      id: 'c1',
    }
    const relay = relayFor()
    relay.push(Buffer.from(data(FIRST)))

    for (const text of [JSON.stringify(nested), JSON.stringify(nested).replaceAll(':', ' : ').replaceAll(',', ' , ')]) {
      const relayed = textOf([relay.push(Buffer.from(data(text)))])

      expect(JSON.parse(relayed.slice(6))).toEqual({ ...nested, model: 'gp-5.4' })
    }
  })

  it('follows a vendor that changes its model or its chunks in the middle of an answer', () => {
    const relay = relayFor()
    const chunks = [
      FIRST,
      chunk({ content: 'a' }),
      { ...chunk({ content: 'b' }), model: 'another' },
      { ...chunk({ content: 'c' }), model: undefined },
      { ...chunk({ content: 'd' }), model: null },
      chunk({ content: 'e' }),
    ]

    const relayed = chunks.map((value) => textOf([relay.push(Buffer.from(data(value)))]))

    expect(relayed.map((text) => (JSON.parse(text.slice(6)) as { model: unknown }).model)).toEqual(
      Array(6).fill('gp-5.4'),
    )
    expect(relay.outputBytesSeen).toBe(5)
  })

  it('leaves one model in a chunk that names it twice', () => {
    const relay = relayFor()
    relay.push(Buffer.from(data(FIRST)))
    const twice = JSON.stringify(chunk({ content: 'x' })).replace('{', '{"model":"first",')

    const relayed = textOf([relay.push(Buffer.from(data(twice)))])

    expect(relayed.match(/"model":"[^"]*"/g)).toEqual(['"model":"gp-5.4"'])
  })

  it('adds the role that a first delta lacks', () => {
    const relay = relayFor()

    const relayed = feed(relay, [Buffer.from(data(chunk({ content: 'a' })) + data(chunk({ content: 'b' })))])

    expect(relayed).toContain('"delta":{"content":"a","role":"assistant"}')
    expect(relayed).toContain('"delta":{"content":"b"}')
  })

  it('does not count a first delta without content as content', () => {
    const relay = relayFor()

    relay.push(Buffer.from(data(FIRST)))
    expect(relay.hasContent).toBe(false)
    relay.push(Buffer.from(data(chunk({ reasoning_content: 'hm' }))))

    expect(relay).toMatchObject({ hasContent: true, outputBytesSeen: 2 })
  })

  it('never passes a finish reason on that the dialect does not know', () => {
    const relay = relayFor()

    const relayed = feed(relay, [
      Buffer.from(data(FIRST) + data(chunk({ content: 'a' }, '')) + data(chunk({}, 'eos_token')) + data('[DONE]')),
    ])

    expect(relayed).toContain('"finish_reason":"stop"')
    expect(relayed).not.toContain('eos_token')
    expect(relayed).not.toContain('"finish_reason":""')
  })

  it('takes usage that rides on the last content chunk, and keeps it from callers who did not ask', () => {
    const relay = relayFor()

    const relayed = feed(relay, [
      Buffer.from(data(FIRST) + data({ ...chunk({}, 'stop'), usage: { prompt_tokens: 0, completion_tokens: 0 } })),
    ])

    expect(relay.usage).toEqual({ inputTokens: 0, outputTokens: 0 })
    expect(relayed).not.toContain('usage')
  })

  it('reads usage that is only under x_groq, as in older streams of Groq', () => {
    const usage = { prompt_tokens: 23, completion_tokens: 19, total_tokens: 42 }
    const last = { ...chunk({}, 'stop'), x_groq: { id: 'req_1', usage } }
    for (const include_usage of [true, false]) {
      const relay = relayFor({ stream_options: { include_usage } })

      const relayed = feed(relay, [Buffer.from(data(FIRST) + data(last) + data('[DONE]'))])

      const [, ended = ''] = relayed.split('\n\n')
      expect(relay.usage).toEqual({ inputTokens: 23, outputTokens: 19 })
      expect((JSON.parse(ended.slice(6)) as { usage?: unknown }).usage).toEqual(include_usage ? usage : undefined)
    }
  })

  it('leaves a stream that was cut incomplete and invents no end', () => {
    for (const tail of ['', 'data: {"id":"chatcmpl-1","choi', data(chunk({ content: 'more' }))]) {
      const relay = relayFor()

      const relayed = feed(relay, [Buffer.from(data(FIRST) + data(chunk({ content: 'a' })) + tail)])

      expect(relay).toMatchObject({ isComplete: false, failure: undefined })
      expect(relayed).not.toContain('[DONE]')
      expect(relayed.endsWith('\n\n')).toBe(true)
    }
  })

  it('ends a stream without an end mark only when every choice asked for gave a finish reason', () => {
    const ended = Buffer.from(data(FIRST) + data(chunk({}, 'stop')))
    const one = relayFor()
    const two = relayFor({ n: 2 })

    expect(feed(one, [ended]).endsWith('data: [DONE]\n\n')).toBe(true)
    expect(one.isComplete).toBe(true)
    expect(feed(two, [ended])).not.toContain('[DONE]')
    expect(two.isComplete).toBe(false)
  })

  it('writes the end mark once and exactly, and nothing after it', () => {
    const relay = relayFor()

    const relayed = feed(relay, [
      Buffer.from(
        `${data(FIRST)}${data(chunk({}, 'stop'))}data: [DONE] \n\n${data('[DONE]')}${data(chunk({ content: 'late' }))}`,
      ),
    ])

    expect(relayed.split('[DONE]')).toHaveLength(2)
    expect(relayed.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it('ends choices that have no finish reason when the end mark comes', () => {
    const piece = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    for (const [delta, reason] of [
      [{ content: 'a' }, 'stop'],
      [{ tool_calls: [piece] }, 'tool_calls'],
    ] as const) {
      const relay = relayFor()

      const relayed = feed(relay, [Buffer.from(data(FIRST) + data(chunk(delta)) + data('[DONE]'))])

      const end = { ...chunk({}, reason), model: 'gp-5.4' }
      expect(relayed.endsWith(`\n\n${data(end)}${data('[DONE]')}`)).toBe(true)
      expect(relay.isComplete).toBe(true)
    }
  })

  it('gives the usage after the ends of the choices, also where it came before them', () => {
    const usage = { ...FIRST, choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }
    const end = { ...chunk({}, 'stop'), model: 'gp-5.4' }
    const expected = data(end) + data({ ...usage, model: 'gp-5.4' }) + data('[DONE]')
    for (const tail of [
      data(usage) + data('[DONE]'),
      data({ ...usage, usage: { prompt_tokens: 1, completion_tokens: 0 } }) + data(usage) + data('[DONE]'),
      data(usage) + data(chunk({}, 'stop')) + data('[DONE]'),
      data(usage) + data(chunk({}, 'stop')),
    ]) {
      const relay = relayFor({ stream_options: { include_usage: true } })

      const relayed = feed(relay, [Buffer.from(data(FIRST) + data(chunk({ content: 'a' })) + tail)])

      expect(relayed.slice(relayed.indexOf('"a"')).split('\n\n').slice(1).join('\n\n')).toBe(expected)
      expect(relay).toMatchObject({ isComplete: true, usage: { outputTokens: 2 } })
    }
  })

  it('gives no usage twice where what came too early comes again', () => {
    const usage = (completion_tokens: number) => ({ prompt_tokens: 1, completion_tokens })
    const early = { ...FIRST, choices: [], usage: usage(1) }
    const end = chunk({}, 'stop')
    const body = data(FIRST) + data(early)
    for (const tail of [
      data(end) + data({ ...early, usage: usage(2) }),
      data({ ...end, usage: usage(2) }),
      data(end) + data({ ...early, usage: usage(2) }) + data('[DONE]'),
    ]) {
      const relay = relayFor({ stream_options: { include_usage: true } })

      const relayed = feed(relay, [Buffer.from(body + tail)])

      expect(relayed.match(/"completion_tokens":\d/g)).toEqual(['"completion_tokens":2'])
      expect(relay).toMatchObject({ isComplete: true, usage: { outputTokens: 2 } })
    }
  })

  it.each(['stop', null])('counts usage that came too early where the body is cut (choice 0 of 2: %s)', (reason) => {
    const usage = { ...FIRST, choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }
    const relay = relayFor({ n: 2, stream_options: { include_usage: true } })
    const second = { ...FIRST, choices: [{ index: 1, delta: { role: 'assistant' }, finish_reason: null }] }

    const relayed = feed(relay, [Buffer.from(data(FIRST) + data(second) + data(chunk({}, reason)) + data(usage))])

    expect(relayed).not.toContain('completion_tokens')
    expect(relay).toMatchObject({ isComplete: false, usage: { inputTokens: 1, outputTokens: 2 } })
  })

  it('ends only those of several choices that are still open', () => {
    const other = { ...FIRST, choices: [{ index: 1, delta: { role: 'assistant' }, finish_reason: null }] }

    const relayed = feed(relayFor({ n: 2 }), [
      Buffer.from(data(FIRST) + data(other) + data(chunk({}, 'length')) + data('[DONE]')),
    ])

    expect(relayed.match(/"finish_reason":"\w+"/g)).toEqual(['"finish_reason":"length"', '"finish_reason":"stop"'])
    expect(relayed).toContain('"choices":[{"index":1,"delta":{},"logprobs":null,"finish_reason":"stop"}]')
  })

  it('reads an end mark whose blank line is missing', () => {
    const relay = relayFor()

    const relayed = feed(relay, [Buffer.from(`${data(FIRST)}${data(chunk({}, 'stop'))}data: [DONE]\n`)])

    expect(relayed.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(relay.isComplete).toBe(true)
  })

  it('turns an error event into a failure, gives what came before it, and counts none of its text', () => {
    for (const error of [
      data({ error: { message: 'The server is overloaded.', type: 'server_error', code: null } }),
      data({ object: 'error', message: 'The server is overloaded.', type: 'InternalServerError', code: 500 }),
      data({ choices: [], base_resp: { status_code: 1000, status_msg: 'The server is overloaded.' } }),
      `event: error\n${data({ code: 'InternalError', message: 'The server is overloaded.' })}`,
      data({ code: 'InternalError', message: 'The server is overloaded.', request_id: 'r1' }),
    ]) {
      const relay = relayFor()

      const relayed = feed(relay, [
        Buffer.from(data(FIRST) + data(chunk({ content: 'a' })) + error + data(chunk({ content: 'b' }))),
      ])

      expect(relay.failure).toMatchObject({ kind: 'unavailable', status: 0, message: 'The server is overloaded.' })
      expect(relayed).toContain('"content":"a"')
      expect(relayed).not.toMatch(/overloaded|"content":"b"|\[DONE\]/)
      expect(relay.outputBytesSeen).toBe(1)
    }
  })

  it('fails on an event that is not JSON', () => {
    const relay = relayFor()

    relay.push(Buffer.from(`${data(FIRST)}data: {"id":"chatcmpl-1","model":"x","choices":[{"delta":{}\n\n`))

    expect(relay.failure?.kind).toBe('invalid_response')
    expect(relay.push(Buffer.from(data(FIRST)))).toBeUndefined()
  })

  it('fails on a text with a line break that ends its event, behind events that are like it but for the text', () => {
    const alike = data(chunk({ content: 'a' }))
    for (const [torn, isTorn] of [
      [alike.replace('"a"', '"a\nb"'), true],
      [alike.replace('"a"', '"a\\\nb"'), true],
      [alike.replace('"a"', '"a\\nb"'), false],
    ] as const) {
      const relay = relayFor()

      relay.push(Buffer.from(data(FIRST) + alike.repeat(3) + torn))

      expect(relay.failure?.kind).toBe(isTorn ? 'invalid_response' : undefined)
      expect(relay.outputBytesSeen).toBe(isTorn ? 3 : 6)
    }
  })

  it('passes comments and drops objects that are not chunks', () => {
    const relay = relayFor()

    const relayed = feed(relay, [Buffer.from(`: ping\n\n${data({ type: 'ping' })}${data(FIRST)}`)])

    expect(relayed).toBe(`: ping\n\n${data(FIRST).replace('vendor-model', 'gp-5.4')}`)
  })

  it('joins an event of several data lines', () => {
    const relay = relayFor()
    const [head, tail] = [JSON.stringify(FIRST).slice(0, 20), JSON.stringify(FIRST).slice(20)]

    const relayed = feed(relay, [Buffer.from(`data: ${head.slice(0, 1)}\ndata: ${head.slice(1)}${tail}\n\n`)])

    expect(JSON.parse(relayed.slice(6))).toEqual({ ...FIRST, model: 'gp-5.4' })
  })

  it('knows whether it is between two events', () => {
    const relay = relayFor()
    const bytes = Buffer.from(data(FIRST))

    expect(relay.atBoundary).toBe(true)
    expect(relay.push(bytes.subarray(0, 30))).toBeUndefined()
    expect(relay.atBoundary).toBe(false)
    relay.push(bytes.subarray(30))

    expect(relay.atBoundary).toBe(true)
  })

  it('an event above the cap fails clearly, after what came before it', () => {
    const relay = relayFor({}, 1000)

    const given = textOf([relay.push(Buffer.from(`${data(FIRST)}data: {"id":"${'x'.repeat(2000)}`))])

    expect(given).toContain('"role":"assistant"')
    expect(relay.failure).toMatchObject({ kind: 'invalid_response', message: expect.stringContaining('too large') })
    expect(relay.push(Buffer.from('"}\n\n'))).toBeUndefined()
    expect(relay.end()).toBeUndefined()
  })

  it('passes nonsense usage on without throwing', () => {
    const relay = relayFor()

    feed(relay, [
      Buffer.from(
        data(FIRST) +
          data(
            '{"choices":[],"model":"m","usage":{"prompt_tokens":-1,"completion_tokens":1.5,"prompt_tokens_details":7}}',
          ) +
          data('{"choices":[],"model":"m","usage":[]}'),
      ),
    ])

    expect(relay.failure).toBeUndefined()
    expect(relay.usage).toEqual({ inputTokens: -1, outputTokens: 1.5 })
  })
})
