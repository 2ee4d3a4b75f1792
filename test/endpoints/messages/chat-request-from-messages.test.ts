import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { carriedSignature } from '../../../src/endpoints/messages/messages-request.ts'
import { extra, HELLO, messagesOf, PNG, PNG_PART, translate } from './translated-messages.ts'

test('a plain request keeps its fields, and gets no others', () => {
  expect(
    translate({ system: 'Be brief.', temperature: 0.5, top_p: 0.9, stop_sequences: ['END'], stream: true }),
  ).toEqual({
    request: {
      model: 'some-model',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hello' },
      ],
      max_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      stop: ['END'],
      stream: true,
    },
    dropped: [],
  })
})

describe('a field without an equivalent is named, never lost in silence', () => {
  test.each([
    ['top_k', { top_k: 5 }],
    ['context_management', { context_management: { edits: [] } }],
    ['safeguards', { safeguards: [] }],
    ['cache_control', { cache_control: { type: 'ephemeral' } }],
    ['cache_control', { system: [{ type: 'text', text: 'A', cache_control: { type: 'ephemeral' } }] }],
    ['cache_control', { messages: [{ role: 'user', content: [{ type: 'text', text: 'A', cache_control: {} }] }] }],
    ['cache_control', { tools: [{ name: 'a', input_schema: { type: 'object' }, cache_control: {} }] }],
    ['tools.defer_loading', { tools: [{ name: 'a', input_schema: { type: 'object' }, defer_loading: true }] }],
    ['tools.web_search_20250305', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
    ['output_config.task_budget', { output_config: { task_budget: 5 } }],
    ['output_config.effort', { output_config: { effort: 'unheard-of' } }],
    ['metadata.team', { metadata: { team: 'blue' } }],
    ['stop_sequences', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }],
    ['messages.output_config', { messages: [...HELLO, { role: 'system', content: 'A', output_config: {} }] }],
    ['messages.tool_addition', { messages: [...HELLO, { role: 'system', content: [{ type: 'tool_addition' }] }] }],
    [
      'messages.server_tool_use',
      { messages: [...HELLO, { role: 'assistant', content: [{ type: 'server_tool_use' }] }, ...HELLO] },
    ],
    ['messages.prefill', { messages: [...HELLO, { role: 'assistant', content: 'The answer is' }] }],
    ['(unprintable)', { 'line\nbreak': 1 }],
  ])('%s', (name, fields) => {
    expect(translate(fields).dropped).toEqual([name])
  })

  test.each([
    { service_tier: 'auto' },
    { presence_penalty: 0 },
    { tools: [], tool_choice: { type: 'auto' } },
    { tool_choice: { type: 'none' } },
  ])('nothing of %j, which changes nothing', (fields) => {
    expect(translate(fields).dropped).toEqual([])
  })

  test('max_tokens above what the model gives is lowered to it', () => {
    const { request, dropped } = translate({ max_tokens: 32_000 }, 8192)

    expect(request.max_tokens).toBe(8192)
    expect(dropped).toEqual(['max_tokens'])
  })
})

test('keeps the summary of a compaction as text, because the client may have left out the turns before it', () => {
  const compaction = { type: 'compaction', content: 'They greeted.', encrypted_content: 'c2VjcmV0' }
  const content = [compaction, { type: 'compaction', content: null }, { type: 'text', text: 'Hi.' }]
  const { request, dropped } = translate({ messages: [...HELLO, { role: 'assistant', content }, ...HELLO] })

  expect(request.messages[1]).toEqual({ role: 'assistant', content: 'They greeted.\nHi.' })
  expect(dropped).toEqual(['messages.compaction'])
})

describe('system text', () => {
  test('is one message for several blocks, without the line that clients write about themselves', () => {
    const { request, dropped } = translate({
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.1; cc_entrypoint=cli;' },
        { type: 'text', text: 'You help.' },
        { type: 'text', text: 'Be brief.' },
      ],
    })

    expect(request.messages[0]).toEqual({ role: 'system', content: 'You help.\nBe brief.' })
    expect(dropped).toEqual(['system[0]'])
  })

  test('stays in place between two turns', () => {
    expect(messagesOf([...HELLO, { role: 'system', content: [{ type: 'text', text: 'Mode changed.' }] }])).toEqual([
      { role: 'user', content: 'hello' },
      { role: 'system', content: 'Mode changed.' },
    ])
  })
})

test('a user turn of texts alone is one text, which servers of text models require', () => {
  const content = ['<reminder>', 'Fix the test.'].map((text) => ({ type: 'text', text }))

  expect(messagesOf([{ role: 'user', content }])).toEqual([{ role: 'user', content: '<reminder>\nFix the test.' }])
})

describe('state in signatures', () => {
  test('returns to the call after it', () => {
    const thinking = { type: 'thinking', thinking: '', signature: carriedSignature(extra) }
    const call = { type: 'tool_use', id: 'a', name: 'first', input: {} }

    const [, message] = messagesOf([...HELLO, { role: 'assistant', content: [thinking, call] }])

    expect(message?.tool_calls?.[0]?.extra_content).toEqual(extra)
  })

  test.each([
    ['of another vendor', 'EqQBCkgIBxABGAI'],
    ['that is torn', 'signalbox:bm90IGpzb24'],
    ['without state', carriedSignature()],
    [
      'of more values than a gateway writes',
      carriedSignature({ list: Array.from({ length: 1_000 }, () => 0) } as object),
    ],
  ])('%s is left out', (_what, signature) => {
    const content = [
      { type: 'thinking', thinking: 'Hm.', signature },
      { type: 'text', text: 'Hello' },
    ]

    expect(messagesOf([...HELLO, { role: 'assistant', content }])[1]).toEqual({
      role: 'assistant',
      content: 'Hello',
      reasoning_content: 'Hm.',
    })
  })

  test('state that no gateway wrote is refused', () => {
    const state = Buffer.from('{"google":{"__proto__":{"polluted":1}}}').toString('base64url')
    const content = [{ type: 'thinking', thinking: '', signature: `signalbox:${state}` }]

    expect(() => messagesOf([...HELLO, { role: 'assistant', content }])).toThrow(/__proto__/)
  })
})

