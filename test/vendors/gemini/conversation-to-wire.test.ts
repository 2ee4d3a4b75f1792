import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChatMessage } from '../../../src/endpoints/chat/chat-request.ts'
import type { GeminiContent } from '../../../src/vendors/gemini/api-request.ts'
import { conversationToWire } from '../../../src/vendors/gemini/conversation-to-wire.ts'
import { modelAbilities } from '../../../src/vendors/gemini/model-abilities.ts'

const NEWEST = modelAbilities('gemini-3.1-pro')
const OLDER = modelAbilities('gemini-2.5-flash')
const ignore = (): void => {}

function contentsOf(messages: ChatMessage[], abilities = OLDER): GeminiContent[] {
  return conversationToWire(messages, abilities, ignore).contents
}

function call(id: string, name = 'look_up', argumentsText = '{}') {
  return { id, type: 'function' as const, function: { name, arguments: argumentsText } }
}

describe('tool turns', () => {
  test('results stand right behind their calls even when a user message came between', () => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
      { role: 'user', content: 'wait' },
      { role: 'tool', tool_call_id: 'b', content: 'B' },
    ])

    expect(contents[2]?.parts).toEqual([
      { functionResponse: { id: 'a', name: 'look_up', response: { output: 'A' } } },
      { functionResponse: { id: 'b', name: 'look_up', response: { output: 'B' } } },
      { text: 'wait' },
    ])
  })

  test('sixty thousand calls are answered in a moment, in whichever order', () => {
    const ids = Array.from({ length: 60_000 }, (_, index) => String(index))
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: ids.slice(0, 30_000).map((id) => call(id)) },
      ...ids.slice(30_000).map((id): ChatMessage => ({ role: 'assistant', tool_calls: [call(id)] })),
      ...ids.toReversed().map((id): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'done' })),
    ])

    const answered = contents.flatMap(({ parts }) => parts).map(({ functionResponse }) => functionResponse?.id)
    expect(answered.filter((id) => id !== undefined)).toEqual(ids)
  })

  test('an id that comes again in a later turn answers the later call', () => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('same', 'first')] },
      { role: 'tool', tool_call_id: 'same', content: '1' },
      { role: 'assistant', tool_calls: [call('same', 'second')] },
      { role: 'tool', tool_call_id: 'same', content: '2' },
    ])

    expect(contents[2]?.parts[0]?.functionResponse?.name).toBe('first')
    expect(contents[4]?.parts[0]?.functionResponse?.name).toBe('second')
  })

  test('an id that comes again while an earlier call of it is open answers the latest call', () => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('same', 'abandoned')] },
      { role: 'user', content: 'again' },
      { role: 'assistant', tool_calls: [call('same', 'repeated')] },
      { role: 'tool', tool_call_id: 'same', content: 'done' },
    ])

    const responses = contents.flatMap(({ parts }) => parts.flatMap((part) => part.functionResponse ?? []))
    expect(responses).toEqual([{ id: 'same', name: 'repeated', response: { output: 'done' } }])
  })

  test('parallel calls of one id take one result each, and a third result is refused', () => {
    const messages: ChatMessage[] = [
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('same', 'f'), call('same', 'g')] },
      { role: 'tool', tool_call_id: 'same', content: '1' },
      { role: 'tool', tool_call_id: 'same', content: '2' },
    ]

    const responses = contentsOf(messages)[2]?.parts.map((part) => part.functionResponse)
    expect(responses).toEqual([
      { id: 'same', name: 'f', response: { output: '1' } },
      { id: 'same', name: 'g', response: { output: '2' } },
    ])
    expect(() => contentsOf([...messages, { role: 'tool', tool_call_id: 'same', content: '3' }])).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'messages[4].tool_call_id' }),
    )
  })

  test.each([
    ['text', 'sunny', { output: 'sunny' }],
    ['an object', '{"a":1}', { a: 1 }],
    ['a list', '[1,2]', { output: '[1,2]' }],
    ['a scalar', '12', { output: '12' }],
    ['broken JSON', '{"a":', { output: '{"a":' }],
    ['an object with a 19-digit id', '{"id":1234567890123456789}', { output: '{"id":1234567890123456789}' }],
    [
      'an object nested too deep',
      `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`,
      { output: `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}` },
    ],
  ])('a result that is %s becomes an object', (_case, content, response) => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content },
    ])

    expect(contents[2]?.parts[0]?.functionResponse?.response).toEqual(response)
  })

  test.each([
    ['none', '', {}],
    ['an object', '{"q":"x"}', { q: 'x' }],
    ['broken JSON', '{"q":', { arguments: '{"q":' }],
    ['a list', '[1]', { arguments: '[1]' }],
  ])('arguments that are %s stay readable', (_case, text, args) => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('a', 'f', text)] },
    ])

    expect(contents[1]?.parts[0]?.functionCall?.args).toEqual(args)
  })

  test('calls and results that together have more values than a request may have are refused', () => {
    const many = `{"a":[${'0,'.repeat(251_000)}0]}`
    const messages = (args: string, content: NonNullable<ChatMessage['content']>): ChatMessage[] => [
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('a', 'f', args)] },
      { role: 'tool', tool_call_id: 'a', content },
    ]
    const parts = [many.slice(0, 3), many.slice(3)].map((text) => ({ type: 'text' as const, text }))

    expect(contentsOf(messages(many, 'sunny'))).toHaveLength(3)
    expect(contentsOf(messages('{}', '00:1b:44:11:3a:b7, '.repeat(40_000)))).toHaveLength(3)
    expect(() => contentsOf(messages(many, many))).toThrow(/more than 500,000 values/)
    expect(() => contentsOf(messages(many, parts))).toThrow(/more than 500,000 values/)
  })

  test('puts the image of a result after the results, as a part of the same turn', () => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('a')] },
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        ],
      },
    ])

    expect(contents[2]?.parts).toEqual([
      { functionResponse: { id: 'a', name: 'look_up', response: { output: 'see' } } },
      { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
    ])
  })
})

