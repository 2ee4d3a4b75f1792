import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { chatEndpoint } from '../../../src/endpoints/chat/chat-endpoint.ts'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { CHAT_FIELDS } from '../../../src/vendors/gemini/chat-to-wire.ts'
import { chatCall, sentBody, vendor } from './gemini-call.ts'

interface GoldenRequest {
  readonly model: string
  readonly request: ChatRequest
  readonly expected: Record<string, unknown>
  readonly dropped: string[]
}

const REQUESTS = new URL('./fixtures/requests/', import.meta.url)

describe('golden requests', () => {
  test.each(readdirSync(REQUESTS))('%s goes out exactly as recorded, with what was left out named', (file) => {
    const golden = JSON.parse(readFileSync(new URL(file, REQUESTS), 'utf8')) as GoldenRequest
    const call = chatCall(golden.request, { upstream: golden.model })

    const sent = vendor.chat?.toWire(call)

    expect(JSON.parse(String(sent?.body))).toEqual(golden.expected)
    expect([...(sent?.dropped ?? [])].sort()).toEqual([...golden.dropped].sort())
  })
})

describe('the request around the body', () => {
  test('puts the key in a header, never in the path, and asks for no compression', () => {
    const sent = vendor.chat?.toWire(chatCall())

    expect(sent?.path).toBe('/v1beta/models/gemini-2.5-flash:generateContent')
    expect(sent?.headers).toEqual([
      'x-goog-api-key',
      'test-key-0001',
      'content-type',
      'application/json',
      'accept',
      'application/json',
      'accept-encoding',
      'identity',
    ])
  })

  test('streams as server-sent events', () => {
    const sent = vendor.chat?.toWire(chatCall({}, { stream: true }))

    expect(sent?.path).toBe('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
    expect(sent?.headers).toContain('text/event-stream')
  })

  test('keeps a model id from reaching another path', () => {
    const sent = vendor.chat?.toWire(chatCall({}, { upstream: 'models/a b?key=1' }))

    expect(sent?.path).toBe('/v1beta/models/a%20b%3Fkey%3D1:generateContent')
  })

  test('never writes to the request', () => {
    const golden = JSON.parse(readFileSync(new URL('lost-signatures.json', REQUESTS), 'utf8')) as GoldenRequest
    const before = structuredClone(golden.request)

    vendor.chat?.toWire(chatCall(golden.request, { upstream: golden.model }))

    expect(golden.request).toEqual(before)
  })
})

describe('images by URL', () => {
  const picture = (url: string) =>
    ({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    }) satisfies Partial<ChatRequest>

  test.each([
    ['gemini-2.0-flash', 'https://pictures.example/a.png', true],
    ['gemini-1.5-pro', 'http://pictures.example/a.png', true],
    ['gemma-3-27b-it', 'https://pictures.example/a.png', true],
    ['gemini-2.0-flash', 'data:image/png;base64,aGk=', false],
    ['gemini-2.5-flash', 'https://pictures.example/a.png', false],
    ['gemini-3.1-pro', 'https://pictures.example/a.png', false],
    ['gemini-of-tomorrow', 'https://pictures.example/a.png', false],
  ])('%s with %s: fetched by the gateway is %s', (upstream, url, expected) => {
    const { model, request } = chatCall(picture(url), { upstream })
    const media = vendor.chat && chatEndpoint.remoteMedia?.(request, { chat: vendor.chat }, model)

    expect(media !== undefined).toBe(expected)
  })
})

describe('requests that cannot be translated are refused by name', () => {
  const userContent = (part: object) => ({ messages: [{ role: 'user', content: [part] }] }) as Partial<ChatRequest>

  test.each<[string, Partial<ChatRequest>, string]>([
    ['more than eight answers', { n: 9 }, 'n'],
    ['a tool that is no function', { tools: [{ type: 'web_search' } as never] }, 'tools[0].type'],
    ['a function without a name', { tools: [{ type: 'function' } as never] }, 'tools[0].function.name'],
    [
      'a choice of a custom tool',
      { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: { type: 'custom' } as never },
      'tool_choice',
    ],
    ['audio answers', { modalities: ['text', 'audio'] }, 'modalities'],
    ['legacy functions', { functions: [{ name: 'f' }] }, 'functions'],
    ['an unknown answer format', { response_format: { type: 'grammar' } as never }, 'response_format.type'],
    ['an unknown part', userContent({ type: 'video_url' }), 'messages[0].content[0]'],
    ['a file by id', userContent({ type: 'file', file: { file_id: 'file-1' } }), 'messages[0].content[0].file.file_id'],
    [
      'a picture that is no URL',
      userContent({ type: 'image_url', image_url: { url: 'aGk=' } }),
      'messages[0].content[0].image_url.url',
    ],
    ...[
      'https://generativelanguage.googleapis.com/v1beta/files/abc',
      'http://GenerativeLanguage.googleapis.com./v1/x',
    ].map((url): [string, Partial<ChatRequest>, string] => [
      `a picture that is kept at the vendor, whose owner is not known: ${url}`,
      userContent({ type: 'image_url', image_url: { url } }),
      'messages[0].content[0].image_url.url',
    ]),
    [
      'a file that is kept at the vendor',
      userContent({ type: 'file', file: { file_url: 'https://generativelanguage.googleapis.com/v1beta/files/abc' } }),
      'messages[0].content[0].file.file_url',
    ],
    [
      'a data URL without base64',
      userContent({ type: 'image_url', image_url: { url: 'data:image/png,abc' } }),
      'messages[0].content[0].image_url.url',
    ],
    [
      'audio without a format',
      userContent({ type: 'input_audio', input_audio: { data: 'aGk=' } }),
      'messages[0].content[0].input_audio',
    ],
    [
      'a result that answers no call',
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'tool', tool_call_id: 'gone', content: 'y' },
        ],
      },
      'messages[1].tool_call_id',
    ],
    [
      'a call that is of no function',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', type: 'custom' } as never] }] },
      'messages[0].tool_calls[0]',
    ],
  ])('%s', (_case, fields, param) => {
    expect(() => vendor.chat?.toWire(chatCall(fields))).toThrow(expect.objectContaining({ status: 400, param }))
  })

  test('harmless values of refused fields pass', () => {
    expect(
      vendor.chat?.toWire(chatCall({ modalities: ['text'], functions: [], function_call: 'auto' })).dropped,
    ).toEqual([])
  })
})