describe('images and files', () => {
  test.each([
    ['a picture', PNG, PNG_PART],
    [
      'a picture by address',
      { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    ],
    [
      'a PDF',
      { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0', filename: 'a.pdf' } },
    ],
    [
      'a file of text',
      { type: 'document', title: 'Notes', source: { type: 'text', media_type: 'text/plain', data: 'Buy bread.' } },
      { type: 'text', text: 'Notes\nBuy bread.' },
    ],
    [
      'a search result',
      { type: 'search_result', title: 'T', source: 'https://example.com', content: [{ type: 'text', text: 'Found.' }] },
      { type: 'text', text: 'T\nhttps://example.com\nFound.' },
    ],
  ])('%s becomes a part', (_what, block, part) => {
    const [message] = messagesOf([{ role: 'user', content: [{ type: 'text', text: 'See:' }, PNG, block] }])

    expect(message?.content).toEqual([{ type: 'text', text: 'See:' }, PNG_PART, part])
  })

  test.each([
    { type: 'image', source: { type: 'file', file_id: 'file_1' } },
    { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } },
    { type: 'document', source: { type: 'file', file_id: 'file_1' } },
    { type: 'image' },
  ])('what only the own vendor could read is refused: %j', (block) => {
    expect(() => messagesOf([{ role: 'user', content: [block] }])).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'messages[0].content[0].source' }),
    )
  })
})

test.each([
  [{ thinking: { type: 'adaptive' } }, undefined],
  [{ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }, 'high'],
  [{ output_config: { effort: 'max' } }, 'max'],
  [{ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, 'none'],
  [{ thinking: { type: 'between_tools' } }, 'none'],
  [{ thinking: { type: 'enabled', budget_tokens: 1024 } }, 'low'],
  [{ thinking: { type: 'enabled', budget_tokens: 4000 } }, 'medium'],
  [{ thinking: { type: 'enabled', budget_tokens: 31_999 } }, 'high'],
])('%j asks for the effort %s', (fields, effort) => {
  expect(translate(fields).request.reasoning_effort).toBe(effort)
})

test('a JSON format becomes a response format', () => {
  const schema = { type: 'object', properties: {}, additionalProperties: false }

  expect(translate({ output_config: { format: { type: 'json_schema', schema } } }).request.response_format).toEqual({
    type: 'json_schema',
    json_schema: { name: 'answer', schema, strict: true },
  })
})

test.each([
  ['may leave a member out', { type: 'object', properties: { a: {} }, required: [], additionalProperties: false }],
  ['may have other members', { type: 'object', properties: { a: {} }, required: ['a'] }],
  [
    'has such an object inside',
    {
      type: 'object',
      properties: { list: { type: 'array', items: { $ref: '#/$defs/entry' } } },
      required: ['list'],
      additionalProperties: false,
      $defs: { entry: { type: 'object', properties: { a: {}, b: {} }, required: ['a'], additionalProperties: false } },
    },
  ],
  [
    'joins others',
    {
      type: 'object',
      properties: {},
      additionalProperties: false,
      allOf: [{ $ref: '#/$defs/entry' }],
      $defs: { entry: {} },
    },
  ],
])('a JSON format whose object %s is not called strict, because vendors of chat refuse that', (_what, schema) => {
  expect(translate({ output_config: { format: { type: 'json_schema', schema } } }).request.response_format).toEqual({
    type: 'json_schema',
    json_schema: { name: 'answer', schema },
  })
})

test('a JSON format that names and requires every member is strict', () => {
  const entry = { type: 'object', properties: { required: { type: 'string' } }, additionalProperties: false }
  const schema = {
    type: 'object',
    properties: { entry: { anyOf: [{ ...entry, required: ['required'] }, { type: 'null' }] } },
    required: ['entry'],
    additionalProperties: false,
  }

  expect(
    translate({ output_config: { format: { type: 'json_schema', schema } } }).request.response_format,
  ).toMatchObject({ json_schema: { strict: true } })
})

test('a plain user id goes on as it is, and any other as its SHA-256', () => {
  const long = '{"device_id":"b8","account_uuid":"","session_id":"e6"}'

  expect(translate({ metadata: { user_id: 'u-77' } }).request.user).toBe('u-77')
  expect(translate({ metadata: { user_id: long } }).request.user).toBe(createHash('sha256').update(long).digest('hex'))
})

test.each([
  ['max_tokens', { max_tokens: 0 }],
  ['messages[0].role', { messages: [{ role: 'tool', content: 'A' }] }],
  ['output_config.format', { output_config: { format: { type: 'xml' } } }],
])('%s is refused by name', (param, fields) => {
  expect(() => translate(fields)).toThrow(expect.objectContaining({ status: 400, param }))
})
