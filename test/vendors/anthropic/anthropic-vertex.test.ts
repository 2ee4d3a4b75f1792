import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { type AnthropicVertexOptions, anthropicVertex } from '../../../src/vendors/anthropic/anthropic.ts'
import { modelAbilities } from '../../../src/vendors/shared/messages-abilities.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { NOW_MS, textOf, wireAnswer } from '../shared/vendor-call.ts'
import { chatCall, type LooseRequest } from './chat-call.ts'

const PLACE = { project: 'our-project', location: 'global', apiKey: () => ({ token: 'any' }) }
const vendor = anthropicVertex(PLACE)

interface GoldenRequest {
  readonly model: string
  readonly stream?: boolean
  readonly request: LooseRequest
  readonly path: string
  readonly expected: Record<string, unknown>
  readonly dropped: readonly string[]
  readonly promptTokens?: number
}

const REQUESTS = new URL('./fixtures/vertex/', import.meta.url)

describe('golden requests of Claude on Vertex AI', () => {
  test.each(readdirSync(REQUESTS))('%s goes out exactly as recorded, with what was left out named', (file) => {
    const golden = JSON.parse(readFileSync(new URL(file, REQUESTS), 'utf8')) as GoldenRequest
    const { promptTokens } = golden
    const call = chatCall(golden.request, { upstream: golden.model, stream: golden.stream === true, promptTokens })

    const sent = vendor.chat!.toWire({ ...call, apiKey: '' })

    expect(sent.path).toBe(golden.path)
    expect(JSON.parse(String(sent.body))).toEqual(golden.expected)
    expect(sent.dropped).toEqual(golden.dropped)
    expect(sent.headers.filter((_, place) => place % 2 === 0)).toEqual(['content-type', 'accept', 'accept-encoding'])
  })
})

/** A Messages call with these bytes. */
function messagesCall(text: string, headers: Record<string, string> = {}): VendorCall<MessagesRequest> {
  const request = JSON.parse(text) as MessagesRequest
  return {
    request,
    bytes: Buffer.from(text),
    model: defineModel({ id: 'public', kind: 'chat', vendor: 'anthropic-vertex', upstream: 'claude-opus-4-6' }),
    publicModel: 'public',
    apiKey: '',
    stream: request.stream === true,
    nowMs: NOW_MS,
    header: (name) => headers[name],
  }
}

describe('Messages', () => {
  test('keep every byte of the caller but for the model, the version and what is not taken', () => {
    const text =
      '{ "model":"public",\n "max_tokens": 1e2, "service_tier":"auto", "messages":[{"role":"user","content":"\\u00e9 1.0"}] }'
    const sent = vendor.messages!.toWire(messagesCall(text))

    expect(textOf([sent.body])).toBe(
      '{"anthropic_version":"vertex-2023-10-16", "max_tokens": 1e2, "messages":[{"role":"user","content":"\\u00e9 1.0"}] }',
    )
    expect(sent.dropped).toEqual(['service_tier'])
  })

  test.each([
    ['{"model":"public","max_tokens":5,"anthropic_version":"other","messages":[]}'],
    ['{"max_tokens":5,"messages":[],"model":"public"}'],
    ['{"max_tokens":5,"messages":[],"mo\\u0064el":"public"}'],
  ])('%s names its version once and no model', (text) => {
    const sent = vendor.messages!.toWire(messagesCall(text))

    expect(JSON.parse(textOf([sent.body]))).toEqual({
      anthropic_version: 'vertex-2023-10-16',
      max_tokens: 5,
      messages: [],
    })
    expect(textOf([sent.body]).match(/anthropic_version/g)).toHaveLength(1)
  })

  test('lose what is refused inside of them, but nothing that is the caller’s own', () => {
    const request = {
      model: 'public',
      max_tokens: 5,
      system: [{ type: 'text', text: '"scope"', cache_control: { type: 'ephemeral', scope: 'global', ttl: '1h' } }],
      tools: [
        {
          name: 'grant',
          eager_input_streaming: true,
          input_schema: { type: 'object', properties: { scope: { type: 'string' } } },
        },
      ],
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'grant', input: { scope: 'all' } }] },
      ],
    }
    const sent = vendor.messages!.toWire(messagesCall(JSON.stringify(request)))
    const body = JSON.parse(textOf([sent.body])) as typeof request

    expect(body.system[0]?.cache_control).toEqual({ type: 'ephemeral', ttl: '1h' })
    expect(body.tools[0]).toEqual({ name: 'grant', input_schema: request.tools[0]?.input_schema })
    expect(body.messages).toEqual(request.messages)
    expect(sent.dropped).toEqual(['cache_control.scope', 'tools.eager_input_streaming'])
  })

  test('have the betas of the cloud, by its names', () => {
    const headers = {
      'anthropic-beta': 'advanced-tool-use-2025-11-20, effort-2025-11-24,compact-2026-01-12,,made-up-2030-01-01',
    }
    const sent = vendor.messages!.toWire(messagesCall('{"model":"public","max_tokens":1,"messages":[]}', headers))

    const place = sent.headers.indexOf('anthropic-beta')
    expect(sent.headers[place + 1]).toBe('tool-search-tool-2025-10-19,compact-2026-01-12')
    expect(sent.dropped).toEqual(['anthropic-beta'])
  })

  test('need no price for what never reaches the cloud', () => {
    const { extraFeatures } = vendor.messages!
    const request = { model: 'm', messages: [], betas: ['made-up-2030-01-01'], fallbacks: [{ model: 'x' }] }
    const header = () => 'made-up-2030-01-01'

    expect(extraFeatures?.(request, header)).toEqual([])
    expect(extraFeatures?.({ ...request, tools: [{ type: 'new_tool_20300101' }] }, header)).toEqual([
      { field: 'server_tool', value: 'new_tool_20300101', param: 'tools[0].type' },
    ])
    expect(vendor.messages?.leavesOut).toEqual(new Set(['speed', 'inference_geo']))
  })
})

