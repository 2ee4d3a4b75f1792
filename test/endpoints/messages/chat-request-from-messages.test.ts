import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { carriedSignature } from '../../../src/endpoints/messages/carried-state.ts'
import {
  chatRequestFromMessages,
  type TranslatedRequest,
} from '../../../src/endpoints/messages/chat-request-from-messages.ts'
import { messageFromCompletion } from '../../../src/endpoints/messages/message-from-completion.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'

const HELLO = [{ role: 'user', content: 'hello' }]
const PNG = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0K' } }
const PNG_PART = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0K' } }
const extra = { google: { thought_signature: 'c2ln' } }

function translate(fields: Record<string, unknown>, maximum?: number): TranslatedRequest {
  const request = { model: 'some-model', max_tokens: 100, messages: HELLO, ...fields } as MessagesRequest
  return chatRequestFromMessages(request, maximum)
}

function messagesOf(messages: unknown[], fields: Record<string, unknown> = {}): ChatRequest['messages'] {
  return translate({ messages, ...fields }).request.messages
}

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

describe('tools that instructions between turns add', () => {
  const adding = (definition: object) => ({
    role: 'system',
    content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }],
  })
  const defined = (name: string, description: string) => ({ name, description, input_schema: { type: 'object' } })

  test('join the tools of the request, the newest of a name in place of the one before', () => {
    const { request, dropped } = translate({
      tools: [defined('read', 'Reads.'), defined('write', 'Writes.')],
      messages: [...HELLO, adding(defined('fetch', 'Fetches.')), ...HELLO, adding(defined('read', 'Reads lines.'))],
      tool_choice: { type: 'tool', name: 'fetch' },
    })

    expect(request.tools?.map(({ function: { name, description } }) => [name, description])).toEqual([
      ['read', 'Reads lines.'],
      ['write', 'Writes.'],
      ['fetch', 'Fetches.'],
    ])
    expect(request.tool_choice).toEqual({ type: 'function', function: { name: 'fetch' } })
    expect(request.messages).toEqual([...HELLO, ...HELLO])
    expect(dropped).toEqual([])
  })

  test('lose a breakpoint of the cache behind them, which is named', () => {
    const [block] = adding(defined('read', 'Reads.')).content
    const marked = { role: 'system', content: [{ ...block, cache_control: { type: 'ephemeral' } }] }
    const request = { model: 'some-model', max_tokens: 100, messages: [...HELLO, marked] } as MessagesRequest

    for (const keepsMarks of [true, false])
      expect(chatRequestFromMessages(request, undefined, keepsMarks).dropped).toEqual(['cache_control'])
  })

  test('are those of a summary of turns too', () => {
    const changes = adding(defined('read', 'Reads.')).content
    const { request } = translate({
      messages: [
        { role: 'assistant', content: [{ type: 'compaction', content: 'So far.', tool_changes: changes }] },
        ...HELLO,
      ],
    })

    expect(request.tools).toMatchObject([{ function: { name: 'read' } }])
  })

  test('are named where they run at the vendor or are defined elsewhere', () => {
    const named = { type: 'tool_addition', tool: { type: 'tool_reference', name: 'read' } }
    const { dropped } = translate({
      messages: [...HELLO, adding({ type: 'web_search_20250305' }), { role: 'system', content: [named] }],
    })

    expect(dropped).toEqual(['messages.tool_addition', 'tools.web_search_20250305'])
  })
})

