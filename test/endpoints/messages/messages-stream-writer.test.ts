import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChatStreamWriter } from '../../../src/endpoints/chat/chat-stream-writer.ts'
import { carriedSignature } from '../../../src/endpoints/messages/messages-request.ts'
import { MessagesStreamWriter } from '../../../src/endpoints/messages/messages-stream-writer.ts'
import { blocksOfStream, eventsOf, type StreamEvent } from './stream-events.ts'

const FACTS = { model: 'some-model', showsThinking: true, nowMs: 1_795_132_800_500 }
const USAGE = { inputTokens: 20, cachedInputTokens: 5, cacheWriteTokens: 3, outputTokens: 7, reasoningTokens: 2 }

function written(calls: (writer: ChatStreamWriter) => void, facts = FACTS): StreamEvent[] {
  const writer = new MessagesStreamWriter(facts)
  calls(writer)
  writer.done(USAGE)
  return eventsOf(writer.take(USAGE))
}

test('an answer is one message_start, its blocks, the reason with all usage, and the end', () => {
  const writer = new MessagesStreamWriter(FACTS)
  writer.start('resp-1')
  writer.text('You ')
  const first = writer.take({ inputTokens: 20 })
  writer.text('said')
  writer.finish('stop')
  writer.done(USAGE)

  expect(eventsOf(first + writer.take(USAGE))).toEqual([
    {
      type: 'message_start',
      message: {
        id: 'msg_resp-1',
        type: 'message',
        role: 'assistant',
        model: 'some-model',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'You ' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'said' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: {
        input_tokens: 12,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 5,
        output_tokens: 7,
        output_tokens_details: { thinking_tokens: 2 },
      },
    },
    { type: 'message_stop' },
  ])
})

test('reports only the prompt in the first event, because some clients add its output to that of the end', () => {
  const [start, ...rest] = written((writer) => writer.text('all of it at once'))
  const usage = { input_tokens: 12, cache_creation_input_tokens: 3, cache_read_input_tokens: 5, output_tokens: 0 }

  expect(start).toMatchObject({ type: 'message_start', message: { usage } })
  expect(rest).toContainEqual(expect.objectContaining({ usage: expect.objectContaining({ output_tokens: 7 }) }))
})

test('no block is opened before it has content', () => {
  const events = written((writer) => {
    writer.start('id')
    writer.text('')
    writer.reasoning('')
    writer.finish('stop')
  })

  expect(events.map(({ type }) => type)).toEqual(['message_start', 'message_delta', 'message_stop'])
})

test('pieces of parallel calls that take turns come out as blocks one after the other', () => {
  const { blocks } = blocksOfStream(
    written((writer) => {
      writer.start('id')
      writer.toolCall({ index: 0, id: 'call_a', name: 'first' })
      writer.toolCallArguments(0, '{"city":')
      writer.toolCall({ index: 1, id: 'call_b', name: 'second' })
      writer.toolCallArguments(1, '{"brace":"}')
      writer.toolCallArguments(0, '"Oslo"}')
      writer.text('Done.')
      writer.toolCallArguments(1, '"}')
      writer.finish('tool_calls')
    }),
  )

  expect(blocks).toEqual([
    { type: 'tool_use', id: 'call_a', name: 'first', json: '{"city":"Oslo"}' },
    { type: 'tool_use', id: 'call_b', name: 'second', json: '{"brace":"}"}' },
    { type: 'text', text: 'Done.' },
  ])
})

test('a second call goes out as it arrives once the arguments of the first are whole', () => {
  const writer = new MessagesStreamWriter(FACTS)
  writer.start('id')
  writer.toolCall({ index: 0, id: 'call_a', name: 'first' })
  writer.toolCallArguments(0, '{}')
  writer.toolCall({ index: 1, id: 'call_b', name: 'second' })
  writer.toolCallArguments(1, '{"city":')

  expect(eventsOf(writer.take(undefined)).at(-1)).toEqual({
    type: 'content_block_delta',
    index: 1,
    delta: { type: 'input_json_delta', partial_json: '{"city":' },
  })
})

describe('what another vendor wants back', () => {
  const extra = { google: { thought_signature: 'c2ln' } }

  test('is in the signature of the thinking before its call', () => {
    const { blocks } = blocksOfStream(
      written((writer) => {
        writer.start('id')
        writer.reasoning('Hm.')
        writer.toolCall({ index: 0, id: 'call_a', name: 'first', extra })
        writer.toolCallArguments(0, '{}')
        writer.finish('tool_calls')
      }),
    )

    expect(blocks[0]).toEqual({ type: 'thinking', thinking: 'Hm.', signature: carriedSignature(extra) })
  })

  test('is not a block after the text of an answer, which would look like the answer', () => {
    const { blocks } = blocksOfStream(
      written((writer) => {
        writer.start('id')
        writer.text('Hello')
        writer.extraContent(extra)
        writer.finish('stop')
      }),
    )

    expect(blocks).toEqual([{ type: 'text', text: 'Hello' }])
  })

  test('is kept when thinking is not shown', () => {
    const { blocks } = blocksOfStream(
      written(
        (writer) => {
          writer.start('id')
          writer.reasoning('Hm.')
          writer.thinkingBlock({ type: 'redacted_thinking', data: 'opaque' })
          writer.toolCall({ index: 0, id: 'call_a', name: 'first', extra })
          writer.finish('tool_calls')
        },
        { ...FACTS, showsThinking: false },
      ),
    )

    expect(blocks.map(({ type }) => type)).toEqual(['redacted_thinking', 'thinking', 'tool_use'])
    expect(blocks[1]).toEqual({ type: 'thinking', thinking: '', signature: carriedSignature(extra) })
  })
})

test.each([
  ['stop', false, 'end_turn'],
  ['stop', true, 'tool_use'],
  ['tool_calls', true, 'tool_use'],
  ['function_call', true, 'tool_use'],
  ['tool_calls', false, 'end_turn'],
  ['length', true, 'max_tokens'],
  ['length', false, 'max_tokens'],
  ['content_filter', false, 'refusal'],
] as const)('the reason %s with a tool call %s is %s', (reason, hasTool, expected) => {
  const { stopReason } = blocksOfStream(
    written((writer) => {
      writer.start('id')
      if (hasTool) writer.toolCall({ index: 0, id: 'call_a', name: 'first' })
      writer.finish(reason)
    }),
  )

  expect(stopReason).toBe(expected)
})

/** A call on a writer, as random as decoders could ever produce. */
type Step = readonly [kind: string, run: (writer: ChatStreamWriter) => void, text?: string, tool?: number]

const extra = { google: { thought_signature: 'c2ln' } }
const choice = fc.constantFrom(0, 0, 0, 0, 1)
const index = fc.integer({ min: 0, max: 3 })
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(fc.string(), choice).map(([text, at]): Step => ['text', (to) => to.text(text, at), at === 0 ? text : '']),
  fc.string().map((text): Step => ['reasoning', (to) => to.reasoning(text)]),
  fc.string().map((text): Step => ['refusal', (to) => to.refusal(text), text]),
  fc
    .tuple(index, fc.boolean())
    .map(
      ([number, signed]): Step => [
        'tool',
        (to) => to.toolCall({ index: number, id: `call_${number}`, name: 'tool', ...(signed ? { extra } : {}) }),
      ],
    ),
  fc.tuple(index, fc.string()).map(([number, json]): Step => ['json', (to) => to.toolCallArguments(number, json)]),
  fc.constant<Step>(['extra', (to) => to.extraContent(extra)]),
  fc.constant<Step>(['block', (to) => to.thinkingBlock({ type: 'thinking', thinking: 'T', signature: 'S' })]),
  fc.constant<Step>(['redacted', (to) => to.thinkingBlock({ type: 'redacted_thinking', data: 'D' })]),
)

