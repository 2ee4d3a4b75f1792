import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FinishReason } from '../../../src/endpoints/chat/chat-completion.ts'
import { ChatChunkWriter } from '../../../src/endpoints/chat/chat-operation.ts'
import { sseReader } from '../../../src/wire/sse.ts'

interface Delta {
  role?: string
  content?: string
  refusal?: string
  reasoning_content?: string
  thinking_blocks?: unknown[]
  extra_content?: unknown
  tool_calls?: { index: number; id?: string; type?: string; function: { name?: string; arguments: string } }[]
}

interface Chunk {
  id: string
  object: string
  created: number
  model: string
  choices: { index: number; delta: Delta; logprobs: null; finish_reason: string | null }[]
  usage?: unknown
}

function writer(): ChatChunkWriter {
  return new ChatChunkWriter({ model: 'gmn-2.5-flash', createdSeconds: 1_700_000_000 })
}

/** The data of the events in a text. */
function dataOf(text: string): string[] {
  const data: string[] = []
  const reader = sseReader((event) => data.push(event.data))
  reader.push(Buffer.from(text))
  reader.end()
  return data
}

const chunksOf = (text: string): Chunk[] =>
  dataOf(text)
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as Chunk)

const deltasOf = (text: string, choice = 0): Delta[] =>
  chunksOf(text).flatMap(({ choices }) => choices.filter(({ index }) => index === choice).map(({ delta }) => delta))

