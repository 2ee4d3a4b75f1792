import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { passThrough } from '../../../src/endpoints/operation.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { CUTS, type Cut, cutBytes } from '../../support/feed-stream.ts'
import { callFromRequest, textOf } from '../shared/vendor-call.ts'

type Json = Record<string, unknown>

const OPEN_WEIGHT = 'us.openai.gpt-oss-120b-1:0'
const GROK = 'us.xai.grok-4.3'

const apiKey = 'bedrock-api-key-0123456789'
const chat = amazonBedrock({ region: 'us-east-1', apiKey }).chat!

function callOf(upstream: string, request: Partial<ChatRequest> = {}): VendorCall<ChatRequest> {
  return callFromRequest({ model: 'public', messages: [{ role: 'user', content: 'Hi' }], ...request } as ChatRequest, {
    upstream,
  })
}

function whole(upstream: string, id: string, message: Json): Json {
  const answer = { id, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] }
  const body = chat.passThrough!.fromWire([Buffer.from(JSON.stringify(answer))], callOf(upstream))
  const { choices } = JSON.parse(textOf(body!.chunks)) as { choices: { message: Json }[] }
  return choices[0]!.message
}

/** The deltas of a stream as its caller reads them. */
function streamed(upstream: string, id: string, deltas: readonly Json[], cut: Cut = 'whole'): Json[] {
  const call = callOf(upstream, { stream: true })
  const chunks = deltas.map((delta) => ({ id, model: 'm', choices: [{ index: 0, delta, finish_reason: null }] }))
  const last = { id, model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const wire = [...chunks, last].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
  const transform = passThrough(chat.toWire(call), chat.passThrough!, call).stream()
  const pieces = cutBytes(Buffer.from(`${wire}data: [DONE]\n\n`), cut).map((bytes) => transform.push(bytes))
  const events = textOf([...pieces, transform.end()]).split('\n\n')
  return events
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as { choices: { delta: Json }[] })
    .flatMap(({ choices }) => choices.map(({ delta }) => delta))
}

function joined(deltas: readonly Json[], member: string): string {
  return deltas.map((delta) => delta[member] ?? '').join('')
}

describe('reasoning that an open-weight model writes into its content', () => {
  it('is reasoning in a whole answer', () => {
    const content = '<reasoning>Capital of France.</reasoning>Paris'

    expect(whole(OPEN_WEIGHT, 'a', { role: 'assistant', content })).toMatchObject({
      content: 'Paris',
      reasoning_content: 'Capital of France.',
    })
  })

  for (const cut of CUTS) {
    it(`is reasoning in a stream, with tags around all of it or around each chunk, fed ${cut}`, () => {
      for (const contents of [
        ['<reasoning>Capital', ' of France.</reason', 'ing>Par', 'is'],
        ['<reasoning>Capital</reasoning>', '<reasoning> of France.</reasoning>', 'Par', 'is'],
        [...'<reasoning>Capital</reasoning><reasoning> of France.</reasoning>Paris'],
      ]) {
        const deltas = streamed(
          OPEN_WEIGHT,
          'a',
          contents.map((content) => ({ content })),
          cut,
        )

        expect(joined(deltas, 'content')).toBe('Paris')
        expect(joined(deltas, 'reasoning_content')).toBe('Capital of France.')
      }
    })
  }

  it('may be empty: the tags do not show, whole or streamed', () => {
    const content = '<reasoning></reasoning>Paris'
    const message = whole(OPEN_WEIGHT, 'a', { role: 'assistant', content })

    expect(message).toMatchObject({ content: 'Paris' })
    expect(message).not.toHaveProperty('reasoning_content')
    expect(joined(streamed(OPEN_WEIGHT, 'a', [{ content }]), 'content')).toBe('Paris')
  })

  it('is waited for behind a few blanks, and not behind endless ones', () => {
    const blanks = ' '.repeat(100)
    const few = streamed(OPEN_WEIGHT, 'a', [{ content: blanks }, { content: '<reasoning>a</reasoning>b' }])
    const many = streamed(OPEN_WEIGHT, 'a', [...Array<Json>(9).fill({ content: blanks }), { content: 'b' }])

    expect(few.map(({ content }) => content ?? '').filter((text) => text !== '')).toEqual(['b'])
    expect(many.map(({ content }) => content ?? '').filter((text) => text !== '')).toHaveLength(8)
    expect(joined(many, 'content')).toBe(`${' '.repeat(900)}b`)
  })

  it('is looked for in no answer of another model', () => {
    const content = '<reasoning> is a tag.'

    expect(whole(GROK, 'a', { role: 'assistant', content })).toMatchObject({ content })
    expect(joined(streamed(GROK, 'a', [{ content }]), 'content')).toBe(content)
  })
})

describe('ids of calls that count from zero in each answer', () => {
  const toolCall = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
  const idsOf = (message: Json): unknown[] => ((message['tool_calls'] ?? []) as Json[]).map(({ id }) => id)

  it('differ between two turns, whole or streamed', () => {
    for (const upstream of [GROK, OPEN_WEIGHT]) {
      const turns = ['chatcmpl-1', 'chatcmpl-2'].flatMap((answerId) => [
        ...idsOf(whole(upstream, answerId, { content: null, tool_calls: [toolCall('call_0'), toolCall('call_1')] })),
      ])
      const streams = ['chatcmpl-3', 'chatcmpl-4'].flatMap((answerId) =>
        streamed(upstream, answerId, [
          { tool_calls: [{ index: 0, ...toolCall('call_0') }] },
          { tool_calls: [{ index: 1, ...toolCall('call_1') }] },
        ]).flatMap(idsOf),
      )

      const ids = [...turns, ...streams].filter((id) => id !== undefined)
      expect(ids).toHaveLength(8)
      expect(new Set(ids).size).toBe(8)
    }
  })

  it('stay as they are where they are unique', () => {
    const message = { content: null, tool_calls: [toolCall('call_8d1f')] }

    expect(idsOf(whole(GROK, 'a', message))).toEqual(['call_8d1f'])
  })
})

describe('fields of requests', () => {
  it('lose the penalties that Grok is down for', () => {
    const penalties = { presence_penalty: 1, frequency_penalty: 1 }
    const grok = chat.toWire(callOf(GROK, penalties))
    const openWeight = chat.toWire(callOf(OPEN_WEIGHT, penalties))

    expect(grok.dropped.toSorted()).toEqual(['frequency_penalty', 'presence_penalty'])
    expect(JSON.parse(String(grok.body))).not.toHaveProperty('presence_penalty')
    expect(openWeight.dropped).toEqual([])
  })
})
