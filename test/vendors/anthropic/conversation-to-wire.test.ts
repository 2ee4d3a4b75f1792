import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChatMessage, ChatToolCall } from '../../../src/endpoints/chat/chat-request.ts'
import type { MessagesTurn, ToolResultBlock, ToolUseBlock } from '../../../src/vendors/shared/messages-conversation.ts'
import type { MessagesRequest } from '../../../src/vendors/shared/messages-from-chat.ts'
import { translated, translatedMessages } from './chat-call.ts'

const text = (value: string) => ({ type: 'text', text: value })
const call = (id: string, args = '{}'): ChatToolCall => ({
  id,
  type: 'function',
  function: { name: 'find_tag', arguments: args },
})
const toolUse = (id: string) => ({ type: 'tool_use', id, name: 'find_tag', input: {} })

const OPUS_5 = { upstream: 'claude-opus-5' }

describe('turns of a conversation', () => {
  it('joins consecutive messages of one side into one turn', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'One' },
      { role: 'user', content: 'Two' },
      { role: 'assistant', content: 'Three' },
      { role: 'assistant', content: 'Four' },
      { role: 'user', content: 'Five' },
    ])

    expect(messages).toEqual([
      { role: 'user', content: [text('One'), text('Two')] },
      { role: 'assistant', content: [text('Three'), text('Four')] },
      { role: 'user', content: [text('Five')] },
    ])
  })

  it('takes sixty thousand calls and results in a moment, of one id too', () => {
    const ids = Array.from({ length: 60_000 }, (_, index) => (index % 2 === 0 ? `id${index}` : 'same'))
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', tool_calls: ids.map((id) => call(id)) },
      ...ids.map((id): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'done' })),
      ...ids.map((): ChatMessage => ({ role: 'tool', tool_call_id: 'same', content: 'more' })),
    ])
    const results = messages[2]?.content as ToolResultBlock[]

    expect(new Set(results.map((result) => result.tool_use_id)).size).toBe(ids.length)
    expect(results.at(-2)?.content).toEqual([text('done')])
    expect(results.at(-1)?.content).toHaveLength(1 + ids.length)
  })

  it('puts the results of parallel calls into one user turn, before the text, in the order of the calls', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', tool_calls: [call('a'), call('b')] },
      { role: 'user', content: 'Hurry' },
      { role: 'tool', tool_call_id: 'b', content: 'B' },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
    ])

    expect(messages[2]).toEqual({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: [text('A')] },
        { type: 'tool_result', tool_use_id: 'b', content: [text('B')] },
        text('Hurry'),
      ],
    })
  })

  it('gives a call without a result one that says so, also at the end of the conversation', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'assistant', content: 'Never mind', tool_calls: [call('b')] },
    ])

    const patch = (id: string) => ({
      type: 'tool_result',
      tool_use_id: id,
      content: [text('No result was given for this tool call.')],
      is_error: true,
    })
    expect(messages.slice(1)).toEqual([
      { role: 'assistant', content: [toolUse('a')] },
      { role: 'user', content: [patch('a')] },
      { role: 'assistant', content: [text('Never mind'), toolUse('b')] },
      { role: 'user', content: [patch('b')] },
    ])
  })

  it('keeps a result without its call as text', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'tool', tool_call_id: 'gone', content: '3 hits' },
    ])

    expect(messages).toEqual([
      { role: 'user', content: [text('Go'), text('Result of tool call gone:'), text('3 hits')] },
    ])
  })

  it('joins a second result of a call to the first', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: 'one' },
      { role: 'tool', tool_call_id: 'a', content: 'two' },
    ])

    expect(messages[2]?.content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: [text('one'), text('two')] },
    ])
  })

  it('keeps images in tool results', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', tool_calls: [call('a')] },
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [{ type: 'image_url', image_url: { url: 'data:image/gif;base64,R0lG' } }],
      },
    ])

    const image = { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'R0lG' } }
    expect(messages[2]?.content).toEqual([{ type: 'tool_result', tool_use_id: 'a', content: [image] }])
  })

  it('makes ids that come again, or hold characters the API refuses, usable and keeps calls and results together', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', tool_calls: [call('functions.find:0')] },
      { role: 'tool', tool_call_id: 'functions.find:0', content: 'one' },
      { role: 'assistant', tool_calls: [call('functions.find:0'), call(''), call('')] },
      { role: 'tool', tool_call_id: 'functions.find:0', content: 'two' },
      { role: 'tool', tool_call_id: '', content: 'three' },
      { role: 'tool', tool_call_id: '', content: 'four' },
    ])

    expect(messages[1]?.content).toEqual([toolUse('functions_find_0')])
    expect(messages[3]?.content).toEqual([toolUse('functions_find_0_2'), toolUse('call'), toolUse('call_2')])
    expect(messages[4]?.content).toEqual([
      { type: 'tool_result', tool_use_id: 'functions_find_0_2', content: [text('two')] },
      { type: 'tool_result', tool_use_id: 'call', content: [text('three')] },
      { type: 'tool_result', tool_use_id: 'call_2', content: [text('four')] },
    ])
  })

  it('drops empty and blank text blocks, and messages that hold nothing else', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: '' },
      {
        role: 'user',
        content: [
          { type: 'text', text: ' \n' },
          { type: 'text', text: 'Hi' },
        ],
      },
      { role: 'assistant', content: '' },
      { role: 'assistant', content: null, tool_calls: [call('a', '')] },
      { role: 'tool', tool_call_id: 'a', content: '' },
    ])

    expect(messages).toEqual([
      { role: 'user', content: [text('Hi')] },
      { role: 'assistant', content: [toolUse('a')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] },
    ])
  })

  it('sends a refusal of an earlier turn as text', () => {
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: null, refusal: 'I cannot do that.' },
      { role: 'user', content: 'Please' },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      { role: 'user', content: 'Well' },
    ])

    expect(messages[1]?.content).toEqual([text('I cannot do that.')])
    expect(messages[3]?.content).toEqual([text('No.')])
  })

  it('opens with a user turn when the conversation begins with the assistant', () => {
    const { messages } = translatedMessages([
      { role: 'assistant', content: 'Welcome' },
      { role: 'user', content: 'Hi' },
    ])

    expect(messages.map((turn) => turn.role)).toEqual(['user', 'assistant', 'user'])
  })

  it('asks with the system text when there is nothing else', () => {
    const body = translatedMessages([{ role: 'system', content: 'Say hello' }])

    expect(body.system).toBeUndefined()
    expect(body.messages).toEqual([{ role: 'user', content: [text('Say hello')] }])
  })

  it('refuses a conversation without any content', () => {
    expect(() => translatedMessages([{ role: 'user', content: '' }])).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'messages' }),
    )
  })
})

