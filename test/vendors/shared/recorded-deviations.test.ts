import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { createMessagesOperation } from '../../../src/endpoints/messages/messages-operation.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { passThrough } from '../../../src/endpoints/operation.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { CUTS, type Cut, cutBytes } from '../../support/feed-stream.ts'
import { callFromRequest, fixture, NOW_MS, textOf, wireAnswer } from './vendor-call.ts'

const vendor = openaiCompatible({ id: 'any', baseURL: 'https://llm.example/v1', apiKey: 'k-0123456789', models: [] })
const chat = vendor.chat!

type Json = Record<string, unknown>

function callOf(request: Partial<ChatRequest> = {}): VendorCall<ChatRequest> {
  return callFromRequest<ChatRequest>({ model: 'public', messages: [{ role: 'user', content: 'Hi' }], ...request })
}

function messagesCall(stream: boolean): VendorCall<MessagesRequest> {
  const thinking = { type: 'enabled', budget_tokens: 1024 }
  const request = { model: 'public', max_tokens: 2000, messages: [{ role: 'user', content: 'Hi' }], stream, thinking }
  return { ...callOf({ stream }), request: request as MessagesRequest } as VendorCall<MessagesRequest>
}

/** Returns the chunks of a recorded stream for a chat caller, and the findings of the gateway. */
function streamed(name: string, cut: Cut, request: Partial<ChatRequest> = {}) {
  const call = callOf({ stream: true, stream_options: { include_usage: true }, ...request })
  const transform = passThrough(chat.toWire(call), chat.passThrough!, call).stream()
  const pieces = cutBytes(fixture(import.meta.url, name), cut).map((bytes) => transform.push(bytes))
  const text = textOf([...pieces, transform.end()])
  const events = text.split('\n\n').filter((event) => event !== '')
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.replace(/^data: /, '')) as Json)
  return { transform, events, chunks, choices: chunks.flatMap((chunk) => chunk['choices'] as Json[]) }
}

function deltas(choices: readonly Json[], member: string): string {
  return choices.map((choice) => (choice['delta'] as Json)[member] ?? '').join('')
}

/** Assembles tool calls like OpenAI's clients: by index, with id, type and name from the first chunk of each. */
function gathered(choices: readonly Json[]): Json[] {
  const calls: Json[] = []
  for (const choice of choices) {
    for (const piece of ((choice['delta'] as Json)['tool_calls'] ?? []) as Json[]) {
      const index = piece['index'] as number
      const { name, arguments: json = '' } = piece['function'] as { name?: string; arguments?: string }
      calls[index] ??= { id: piece['id'], type: piece['type'], name, arguments: '' }
      calls[index]['arguments'] += json
    }
  }
  return calls
}

describe('reasoning that the completion excludes', () => {
  const usage = { inputTokens: 12, cachedInputTokens: 11, outputTokens: 291, reasoningTokens: 290 }

  it('is part of the output of a whole answer, for the bill and for the caller', () => {
    const body = chat.passThrough!.fromWire([fixture(import.meta.url, 'reasoning-beside.json')], callOf())
    const answer = JSON.parse(textOf(body!.chunks)) as Json

    expect(body?.usage).toEqual(usage)
    expect(answer['usage']).toMatchObject({ completion_tokens: 291, total_tokens: 303, prompt_tokens: 12 })
    // The vendor's own cost: 1e10 ticks are a dollar; $0.30, cached $0.075 and output $0.50 per million.
    const nano = 1n * 300n + 11n * 75n + 291n * 500n
    expect(nano * 10n).toBe(1_466_250n)
  })

  for (const cut of CUTS) {
    it(`is part of the output of a stream, fed ${cut}`, () => {
      const { transform, chunks } = streamed('reasoning-beside.sse', cut)

      expect(transform.usage).toEqual(usage)
      expect(chunks.at(-1)?.['usage']).toMatchObject({ completion_tokens: 291, total_tokens: 303 })
    })
  }

  it('is not added where the completion holds it already', () => {
    const wire = {
      prompt_tokens: 13,
      completion_tokens: 219,
      total_tokens: 232,
      completion_tokens_details: { reasoning_tokens: 205 },
    }
    const body = chat.passThrough!.fromWire(
      [Buffer.from(JSON.stringify({ model: 'm', choices: [{ message: { content: 'x' } }], usage: wire }))],
      callOf(),
    )

    expect(body?.usage).toEqual({ inputTokens: 13, outputTokens: 219, reasoningTokens: 205 })
  })
})

