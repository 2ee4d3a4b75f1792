import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream, json } from './answering-vendor.ts'

type Json = Readonly<Record<string, unknown>>

let started: StartedGateway
let vendor: AnsweringVendor
let deltas: readonly Json[]
let wholeCalls: readonly Json[]

const FACTS = { id: 'c1', created: 1, model: 'one' }

beforeAll(async () => {
  vendor = await answeringVendor((response, { stream }) => {
    if (stream !== true) {
      const message = { role: 'assistant', content: null, refusal: null, tool_calls: wholeCalls }
      const choices = [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }]
      return json(response, { ...FACTS, object: 'chat.completion', choices })
    }
    eventStream(response)
    const choices = [
      { index: 0, delta: { role: 'assistant', content: 'Hm.' }, finish_reason: null },
      ...deltas.map((delta) => ({ index: 0, delta, finish_reason: null })),
      { index: 0, delta: {}, finish_reason: 'tool_calls' },
    ]
    for (const choice of choices)
      response.write(`data: ${JSON.stringify({ ...FACTS, object: 'chat.completion.chunk', choices: [choice] })}\n\n`)
    response.end('data: [DONE]\n\n')
  })
  const models = [{ id: 'one', kind: 'chat', upstream: 'one' }] as const
  const vendors = [openaiCompatible({ id: 'server', baseURL: vendor.origin, apiKey: 'key-of-server', models })]
  started = await startGateway({ vendors, models: [], billing: 'off' })
})
afterAll(async () => {
  await started.close()
  await vendor.close()
})

const eventsOf = (text: string): Json[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as Json)

/** Gathers calls as clients of chat completions do: by index, ids and names of first pieces, arguments joined. */
function gathered(events: readonly Json[]): (readonly [id: unknown, name: unknown, json: string])[] {
  const calls = new Map<unknown, Json>()
  for (const { choices } of events)
    for (const { delta } of choices as { delta: { tool_calls?: Json[] } }[])
      for (const piece of delta.tool_calls ?? []) {
        const called = piece['function'] as Json
        const call = calls.get(piece['index'])
        if (call === undefined) calls.set(piece['index'], { ...piece, json: called['arguments'] })
        else {
          expect(piece['id'] ?? '').toBe('')
          expect(called['name'] ?? '').toBe('')
          calls.set(piece['index'], { ...call, json: `${String(call['json'])}${String(called['arguments'])}` })
        }
        expect(typeof called['arguments']).toBe('string')
      }
  return [...calls.entries()].map(([index, { id, type, function: called, json }], position) => {
    expect([index, type]).toEqual([position, 'function'])
    return [id, (called as Json)['name'], String(json)]
  })
}

async function callsOfChat(): Promise<ReturnType<typeof gathered>> {
  const body = { model: 'one', messages: [{ role: 'user', content: 'look' }], stream: true }
  return gathered(eventsOf(await (await started.post('/v1/chat/completions', body)).text()))
}

async function callsOfMessages(): Promise<ReturnType<typeof gathered>> {
  const body = { model: 'one', max_tokens: 50, messages: [{ role: 'user', content: 'look' }], stream: true }
  const events = eventsOf(await (await started.post('/v1/messages', body)).text())
  const calls = new Map<unknown, [unknown, unknown, string]>()
  for (const { type, index, content_block: block, delta } of events) {
    if (type === 'content_block_start' && (block as Json)['type'] === 'tool_use')
      calls.set(index, [(block as Json)['id'], (block as Json)['name'], ''])
    const call = type === 'content_block_delta' ? calls.get(index) : undefined
    if (call !== undefined) call[2] += String((delta as Json)['partial_json'] ?? '')
  }
  return [...calls.values()]
}

async function callsOfResponses(): Promise<ReturnType<typeof gathered>> {
  const body = { model: 'one', input: 'look', store: false, stream: true }
  const events = eventsOf(await (await started.post('/v1/responses', body)).text())
  const response = events.at(-1)?.['response'] as { output: Json[] } | undefined
  return (response?.output ?? [])
    .filter(({ type }) => type === 'function_call')
    .map(({ call_id: id, name, arguments: text }) => [id, name, String(text)])
}

const piece = (members: Json): Json => ({ tool_calls: [members] })
const called = (name: string | undefined, text?: unknown): Json => ({
  function: { ...(name === undefined ? {} : { name }), ...(text === undefined ? {} : { arguments: text }) },
})
const FN = { type: 'function' }
const INVENTED = expect.stringMatching(/^call_c1_\d$/)

