import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import { carriedSignature, type MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { anthropic, anthropicBedrock } from '../../../src/vendors/anthropic/anthropic.ts'
import { anthropicVertex } from '../../../src/vendors/anthropic/anthropic-vertex.ts'
import type { MessagesOperation, VendorCall } from '../../../src/vendors/vendor.ts'

const KEY = 'sk-ant-canary-0123456789'

function operation(version?: string): MessagesOperation {
  const { messages } = anthropic({ apiKey: KEY, ...(version === undefined ? {} : { version }) })
  if (messages === undefined) throw new Error('the vendor does not speak the dialect')
  return messages
}

function callOf(text: string, headers: Record<string, string> = {}): VendorCall<MessagesRequest> {
  const request = JSON.parse(text) as MessagesRequest
  return {
    request,
    bytes: Buffer.from(text),
    model: defineModel({ id: 'cl-test', kind: 'chat', vendor: 'anthropic', upstream: 'claude-test' }),
    publicModel: request.model,
    apiKey: KEY,
    stream: request.stream === true,
    nowMs: 0,
    header: (name) => headers[name],
  }
}

const HEAD = '"max_tokens": 10,\n "messages": [{"role":"user","content":"née 日本 model: \\"cl-test\\""}]'

describe('a request', () => {
  test('is sent with only the value of model changed, whatever else it contains', () => {
    const text = `{ "unheard_of": {"model":"cl-test"}, ${HEAD},\n "n": 1.0, "model" : "cl-test" }\n`

    const { body, dropped } = operation().toWire(callOf(text))

    expect(Buffer.from(body as Uint8Array).toString('utf8')).toBe(
      text.replace('"model" : "cl-test"', '"model" : "claude-test"'),
    )
    expect(dropped).toEqual([])
  })

  test('is written again when its model cannot be replaced in place', () => {
    const text = `{"m\\u006fdel":"cl-test",${HEAD}}`

    const { body } = operation().toWire(callOf(text))

    expect(JSON.parse(String(body))).toEqual({ ...JSON.parse(text), model: 'claude-test' })
  })

  test.each(['2023-06-01', '2026-10-21', '2031-01-01'])('passes the version %s and the beta features on', (version) => {
    const headers = { 'anthropic-version': version, 'anthropic-beta': 'a-2025-01-01, b-2025-01-01' }

    const wire = operation().toWire(callOf(`{"model":"cl-test",${HEAD}}`, headers))

    expect(headersOf(wire.headers)).toEqual({
      'x-api-key': KEY,
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json',
      'accept-encoding': 'identity',
    })
    expect(wire.path).toBe('/v1/messages')
  })

  test('without a version gets the one of the options', () => {
    const wire = operation('2026-10-21').toWire(callOf(`{"model":"cl-test",${HEAD}}`, { 'anthropic-beta': ' ' }))

    expect(headersOf(wire.headers)).toMatchObject({ 'anthropic-version': '2026-10-21' })
    expect(wire.headers).not.toContain('anthropic-beta')
  })

  test('sets no other header of the vendor', () => {
    const headers = {
      'anthropic-workspace-id': 'wrkspc_1',
      'x-api-key': 'sk-caller',
      authorization: 'Bearer sk-caller',
    }

    const wire = operation().toWire(callOf(`{"model":"cl-test",${HEAD}}`, headers))

    expect(wire.headers.join(' ')).not.toMatch(/wrkspc_1|sk-caller/)
  })

  test('is rejected if a header has an invalid value', () => {
    expect(() => operation().toWire(callOf(`{"model":"cl-test",${HEAD}}`, { 'anthropic-beta': 'a\r\nb' }))).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    )
  })

  test('is sent to its own path to count tokens', () => {
    const wire = operation().tokenCount.toWire(callOf('{"model":"cl-test","messages":[{"role":"user","content":"A"}]}'))

    expect(wire.path).toBe('/v1/messages/count_tokens')
    expect(JSON.parse(Buffer.from(wire.body as Uint8Array).toString('utf8'))).toHaveProperty('model', 'claude-test')
  })
})

