import type { ServerResponse } from 'node:http'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { gatewayBeforeVendor } from '../models/gateway-before-vendor.ts'
import { eventStream, json } from './answering-vendor.ts'

const HEAD = { id: 'c', created: 1, model: 'm' }
const cited = (url: string, start: number, end: number) => ({
  type: 'url_citation',
  url_citation: { url, title: url.slice(8), start_index: start, end_index: end, content: 'The page.' },
})
const FIRST = cited('https://a.example', 0, 4)
const SECOND = cited('https://b.example', 5, 9)
const shown = ({ url_citation: { content: _content, ...source } }: typeof FIRST) => ({
  type: 'url_citation',
  ...source,
})

const bench = gatewayBeforeVendor()

async function start(answer: (response: ServerResponse, isStream: boolean) => void): Promise<OpenAI> {
  await bench.start(
    (response, { stream }) => answer(response, stream === true),
    (baseURL) => ({
      vendors: [openaiCompatible({ id: 'one', baseURL, apiKey: 'key', models: [] })],
      models: [{ ...TEST_MODELS[0], vendor: 'one' }],
      billing: 'off',
    }),
  )
  return new OpenAI({ apiKey: TEST_KEY, baseURL: `${bench.started.url}/v1`, maxRetries: 0 })
}

function chunks(response: ServerResponse, deltas: readonly object[]): void {
  eventStream(response)
  for (const delta of deltas)
    response.write(
      `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`,
    )
  response.end(
    `data: ${JSON.stringify({ ...HEAD, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`,
  )
}

describe('the sources of a chat vendor’s answer', () => {
  test('are annotations of a whole response, and of the one that is kept', async () => {
    const message = { role: 'assistant', content: 'Here they are.', annotations: [FIRST, SECOND, { type: 'file' }] }
    const openai = await start((response) =>
      json(response, { ...HEAD, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] }),
    )
    const response = await openai.responses.create({ model: 'chat-relayed', input: 'hi' })
    const kept = await openai.responses.retrieve(response.id)

    for (const { output } of [response, kept])
      expect(output).toMatchObject([
        { content: [{ text: 'Here they are.', annotations: [shown(FIRST), shown(SECOND)] }] },
      ])
  })

  test.each([
    ['behind it', [{ content: 'Here ' }, { content: 'they are.' }, { content: '', annotations: [FIRST, SECOND] }]],
    ['before it', [{ role: 'assistant', annotations: [FIRST, SECOND] }, { content: 'Here they are.' }]],
    [
      'in every chunk',
      [
        { content: 'Here ', annotations: [FIRST] },
        { content: 'they are.', annotations: [FIRST, SECOND] },
      ],
    ],
  ])('are events of a stream, once each, where they come %s', async (_where, deltas) => {
    const openai = await start((response) => chunks(response, deltas))
    const answer = await bench.started.post('/v1/responses', { model: 'chat-relayed', input: 'hi', stream: true })
    const events = responseEvents(await answer.text())
    const stream = openai.responses.stream({ model: 'chat-relayed', input: 'hi' })
    const final = await stream.finalResponse()

    const added = events.filter(({ type }) => type === 'response.output_text.annotation.added')
    expect(added.map((event) => [event['annotation_index'], event['annotation']])).toEqual([
      [0, shown(FIRST)],
      [1, shown(SECOND)],
    ])
    expect(checkGrammar(events)['output']).toMatchObject([
      { content: [{ annotations: [shown(FIRST), shown(SECOND)] }] },
    ])
    expect(final.output).toMatchObject([{ content: [{ annotations: [shown(FIRST), shown(SECOND)] }] }])
  })

  test('have their places in the text of their own item', async () => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
    const openai = await start((response) =>
      chunks(response, [
        { content: 'Here ' },
        { tool_calls: [call] },
        { content: 'they are.', annotations: [FIRST, SECOND] },
      ]),
    )
    const final = await openai.responses.stream({ model: 'chat-relayed', input: 'hi' }).finalResponse()

    expect(final.output).toMatchObject([
      { type: 'message', content: [{ text: 'Here ', annotations: [] }] },
      { type: 'function_call' },
      {
        type: 'message',
        content: [{ text: 'they are.', annotations: [{ ...shown(SECOND), start_index: 0, end_index: 4 }] }],
      },
    ])
  })
})