describe('tool_choice', () => {
  const tools = ['read', 'write'].map((name) => ({ type: 'function' as const, function: { name } }))
  const allowed = (mode: 'auto' | 'required') => ({
    type: 'allowed_tools' as const,
    allowed_tools: { mode, tools: [{ type: 'function', function: { name: 'read' } }] },
  })

  test.each<[string, ChatRequest['tool_choice'], object | undefined, string[]]>([
    ['absent', undefined, undefined, ['read', 'write']],
    ['auto', 'auto', { mode: 'AUTO' }, ['read', 'write']],
    ['none', 'none', { mode: 'NONE' }, ['read', 'write']],
    ['required', 'required', { mode: 'ANY' }, ['read', 'write']],
    [
      'one function',
      { type: 'function', function: { name: 'write' } },
      { mode: 'ANY', allowedFunctionNames: ['write'] },
      ['read', 'write'],
    ],
    ['allowed tools', allowed('auto'), { mode: 'AUTO' }, ['read']],
    ['allowed tools, one required', allowed('required'), { mode: 'ANY' }, ['read']],
  ])('%s', (_case, choice, config, names) => {
    const body = sentBody(chatCall({ tools, ...(choice === undefined ? {} : { tool_choice: choice }) }))

    expect(body['toolConfig']).toEqual(config === undefined ? undefined : { functionCallingConfig: config })
    expect(body['tools']).toEqual([{ functionDeclarations: names.map((name) => ({ name })) }])
  })

  test('strict functions are validated by the vendor where it can', () => {
    const strict = [{ type: 'function' as const, function: { name: 'read', strict: true } }]

    expect(sentBody(chatCall({ tools: strict }))['toolConfig']).toEqual({
      functionCallingConfig: { mode: 'VALIDATED' },
    })
    expect(sentBody(chatCall({ tools: strict }, { upstream: 'gemini-2.0-flash' }))['toolConfig']).toBeUndefined()
  })

  test('rejects allowed tools if none of them is offered', () => {
    const others = [{ type: 'function' as const, function: { name: 'other' } }]

    expect(() => sentBody(chatCall({ tools: others, tool_choice: allowed('auto') }))).toThrow(
      expect.objectContaining({ status: 400, param: 'tool_choice' }),
    )
  })
})

/** A value for each field with an effect that this vendor does not have by default. */
const TELLING_VALUES: Record<keyof typeof CHAT_FIELDS, unknown> = {
  model: 'gmn-other',
  messages: [{ role: 'user', content: 'Other words' }],
  temperature: 0.3,
  top_p: 0.3,
  max_tokens: 12,
  max_completion_tokens: 12,
  n: 2,
  stream: true,
  stream_options: { include_usage: true },
  stop: 'END',
  presence_penalty: 0.3,
  frequency_penalty: 0.3,
  logit_bias: { '1': 2 },
  logprobs: true,
  top_logprobs: 2,
  seed: 5,
  tools: [{ type: 'function', function: { name: 'f' } }],
  tool_choice: 'required',
  parallel_tool_calls: false,
  response_format: { type: 'json_object' },
  reasoning_effort: 'high',
  user: 'user-1',
  audio: { voice: 'x', format: 'wav' },
  function_call: { name: 'f' },
  functions: [{ name: 'f' }],
  metadata: { a: 'b' },
  modalities: ['audio'],
  prediction: { type: 'content', content: 'x' },
  prompt_cache_key: 'k',
  prompt_cache_retention: '24h',
  safety_identifier: 's',
  moderation: {},
  prompt_cache_options: {},
  service_tier: 'flex',
  store: true,
  verbosity: 'low',
  web_search_options: {},
}

