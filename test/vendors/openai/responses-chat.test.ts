import { Buffer } from 'node:buffer'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { createMessagesOperation } from '../../../src/endpoints/messages/messages-operation.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { CompletionCollector } from '../../../src/vendors/shared/completion-collector.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { recordingWriter } from '../../support/recording-writer.ts'
import { bodyOf, NOW_MS, wireAnswer } from '../shared/vendor-call.ts'

interface RequestFixture {
  readonly request: object
  readonly body?: unknown
  readonly dropped?: readonly string[]
}

interface AnswerFixture {
  readonly request: object
  readonly answer: Record<string, unknown>
  readonly completion?: unknown
  readonly usage?: unknown
}

interface StreamFixture {
  readonly request: object
  readonly calls?: readonly unknown[]
  readonly isComplete?: boolean
  readonly usage?: unknown
  readonly failure?: unknown
}

const FIXTURES = new URL('./fixtures/responses-chat/', import.meta.url)
const names = (folder: string): string[] =>
  readdirSync(new URL(`${folder}/`, FIXTURES))
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))

function read<Value>(path: string): Value {
  return JSON.parse(readFileSync(new URL(path, FIXTURES), 'utf8')) as Value
}

const vendor = openai({ apiKey: 'sk-test-0123456789abcdef' })
const chat = vendor.chat!

function call(request: object, options: { stream?: boolean; row?: object } = {}): VendorCall<ChatRequest> {
  return {
    request: { model: 'pro', messages: [{ role: 'user', content: 'Hello' }], ...request },
    bytes: undefined,
    model: defineModel({
      id: 'pro',
      kind: 'chat',
      vendor: 'openai',
      upstream: 'gpt-5.4-pro',
      protocol: 'responses',
      ...options.row,
    }),
    publicModel: 'pro',
    apiKey: 'sk-test-0123456789abcdef',
    stream: options.stream === true,
    nowMs: NOW_MS,
  }
}