describe('what is written as events', () => {
  test('is byte for byte what OpenAI sends', () => {
    const chunks = writer()
    chunks.start('id_1')
    chunks.text('Hi "you"')
    chunks.finish('stop')
    chunks.done({ inputTokens: 3, outputTokens: 1 })
    const head =
      'data: {"id":"id_1","object":"chat.completion.chunk","created":1700000000,"model":"gmn-2.5-flash","choices":['

    expect(chunks.take()).toBe(
      [
        `${head}{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
        `${head}{"index":0,"delta":{"content":"Hi \\"you\\""},"logprobs":null,"finish_reason":null}]}`,
        `${head}{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`,
        `${head}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`,
        'data: [DONE]',
        '',
      ].join('\n\n'),
    )
    expect(chunks.take()).toBe('')
  })

  test('keeps its form whatever the id and model hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (id, model) => {
        const chunks = new ChatChunkWriter({ model, createdSeconds: 1 })
        chunks.start(id)
        chunks.done({ inputTokens: 1, outputTokens: 1 })
        for (const chunk of chunksOf(chunks.take())) expect(chunk).toMatchObject({ id, model })
      }),
    )
  })

  type Write = readonly ['text' | 'refusal' | 'reasoning', string, number]
  const write: fc.Arbitrary<Write> = fc.tuple(
    fc.constantFrom('text', 'refusal', 'reasoning'),
    // Line breaks of every kind, quotes, NUL, lone surrogates: nothing may break an event.
    fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\n\n', '\r\n', 'data: [DONE]', '\u2028', '\u0000', '"}')),
    fc.integer({ min: 0, max: 2 }),
  )

  test('parses back to what was written, choice by choice', () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 20 }), (writes) => {
        const chunks = writer()
        chunks.start('id_1')
        for (const [kind, text, choice] of writes) chunks[kind](text, choice)
        const text = chunks.take()
        const field = { text: 'content', refusal: 'refusal', reasoning: 'reasoning_content' } as const
        for (const choice of [0, 1, 2]) {
          for (const kind of ['text', 'refusal', 'reasoning'] as const) {
            const written = writes.filter(([one, , index]) => one === kind && index === choice).map(([, part]) => part)
            const read = deltasOf(text, choice).map((delta) => delta[field[kind]] ?? '')
            expect(read.join('')).toBe(written.join(''))
          }
        }
      }),
    )
  })

  test('parses back to the tool calls that were written, however their arguments are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.string(), { maxLength: 4 }), { maxLength: 4 }), (calls) => {
        const chunks = writer()
        chunks.start('id_1')
        calls.forEach((pieces, index) => {
          chunks.toolCall({ index, id: `call_${index}`, name: 'get_weather' })
          for (const piece of pieces) chunks.toolCallArguments(index, piece)
        })
        const parts = deltasOf(chunks.take()).flatMap((delta) => delta.tool_calls ?? [])
        calls.forEach((pieces, index) => {
          const own = parts.filter((part) => part.index === index)
          expect(own[0]).toEqual({
            index,
            id: `call_${index}`,
            type: 'function',
            function: { name: 'get_weather', arguments: '' },
          })
          expect(own.map((part) => part.function.arguments).join('')).toBe(pieces.join(''))
          expect(own.slice(1).every((part) => part.id === undefined)).toBe(true)
        })
      }),
    )
  })
})

test('the first chunk of every choice carries the role, once', () => {
  const chunks = writer()
  chunks.start('id_1')
  chunks.text('a', 1)
  chunks.text('b', 1)
  chunks.finish('stop', 2)
  const text = chunks.take()

  for (const choice of [0, 1, 2]) {
    const roles = deltasOf(text, choice).map((delta) => delta.role)
    expect(roles[0]).toBe('assistant')
    expect(roles.filter((role) => role !== undefined)).toHaveLength(1)
  }
})

test('thinking blocks and extra content travel as they are', () => {
  const chunks = writer()
  chunks.start('id_1')
  chunks.thinkingBlock({ type: 'thinking', thinking: 'hm', signature: 's' })
  chunks.extraContent({ google: { thought_signature: 'x' } })
  const deltas = deltasOf(chunks.take())

  expect(deltas[1]?.thinking_blocks).toEqual([{ type: 'thinking', thinking: 'hm', signature: 's' }])
  expect(deltas[2]?.extra_content).toEqual({ google: { thought_signature: 'x' } })
})

describe('what counts as content', () => {
  test('is not the beginning of an answer', () => {
    const chunks = writer()
    chunks.start('id_1')
    chunks.text('')
    chunks.toolCallArguments(0, '')

    expect(chunks.hasContent).toBe(false)
    expect(chunks.outputBytesSeen).toBe(0)
  })

  test.each<[string, (chunks: ChatChunkWriter) => void]>([
    ['text', (chunks) => chunks.text('a')],
    ['reasoning', (chunks) => chunks.reasoning('a')],
    ['a refusal', (chunks) => chunks.refusal('a')],
    ['a tool call', (chunks) => chunks.toolCall({ index: 0, id: 'c', name: 'f' })],
  ])('is %s, which is also output', (_name, act) => {
    const chunks = writer()
    chunks.start('id_1')
    act(chunks)

    expect(chunks.hasContent).toBe(true)
    expect(chunks.outputBytesSeen).toBe(1)
  })

  test.each<FinishReason>(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])(
    'is the end %s of an empty answer',
    (reason) => {
      const chunks = writer()
      chunks.start('id_1')
      chunks.finish(reason)

      expect(chunks.hasContent).toBe(true)
      expect(chunksOf(chunks.take()).at(-1)?.choices[0]?.finish_reason).toBeNull()
      chunks.done(undefined)
      expect(chunksOf(chunks.take()).at(-1)?.choices[0]?.finish_reason).toBe(reason)
    },
  )
})

test('where the usage is asked for, every chunk before it says null', () => {
  const chunks = new ChatChunkWriter({ model: 'm', createdSeconds: 1, includeUsage: true })
  chunks.start('id_1')
  chunks.text('Hi')
  chunks.toolCall({ index: 0, id: 'call_1', name: 'find' })
  chunks.text('Ho', 1)
  chunks.finish('stop')
  chunks.done({ inputTokens: 3, outputTokens: 1 })

  expect(chunksOf(chunks.take()).map(({ usage }) => usage)).toEqual([
    ...Array<null>(6).fill(null),
    { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
  ])
})

test('the usage chunk is left out when nobody asked for it', () => {
  const chunks = writer()
  chunks.start('id_1')
  chunks.done(undefined)

  expect(dataOf(chunks.take()).at(-1)).toBe('[DONE]')
  expect(chunks.take()).not.toContain('usage')
})