describe('system messages', () => {
  const conversation: Partial<ChatMessage>[] = [
    { role: 'system', content: 'One' },
    { role: 'user', content: 'Go' },
    { role: 'assistant', tool_calls: [call('a')] },
    { role: 'developer', content: 'Two' },
    { role: 'tool', tool_call_id: 'a', content: 'A' },
    { role: 'system', content: 'Three' },
    { role: 'user', content: 'On' },
    { role: 'assistant', content: 'Done' },
    { role: 'system', content: 'Four' },
    { role: 'user', content: 'Thanks' },
  ]

  it('all go to the front on models that take none between turns', () => {
    const body = translatedMessages(conversation)

    expect(body.system).toBe('One\nTwo\nThree\nFour')
    expect(body.messages.map((turn) => turn.role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
  })

  it('stay behind the user turn they came with on models that take them there, never between a call and its result', () => {
    const body = translatedMessages(conversation, OPUS_5)

    expect(body.system).toBe('One')
    expect(body.messages.slice(2)).toEqual([
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [text('A')] }, text('On')] },
      { role: 'system', content: 'Two\nThree' },
      { role: 'assistant', content: [text('Done')] },
      { role: 'user', content: [text('Thanks')] },
      { role: 'system', content: 'Four' },
    ])
  })

  it('move to the start without an adjacent user turn', () => {
    const body = translatedMessages(
      [
        { role: 'user', content: 'Go' },
        { role: 'assistant', content: 'One' },
        { role: 'system', content: 'Mind the tone' },
        { role: 'assistant', content: 'Two' },
        { role: 'user', content: 'On' },
      ],
      OPUS_5,
    )

    expect(body.system).toBe('Mind the tone')
    expect(body.messages.some((turn) => turn.role === 'system')).toBe(false)
  })
})

describe('reasoning that comes back', () => {
  const signed = { type: 'thinking', thinking: 'Hm.', signature: 'EqQB' } as const

  it('puts thinking blocks first in their turn, unchanged, including those without text', () => {
    const hidden = { type: 'thinking', thinking: '', signature: 'EqQC' } as const
    const { messages } = translatedMessages([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'Look', thinking_blocks: [signed, hidden], tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
    ])

    expect(messages[1]?.content).toEqual([signed, hidden, text('Look'), toolUse('a')])
  })

  it('leaves out blocks without a signature, and reports reasoning that cannot go back', () => {
    const { body, dropped } = translated({
      messages: [
        { role: 'user', content: 'Go' },
        {
          role: 'assistant',
          content: 'Look',
          reasoning_content: 'Hm.',
          thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature: '' }, { type: 'other' }, null],
        },
        { role: 'user', content: 'On' },
      ],
    })

    expect(body.messages[1]?.content).toEqual([text('Look')])
    expect(dropped).toEqual(['messages.reasoning_content'])
  })
})

describe('members of a message without an equivalent', () => {
  it.each(['name', 'audio', 'function_call'])('report %s', (field) => {
    const { dropped } = translated({ messages: [{ role: 'user', content: 'Hi', [field]: 'x' }] })

    expect(dropped).toEqual([`messages.${field}`])
  })
})