describe('turns', () => {
  test('a chat of system messages only speaks as the user', () => {
    const conversation = conversationToWire([{ role: 'system', content: 'Tell a joke.' }], OLDER, ignore)

    expect(conversation).toEqual({
      systemInstruction: undefined,
      contents: [{ role: 'user', parts: [{ text: 'Tell a joke.' }] }],
    })
  })

  test('messages that say nothing are left out, refusals are said', () => {
    const contents = contentsOf([
      { role: 'user', content: 'one' },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'two' },
      { role: 'assistant', content: null, refusal: 'No.' },
    ])

    expect(contents).toEqual([
      { role: 'user', parts: [{ text: 'one' }, { text: 'two' }] },
      { role: 'model', parts: [{ text: 'No.' }] },
    ])
  })
})

describe('thought signatures', () => {
  test('older models get no placeholder', () => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [call('a')] },
    ])

    expect(contents[1]?.parts[0]).not.toHaveProperty('thoughtSignature')
  })

  test('a message signature without a text goes to the first call', () => {
    const contents = contentsOf(
      [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          tool_calls: [call('a'), call('b')],
          extra_content: { google: { thought_signature: 'U0lH' } },
        },
      ],
      NEWEST,
    )

    expect(contents[1]?.parts.map((part) => part.thoughtSignature)).toEqual(['U0lH', undefined])
  })

  test('a signature that came alone goes back alone', () => {
    const contents = contentsOf([
      { role: 'user', content: 'go' },
      { role: 'assistant', content: '', extra_content: { google: { thought_signature: 'U0lH' } } },
    ])

    expect(contents[1]).toEqual({ role: 'model', parts: [{ text: '', thoughtSignature: 'U0lH' }] })
  })

  test('adds the placeholder to a step even if a user text follows its results', () => {
    const contents = contentsOf(
      [
        { role: 'user', content: 'go' },
        { role: 'assistant', tool_calls: [call('a')] },
        { role: 'tool', tool_call_id: 'a', content: 'A' },
        { role: 'user', content: 'hurry' },
      ],
      NEWEST,
    )

    expect(contents[1]?.parts[0]?.thoughtSignature).toBe('skip_thought_signature_validator')
  })
})

/** A step of a conversation: a user text, an assistant text, or calls with results in any order. */
const step = fc.oneof(
  fc.record({ kind: fc.constant('user' as const), text: fc.string() }),
  fc.record({ kind: fc.constant('assistant' as const), text: fc.string() }),
  fc.record({
    kind: fc.constant('tools' as const),
    text: fc.string(),
    results: fc.array(fc.record({ name: fc.constantFrom('f', 'g'), result: fc.string(), rank: fc.nat() }), {
      minLength: 1,
      maxLength: 4,
    }),
    interruption: fc.option(fc.string(), { nil: undefined }),
  }),
)

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

function messagesOf(steps: readonly Step[]): ChatMessage[] {
  return steps.flatMap((one, index): ChatMessage[] => {
    if (one.kind !== 'tools') return [{ role: one.kind, content: one.text }]
    const ids = one.results.map((_, position) => `call-${index}-${position}`)
    const results = one.results
      .map(({ result, rank }, position) => ({ rank, id: ids[position] ?? '', result }))
      .sort((first, second) => first.rank - second.rank)
      .map(({ id, result }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: result }))
    const calls = one.results.map(({ name }, position) => call(ids[position] ?? '', name, `{"n":${position}}`))
    const interruption: ChatMessage[] =
      one.interruption === undefined ? [] : [{ role: 'user', content: one.interruption }]
    return [{ role: 'assistant', content: one.text, tool_calls: calls }, ...interruption, ...results]
  })
}

describe('any tool conversation', () => {
  test('keeps every call and every result, in turns the vendor takes', () => {
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(OLDER, NEWEST),
        (steps, abilities) => {
          const contents = contentsOf(messagesOf(steps), abilities)

          const callIds = contents.flatMap(({ parts }) => parts.flatMap((part) => part.functionCall?.id ?? []))
          const expectedIds = steps.flatMap((one, index) =>
            one.kind === 'tools' ? one.results.map((_, position) => `call-${index}-${position}`) : [],
          )
          expect(callIds).toEqual(expectedIds)

          const responses = contents.flatMap(({ parts }) => parts.flatMap((part) => part.functionResponse ?? []))
          expect(responses.map(({ id }) => id)).toEqual(expectedIds)
          expect(responses.map(({ name }) => name)).toEqual(
            steps.flatMap((one) => (one.kind === 'tools' ? one.results.map(({ name }) => name) : [])),
          )

          for (const [index, { role, parts }] of contents.entries()) {
            expect(role).toBe(index % 2 === 0 ? 'user' : 'model')
            expect(parts.length).toBeGreaterThan(0)
            const calls = parts.flatMap((part) => part.functionCall?.id ?? [])
            if (calls.length === 0) continue
            const answers = contents[index + 1]?.parts.slice(0, calls.length).map((part) => part.functionResponse?.id)
            expect(answers).toEqual(calls)
          }
        },
      ),
    )
  })
})
