import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { DASHSCOPE_FIELDS, dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { recordingWriter } from '../../support/recording-writer.ts'
import { bodyOf, callFromRequest, callFromText, fixture, textOf } from '../shared/vendor-call.ts'

const vendor = dashscope({ apiKey: 'sk-test-0123456789abcdef' })
const chat = vendor.chat!
const streamCall = callFromRequest<ChatRequest>(
  { model: 'qw-plus', messages: [{ role: 'user', content: 'Hi' }], stream: true },
  { upstream: 'qwen-plus' },
)

/** Additional fields of a stream that the gateway collects. */
const STREAMED = { stream: true, stream_options: { include_usage: true } }
const JSON_ONLY = { response_format: { type: 'json_object' } }

interface StreamedPiece {
  index: number
  id?: string
  type?: string
  function: { name?: string; arguments: string }
}

/** Returns the tool call chunks of a relayed stream, as a client reads them. */
function toolPieces(relayed: string): StreamedPiece[] {
  return relayed
    .split('\n\n')
    .filter((event) => event.includes('tool_calls":['))
    .flatMap((event) => {
      const chunk = JSON.parse(event.slice(6)) as { choices: { delta: { tool_calls: StreamedPiece[] } }[] }
      return chunk.choices[0]!.delta.tool_calls
    })
}

describe('dashscope chat requests', () => {
  const rows: [field: string, sent: Record<string, unknown>, expected: Record<string, unknown>, dropped?: string[]][] =
    [
      ['frequency_penalty', { frequency_penalty: 0.5 }, {}, ['frequency_penalty']],
      ['frequency_penalty', { frequency_penalty: null }, {}],
      ['frequency_penalty', { frequency_penalty: 0 }, {}],
      ['max_tokens', { max_tokens: 7 }, { max_completion_tokens: 7 }],
      ['max_tokens', { max_completion_tokens: 7, max_tokens: 9 }, { max_completion_tokens: 7 }],
      ['max_tokens', { max_completion_tokens: 9, max_tokens: 7 }, { max_completion_tokens: 7 }],
      ['max_tokens', { max_completion_tokens: 9, max_tokens: null }, { max_completion_tokens: 9 }],
      ['max_tokens', { max_completion_tokens: null, max_tokens: 9 }, { max_completion_tokens: 9 }],
      [
        'max_tokens',
        { max_tokens: 100, enable_thinking: true, thinking_budget: 30 },
        { max_completion_tokens: 100, enable_thinking: true, thinking_budget: 30 },
      ],
      ['tools', { tools: [] }, {}],
      ['tools', { tools: [], tool_choice: 'auto', parallel_tool_calls: true }, {}],
      ['tools', { tools: [], tool_choice: 'none' }, {}],
      ['tools', { tools: [], tool_choice: 'required' }, {}, ['tool_choice']],
      ['tools', { tools: [], tool_choice: { type: 'function', function: { name: 'f' } } }, {}, ['tool_choice']],
    ]
  for (const [field, sent, expected, dropped = []] of rows) {
    it(`sends ${JSON.stringify(sent)} as ${JSON.stringify(expected)}, reporting ${dropped.join() || 'nothing'}`, () => {
      const wire = chat.toWire(callFromText<ChatRequest>(JSON.stringify({ model: 'qwen-plus', messages: [], ...sent })))

      expect(DASHSCOPE_FIELDS).toHaveProperty(field)
      expect(bodyOf(wire.body)).toEqual({ model: 'qwen-plus', messages: [], ...expected })
      expect(wire.dropped).toEqual(dropped)
    })
  }

  it('every other known field passes, and so do values and fields that only the vendor can judge', () => {
    const special = Object.entries(DASHSCOPE_FIELDS).flatMap(([field, rule]) => (rule === 'pass' ? [] : [field]))
    expect(special.sort()).toEqual(['frequency_penalty', 'max_tokens', 'messages', 'tools'])
    const passing = Object.keys(DASHSCOPE_FIELDS).filter((field) => !special.includes(field) && field !== 'model')
    const text = JSON.stringify({
      model: 'qwen-plus',
      messages: [],
      ...Object.fromEntries(passing.map((field) => [field, field === 'stream' ? false : 1])),
      temperature: 2,
      enable_thinking: false,
      thinking_budget: 50,
    })
    const call = callFromText<ChatRequest>(text)

    expect(chat.toWire(call).body).toBe(call.bytes)
    expect(chat.toWire(call).dropped).toEqual([])
  })

  const efforts: [upstream: string, sent: Record<string, unknown>, expected: Record<string, unknown>][] = [
    ...['qwen-plus', 'qwen-flash', 'qwen3-32b', 'qwen3-235b-a22b', 'qwen3.5-27b', 'qwen3.5-plus', 'qwen3.7-max'].map(
      (upstream): (typeof efforts)[number] => [upstream, { reasoning_effort: 'none' }, { enable_thinking: false }],
    ),
    ['qwen3.6-plus', { reasoning_effort: 'high' }, { reasoning_effort: 'high' }],
    ['qwen3.6-plus', { enable_thinking: true }, { enable_thinking: true }],
    [
      'qwen3.6-plus',
      { reasoning_effort: 'none', enable_thinking: true },
      { reasoning_effort: 'none', enable_thinking: true },
    ],
    // These models accept the effort themselves.
    ...['qwen-max', 'qwen3.8-max', 'glm-5.3'].map((upstream): (typeof efforts)[number] => [
      upstream,
      { reasoning_effort: 'none' },
      { reasoning_effort: 'none' },
    ]),
  ]
  for (const [upstream, sent, expected] of efforts) {
    it(`sends ${JSON.stringify(sent)} to ${upstream} as ${JSON.stringify(expected)}`, () => {
      const text = JSON.stringify({ model: 'm', messages: [], ...sent })
      const wire = chat.toWire(callFromText<ChatRequest>(text, { upstream }))

      expect(bodyOf(wire.body)).toEqual({ model: upstream, messages: [], ...expected })
      expect(wire.dropped).toEqual([])
    })
  }

  const whole: [
    upstream: string,
    sent: Record<string, unknown>,
    expected: Record<string, unknown>,
    dropped?: string[],
  ][] = [
    ...['qwen3-32b', 'qwen3-0.6b', 'qwen3-235b-a22b'].map((upstream): (typeof whole)[number] => [
      upstream,
      {},
      { enable_thinking: false },
    ]),
    ['qwen3-32b', { stream: false }, { stream: false, enable_thinking: false }],
    ['qwen3-32b', { reasoning_effort: 'none' }, { enable_thinking: false }],
    [
      'qwen3-32b',
      { reasoning_effort: 'high', ...JSON_ONLY },
      { enable_thinking: false, ...JSON_ONLY },
      ['reasoning_effort'],
    ],
    ['qwen3-32b', { reasoning_effort: 'high' }, { reasoning_effort: 'high', ...STREAMED }],
    ['qwen3-32b', { enable_thinking: true, stream: false }, { enable_thinking: true, ...STREAMED }],
    [
      'qwen3-32b',
      { enable_thinking: false, reasoning_effort: 'high' },
      { enable_thinking: false, reasoning_effort: 'high' },
    ],
    // These models also think in whole answers.
    ...['qwen-plus', 'qwen3.5-27b', 'qwen3-30b-a3b-instruct-2507', 'qwen3-max'].map(
      (upstream): (typeof whole)[number] => [upstream, { reasoning_effort: 'high' }, { reasoning_effort: 'high' }],
    ),
    // These models only stream.
    ...[
      ...['qwq-plus', 'qwq-32b', 'qvq-max-latest', 'qvq-72b-preview', 'qwen-omni-turbo', 'qwen2.5-omni-7b'],
      ...['qwen3-omni-flash', 'qwen3-235b-a22b-thinking-2507', 'qwen3-next-80b-a3b-thinking', 'qwen3-vl-8b-thinking'],
    ].map((upstream): (typeof whole)[number] => [
      upstream,
      { max_tokens: 7 },
      { max_completion_tokens: 7, ...STREAMED },
    ]),
  ]
  for (const [upstream, sent, expected, dropped = []] of whole) {
    it(`asks ${upstream} for a whole answer with ${JSON.stringify(sent)} as ${JSON.stringify(expected)}`, () => {
      const text = JSON.stringify({ model: 'm', messages: [], ...sent })
      const wire = chat.toWire(callFromText<ChatRequest>(text, { upstream }))

      expect(bodyOf(wire.body)).toEqual({ model: upstream, messages: [], ...expected })
      expect(wire.dropped).toEqual(dropped)
    })
  }

  it('lets a model think in streams that thinks in nothing else', () => {
    const text = JSON.stringify({ model: 'm', messages: [], stream: true, reasoning_effort: 'high' })
    const wire = chat.toWire(callFromText<ChatRequest>(text, { upstream: 'qwen3-32b' }))

    expect(bodyOf(wire.body)).toMatchObject({ stream: true, reasoning_effort: 'high' })
    expect(bodyOf(wire.body)).not.toHaveProperty('enable_thinking')
  })

  it('makes developers systems and never replays reasoning', () => {
    const messages = [
      { role: 'developer', content: 'Be brief.' },
      { role: 'assistant', content: 'Hi', reasoning_content: 'hm' },
    ]

    const wire = chat.toWire(callFromText<ChatRequest>(JSON.stringify({ model: 'qwen-plus', messages })))

    expect(bodyOf(wire.body)['messages']).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'assistant', content: 'Hi' },
    ])
  })
})

