import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import {
  OPENAI_FIELDS,
  OPENAI_REASONING_FIELDS,
  tokenLimitField,
} from '../../../src/vendors/shared/openai-chat-dialect.ts'
import { bodyOf, callFromRequest, callFromText } from '../shared/vendor-call.ts'

const vendor = openai({ apiKey: 'sk-test-0123456789abcdef' })
const chat = vendor.chat!
const HI = '"messages":[{"role":"user","content":"Hi"}]'

function wireText(text: string, upstream?: string): string {
  const { body } = chat.toWire(callFromText<ChatRequest>(text, upstream === undefined ? {} : { upstream }))
  return Buffer.from(body as Uint8Array).toString('utf8')
}

describe('openai chat requests', () => {
  it('sends path, headers and the very same bytes when nothing must change', () => {
    const call = callFromText<ChatRequest>(`{"model":"gpt-4o",${HI}}`, { apiKey: 'sk-x' })

    const wire = chat.toWire(call)

    expect(wire.body).toBe(call.bytes)
    expect(wire.path).toBe('/v1/chat/completions')
    expect(wire.dropped).toEqual([])
    expect(wire.headers).toEqual([
      ...['content-type', 'application/json', 'accept', 'application/json', 'accept-encoding', 'identity'],
      ...['authorization', 'Bearer sk-x'],
    ])
  })

  it.each(['gpt-4o', 'o3'])('drops and reports a session, which OpenAI rejects as unknown (%s)', (upstream) => {
    const text = `{"model":"${upstream}",${HI},"session_id":"s1"}`
    const wire = chat.toWire(callFromText<ChatRequest>(text, { upstream }))

    expect([wireText(text, upstream).includes('session_id'), wire.dropped]).toEqual([false, ['session_id']])
  })

  it('accepts an event stream when streaming', () => {
    const wire = chat.toWire(callFromText<ChatRequest>(`{"model":"gpt-4o",${HI},"stream":true}`))

    expect(wire.headers[wire.headers.indexOf('accept') + 1]).toBe('text/event-stream')
  })

  it('replaces the top-level model and leaves nested ones, unknown fields and layout alone', () => {
    const text = `{ "metadata": {"model":"gp-4o"}, "model" : "gp-4o", ${HI}, "x_field": [1.0, "ü"] }`

    expect(wireText(text, 'gpt-4o')).toBe(text.replace('"model" : "gp-4o"', '"model" : "gpt-4o"'))
  })

  it('always asks for usage in streams, by the smallest edit', () => {
    const plain = `{"model":"gpt-4o","stream":true,${HI}}`
    const cases: [text: string, expected: unknown][] = [
      [plain, `{"stream_options":{"include_usage":true},${plain.slice(1)}`],
      [`{"stream_options":{"include_usage":true},${plain.slice(1)}`, 'same'],
      [`{"stream_options":{"include_usage":false},${plain.slice(1)}`, { include_usage: true }],
      [`{"stream_options":null,${plain.slice(1)}`, { include_usage: true }],
      [
        `{"stream_options":{"include_obfuscation":false},${plain.slice(1)}`,
        { include_obfuscation: false, include_usage: true },
      ],
    ]
    for (const [text, expected] of cases) {
      const call = callFromText<ChatRequest>(text)
      const { body } = chat.toWire(call)

      if (expected === 'same') expect(body).toBe(call.bytes)
      else if (typeof expected === 'string') expect(Buffer.from(body as Uint8Array).toString()).toBe(expected)
      else expect(bodyOf(body)).toEqual({ ...call.request, stream_options: expected })
    }
  })

  it('renames and asks for usage in one edit', () => {
    expect(wireText(`{"model":"gp-4o","stream":true,${HI}}`, 'gpt-4o')).toBe(
      `{"stream_options":{"include_usage":true},"model":"gpt-4o","stream":true,${HI}}`,
    )
  })

  it('serializes the request again if the model is repeated', () => {
    const call = callFromText<ChatRequest>(`{"model":"gpt-5-pro","model":"gpt-4o",${HI}}`)

    expect(chat.toWire(call).body).toBe(`{"model":"gpt-4o",${HI}}`)
  })

  it('writes a request of another endpoint from its parsed form without touching it', () => {
    const request: ChatRequest = Object.freeze({
      model: 'gp-4o',
      messages: [{ role: 'user' as const, content: 'Hi' }],
      stream: true,
    })

    const body = bodyOf(chat.toWire(callFromRequest(request, { upstream: 'gpt-4o' })).body)

    expect(body).toEqual({ ...request, model: 'gpt-4o', stream_options: { include_usage: true } })
  })

  it('removes what the gateway adds to answers from the history, and only there', () => {
    const request: ChatRequest = {
      model: 'gpt-4o',
      reasoning_content: 'a field of the caller',
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'hm',
          thinking_blocks: [{ type: 'redacted_thinking', data: 'AA' }],
          extra_content: { google: { thought_signature: 's' } },
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: { google: {} } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: '1' },
      ],
    }
    const before = structuredClone(request)

    const body = bodyOf(chat.toWire(callFromText<ChatRequest>(JSON.stringify(request))).body)

    expect(body).toEqual({
      ...request,
      messages: [
        request.messages[0],
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        request.messages[2],
      ],
    })
    expect(request).toEqual(before)
  })
})

