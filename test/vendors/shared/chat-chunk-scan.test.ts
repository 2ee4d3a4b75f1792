import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { OpenAIChatDialect } from '../../../src/vendors/shared/openai-chat-dialect.ts'
import { OpenAIChatPassThrough } from '../../../src/vendors/shared/openai-chat-pass-through.ts'
import { errorReader } from '../../../src/vendors/shared/openai-error.ts'
import { callFromRequest, textOf } from './vendor-call.ts'

type Json = Record<string, unknown>

const DIALECT: OpenAIChatDialect = {
  path: '/v1/chat/completions',
  rulesFor: () => ({}),
  streamFailure: errorReader({}, []).fromStream,
}

/** Forces every chunk to be parsed, without changing any. */
const PARSED = { answerRepair: { whole: (answer: never) => answer, chunks: () => () => false } }

interface Passed {
  readonly events: readonly Json[]
  readonly textBytes: number
  readonly hasTextEnded: boolean
}

/** Returns the result of a stream of these chunks. */
function passed(chunks: readonly Json[], dialect: object = {}, n = 1): Passed {
  const request = { model: 'public', messages: [{ role: 'user' as const, content: 'Hi' }], stream: true, n }
  const call = callFromRequest<ChatRequest>(request)
  const stream = new OpenAIChatPassThrough(call, { ...DIALECT, ...dialect } as OpenAIChatDialect)
  const wire = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`)
  const text = textOf([...wire.map((event) => stream.push(Buffer.from(event))), stream.end()])
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Json)
  return { events, textBytes: stream.outputBytesSeen, hasTextEnded: stream.hasTextEnded }
}

function chunk(choices: readonly { delta: Json; finish?: string }[]): Json {
  const told = choices.map(({ delta, finish = null }, index) => ({ index, delta, finish_reason: finish }))
  return { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'vendor', choices: told }
}

const FIRST = chunk([{ delta: { role: 'assistant', content: '' } }])
const LAST = chunk([{ delta: {}, finish: 'tool_calls' }])

/** A chunk with empty content before its chunk of a call, as some servers write it. */
function piece(text: string, head?: { id?: string; index?: number }): Json {
  const { id, index = 0 } = head ?? {}
  const call = id === undefined ? { arguments: text } : { name: 'look', arguments: text }
  const tool_calls = [{ index, ...(id === undefined ? {} : { id, type: 'function' }), function: call }]
  return chunk([{ delta: { content: '', tool_calls } }])
}

/** Returns the arguments of each call, as clients concatenate them. */
function argumentsIn({ events }: Passed): string[] {
  const calls: string[] = []
  for (const event of events)
    for (const { delta } of event['choices'] as { delta: { tool_calls?: { index: number; function: Json }[] } }[])
      for (const {
        index,
        function: { arguments: text = '' },
      } of delta.tool_calls ?? [])
        calls[index] = `${calls[index] ?? ''}${text as string}`
  return calls
}

test('calls that a server writes under one index stay two, though their arguments begin alike', () => {
  const first = [piece('', { id: 'a' }), piece('{"x":'), piece('1}')]
  const second = [piece('', { id: 'b' }), piece('{"x":'), piece('2}')]

  const stream = passed([FIRST, ...first, ...second, LAST], { repairsToolCalls: true })

  expect(argumentsIn(stream)).toEqual(['{"x":1}', '{"x":2}'])
})

test('the last piece of a second call stays with it in the chunk that ends the answer', () => {
  const first = [piece('', { id: 'a' }), piece('{"x":1}')]
  const second = [piece('', { id: 'b', index: 1 }), piece('{"y":', { index: 1 })]
  const last = piece('2}', { index: 1 })
  const [choice] = last['choices'] as Json[]

  const stream = passed([
    FIRST,
    ...first,
    ...second,
    { ...last, choices: [{ ...choice, finish_reason: 'tool_calls' }] },
  ])

  expect(argumentsIn(stream)).toEqual(['{"x":1}', '{"y":2}'])
})

describe.each([
  ['arguments of a call', piece('0000'), 4],
  [
    'the input of a call of the other form',
    chunk([{ delta: { content: '', tool_calls: [{ index: 0, custom: { input: 'ls' } }] } }]),
    2,
  ],
  ['arguments in the old form', chunk([{ delta: { content: '', function_call: { arguments: '0000' } } }]), 4],
  ['reasoning', chunk([{ delta: { content: '', reasoning_content: 'hmm ' } }]), 4],
  ['a refusal', chunk([{ delta: { content: '', refusal: 'no ' } }]), 3],
  ['two choices', chunk([{ delta: { content: 'a' } }, { delta: { content: 'bc' } }]), 3],
])('%s behind a content', (_name, repeated, byteLength) => {
  test('are counted each time that they come with the same bytes', () => {
    const stream = passed([FIRST, piece('', { id: 'a' }), ...Array.from({ length: 50 }, () => repeated), LAST])

    expect(stream.textBytes).toBe('look'.length + 50 * byteLength)
  })
})

test('shows a repair of tool calls the first chunk of each kind, and those that have calls or end the answer', () => {
  const shown: unknown[] = []
  const chunks = () => (seen: Json) => {
    const [choice] = seen['choices'] as { delta: Json }[]
    shown.push(Object.keys(choice!.delta))
    return false
  }
  const said = chunk([{ delta: { content: 'a' } }])

  passed([FIRST, said, said, piece('', { id: 'a' }), said, piece('1'), LAST], {
    answerRepair: { whole: () => false, chunks, isOfToolCalls: true },
  })

  expect(shown).toEqual([['role', 'content'], ['content'], ['content', 'tool_calls'], ['content', 'tool_calls'], []])
})

test('the reasoning of each choice in a chunk is counted', () => {
  const both = chunk([{ delta: { reasoning_content: 'abc' } }, { delta: { reasoning_content: 'defg' } }])

  expect(passed([FIRST, both, both, both, LAST]).textBytes).toBe(21)
})

// Few different texts, so that chunks often have the same bytes.
const text = fc.constantFrom('', '', 'a', 'b', 'ä"\\', '\n', '漢😀')
const reasoning = text.chain((said) =>
  fc.constantFrom({}, { reasoning_content: said }, { reasoning: said }, { reasoning_content: said, reasoning: said }),
)
const other = fc.oneof(
  text.map((refusal) => ({ refusal })),
  fc.constantFrom(
    {},
    { refusal: null },
    { role: 'assistant' },
    { tool_calls: [] },
    { audio: { id: 'x' } },
    { audio: {} },
    { function_call: { name: 'look', arguments: '1}' } },
  ),
  fc.record({ opens: fc.boolean(), text: fc.constantFrom('', '{"x":', '1}') }).map((call) => ({ call })),
)
const delta = fc
  .tuple(fc.oneof(text, fc.constantFrom(null, undefined)), reasoning, other, fc.boolean())
  .map(([content, thought, rest, isFirst]): Json => {
    const said = content === undefined ? {} : { content }
    return isFirst ? { ...said, ...thought, ...rest } : { ...thought, ...rest, ...said }
  })
const choices = fc.array(delta, { minLength: 1, maxLength: 2 })

/** Adds whole tool calls to the deltas: each is opened before it continues. */
function withCalls(list: readonly (readonly Json[])[]): Json[] {
  const opened: number[] = []
  const written = (index: number, { call, ...rest }: Json): Json => {
    if (call === undefined) return rest
    const { opens, text: said } = call as { opens: boolean; text: string }
    const count = opened[index] ?? 0
    const isOpening = opens || count === 0
    if (isOpening) opened[index] = count + 1
    const called = isOpening ? { name: 'look', arguments: said } : { arguments: said }
    const head = isOpening ? { id: `${index} ${count}`, type: 'function' } : {}
    return { ...rest, tool_calls: [{ index: isOpening ? count : count - 1, ...head, function: called }] }
  }
  return list.map((deltas) => chunk(deltas.map((each, index) => ({ delta: written(index, each) }))))
}

test.each([false, true])(
  'a scanned stream is one whose every chunk is parsed (repaired calls: %s)',
  (repairsToolCalls) => {
    fc.assert(
      fc.property(fc.array(choices, { maxLength: 12 }), (list) => {
        const opening = chunk([{ delta: { role: 'assistant', content: '' } }, { delta: { role: 'assistant' } }])
        const ending = chunk([
          { delta: {}, finish: 'stop' },
          { delta: {}, finish: 'stop' },
        ])
        const chunks = [opening, ...withCalls(list), ending]

        expect(passed(chunks, { repairsToolCalls }, 2)).toEqual(passed(chunks, { repairsToolCalls, ...PARSED }, 2))
      }),
      { numRuns: 500 },
    )
  },
)