describe('streamed tool calls without an index', () => {
  for (const cut of CUTS) {
    it(`get index and type, fed ${cut}`, () => {
      const { choices, transform } = streamed('tools-without-index.sse', cut)

      expect(gathered(choices)).toEqual([
        { id: 'gSIMJiOkT', type: 'function', name: 'weather', arguments: '{"city": "Zürich"}' },
        { id: 'hTJNKjPlU', type: 'function', name: 'time', arguments: '{"zone": "CET"}' },
      ])
      expect(transform).toMatchObject({ isComplete: true, failure: undefined })
    })

    it(`become one call from chunks without id and type, fed ${cut}`, () => {
      expect(gathered(streamed('tools-in-pieces-without-index.sse', cut).choices)).toEqual([
        { id: 'call_n1_0', type: 'function', name: 'weather', arguments: '{"city": "Zürich"}' },
      ])
    })
  }

  it('pass unchanged where they are whole', () => {
    const { events } = streamed('openai-tools.sse', 'whole')
    const wire = fixture(import.meta.url, 'openai-tools.sse')
      .toString('utf8')
      .split('\n\n')
    const tools = (list: string[]) => list.filter((event) => event.includes('tool_calls'))

    expect(tools(events).map((event) => event.replace('"public"', '"gpt-5.4-2026-03-05"'))).toEqual(tools(wire))
  })
})

describe('tool calls without an id', () => {
  const body = (id: string | undefined, callId?: string) => ({
    ...(id === undefined ? {} : { id }),
    model: 'm',
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        logprobs: null,
        message: {
          role: 'assistant',
          content: null,
          refusal: null,
          tool_calls: ['one', 'two'].map((name) => ({
            type: 'function',
            function: { name, arguments: '{}' },
            ...(callId === undefined ? {} : { id: callId }),
          })),
        },
      },
    ],
  })

  /** Returns the ids of an answer's calls, as callers of each dialect read them. */
  function idsOf(answer: object, nowMs = NOW_MS): unknown[] {
    const bytes = Buffer.from(JSON.stringify(answer))
    const passed = chat.passThrough!.fromWire([bytes], { ...callOf(), nowMs })
    const { choices } = JSON.parse(textOf(passed!.chunks)) as { choices: { message: { tool_calls: Json[] } }[] }
    const operation = createMessagesOperation(vendor, { ...messagesCall(false), nowMs })!
    const message = operation.whole([{ status: 200, headers: {}, chunks: [bytes] }])
    const { content } = JSON.parse(textOf(message!.chunks)) as { content: Json[] }
    return [choices[0]!.message.tool_calls.map(({ id }) => id), content.map(({ id }) => id)]
  }

  for (const callId of [undefined, '']) {
    it(`get one in a whole answer, the same as in a stream: ${JSON.stringify(callId)}`, () => {
      const ids = ['call_c1_0', 'call_c1_1']

      expect(idsOf(body('c1', callId))).toEqual([ids, ids])
    })
  }

  it('stay apart in a translated whole answer in which they repeat an id', () => {
    const bytes = Buffer.from(JSON.stringify(body('c1', 'x')))
    const message = createMessagesOperation(vendor, messagesCall(false))!.whole([
      { status: 200, headers: {}, chunks: [bytes] },
    ])
    const { content } = JSON.parse(textOf(message!.chunks)) as { content: Json[] }

    expect(content.map(({ id, name }) => [id, name])).toEqual([
      ['x', 'one'],
      ['call_c1_1', 'two'],
    ])
  })

  it('get one that every vendor takes, of 40 characters at most, however long the id of the answer is', () => {
    const ids = idsOf(body(`chatcmpl-${'7'.repeat(12)}${'c'.repeat(20)}`)).flat()

    expect(ids).toContain(`call_7777${'c'.repeat(20)}_1`)
    expect(ids.every((id) => String(id).length <= 40)).toBe(true)
  })

  it('get another one in every turn, also where answers have no id', () => {
    const [first, second] = [NOW_MS, NOW_MS + 1000].map((nowMs) => idsOf(body(undefined), nowMs).flat())

    expect(new Set([...first!, ...second!]).size).toBe(4)
  })

  it('get another one in every streamed turn, also where chunks have no id', () => {
    const [first, second] = [NOW_MS, NOW_MS + 1000].map((nowMs) => {
      const piece = { index: 0, type: 'function', function: { name: 'one', arguments: '{}' } }
      const chunk = { id: '', choices: [{ index: 0, delta: { tool_calls: [piece] }, finish_reason: 'tool_calls' }] }
      const wire = Buffer.from(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)
      const call = { ...callOf({ stream: true }), nowMs }
      const streams = [
        passThrough(chat.toWire(call), chat.passThrough!, call).stream(),
        createMessagesOperation(vendor, { ...messagesCall(true), nowMs })!.stream(),
      ]
      return streams.map((stream) => /"(call_[^"]*)"/.exec(textOf([stream.push(wire), stream.end()]))?.[1])
    })

    expect(first).not.toContain(undefined)
    expect(first![0]).toBe(first![1])
    expect(first![0]).not.toBe(second![0])
    expect(first![1]).not.toBe(second![1])
  })

  it('leave whole answers untouched that have them', () => {
    const bytes = Buffer.from(
      JSON.stringify({ ...body('c1'), model: 'public' }).replaceAll('"type"', '"id":"x","type"'),
    )

    expect(chat.passThrough!.fromWire([bytes], callOf())?.chunks).toEqual([bytes])
  })
})