/** Fields that the gateway itself handles, so that the vendor's body contains none of them. */
const SERVED_BY_GATEWAY = new Set(['model', 'stream', 'stream_options'])

/** Fields that only have a meaning together with another field. */
const COMPANIONS: Record<string, Partial<ChatRequest>> = {
  top_logprobs: { logprobs: true },
  tool_choice: { tools: [{ type: 'function', function: { name: 'f' } }] },
}

/** 2.0 still reads every setting except effort, which 2.5 has. */
function modelFor(field: string): string {
  return field === 'reasoning_effort' ? 'gemini-2.5-flash' : 'gemini-2.0-flash'
}

test('marks for a cache are named, because they are not sent', () => {
  const text = { type: 'text' as const, text: 'Hello' }
  const marked = { ...text, cache_control: { type: 'ephemeral' } }
  const broken = { ...text, prompt_cache_breakpoint: { mode: 'explicit' } }
  const tool = { type: 'function' as const, function: { name: 'look' }, cache_control: { type: 'ephemeral' } }

  const dropped = (fields: Partial<ChatRequest>) => vendor.chat?.toWire(chatCall(fields)).dropped

  expect(dropped({ messages: [{ role: 'user', content: [marked, text] }] })).toEqual(['cache_control'])
  expect(dropped({ messages: [{ role: 'user', content: [broken] }] })).toEqual(['prompt_cache_breakpoint'])
  expect(dropped({ tools: [tool] })).toEqual(['cache_control'])
})

describe('every field of a chat request is mapped, refused, or dropped by name', () => {
  test.each(Object.entries(CHAT_FIELDS))('%s is %s', (field, rule) => {
    const upstream = modelFor(field)
    const companions = COMPANIONS[field] ?? {}
    const value = TELLING_VALUES[field as keyof typeof CHAT_FIELDS]
    const call = chatCall({ ...companions, [field]: value }, { upstream })
    const without = sentBody(chatCall(companions, { upstream }))

    if (rule === 'refused') {
      expect(() => vendor.chat?.toWire(call)).toThrow(
        expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: field }),
      )
    } else if (rule === 'dropped') {
      expect(vendor.chat?.toWire(call).dropped).toEqual([field])
      expect(sentBody(call)).toEqual(without)
    } else {
      expect(vendor.chat?.toWire(call).dropped).toEqual([])
      if (SERVED_BY_GATEWAY.has(field)) expect(sentBody(call)).toEqual(without)
      else expect(sentBody(call)).not.toEqual(without)
    }
  })

  test.each(Object.keys(CHAT_FIELDS).filter((field) => field !== 'messages' && field !== 'model'))(
    '%s set to null asks for nothing',
    (field) => {
      const call = chatCall({ [field]: null })

      expect(sentBody(call)).toEqual(sentBody(chatCall()))
      expect(vendor.chat?.toWire(call).dropped).toEqual([])
    },
  )

  test('values that change nothing are left out without being named', () => {
    const neutral = { temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, logprobs: false }
    const others = { top_logprobs: 0, logit_bias: {}, parallel_tool_calls: true, store: false, metadata: {} }
    const sent = ['gemini-3.1-pro', 'gemini-3.6-flash'].map((upstream) =>
      vendor.chat?.toWire(chatCall({ ...neutral, ...others }, { upstream })),
    )

    expect(sent.map((wire) => wire?.dropped)).toEqual([[], []])
  })

  test.each<[ChatRequest['tool_choice'], string[]]>([
    ['auto', []],
    ['none', []],
    ['required', ['tool_choice']],
  ])('the choice %s without tools is not sent, and named where it would force a call', (choice, dropped) => {
    const call = chatCall({ tools: [], tool_choice: choice! })

    expect(vendor.chat?.toWire(call).dropped).toEqual(dropped)
    expect(sentBody(call)).not.toHaveProperty('toolConfig')
  })

  test('log probabilities of a stream are reported as left out', () => {
    const sent = vendor.chat?.toWire(chatCall({ logprobs: true, top_logprobs: 3 }, { stream: true }))

    expect(sent?.dropped).toEqual(['logprobs', 'top_logprobs'])
    expect(JSON.parse(String(sent?.body))).not.toHaveProperty('generationConfig')
  })

  test.each(['gemini-2.5-flash', 'gemini-3.1-pro'])('penalties are reported on %s, which refuses them', (upstream) => {
    const call = chatCall({ presence_penalty: 1, frequency_penalty: 1 }, { upstream })

    expect(vendor.chat?.toWire(call).dropped).toEqual(['presence_penalty', 'frequency_penalty'])
    expect(sentBody(call)).not.toHaveProperty('generationConfig')
  })
})
