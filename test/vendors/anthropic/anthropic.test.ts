import { describe, expect, it } from 'vitest'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { chatCall, chatOperation } from './chat-call.ts'

describe('anthropic', () => {
  it('is not configured without a key, or with a blank one', () => {
    expect(anthropic().apiKeys).toEqual([])
    expect(anthropic({ apiKey: ' ' }).apiKeys).toEqual([])
  })

  it('takes one key or several', () => {
    expect(anthropic({ apiKey: 'key-a' }).apiKeys).toEqual(['key-a'])
    expect(anthropic({ apiKey: ['key-a', '', 'key-b'] }).apiKeys).toEqual(['key-a', 'key-b'])
  })

  it.each([
    [undefined, 'https://api.anthropic.com', '/v1/messages'],
    ['http://127.0.0.1:9100', 'http://127.0.0.1:9100', '/v1/messages'],
    ['https://models.example/v1', 'https://models.example', '/v1/messages'],
    ['https://models.example/claude/', 'https://models.example', '/claude/v1/messages'],
  ])('reaches the base URL %s at its origin and the Messages path', (baseURL, origin, path) => {
    const vendor = anthropic({ apiKey: 'key-a', baseURL })

    expect(vendor.origin).toBe(origin)
    expect(vendor.chat?.toWire(chatCall({})).path).toBe(path)
  })

  it('sends the key, the version and the content type, and asks for an uncompressed answer', () => {
    const { headers } = chatOperation().toWire(chatCall({}))

    expect(headers).toEqual([
      'x-api-key',
      'sk-ant-canary-0123456789',
      'anthropic-version',
      '2023-06-01',
      'content-type',
      'application/json',
      'accept',
      'application/json',
      'accept-encoding',
      'identity',
    ])
  })

  it('asks for events and sets stream when the call streams', () => {
    const wire = chatOperation().toWire(chatCall({}, { stream: true }))

    expect(wire.headers).toContain('text/event-stream')
    expect(JSON.parse(String(wire.body))).toMatchObject({ stream: true })
  })

  it('sends the version it was given', () => {
    const wire = chatOperation({ apiKey: 'key-a', version: '2026-10-21' }).toWire(chatCall({}))

    expect(wire.headers).toContain('2026-10-21')
  })

  it('never writes to the request', () => {
    const call = chatCall({
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
        { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      ],
      tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: { properties: {} } } }],
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
    })
    const before = structuredClone(call.request)

    chatOperation().toWire(call)

    expect(call.request).toStrictEqual(before)
  })
})