describe('chats for models with Responses only', () => {
  it.each(names('requests'))('are sent as exactly this request: %s', (name) => {
    const fixture = read<RequestFixture>(`requests/${name}.json`)
    const wire = chat.toWire(call(fixture.request))

    expect({ body: bodyOf(wire.body), dropped: wire.dropped }).toEqual({ body: fixture.body, dropped: fixture.dropped })
    expect(wire.path).toBe('/v1/responses')
  })

  it('stream with the padding that the caller asks for, and usage always comes', () => {
    const streamed = (options: object): object =>
      bodyOf(chat.toWire(call({ stream: true, ...options }, { stream: true })).body)

    expect(streamed({ stream_options: { include_usage: true } })).not.toHaveProperty('stream_options')
    expect(streamed({ stream_options: { include_obfuscation: false } })).toMatchObject({
      stream: true,
      stream_options: { include_obfuscation: false },
    })
  })

  it('keep breakpoints of a cache where the dialect has them, and name all other marks', () => {
    const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } }
    const mark = { cache_control: { type: 'ephemeral' } }
    const text = (rest: object) => [{ type: 'text', text: 'A', ...rest }]
    const tool = { type: 'function', function: { name: 'f' } }

    const kept = chat.toWire(call({ messages: [{ role: 'user', content: text(breakpoint) }] }))
    const dropped = [
      { messages: [{ role: 'user', content: text(mark) }] },
      {
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: text(breakpoint) },
        ],
      },
      { tools: [{ ...tool, ...mark }] },
    ].map((fields) => chat.toWire(call(fields)).dropped)

    expect(bodyOf(kept.body)['input']).toMatchObject([{ content: [{ type: 'input_text', text: 'A', ...breakpoint }] }])
    expect(kept.dropped).toEqual([])
    expect(dropped).toEqual([['cache_control'], ['prompt_cache_breakpoint'], ['cache_control']])
  })

  it('ask a model that does not reason for no reasoning', () => {
    expect(bodyOf(chat.toWire(call({}, { row: { hasHiddenReasoning: false } })).body)).not.toHaveProperty('include')
  })

  it.each<[string, unknown, string[]]>([
    ['auto', 'auto', []],
    ['none', 'none', []],
    ['required', 'required', ['tool_choice']],
    ['a function', { type: 'function', function: { name: 'f' } }, ['tool_choice']],
  ])('send no choice without tools, and name it where it would force a call: %s', (_what, choice, dropped) => {
    const wire = chat.toWire(call({ tools: [], tool_choice: choice } as never))

    expect(bodyOf(wire.body)).not.toHaveProperty('tools')
    expect(bodyOf(wire.body)).not.toHaveProperty('tool_choice')
    expect(wire.dropped).toEqual(dropped)
  })

  it('go to chat completions where the row does not say so, or the server has no Responses', () => {
    expect(chat.toWire(call({}, { row: { protocol: undefined } })).path).toBe('/v1/chat/completions')
    expect(openai({ apiKey: 'k', responses: false }).chat!.toWire(call({})).path).toBe('/v1/chat/completions')
  })

  const CALL = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }

  it.each<[string, object]>([
    ['n', { n: 2 }],
    ['stop', { stop: 'x' }],
    ['stop', { stop: ['x'] }],
    ['presence_penalty', { presence_penalty: 0.5 }],
    ['frequency_penalty', { frequency_penalty: -1 }],
    ['logit_bias', { logit_bias: { 50256: -100 } }],
    ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['function_call', { function_call: { name: 'f' } }],
    ['max_tokens', { max_tokens: 15 }],
    ['max_completion_tokens', { max_completion_tokens: 1, max_tokens: 100 }],
    ['enable_search', { enable_search: true }],
    ['web_search_options', { web_search_options: true }],
    ['tools[0]', { tools: [{ type: 'file_search' }] }],
    ['tool_choice', { tool_choice: { type: 'mcp', server_label: 's' } }],
    ['response_format.json_schema', { response_format: { type: 'json_schema' } }],
    [
      'messages[0].content[1]',
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'input_audio' }] }] },
    ],
    ['messages[0].audio', { messages: [{ role: 'assistant', audio: { id: 'a' } }] }],
    [
      'messages[0].tool_calls[0]',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'custom', custom: {} }] }] },
    ],
    [
      'messages[1].tool_call_id',
      {
        messages: [
          { role: 'assistant', tool_calls: [CALL] },
          { role: 'tool', tool_call_id: 'd', content: '' },
        ],
      },
    ],
  ])('are rejected with the name of an unsupported field: %s of %j', (param, request) => {
    expect(() => chat.toWire(call(request))).toThrow(expect.objectContaining({ status: 400, param }))
    expect(() => chat.toWire(call(request))).toThrow(param)
  })
})