describe('dashscope answers', () => {
  it('relays a whole answer with the members that it leaves out', () => {
    const relayed = chat.passThrough!.fromWire([fixture(import.meta.url, 'text.json')], streamCall)

    expect(JSON.parse(textOf(relayed?.chunks ?? []))).toMatchObject({
      model: 'qw-plus',
      choices: [{ message: { content: '你好，世界', refusal: null }, finish_reason: 'stop', logprobs: null }],
    })
    expect(relayed?.usage).toEqual({ inputTokens: 40, cachedInputTokens: 0, outputTokens: 30, reasoningTokens: 12 })
  })

  for (const cut of CUTS) {
    it(`relays a stream whose model follows the choices, ${cut}`, () => {
      const bytes = fixture(import.meta.url, 'text.sse')
      const relay = chat.passThrough!.stream!(streamCall)

      const relayed = textOf([...cutBytes(bytes, cut).map((chunk) => relay.push(chunk)), relay.end()])

      const events = bytes.toString('utf8').replaceAll('"qwen-plus"', '"qw-plus"').split('\n\n')
      expect(relayed).toBe(events.filter((event) => !event.includes('"choices":[]')).join('\n\n'))
      expect(relay).toMatchObject({ isComplete: true, outputBytesSeen: 15 })
    })

    it(`repairs the ids and indexes of streamed tool calls, ${cut}`, () => {
      const relay = chat.passThrough!.stream!(streamCall)

      const relayed = textOf(cutBytes(fixture(import.meta.url, 'tools.sse'), cut).map((chunk) => relay.push(chunk)))

      expect(toolPieces(relayed)).toEqual([
        { index: 0, id: 'call_7f', type: 'function', function: { name: 'weather', arguments: '' } },
        { index: 0, function: { arguments: '{"city": ' } },
        { index: 0, function: { arguments: '"Köln"}' } },
        { index: 1, id: 'call_80', type: 'function', function: { name: 'weather', arguments: '{"city": ' } },
        { index: 1, function: { arguments: '"大阪"}' } },
      ])
      expect(relayed).not.toContain('qwen-plus')
      expect(relay.usage).toEqual({ inputTokens: 40, cachedInputTokens: 0, outputTokens: 30, reasoningTokens: 12 })
    })

    it(`reads the same stream for other endpoints, ${cut}`, () => {
      const writer = recordingWriter()
      const decoder = chat.decoder(streamCall, writer)

      for (const chunk of cutBytes(fixture(import.meta.url, 'tools.sse'), cut)) decoder.push(chunk)
      decoder.end()

      expect(writer.calls).toEqual([
        ['start', 'chatcmpl-5d0e'],
        ['reasoning', 'Zwei Städte, ', 0],
        ['reasoning', 'zwei Aufrufe.', 0],
        ['toolCall', { index: 0, id: 'call_7f', name: 'weather' }, 0],
        ['toolCallArguments', 0, '{"city": ', 0],
        ['toolCallArguments', 0, '"Köln"}', 0],
        ['toolCall', { index: 1, id: 'call_80', name: 'weather' }, 0],
        ['toolCallArguments', 1, '{"city": ', 0],
        ['toolCallArguments', 1, '"大阪"}', 0],
        ['finish', 'tool_calls', 0],
      ])
      expect(decoder.isComplete).toBe(true)
    })
  }

  for (const [what, pieces, expected] of [
    [
      'calls without any id get one each',
      [
        { index: 0, id: '', function: { name: 'a', arguments: '{}' } },
        { index: 1, function: { name: 'b', arguments: '{}' } },
      ],
      ['0 call_c1_0 a', '1 call_c1_1 b'],
    ],
    [
      'calls without an index are counted',
      [
        { id: 'x', function: { name: 'a', arguments: '{' } },
        { id: '', function: { arguments: '}' } },
        { id: 'y', function: { name: 'a', arguments: '{}' } },
      ],
      ['0 x a', '0', '1 y a'],
    ],
    [
      'an id that is repeated in every piece stays one call',
      [
        { index: 0, id: 'x', function: { name: 'a', arguments: '{' } },
        { index: 0, id: 'x', function: { name: 'a', arguments: '}' } },
      ],
      ['0 x a', '0'],
    ],
    [
      'indexes that begin at 3 begin at 0',
      [
        { index: 3, id: 'x', function: { name: 'a', arguments: '' } },
        { index: 4, id: 'y', function: { name: 'b', arguments: '' } },
        { index: 3, id: '', function: { arguments: '{}' } },
      ],
      ['0 x a', '1 y b', '0'],
    ],
  ] as const) {
    it(`repairs streamed tool calls: ${what}`, () => {
      const relay = chat.passThrough!.stream!(streamCall)
      const chunks = pieces.map((piece) => ({
        id: 'c1',
        model: 'qwen-plus',
        choices: [{ index: 0, delta: { role: 'assistant', tool_calls: [piece] }, finish_reason: null }],
      }))

      const relayed = textOf(chunks.map((chunk) => relay.push(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))))

      expect(
        toolPieces(relayed).map(({ index, id, function: { name } }) =>
          [index, id, name].filter((part) => part !== undefined).join(' '),
        ),
      ).toEqual(expected)
    })
  }
})