const STREAM = [
  'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_vrtx_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}\n\n',
  'event: vertex_event\ndata: {"type":"vertex_event","usage":{"input_tokens":9,"output_tokens":1}}\n\n',
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}\n\n',
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  'event: vertex_event\ndata: {"type":"vertex_event"}\n\n',
]

test.each(CUTS)('a stream fed %s passes without the events of the cloud', (cut) => {
  const reader = vendor.messages!.stream!(messagesCall('{"model":"public","max_tokens":9,"messages":[],"stream":true}'))
  const given = cutBytes(Buffer.from(STREAM.join('')), cut).map((chunk) => reader.push(chunk) as Uint8Array | undefined)
  const text = textOf([...given, reader.end() as Uint8Array | undefined])

  expect(text).toBe(
    STREAM.filter((event) => !event.includes('vertex_event'))
      .join('')
      .replace('"model":"claude-opus-4-6"', '"model":"public"'),
  )
  expect(reader).toMatchObject({ isComplete: true, failure: undefined, usage: { inputTokens: 9, outputTokens: 4 } })
})

describe('the vendor', () => {
  test.each<[Partial<AnthropicVertexOptions>, RegExp]>([
    [{ location: undefined as never }, /^anthropicVertex: set location \(GOOGLE_CLOUD_LOCATION\)/],
    [{ project: undefined as never }, /^anthropicVertex: set project \(GOOGLE_CLOUD_PROJECT\)/],
    [
      { project: undefined as never, location: undefined as never, apiKey: 'a-key' },
      /set project.*set location|set project/,
    ],
    [{ location: 'mars' }, /must be global, us, eu, or a region such as europe-west4: "mars"/],
    [{ version: 'x' } as never, /version is unknown; known: id/],
  ])('says what to set: %j', (options, message) => {
    expect(() => anthropicVertex({ ...PLACE, ...options })).toThrow(message)
  })

  test('knows a model by its id with a date or without', () => {
    expect(modelAbilities('claude-haiku-4-5@20251001')).toBe(modelAbilities('claude-haiku-4-5'))
    expect(modelAbilities('claude-opus-4-6@default')).toBe(modelAbilities('claude-opus-4-6'))
  })

  test('has list prices for the global location, and for models with one price everywhere', () => {
    const regional = anthropicVertex({ ...PLACE, location: 'europe-west1' })

    expect(vendor.catalogIds?.('claude-opus-4-6')).toEqual(['claude-opus-4-6'])
    expect(regional.catalogIds?.('claude-opus-4-6')).toEqual(['', 'claude-opus-4-6'])
    expect(regional.catalogIds?.('claude-opus-4-1@20250805')).toEqual(['claude-opus-4-1@20250805'])
    expect(vendor.catalogIds?.('gemini-2.5-pro')).toEqual([])
  })

  test.each([
    [
      400,
      {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'max_tokens: too large' },
        request_id: 'req_vrtx_1',
      },
      { kind: 'caller', message: 'max_tokens: too large' },
    ],
    [529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, { kind: 'unavailable' }],
    [
      429,
      [
        {
          error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Quota exceeded for aiplatform.googleapis.com/x' },
        },
      ],
      { kind: 'rate_limited', retryAfterSeconds: 3 },
    ],
    [
      404,
      { error: { code: 404, status: 'NOT_FOUND', message: 'Publisher Model `x` was not found' } },
      { kind: 'operator', message: expect.stringContaining('GOOGLE_CLOUD_LOCATION') },
    ],
    [
      403,
      { error: { code: 403, status: 'PERMISSION_DENIED', message: 'no' } },
      { kind: 'operator', concerns: 'key', message: expect.stringContaining('aiplatform.user') },
    ],
    [401, 'Unauthorized', { kind: 'operator', message: expect.stringContaining('GOOGLE_APPLICATION_CREDENTIALS') }],
  ])('reads %i %j', (status, body, expected) => {
    expect(vendor.errorFrom(wireAnswer(body, status, { 'retry-after': '3' }), NOW_MS)).toMatchObject({
      status,
      ...expected,
    })
  })
})