describe('tool call arguments', () => {
  const withArguments = (args: string) => [
    { role: 'user' as const, content: 'Go' },
    { role: 'assistant' as const, tool_calls: [call('a'), call('b', args)] },
    { role: 'tool' as const, tool_call_id: 'a', content: 'A' },
  ]

  it.each(['{"q":', '[1]', 'null', '"text"'])('refuses %s, naming the call', (args) => {
    expect(() => translatedMessages(withArguments(args))).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'messages[1].tool_calls[1].function.arguments' }),
    )
  })

  it('refuses arguments that nest too deep', () => {
    expect(() => translatedMessages(withArguments(`{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`))).toThrow(
      expect.objectContaining({ code: 'json_too_deep' }),
    )
  })

  it('refuses arguments that together have more values than a request may have', () => {
    const half = `{"a":[${'0,'.repeat(251_000)}0]}`
    const asking = (...tool_calls: ChatToolCall[]) => [
      { role: 'user' as const, content: 'hi' },
      { role: 'assistant' as const, tool_calls },
    ]

    expect(() => translatedMessages(asking(call('a', half)))).not.toThrow()
    expect(() => translatedMessages(asking(call('a', half), call('b', half)))).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    )
  })

  it('rejects a call that is not a function call', () => {
    const custom = { id: 'a', type: 'custom', custom: { name: 'x', input: 'y' } } as unknown as ChatToolCall
    expect(() => translatedMessages([{ role: 'assistant', tool_calls: [custom] }])).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'messages[0].tool_calls[0]' }),
    )
  })
})

describe('no call and no result is lost', () => {
  const ids = fc.constantFrom('a', 'b', 'c', 'd:1', '')
  const message: fc.Arbitrary<Partial<ChatMessage>> = fc.oneof(
    fc.record({ role: fc.constant('user' as const), content: fc.constantFrom('Hi', '', ' ') }),
    fc.record({ role: fc.constant('system' as const), content: fc.constant('Mind the tone') }),
    fc.record({ role: fc.constant('tool' as const), tool_call_id: ids, content: fc.nat().map((n) => `result ${n}`) }),
    fc.record({
      role: fc.constant('assistant' as const),
      content: fc.constantFrom('Look', '', null),
      tool_calls: fc.array(
        fc.record({
          id: ids,
          type: fc.constant('function' as const),
          function: fc.record({ name: fc.constantFrom('f', 'g'), arguments: fc.nat().map((n) => `{"n":${n}}`) }),
        }),
        { maxLength: 3 },
      ),
    }),
  )
  const conversations = fc
    .array(message, { maxLength: 12 })
    .map((list) => [...list, { role: 'user' as const, content: 'End' }])

  const callsOf = (body: MessagesRequest) =>
    body.messages.flatMap((turn) => blocksOf(turn).filter((block): block is ToolUseBlock => block.type === 'tool_use'))

  it.each(['claude-sonnet-4-6', 'claude-opus-5'])(
    'keeps every call and result of a conversation with %s, and answers every call in the next turn',
    (upstream) => {
      fc.assert(
        fc.property(conversations, (messages) => {
          const body = translatedMessages(messages, { upstream })

          const calls = messages.flatMap((entry) => ('tool_calls' in entry ? (entry.tool_calls ?? []) : []))
          expect(callsOf(body).map((block) => [block.name, JSON.stringify(block.input)])).toEqual(
            calls.map((entry) => [entry.function.name, entry.function.arguments]),
          )
          expect(new Set(callsOf(body).map((block) => block.id)).size).toBe(calls.length)
          const wire = JSON.stringify(body)
          for (const entry of messages) if (entry.role === 'tool') expect(wire).toContain(JSON.stringify(entry.content))
          assertLegal(body.messages)
        }),
      )
    },
  )

  // Checks the rules that the API enforces with 400 (Anthropic, "Tool use" and "Mid-conversation system messages").
  function assertLegal(turns: readonly MessagesTurn[]): void {
    expect(turns[0]?.role).toBe('user')
    turns.forEach((turn, index) => {
      const next = turns[index + 1]
      if (turn.role === 'system') {
        expect(turns[index - 1]?.role).toBe('user')
        expect([undefined, 'assistant']).toContain(next?.role)
        return
      }
      expect(turn.content.length).toBeGreaterThan(0)
      const kinds = turn.content.map((block) => block.type)
      if (turn.role === 'user') {
        const results = turn.content.filter((block): block is ToolResultBlock => block.type === 'tool_result')
        expect(kinds.slice(0, results.length).every((kind) => kind === 'tool_result')).toBe(true)
        expect(results.map((block) => block.tool_use_id)).toEqual(usesOf(turns[index - 1]))
      } else if (usesOf(turn).length > 0) {
        expect(kinds.slice(-usesOf(turn).length).every((kind) => kind === 'tool_use')).toBe(true)
        expect(next?.role).toBe('user')
      }
    })
  }

  function usesOf(turn: MessagesTurn | undefined): string[] {
    if (turn === undefined) return []
    return blocksOf(turn).flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
  }

  function blocksOf(turn: MessagesTurn) {
    return turn.role === 'system' ? [] : turn.content
  }
})