describe('dashscope options', () => {
  for (const [options, origin, path] of [
    [{}, 'https://dashscope-intl.aliyuncs.com', '/compatible-mode/v1/chat/completions'],
    [{ region: 'cn' }, 'https://dashscope.aliyuncs.com', '/compatible-mode/v1/chat/completions'],
    [{ region: 'us' }, 'https://dashscope-us.aliyuncs.com', '/compatible-mode/v1/chat/completions'],
    [{ region: 'hk' }, 'https://cn-hongkong.dashscope.aliyuncs.com', '/compatible-mode/v1/chat/completions'],
    [{ baseURL: 'http://127.0.0.1:9100' }, 'http://127.0.0.1:9100', '/compatible-mode/v1/chat/completions'],
    [
      { baseURL: 'https://host.example/a/compatible-mode/v1/' },
      'https://host.example',
      '/a/compatible-mode/v1/chat/completions',
    ],
  ] as const) {
    it(`reaches ${origin} with ${JSON.stringify(options)}`, () => {
      const vendorAt = dashscope(options)

      expect(vendorAt.origin).toBe(origin)
      expect(vendorAt.chat!.toWire(streamCall).path).toBe(path)
      expect(vendorAt.apiKeys).toEqual([])
    })
  }

  it('refuses a region that it does not know', () => {
    expect(() => dashscope({ region: 'mars' as 'us' })).toThrow(TypeError)
  })
})
