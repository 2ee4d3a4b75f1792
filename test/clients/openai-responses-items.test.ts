import { afterEach, describe, expect, test } from 'vitest'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { type AnsweringVendor, answeringVendor, eventStream } from '../gateway/streams/answering-vendor.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { OPENAI_VERSIONS, openaiClient } from './support/openai-clients.ts'

let started: StartedGateway
let vendor: AnsweringVendor

afterEach(async () => {
  await started.close()
  await vendor.close()
})

/** A vendor that answers every call with these events. */
async function startBefore(events: readonly string[], connect: (origin: string) => Parameters<typeof startGateway>[0]) {
  vendor = await answeringVendor((response) => {
    eventStream(response)
    response.end(events.join(''))
  })
  started = await startGateway(connect(vendor.origin))
}

const named = (events: readonly { readonly type: string }[]): string[] =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

const USAGE = { input_tokens: 9, output_tokens: 9 }
const HEAD = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: USAGE }

const block = (index: number, start: object, ...deltas: readonly object[]) => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const toolUse = (index: number, id: string) =>
  block(
    index,
    { type: 'tool_use', id, name: 'look', input: {} },
    { type: 'input_json_delta', partial_json: '{"at":' },
    { type: 'input_json_delta', partial_json: `"${id}"}` },
  )

/** Thinking, text, and two calls. */
const FOUR_ITEMS = named([
  { type: 'message_start', message: HEAD } as { type: string },
  ...block(
    0,
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'thinking_delta', thinking: 'hm' },
    { type: 'signature_delta', signature: 'c2ln' },
  ),
  ...block(
    1,
    { type: 'text', text: '' },
    { type: 'text_delta', text: 'I will ' },
    { type: 'text_delta', text: 'look.' },
  ),
  ...toolUse(2, 'toolu_1'),
  ...toolUse(3, 'toolu_2'),
  { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: USAGE } as { type: string },
  { type: 'message_stop' },
])

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

/** A message of two parts: a text, and then a refusal. */
const TWO_PARTS = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Well, ' }),
  chunk({ content: 'no: ' }),
  chunk({ refusal: 'I may ' }),
  chunk({ refusal: 'not.' }),
  chunk({}, 'stop'),
  'data: [DONE]\n\n',
]

describe.each(OPENAI_VERSIONS)('%s puts a stream together', (_name, OpenAI) => {
  const client = () => openaiClient(OpenAI, started.url)

  test('including reasoning, a text and two calls, each at its own index', async () => {
    await startBefore(FOUR_ITEMS, (baseURL) => ({ vendors: [anthropic({ apiKey: 'key', baseURL })] }))
    const tools = [
      { type: 'function' as const, name: 'look', parameters: { type: 'object', properties: {} }, strict: false },
    ]
    const stream = client().responses.stream({
      model: 'cl-sonnet-4-6',
      input: 'look',
      tools,
      reasoning: { effort: 'medium', summary: 'auto' },
    })
    const indexes: number[] = []
    stream.on('response.output_item.added', (event) => void indexes.push(event.output_index))
    const { output } = await stream.finalResponse()

    expect(indexes).toEqual([0, 1, 2, 3])
    expect(output).toMatchObject([
      { type: 'reasoning', summary: [{ text: 'hm' }] },
      { type: 'message', content: [{ text: 'I will look.' }] },
      { type: 'function_call', call_id: 'toolu_1', arguments: '{"at":"toolu_1"}' },
      { type: 'function_call', call_id: 'toolu_2', arguments: '{"at":"toolu_2"}' },
    ])
  })

  test('including a message with two parts, each at its own index', async () => {
    await startBefore(TWO_PARTS, (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL, responses: false })] }))
    const stream = client().responses.stream({ model: 'chat-relayed', input: 'hi' })
    const seen: unknown[] = []
    stream.on('response.output_text.delta', ({ content_index, delta }) => void seen.push([content_index, delta]))
    stream.on('response.refusal.delta', ({ content_index, delta }) => void seen.push([content_index, delta]))
    const { output, status } = await stream.finalResponse()

    expect(status).toBe('completed')
    expect(seen).toEqual([
      [0, 'Well, '],
      [0, 'no: '],
      [1, 'I may '],
      [1, 'not.'],
    ])
    expect(output).toMatchObject([
      {
        type: 'message',
        content: [
          { type: 'output_text', text: 'Well, no: ' },
          { type: 'refusal', refusal: 'I may not.' },
        ],
      },
    ])
  })
})