describe("thinking blocks that carry another vendor's state", () => {
  const carried = { type: 'thinking', thinking: 'Hm.', signature: carriedSignature() }
  const own = { type: 'thinking', thinking: 'Ah.', signature: 'EqQBCkgIBxABGAI' }
  const text = { type: 'text', text: 'Hello' }
  const sent = (content: unknown[]): { messages: unknown; dropped: readonly string[] } => {
    const messages = [
      { role: 'user', content: 'A' },
      { role: 'assistant', content },
      { role: 'user', content: 'B' },
    ]
    const wire = operation().toWire(callOf(JSON.stringify({ model: 'cl-test', max_tokens: 1, messages })))
    const body = typeof wire.body === 'string' ? wire.body : Buffer.from(wire.body as Uint8Array).toString('utf8')
    return { messages: (JSON.parse(body) as MessagesRequest).messages, dropped: wire.dropped }
  }

  test('stay behind, and the others go', () => {
    const { messages, dropped } = sent([carried, own, text])

    expect(messages).toMatchObject([{ role: 'user' }, { content: [own, text] }, { role: 'user' }])
    expect(dropped).toEqual(['messages.thinking'])
  })

  test('take a turn with them that holds nothing else', () => {
    expect(sent([carried]).messages).toMatchObject([{ content: 'A' }, { content: 'B' }])
  })

  test('are not looked for in what people write', () => {
    expect(sent([{ type: 'text', text: 'signalbox: is a word' }]).dropped).toEqual([])
  })
})

describe('a whole answer', () => {
  const answer = `{ "id":"msg_1","type":"message","role":"assistant", "model": "claude-test-20260101","content":[{"type":"text","text":"\\"model\\":\\"x\\" 日本"}],
  "stop_reason":"end_turn","diagnostics":null,"usage":{"input_tokens":41,"cache_creation_input_tokens":8,"cache_read_input_tokens":2048,"output_tokens":63,"output_tokens_details":{"thinking_tokens":0}} }`

  test('comes back with nothing changed but its model, and with all input counted once', () => {
    const call = callOf(`{"model":"cl-test",${HEAD}}`)
    const body = operation().fromWire(cutInThree(answer), call)

    expect(Buffer.concat(body?.chunks ?? []).toString('utf8')).toBe(
      answer.replace('"claude-test-20260101"', '"cl-test"'),
    )
    expect(body?.usage).toEqual({
      inputTokens: 2097,
      cachedInputTokens: 2048,
      cacheWriteTokens: 8,
      outputTokens: 63,
      reasoningTokens: 0,
    })
  })

  test.each(['', 'null', '{"type":"error","error":{}}', '{"type":"message"}', '<html>'])('rejects %j', (text) => {
    expect(operation().fromWire([Buffer.from(text)], callOf(`{"model":"cl-test",${HEAD}}`))).toBeUndefined()
  })

  test('a count passes as it is, unknown members included', () => {
    const text = '{"input_tokens": 2095, "context_management": {"original_input_tokens": 3000}}'

    const body = operation().tokenCount.fromWire([Buffer.from(text)], callOf(`{"model":"cl-test",${HEAD}}`))

    expect(Buffer.concat(body?.chunks ?? []).toString('utf8')).toBe(text)
    expect(operation().tokenCount.fromWire([Buffer.from('{}')], callOf(`{"model":"cl-test",${HEAD}}`))).toBeUndefined()
  })
})

function headersOf(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [])))
}

function cutInThree(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  return [bytes.subarray(0, 7), bytes.subarray(7, 160), bytes.subarray(160)]
}

test.each([
  ['Bedrock', anthropicBedrock({ apiKey: KEY, region: 'us-east-1' })],
  ['Vertex AI', anthropicVertex({ project: 'our-project', location: 'global', apiKey: () => ({ token: KEY }) })],
])('replaces ids of calls that other vendors gave at %s', (_host, { messages }) => {
  const text = JSON.stringify({
    model: 'cl-test',
    max_tokens: 10,
    messages: [
      { role: 'user', content: 'list' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'functions.list:0', name: 'list', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'functions.list:0', content: 'a' }] },
    ],
  })

  const body = String(messages?.toWire(callOf(text)).body)
  expect(JSON.parse(body)).toMatchObject({
    messages: [{}, { content: [{ id: 'functions_list_0' }] }, { content: [{ tool_use_id: 'functions_list_0' }] }],
  })
})