describe('content in parts', () => {
  it('becomes text and reasoning in a whole answer', () => {
    const body = chat.passThrough!.fromWire([fixture(import.meta.url, 'thinking-parts.json')], callOf())
    const { choices } = JSON.parse(textOf(body!.chunks)) as { choices: { message: Json }[] }

    expect(choices[0]?.message).toMatchObject({ content: '2 + 2 = 4', reasoning_content: 'Two and two, so four.' })
    expect(body?.outputBytes).toBe(9 + 21)
  })

  for (const cut of CUTS) {
    it(`becomes text and reasoning in a stream, fed ${cut}`, () => {
      const { choices, transform } = streamed('thinking-parts.sse', cut)

      expect(deltas(choices, 'content')).toBe('2 + 2 = 4')
      expect(deltas(choices, 'reasoning_content')).toBe('Two and two, so four.')
      expect(transform.outputBytesSeen).toBe(9 + 21)
    })
  }

  it('reaches Messages callers as thinking and text', () => {
    const operation = createMessagesOperation(vendor, messagesCall(false))!
    const whole = operation.whole([
      { status: 200, headers: {}, chunks: [fixture(import.meta.url, 'thinking-parts.json')] },
    ])
    const stream = createMessagesOperation(vendor, messagesCall(true))!.stream()
    const text = textOf([stream.push(fixture(import.meta.url, 'thinking-parts.sse')), stream.end()])

    expect((JSON.parse(textOf(whole!.chunks)) as Json)['content']).toMatchObject([
      { type: 'thinking', thinking: 'Two and two, so four.' },
      { type: 'text', text: '2 + 2 = 4' },
    ])
    expect(text).toContain('"thinking":"Two and two, "')
    expect(text).toContain('"text":"2 + 2"')
  })
})

