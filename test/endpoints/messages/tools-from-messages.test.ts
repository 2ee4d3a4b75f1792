import { describe, expect, test } from 'vitest'
import { chatRequestFromMessages } from '../../../src/endpoints/messages/chat-request-from-messages.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { extra, HELLO, messagesOf, PNG, PNG_PART, translate, wholeMessage } from './translated-messages.ts'

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

  test('are taken out where a later turn takes them away, and given again where one after it does', () => {
    const change = (type: string, name: string) => ({ type, tool: { type: 'tool_reference', name } })
    const turn = (...content: object[]) => [{ role: 'system', content }, ...HELLO]
    const tools = [defined('read', 'Reads.'), defined('write', 'Writes.')]
    const namesAfter = (...turns: object[]) => {
      const { request, dropped } = translate({ tools, messages: [...HELLO, ...turns], tool_choice: { type: 'any' } })
      return [request.tools?.map((tool) => tool.function.name), request.tool_choice, dropped]
    }

    const removal = turn(change('tool_removal', 'read'))
    expect(namesAfter(...removal)).toEqual([['write'], 'required', []])
    expect(namesAfter(...removal, ...turn(change('tool_addition', 'read')))).toEqual([
      ['read', 'write'],
      'required',
      [],
    ])
    expect(namesAfter(...removal, adding(defined('read', 'Anew.')))).toEqual([['read', 'write'], 'required', []])
    const both = turn(change('tool_removal', 'read'), change('tool_removal', 'write'))
    expect(namesAfter(...both)).toEqual([undefined, undefined, ['tool_choice']])
    const summary = {
      role: 'assistant',
      content: [{ type: 'compaction', content: 'A', tool_changes: both[0]?.content }],
    }
    expect(namesAfter(summary, ...HELLO)[0]).toBeUndefined()
    expect(namesAfter(...turn(change('tool_removal', 'grep')))[2]).toEqual(['messages.tool_removal'])
  })

  test('are named where they run at the vendor or are defined elsewhere', () => {
    const named = { type: 'tool_addition', tool: { type: 'tool_reference', name: 'read' } }
    const { dropped } = translate({
      messages: [...HELLO, adding({ type: 'web_search_20250305' }), { role: 'system', content: [named] }],
    })

    expect(dropped).toEqual(['tools.web_search_20250305', 'messages.tool_addition'])
  })
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

  test('become one tool message per result of a user turn, before the text of the user', () => {
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

  test('names the tools that a tool search of a coding client found', () => {
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

  test('puts images of a result into the user message after it', () => {
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
    const { content } = wholeMessage(completion, undefined, { model: 'm', showsThinking: true, nowMs: 1 })

    const { refusal: _refusal, ...kept } = answer
    expect(messagesOf([...HELLO, { role: 'assistant', content }])[1]).toEqual(kept)
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
    ['names none', { type: 'object', properties: {} }],
    ['has alternatives of which one holds', { ...schema, properties: { a: { oneOf: [{ type: 'string' }] } } }],
    [
      'has a list without repetitions',
      { ...schema, properties: { a: { type: 'array', items: {}, uniqueItems: true } } },
    ],
    ['has a text of some length', { ...schema, properties: { a: { type: 'string', minLength: 1 } } }],
  ])('are not called strict, with a report, if their schema %s, because chat vendors reject that', (_what, loose) => {
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

describe('input schemas', () => {
  test('adds empty properties and items to objects and arrays that lack them, nested ones included', () => {
    const schema = {
      type: 'object',
      properties: {
        filter: { type: ['object', 'null'] },
        ids: { type: 'array' },
        type: { anyOf: [{ type: 'object', additionalProperties: { type: 'array' } }, { type: 'string' }] },
        object: { type: 'string', default: { type: 'object' }, enum: [{ type: 'array' }] },
      },
      $defs: { array: { type: 'array', items: { type: 'object' } } },
    }
    const { request } = translate({ tools: [{ name: 'find', input_schema: schema }] })

    expect(request.tools?.[0]?.function.parameters).toEqual({
      ...schema,
      properties: {
        filter: { type: ['object', 'null'], properties: {} },
        ids: { type: 'array', items: {} },
        type: {
          anyOf: [
            { type: 'object', additionalProperties: { type: 'array', items: {} }, properties: {} },
            { type: 'string' },
          ],
        },
        object: schema.properties.object,
      },
      $defs: { array: { type: 'array', items: { type: 'object', properties: {} } } },
    })
  })

  test.each([[{ type: 'object' }], [undefined], [null]])(
    'turns the input schema %j into an object without properties',
    (schema) => {
      const { request } = translate({ tools: [{ name: 'now', input_schema: schema }] as never })

      expect(request.tools?.[0]?.function.parameters).toEqual({ type: 'object', properties: {} })
    },
  )

  test('passes a complete schema on without a copy', () => {
    const schema = { type: 'object', properties: { at: { type: 'string' } } }
    const { request } = translate({ tools: [{ name: 'look', input_schema: schema }] })

    expect(request.tools?.[0]?.function.parameters).toBe(schema)
  })
})