describe('chats with functions for a model that reasons', () => {
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const custom = [{ type: 'custom', custom: { name: 'c' } }]
  const pathOf = (upstream: string, request: object, of = chat): string =>
    of.toWire(call(request, { row: { upstream, protocol: undefined } })).path

  it.each([
    ['gpt-5.4', { tools, reasoning_effort: 'high' }],
    ['gpt-5.4-mini-2026-03-17', { tools, reasoning_effort: 'low' }],
    ['ft:gpt-5.4:acme', { tools, reasoning_effort: 'medium' }],
    ['gpt-5.5', { tools }],
    ['gpt-5.6-sol', { tools, reasoning_effort: null }],
    ['gpt-6', { tools }],
  ])('are sent as Responses, because chat completions refuse them: %s %j', (upstream, request) => {
    expect(pathOf(upstream, request)).toBe('/v1/responses')
  })

  it.each([
    ['gpt-5.4', { tools }],
    ['gpt-5.6', { tools, reasoning_effort: 'none' }],
    ['gpt-5.6', { reasoning_effort: 'high' }],
    ['gpt-5.6', { tools: [], reasoning_effort: 'high' }],
    ['gpt-5.6', { tools: custom, reasoning_effort: 'high' }],
    // Another search than the held one would not be charged.
    ['gpt-5.6', { tools: [...tools, { type: 'web_search' }] }],
    ['gpt-5.6', { tools, web_search_options: {} }],
    ['gpt-5', { tools, reasoning_effort: 'high' }],
    ['gpt-5.2', { tools, reasoning_effort: 'high' }],
    ['o3', { tools }],
    ['gpt-4.1', { tools }],
  ])('go to chat completions where these take them: %s %j', (upstream, request) => {
    expect(pathOf(upstream, request)).toBe('/v1/chat/completions')
  })

  it('go to chat completions of a server without Responses', () => {
    expect(pathOf('gpt-5.6', { tools }, openai({ apiKey: 'k', responses: false }).chat!)).toBe('/v1/chat/completions')
  })

  it('have their answers and streams read as Responses too', () => {
    const { request, answer } = read<AnswerFixture>('answers/tool-calls.json')
    const asked = call({ ...request, tools }, { row: { upstream: 'gpt-5.6', protocol: undefined } })

    expect(chat.fromWire(wireAnswer(answer), asked)?.completion.choices[0]?.message.tool_calls).toHaveLength(2)
    expect(chat.passThrough?.applies(asked)).toBe(false)
    expect(chat.hasHiddenReasoning?.(asked)).toBe(true)
  })

  it('are what Claude Code sends, which then gets the reasoning back in the next turn', () => {
    const request = {
      model: 'gpt-5.4',
      max_tokens: 32_000,
      stream: true,
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      system: [{ type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } }],
      tools: [{ name: 'Bash', description: 'Runs a command.', input_schema: { type: 'object', properties: {} } }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'List it.', cache_control: { type: 'ephemeral' } }] }],
    }
    const row = { upstream: 'gpt-5.4', protocol: undefined }
    const operation = createMessagesOperation(vendor, { ...call({}, { row, stream: true }), request } as never)
    const [wire] = operation!.requests

    expect(wire?.path).toBe('/v1/responses')
    expect(bodyOf(wire!.body)).toMatchObject({
      model: 'gpt-5.4',
      reasoning: { effort: 'high' },
      include: ['reasoning.encrypted_content'],
      tools: [{ type: 'function', name: 'Bash' }],
      max_output_tokens: 32_000,
      store: false,
      stream: true,
    })
    // OpenAI rejects it for organizations that it has not verified.
    expect(bodyOf(wire!.body)).not.toHaveProperty('reasoning.summary')
  })
})