describe('an answer that ends with an error', () => {
  const failed = (reason: string) => ({
    id: 'gen-1',
    model: 'm',
    choices: [
      {
        index: 0,
        finish_reason: reason,
        message: { role: 'assistant', content: 'Half an ans' },
        error: { code: 502, message: 'Upstream died' },
      },
    ],
  })

  for (const reason of ['error', 'network_error', 'insufficient_system_resource']) {
    it(`${reason} is a failure of the vendor and no answer`, () => {
      const body = failed(reason)

      expect(chat.passThrough!.fromWire([Buffer.from(JSON.stringify(body))], callOf())).toBeUndefined()
      expect(chat.fromWire(wireAnswer(body), callOf())).toBeUndefined()
      expect(vendor.errorFrom(wireAnswer(body), NOW_MS)).toMatchObject({
        kind: 'unavailable',
        message: 'Upstream died',
      })
    })

    it(`${reason} fails a stream, for chat and for Messages callers`, () => {
      const start = { id: 'g', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'Half' } }] }
      const end = { id: 'g', model: 'm', choices: [{ index: 0, delta: { content: '' }, finish_reason: reason }] }
      const wire = Buffer.from(`data: ${JSON.stringify(start)}\n\ndata: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`)
      const call = callOf({ stream: true })

      for (const stream of [
        passThrough(chat.toWire(call), chat.passThrough!, call).stream(),
        createMessagesOperation(vendor, messagesCall(true))!.stream(),
      ]) {
        const text = textOf([stream.push(wire), stream.end()])

        expect(stream).toMatchObject({ isComplete: false, failure: { kind: 'unavailable' } })
        expect(text).not.toContain('[DONE]')
      }
    })
  }

  it('has the usage that it reports, whole and streamed (none before)', () => {
    const usage = { prompt_tokens: 700, completion_tokens: 90, total_tokens: 790 }
    const reported = { usage: { inputTokens: 700, outputTokens: 90 }, failure: { message: 'Upstream died' } }
    const body = { ...failed('error'), usage }
    const [choice] = body.choices
    const end = { ...body, choices: [{ ...choice, delta: { content: '' } }] }
    const wire = Buffer.from(`data: ${JSON.stringify(end)}\n\n`)
    const call = callOf({ stream: true })

    expect(chat.passThrough!.fromWire([Buffer.from(JSON.stringify(body))], callOf())).toMatchObject(reported)
    expect(chat.brokenAnswer?.(wireAnswer(body), callOf())).toMatchObject(reported)
    expect(chat.brokenAnswer?.(wireAnswer(failed('error')), callOf())).toBeUndefined()
    for (const stream of [
      passThrough(chat.toWire(call), chat.passThrough!, call).stream(),
      createMessagesOperation(vendor, messagesCall(true))!.stream(),
    ]) {
      stream.push(wire)
      stream.end()
      expect(stream).toMatchObject(reported)
    }
  })

  it('takes no report of nothing for what a stream has used', () => {
    const running = { id: 'g', model: 'm', choices: [], usage: { prompt_tokens: 700, completion_tokens: 90 } }
    const end = { ...failed('error'), usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }
    const call = callOf({ stream: true })

    for (const before of [[], [running]])
      for (const stream of [
        passThrough(chat.toWire(call), chat.passThrough!, call).stream(),
        createMessagesOperation(vendor, messagesCall(true))!.stream(),
      ]) {
        stream.push(Buffer.from([...before, end].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')))
        stream.end()
        expect(stream.failure).toMatchObject({ kind: 'unavailable' })
        expect(stream.usage).toEqual(before.length === 0 ? undefined : { inputTokens: 700, outputTokens: 90 })
      }
  })

  it('content that was judged sensitive is the finish reason content_filter', () => {
    const body = { model: 'm', choices: [{ index: 0, finish_reason: 'sensitive', message: { content: 'x' } }] }
    const answer = chat.passThrough!.fromWire([Buffer.from(JSON.stringify(body))], callOf())

    expect(textOf(answer!.chunks)).toContain('"finish_reason":"content_filter"')
  })
})

