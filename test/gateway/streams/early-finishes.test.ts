import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream } from './answering-vendor.ts'

type Json = Readonly<Record<string, unknown>>

let started: StartedGateway
let vendor: AnsweringVendor
let events: readonly Json[]
let hasEndMark: boolean

beforeAll(async () => {
  vendor = await answeringVendor((response) => {
    eventStream(response)
    for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end(hasEndMark ? 'data: [DONE]\n\n' : undefined)
  })
  const models = [{ id: 'dialect', kind: 'chat', upstream: 'dialect' }] as const
  started = await startGateway({
    vendors: [
      gemini({ apiKey: 'key-of-gemini', baseURL: vendor.origin }),
      openaiCompatible({ id: 'server', baseURL: vendor.origin, apiKey: 'key-of-server', models }),
    ],
    models: [],
    billing: 'off',
  })
})
afterAll(async () => {
  await started.close()
  await vendor.close()
})

const dataOf = (text: string): Json[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as Json)

interface Answer {
  readonly text: string
  readonly calls: readonly unknown[]
  /** Finish reasons, or the stop reason or status. */
  readonly ends: readonly unknown[]
  readonly output: unknown
}

async function stream(path: string, body: object): Promise<Json[]> {
  const text = await (await started.post(path, { ...body, stream: true })).text()
  return dataOf(text)
}

async function answers(model: string): Promise<Readonly<Record<string, Answer>>> {
  const messages = [{ role: 'user', content: 'look' }]
  const chunks = await stream('/v1/chat/completions', { model, messages, stream_options: { include_usage: true } })
  const choices = chunks.flatMap((chunk) => (chunk['choices'] as { delta: Json; finish_reason: unknown }[]) ?? [])
  const reasons = choices.map(({ finish_reason: reason }) => reason)
  const ends = reasons.filter((reason) => reason !== null)
  // Nothing follows the end, where clients stop reading.
  expect(reasons.at(-1)).not.toBeNull()
  const message = await stream('/v1/messages', { model, messages, max_tokens: 50 })
  const delta = message.find(({ type }) => type === 'message_delta') as { delta: Json; usage: Json } | undefined
  const response = (await stream('/v1/responses', { model, input: 'look', store: false })).at(-1)?.['response'] as Json
  const items = response['output'] as Json[]
  return {
    chat: {
      text: choices.map(({ delta }) => String(delta['content'] ?? '')).join(''),
      calls: choices.flatMap(({ delta }) =>
        ((delta['tool_calls'] as Json[] | undefined) ?? []).flatMap((call) => (call['function'] as Json)['name'] ?? []),
      ),
      ends,
      output: (chunks.at(-1)?.['usage'] as Json | undefined)?.['completion_tokens'],
    },
    messages: {
      text: message.map((event) => String((event['delta'] as Json | undefined)?.['text'] ?? '')).join(''),
      calls: message.flatMap(({ content_block: block }) => (block as Json | undefined)?.['name'] ?? []),
      ends: [delta?.delta['stop_reason']],
      output: delta?.usage['output_tokens'],
    },
    responses: {
      text: items
        .flatMap((item) => (item['content'] as Json[] | undefined) ?? [])
        .map(({ text }) => text)
        .join(''),
      calls: items.flatMap(({ name }) => name ?? []),
      ends: [response['status']],
      output: (response['usage'] as Json)['output_tokens'],
    },
  }
}

const whole = (text: string, calls: readonly string[], isDone: readonly [string, string]): Record<string, Answer> => ({
  chat: { text, calls, ends: [isDone[0]], output: 7 },
  messages: { text, calls, ends: [isDone[1]], output: 7 },
  responses: { text, calls, ends: ['completed'], output: 7 },
})

const STOPPED = ['stop', 'end_turn'] as const
const CALLED = ['tool_calls', 'tool_use'] as const

describe('an answer of Gemini is whole', () => {
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 }
  const event = (parts: readonly Json[] | undefined, finishReason?: string): Json => ({
    responseId: 'r1',
    candidates: [
      {
        index: 0,
        ...(parts === undefined ? {} : { content: { role: 'model', parts } }),
        ...(finishReason === undefined ? {} : { finishReason }),
      },
    ],
    usageMetadata,
  })
  const call = { functionCall: { name: 'look', args: {} } }

  test.each<[string, readonly Json[], Record<string, Answer>]>([
    [
      'after an empty candidate with STOP',
      [event(undefined, 'STOP'), event([{ text: 'Hello' }])],
      whole('Hello', [], STOPPED),
    ],
    [
      'with STOP in every event',
      ['Hel', 'lo', ''].map((text) => event([{ text }], 'STOP')),
      whole('Hello', [], STOPPED),
    ],
    ['with a call after STOP', [event([{ text: 'Hm.' }], 'STOP'), event([call])], whole('Hm.', ['look'], CALLED)],
  ])('%s', async (_what, sent, expected) => {
    events = sent
    hasEndMark = false

    expect(await answers('gemini-2.5-flash')).toEqual(expected)
  })
})

describe("an answer in OpenAI's dialect is whole", () => {
  const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 }
  const chunk = (delta: Json, reason: string | null = 'stop'): Json => ({
    ...{ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'dialect' },
    choices: [{ index: 0, delta, finish_reason: reason }],
  })
  const counts = { ...chunk({}), choices: [], usage }
  const call = { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }] }

  test.each<[string, readonly Json[], Record<string, Answer>]>([
    [
      'with stop in every chunk',
      [chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hel' }), chunk({ content: 'lo' }), counts],
      whole('Hello', [], STOPPED),
    ],
    [
      'with stop in every chunk and a call at the end',
      [chunk({ role: 'assistant', content: 'Hm.' }), chunk(call, 'tool_calls'), counts],
      whole('Hm.', ['look'], CALLED),
    ],
    [
      'with stop in every chunk, that of a call too',
      [chunk({ role: 'assistant', content: 'Hm.' }), chunk(call), chunk({}, 'tool_calls'), counts],
      whole('Hm.', ['look'], CALLED),
    ],
  ])('%s', async (_what, sent, expected) => {
    events = sent
    for (const isMarked of [true, false]) {
      hasEndMark = isMarked

      expect(await answers('dialect')).toEqual(expected)
    }
  })
})