describe('openai fields', () => {
  it('every known field has a rule: all pass, but the history and, on reasoning models, max_tokens', () => {
    const special = (table: object) =>
      Object.entries(table).flatMap(([field, rule]) => (rule === 'pass' ? [] : [field]))

    expect(special(OPENAI_FIELDS)).toEqual(['messages'])
    expect(special(OPENAI_REASONING_FIELDS)).toEqual(['messages', 'max_tokens'])
  })

  for (const [request, expected] of [
    [{ max_tokens: 9 }, { max_completion_tokens: 9 }],
    [{ max_tokens: 9, max_completion_tokens: 5 }, { max_completion_tokens: 5 }],
    [{ max_completion_tokens: 5 }, { max_completion_tokens: 5 }],
  ] as const) {
    it(`sends ${JSON.stringify(request)} to a reasoning model as ${JSON.stringify(expected)}`, () => {
      const text = JSON.stringify({ model: 'gpt-5', messages: [], ...request })

      expect(bodyOf(chat.toWire(callFromText<ChatRequest>(text)).body)).toEqual({
        model: 'gpt-5',
        messages: [],
        ...expected,
      })
    })
  }

  for (const [id, field] of [
    ['gpt-4o', 'max_tokens'],
    ['gpt-4o-2024-11-20', 'max_tokens'],
    ['gpt-4-0613', 'max_tokens'],
    ['ft:gpt-4o-mini-2024-07-18:example::a1', 'max_tokens'],
    ['o3', 'max_completion_tokens'],
    ['o4-mini-2025-04-16', 'max_completion_tokens'],
    ['gpt-5-nano', 'max_completion_tokens'],
    ['a-model-of-tomorrow', 'max_completion_tokens'],
    ['constructor', 'max_completion_tokens'],
  ] as const) {
    it(`${id} takes ${field}`, () => {
      expect(tokenLimitField(id)).toBe(field)
    })
  }

  it('lets the host decide for its own models', () => {
    const own = openai({ tokenLimitFields: { 'gpt-9': 'max_tokens' }, defaultTokenLimitField: 'max_tokens' }).chat!

    for (const model of ['gpt-9', 'unknown']) {
      const call = callFromText<ChatRequest>(`{"model":"${model}","messages":[],"max_tokens":3}`)

      expect(own.toWire(call).body).toBe(call.bytes)
    }
  })
})

describe('openai options', () => {
  it('is not configured without a key', () => {
    expect(openai().apiKeys).toEqual([])
    expect(openai({ apiKey: '' }).apiKeys).toEqual([])
    expect(openai({ apiKey: ['sk-a', ' '] }).apiKeys).toEqual(['sk-a'])
  })

  for (const [baseURL, origin, path] of [
    [undefined, 'https://api.openai.com', '/v1/chat/completions'],
    ['http://127.0.0.1:9100', 'http://127.0.0.1:9100', '/v1/chat/completions'],
    ['http://127.0.0.1:9100/', 'http://127.0.0.1:9100', '/v1/chat/completions'],
    ['https://proxy.example/openai/', 'https://proxy.example', '/openai/v1/chat/completions'],
    ['https://proxy.example/openai/v1/', 'https://proxy.example', '/openai/v1/chat/completions'],
  ] as const) {
    it(`reaches ${path} at ${origin} for the base URL ${baseURL}`, () => {
      const vendorAt = openai({ baseURL })

      expect(vendorAt.origin).toBe(origin)
      expect(vendorAt.chat!.toWire(callFromText<ChatRequest>(`{"model":"gpt-4o",${HI}}`)).path).toBe(path)
    })
  }

  it('rejects an invalid base URL', () => {
    for (const baseURL of [
      'ftp://host.example',
      'host.example',
      'https://u:p@host.example',
      'https://host.example/?x=1',
    ]) {
      expect(() => openai({ baseURL })).toThrow(TypeError)
    }
  })
})