describe('system text', () => {
  test('of several blocks is one message, without the line that clients write about themselves', () => {
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

  test('between two turns stays where it is', () => {
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

test('marks for a cache inside the result of a tool stay with its text', () => {
  const cache_control = { type: 'ephemeral' }
  const request = {
    ...{ model: 'some-model', max_tokens: 100 },
    messages: [
      ...HELLO,
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'first', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '3 hits', cache_control }] },
        ],
      },
    ],
  }

  const kept = chatRequestFromMessages(request, undefined, true)
  const lost = chatRequestFromMessages(request)

  expect(kept.request.messages[2]?.content).toEqual([{ type: 'text', text: '3 hits', cache_control }])
  expect(kept.dropped).toEqual([])
  expect(lost.request.messages[2]?.content).toBe('3 hits')
  expect(lost.dropped).toEqual(['cache_control'])
})

describe('calls and results', () => {
  const calls = {
    role: 'assistant',
    content: [
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_use', id: 'toolu_1', name: 'first', input: { q: 'boat' } },
      { type: 'tool_use', id: 'toolu_2', name: 'second', input: {} },
    ],
  }

  test('of one user turn become a tool message each, in front of what the user says', () => {
    const messages = messagesOf([
      ...HELLO,
      calls,
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Go on.' },
          { type: 'tool_result', tool_use_id: 'toolu_1', content: '3 hits' },
          { type: 'tool_result', tool_use_id: 'toolu_2', is_error: true, content: [{ type: 'text', text: 'no such' }] },
        ],
      },
    ])

    expect(messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [
          { id: 'toolu_1', type: 'function', function: { name: 'first', arguments: '{"q":"boat"}' } },
          { id: 'toolu_2', type: 'function', function: { name: 'second', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: '3 hits' },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'The tool failed.\nno such' },
      { role: 'user', content: 'Go on.' },
    ])
  })

  test('of a search for tools, as coding clients run it themselves, names the tools that it found', () => {
    const content = [
      { type: 'tool_reference', tool_name: 'NotebookEdit' },
      { type: 'tool_reference', tool_name: 'WebFetch' },
    ]
    const { request, dropped } = translate({
      tools: [{ name: 'NotebookEdit', input_schema: { type: 'object' } }],
      messages: [
        ...HELLO,
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: { query: 'a' } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
      ],
    })

    expect(request.messages.at(-1)).toEqual({
      role: 'tool',
      tool_call_id: 'toolu_1',
      content: 'The tool NotebookEdit can be called now.\nThe tool WebFetch can be called now.',
    })
    expect(dropped).toEqual([])
  })

  test('pictures of a result stand in the user message behind it', () => {
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [PNG] }

    expect(messagesOf([...HELLO, calls, { role: 'user', content: [result] }]).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'toolu_1', content: '(The result follows in the next message.)' },
      { role: 'user', content: [{ type: 'text', text: 'Result of tool call toolu_1:' }, PNG_PART] },
    ])
  })

  test('an answer that comes back in the next request is the same message again, with all its calls and state', () => {
    const answer = {
      role: 'assistant' as const,
      content: 'Let me look.',
      refusal: null,
      reasoning_content: 'Hm.',
      tool_calls: [
        { id: 'a', type: 'function' as const, function: { name: 'first', arguments: '{"q":1}' }, extra_content: extra },
        { id: 'b', type: 'function' as const, function: { name: 'second', arguments: '{}' } },
      ],
    }
    const completion = {
      ...{ id: 'x', object: 'chat.completion' as const, created: 1, model: 'm' },
      choices: [{ index: 0, message: answer, logprobs: null, finish_reason: 'tool_calls' as const }],
    }
    const { content } = messageFromCompletion(completion, undefined, { model: 'm', showsThinking: true, nowMs: 1 })

    const { refusal: _refusal, ...kept } = answer
    expect(messagesOf([...HELLO, { role: 'assistant', content }])[1]).toEqual(kept)
  })
})

describe('state in signatures', () => {
  test('of a call goes back to the call behind it', () => {
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

describe('pictures and files', () => {
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

describe('tools', () => {
  const schema = { type: 'object', properties: { a: {} }, required: ['a'], additionalProperties: false }
  const tools = [{ name: 'first', description: 'D', input_schema: schema, strict: true }]

  test('keep name, description, schema and strictness', () => {
    expect(translate({ tools }).request.tools).toEqual([
      { type: 'function', function: { name: 'first', description: 'D', parameters: schema, strict: true } },
    ])
  })

  test.each([
    ['may leave a member out', { ...schema, required: [] }],
    ['takes other members', { ...schema, additionalProperties: true }],
    ['names none', { type: 'object' }],
    ['has alternatives of which one holds', { ...schema, properties: { a: { oneOf: [{ type: 'string' }] } } }],
    ['has a list without repetitions', { ...schema, properties: { a: { type: 'array', uniqueItems: true } } }],
    ['has a text of some length', { ...schema, properties: { a: { type: 'string', minLength: 1 } } }],
  ])('whose schema %s are not called strict, because vendors of chat refuse that, and it is named', (_what, loose) => {
    const { request, dropped } = translate({ tools: [{ ...tools[0], input_schema: loose }] })

    expect(request.tools).toEqual([
      { type: 'function', function: { name: 'first', description: 'D', parameters: loose } },
    ])
    expect(dropped).toEqual(['tools.strict'])
  })

  test.each([
    [{ type: 'auto' }, { tool_choice: 'auto' }],
    [{ type: 'any' }, { tool_choice: 'required' }],
    [{ type: 'none' }, { tool_choice: 'none' }],
    [{ type: 'tool', name: 'first' }, { tool_choice: { type: 'function', function: { name: 'first' } } }],
    [
      { type: 'auto', disable_parallel_tool_use: true },
      { tool_choice: 'auto', parallel_tool_calls: false },
    ],
  ])('the choice %j becomes %j', (choice, expected) => {
    expect(translate({ tools, tool_choice: choice }).request).toMatchObject(expected)
  })

  test('a choice of a tool that is not left is named', () => {
    const { request, dropped } = translate({ tools, tool_choice: { type: 'tool', name: 'web_search' } })

    expect(request.tool_choice).toBeUndefined()
    expect(dropped).toEqual(['tool_choice'])
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