describe('the blocks of a stream', () => {
  test('are numbered without a gap, open one at a time and closed, whatever a decoder calls', () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 30 }), fc.array(anyStep, { maxLength: 3 }), (steps, late) => {
        const events = written((writer) => {
          writer.start('id')
          for (const [, run] of steps) run(writer)
          writer.finish('stop')
          for (const [, run] of late) run(writer)
        })

        // Fails for a gap, a second open block, a delta of another kind, or a block that is not closed.
        const { blocks } = blocksOfStream(events)
        const text = blocks.flatMap((block) => (block.type === 'text' ? [block['text']] : [])).join('')
        expect(text).toBe(
          [...steps, ...late]
            .map(([kind, , said = '']) => (kind === 'text' || kind === 'refusal' ? said : ''))
            .join(''),
        )
      }),
      { numRuns: 500 },
    )
  })

  test('hold every call with all of its arguments, however their pieces are interleaved', () => {
    const calls = fc.array(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }), {
      minLength: 1,
      maxLength: 4,
    })
    fc.assert(
      fc.property(calls, fc.infiniteStream(fc.nat()), (inputs, random) => {
        const wanted = inputs.map((input) => JSON.stringify(input))
        const left = wanted.map((json) => ({ json, isOpen: false }))
        const next = (): number => random.next().value ?? 0
        const events = written((writer) => {
          writer.start('id')
          for (;;) {
            const open = left.flatMap(({ json, isOpen }, number) => (json !== '' || !isOpen ? [number] : []))
            const number = open[next() % open.length]
            if (number === undefined) break
            const call = left[number]!
            if (next() % 5 === 0) writer.text('word')
            if (!call.isOpen) {
              writer.toolCall({ index: number, id: `call_${number}`, name: 'tool' })
              call.isOpen = true
            } else {
              const size = 1 + (next() % 4)
              writer.toolCallArguments(number, call.json.slice(0, size))
              call.json = call.json.slice(size)
            }
          }
          writer.finish('tool_calls')
        })

        const { blocks } = blocksOfStream(events)
        const given = new Map(
          blocks.flatMap((block) => (block.type === 'tool_use' ? [[block['id'], block['json']]] : [])),
        )
        expect(wanted.map((_json, number) => given.get(`call_${number}`))).toEqual(wanted)
      }),
      { numRuns: 300 },
    )
  })
})