describe('golden answers of Responses', () => {
  it.each(names('answers'))('are read as exactly this chat completion and usage: %s', (name) => {
    const fixture = read<AnswerFixture>(`answers/${name}.json`)

    expect(chat.fromWire(wireAnswer(fixture.answer), call(fixture.request))).toStrictEqual({
      completion: fixture.completion,
      usage: fixture.usage,
    })
  })

  it.each(names('answers'))('are equal to their streams: %s', (name) => {
    const { request, answer } = read<AnswerFixture>(`answers/${name}.json`)
    const whole = chat.fromWire(wireAnswer(answer), call(request))!
    const collector = new CompletionCollector()
    const decoder = chat.decoder(call(request, { stream: true }), collector)
    decoder.push(readFileSync(new URL(`streams/${name}.sse`, FIXTURES)))
    decoder.end()

    expect(decoder.usage).toEqual(whole.usage)
    expect(collector.completion(call(request), decoder.usage)).toStrictEqual(whole.completion)
  })

  it.each([
    ['no JSON', 'oops'],
    ['another object', { object: 'chat.completion', choices: [] }],
    ['no output', { object: 'response', status: 'completed' }],
    [
      'one that has failed',
      { object: 'response', status: 'failed', output: [], error: { code: 'server_error', message: 'x' } },
    ],
    ['one that is not made yet', { object: 'response', status: 'queued', output: [] }],
  ])('are none: %s', (_name, body) => {
    expect(chat.fromWire(wireAnswer(body), call({}))).toBeUndefined()
    expect(chat.brokenAnswer?.(wireAnswer(body), call({}))).toBeUndefined()
  })

  it('are none where one has failed, and its report is what the vendor bills', () => {
    const failed = {
      ...{ object: 'response', status: 'failed', output: [] },
      error: { code: 'server_error', message: 'The model failed.' },
      usage: { input_tokens: 8, output_tokens: 90, output_tokens_details: { reasoning_tokens: 90 } },
    }

    expect(chat.fromWire(wireAnswer(failed), call({}))).toBeUndefined()
    expect(chat.brokenAnswer?.(wireAnswer(failed), call({}))).toMatchObject({
      failure: { kind: 'unavailable', status: 200, code: 'server_error', message: 'The model failed.' },
      usage: { inputTokens: 8, outputTokens: 90, reasoningTokens: 90 },
    })
  })

  it.each([
    { object: 'response', status: 'cancelled', output: [], error: null },
    { object: 'response', status: 'completed', output: null, error: null },
  ])('are broken rather than failed without an error: %j', (body) => {
    const usage = { input_tokens: 8, output_tokens: 90 }

    expect(chat.fromWire(wireAnswer({ ...body, usage }), call({}))).toBeUndefined()
    expect(chat.brokenAnswer?.(wireAnswer({ ...body, usage }), call({}))).toMatchObject({
      failure: { kind: 'invalid_response', status: 200 },
      usage: { inputTokens: 8, outputTokens: 90 },
    })
  })
})

describe('golden streams of Responses', () => {
  const cases = names('streams').flatMap((name) => CUTS.map((cut) => [name, cut] as const))

  it.each(cases)('are read as exactly these calls: %s fed %s', (name, cut) => {
    const fixture = read<StreamFixture>(`streams/${name}.json`)
    const writer = recordingWriter()
    const decoder = chat.decoder(call(fixture.request, { stream: true }), writer)
    for (const chunk of cutBytes(readFileSync(new URL(`streams/${name}.sse`, FIXTURES)), cut)) decoder.push(chunk)
    decoder.end()

    expect(writer.calls).toEqual(fixture.calls)
    expect(decoder.isComplete).toBe(fixture.isComplete)
    expect(decoder.usage).toEqual(fixture.usage)
    expect(decoder.failure).toEqual(fixture.failure)
  })

  it.each(names('answers'))('are not whole when they end after any earlier event: %s', (name) => {
    const { calls = [] } = read<StreamFixture>(`streams/${name}.json`)
    const events = readFileSync(new URL(`streams/${name}.sse`, FIXTURES), 'utf8').split(/(?<=\n\n)/)
    for (let count = 0; count < events.length; count++) {
      const writer = recordingWriter()
      const decoder = chat.decoder(call({}, { stream: true }), writer)
      decoder.push(Buffer.from(events.slice(0, count).join('')))
      decoder.end()

      expect([decoder.isComplete, decoder.failure, decoder.usage]).toEqual([false, undefined, undefined])
      expect(writer.calls.map(([method]) => method)).toEqual(
        calls.slice(0, writer.calls.length).map((one) => (one as [string])[0]),
      )
      expect(writer.calls.map(([method]) => method)).not.toContain('finish')
    }
  })

  it('fail at an event that is not a JSON object', () => {
    const decoder = chat.decoder(call({}, { stream: true }), recordingWriter())
    decoder.push(Buffer.from('data: [1]\n\n'))

    expect(decoder.failure).toMatchObject({ kind: 'invalid_response' })
  })
})