describe('errors of other layouts', () => {
  for (const [name, status, body, expected] of [
    [
      'a list of errors',
      400,
      { errors: [{ code: 5004, message: 'AiError: Invalid data' }], success: false, result: {}, messages: [] },
      { kind: 'caller', message: 'AiError: Invalid data', code: '5004' },
    ],
    [
      'an error in a list',
      429,
      [{ error: { code: 429, message: 'Resource exhausted.', status: 'RESOURCE_EXHAUSTED' } }],
      { kind: 'rate_limited', message: 'Resource exhausted.', code: '429' },
    ],
    [
      'a status inside a 200',
      200,
      { base_resp: { status_code: 1008, status_msg: 'insufficient balance' }, choices: null },
      { kind: 'unavailable', message: 'insufficient balance', code: '1008' },
    ],
    [
      'a problem of RFC 9457',
      400,
      { status: 400, title: 'Bad Request', detail: 'Unsupported parameter(s): `store`' },
      { kind: 'caller', message: 'Unsupported parameter(s): `store`' },
    ],
  ] as const) {
    it(`keep their text: ${name}`, () => {
      expect(vendor.errorFrom(wireAnswer(JSON.stringify(body), status), NOW_MS)).toMatchObject(expected)
    })
  }

  it('fail a stream in which they come, also in front of an end mark', () => {
    const call = callOf({ stream: true })
    const start = { id: 'g', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'Half' } }] }
    for (const body of [
      { base_resp: { status_code: 1008, status_msg: 'Told' } },
      { errors: [{ code: 5004, message: 'Told' }], success: false },
      { code: 50501, message: 'Told', data: null },
      { status: 500, title: 'Internal Server Error', detail: 'Told' },
    ])
      for (const stream of [
        passThrough(chat.toWire(call), chat.passThrough!, call).stream(),
        createMessagesOperation(vendor, messagesCall(true))!.stream(),
      ]) {
        const events = [start, body].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
        stream.push(Buffer.from(`${events.join('')}data: [DONE]\n\n`))
        stream.end()

        expect(stream).toMatchObject({ isComplete: false, failure: { kind: 'unavailable', message: 'Told' } })
      }
  })

  it('are not seen in an answer whose code says that all is well', () => {
    const body = { code: 200, message: 'success', object: 'chat.completion.chunk', choices: [] }
    const stream = passThrough(chat.toWire(callOf()), chat.passThrough!, callOf({ stream: true })).stream()
    stream.push(Buffer.from(`data: ${JSON.stringify(body)}\n\n`))

    expect(stream.failure).toBeUndefined()
  })

  it('does not accept an end mark without a choice as an answer, also for Messages callers', () => {
    for (const chunk of ['', 'data: {"id":"g","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0}}\n\n']) {
      const stream = createMessagesOperation(vendor, messagesCall(true))!.stream()
      stream.push(Buffer.from(`${chunk}data: [DONE]\n\n`))

      expect(textOf([stream.end()])).not.toContain('message_stop')
      expect(stream.isComplete).toBe(false)
    }
  })
})

describe('results of a content filter in a stream', () => {
  for (const cut of CUTS) {
    it(`leave a delta in every choice, one finish reason and one end mark, fed ${cut}`, () => {
      const { events, chunks, choices, transform } = streamed('filtered-later.sse', cut)

      expect(chunks.slice(0, -1).every((chunk) => (chunk['choices'] as Json[]).length > 0)).toBe(true)
      expect(choices.every((choice) => typeof choice['delta'] === 'object')).toBe(true)
      expect(deltas(choices, 'content')).toBe('Grüezi mitenand')
      expect(choices.map((choice) => choice['finish_reason']).filter(Boolean)).toEqual(['stop'])
      expect(choices.filter((choice) => 'content_filter_results' in choice)).toHaveLength(2)
      expect(events.filter((event) => event === 'data: [DONE]')).toHaveLength(1)
      expect(transform).toMatchObject({ isComplete: true, usage: { inputTokens: 9, outputTokens: 4 } })
    })
  }

  it('give a Messages caller the id of the answer', () => {
    const stream = createMessagesOperation(vendor, messagesCall(true))!.stream()
    const text = textOf([stream.push(fixture(import.meta.url, 'filtered-later.sse')), stream.end()])

    expect(text).toContain('"text":"Grüezi"')
    expect(text).toContain('A1')
  })
})