describe('streamed tool calls reach clients of each API as one call each', () => {
  test.each<[string, readonly Json[], readonly (readonly [unknown, string, string])[]]>([
    [
      'with the index of the first call',
      [
        piece({ index: 0, id: 'a', ...FN, ...called('f', '{"x":') }),
        piece({ index: 0, ...called(undefined, '1}') }),
        piece({ index: 0, id: 'b', ...FN, ...called('g', '{"y":') }),
        piece({ index: 0, ...called(undefined, '2}') }),
      ],
      [
        ['a', 'f', '{"x":1}'],
        ['b', 'g', '{"y":2}'],
      ],
    ],
    [
      'of which the second has no id',
      [
        piece({ index: 0, id: 'a', ...FN, ...called('f', '{}') }),
        piece({ index: 1, ...FN, ...called('f', '{"y":') }),
        piece({ index: 1, ...called(undefined, '2}') }),
      ],
      [
        ['a', 'f', '{}'],
        [INVENTED, 'f', '{"y":2}'],
      ],
    ],
    [
      'of which the second has its arguments as an object',
      [
        piece({ index: 0, id: 'a', ...FN, ...called('f', '{}') }),
        piece({ index: 1, id: 'b', ...FN, ...called('f', { y: 2 }) }),
      ],
      [
        ['a', 'f', '{}'],
        ['b', 'f', '{"y":2}'],
      ],
    ],
    [
      'with the id first and the name in the next piece',
      [
        piece({ index: 0, id: 'a', ...FN }),
        piece({ index: 0, ...called('f', '') }),
        piece({ index: 0, ...called(undefined, '{}') }),
      ],
      [['a', 'f', '{}']],
    ],
    [
      'with arguments before the name',
      [
        piece({ index: 0, id: 'a', ...FN, ...called('', '{"x"') }),
        piece({ index: 0, ...called('f', ':1') }),
        piece({ index: 0, ...called('', '}') }),
      ],
      [['a', 'f', '{"x":1}']],
    ],
    [
      'with the id after the name',
      [
        piece({ index: 0, ...FN, ...called('f', '') }),
        piece({ index: 0, id: 'a', ...called(undefined, '{"x"') }),
        piece({ index: 0, id: 'a', ...called(undefined, ':1}') }),
      ],
      [[INVENTED, 'f', '{"x":1}']],
    ],
    [
      'with blank ids in later pieces',
      [
        piece({ index: 0, id: 'a', ...FN, ...called('f', '{"x"') }),
        piece({ index: 0, id: '', ...called('', ':') }),
        piece({ index: 0, id: ' ', ...called(undefined, '1}') }),
      ],
      [['a', 'f', '{"x":1}']],
    ],
    [
      'with another id in each piece',
      [
        piece({ index: 0, id: 'a', ...FN, ...called('f', '{"x"') }),
        piece({ index: 0, id: 'b', ...called(undefined, ':1}') }),
      ],
      [['a', 'f', '{"x":1}']],
    ],
    [
      'without ids under one index, with whole arguments',
      [piece({ index: 0, ...FN, ...called('f', '{"x":1}') }), piece({ index: 0, ...FN, ...called('f', '{"x":2}') })],
      [
        [INVENTED, 'f', '{"x":1}'],
        [INVENTED, 'f', '{"x":2}'],
      ],
    ],
    [
      'without ids, with the name in each piece',
      [piece({ index: 0, ...FN, ...called('f', '{"x"') }), piece({ index: 0, ...FN, ...called('f', ':1}') })],
      [[INVENTED, 'f', '{"x":1}']],
    ],
  ])('%s', async (_what, pieces, calls) => {
    deltas = pieces

    expect(await callsOfChat()).toEqual(calls)
    expect(await callsOfMessages()).toEqual(calls)
    expect(await callsOfResponses()).toEqual(calls)
  })
})

test('adds type and arguments to whole calls that lack them', async () => {
  wholeCalls = [{ id: 'a', type: null, function: { name: 'f', arguments: null } }]
  const response = await started.post('/v1/chat/completions', {
    model: 'one',
    messages: [{ role: 'user', content: 'look' }],
  })

  expect(await response.json()).toMatchObject({
    choices: [{ message: { tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] } }],
  })
})

test('passes complete pieces on unchanged', async () => {
  deltas = [
    piece({ index: 0, id: 'a', ...FN, ...called('f', ''), vendor_member: 1 }),
    piece({ index: 0, ...called(undefined, '{}'), vendor_member: 2 }),
    piece({ index: 1, id: 'b', ...FN, ...called('g', '{}'), vendor_member: 3 }),
  ]
  const body = { model: 'one', messages: [{ role: 'user', content: 'look' }], stream: true }
  const events = eventsOf(await (await started.post('/v1/chat/completions', body)).text())

  const sent = events.flatMap(({ choices }) => (choices as { delta: Json }[]).map(({ delta }) => delta))
  expect(sent.filter((delta) => delta['tool_calls'] !== undefined)).toEqual(deltas)
})
