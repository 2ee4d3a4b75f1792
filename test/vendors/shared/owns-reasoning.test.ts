import { describe, expect, test } from 'vitest'
import { MessagesConversation } from '../../../src/endpoints/messages/messages-endpoint.ts'
import { carriedSignature, type MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { carriedReasoning } from '../../../src/vendors/shared/reasoning.ts'

const THINKING = { type: 'thinking', thinking: 'hm', signature: 'c2ln' }
const CALL = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }

function chat(...messages: unknown[]): { model: string; messages: unknown } {
  return { model: 'm', messages: [{ role: 'user', content: 'hi' }, ...messages] }
}

function messages(content: unknown): MessagesConversation {
  const request = { model: 'm', max_tokens: 9, messages: [{ role: 'assistant', content }] }
  return new MessagesConversation(request as unknown as MessagesRequest)
}

describe('a vendor knows the turns that only it can read', () => {
  test.each<[string, { model: string }, boolean, boolean]>([
    ['plain text', chat({ role: 'assistant', content: 'hello' }), false, false],
    ['signed thinking in a chat', chat({ role: 'assistant', content: 'x', thinking_blocks: [THINKING] }), true, false],
    [
      'thinking without a signature',
      chat({ role: 'assistant', thinking_blocks: [{ type: 'thinking' }] }),
      false,
      false,
    ],
    ['signed thinking in Messages', messages([THINKING, { type: 'text', text: 'x' }]), true, false],
    ['redacted thinking in Messages', messages([{ type: 'redacted_thinking', data: 'x' }]), true, false],
    ['state of another vendor in Messages', messages([{ ...THINKING, signature: 'signalbox:e30' }]), false, false],
    [
      'a signed call of a function',
      chat({ role: 'assistant', tool_calls: [{ ...CALL, extra_content: { google: { thought_signature: 's' } } }] }),
      false,
      true,
    ],
    [
      'a signed message',
      chat({ role: 'assistant', content: 'x', extra_content: { google: { thought_signature: 's' } } }),
      false,
      true,
    ],
    ['embeddings', { model: 'm' }, false, false],
  ])('%s', (_name, request, byAnthropic, byGemini) => {
    expect(anthropic().ownsReasoning?.(request, 'key')).toBe(byAnthropic)
    expect(gemini().ownsReasoning?.(request, 'key')).toBe(byGemini)
  })
})

test('a key knows the encrypted reasoning that was made with it', () => {
  const vendor = openai({ apiKey: ['one', 'two'] })
  const model = { upstream: 'gpt-5.4-pro' }
  const state = carriedReasoning([{ id: 'rs_1', encrypted_content: 'x' }], { apiKey: 'two', model })
  const onCall = chat({ role: 'assistant', tool_calls: [{ ...CALL, extra_content: state }] })
  const onMessage = chat({ role: 'assistant', content: 'x', extra_content: state })
  const inMessages = messages([
    { ...THINKING, signature: carriedSignature(state) },
    { type: 'tool_use', id: 'c', name: 'f', input: {} },
  ])

  for (const request of [onCall, onMessage, inMessages])
    expect(vendor.apiKeys.map((key) => vendor.ownsReasoning?.(request, key))).toEqual([false, true])
  expect(
    vendor.ownsReasoning?.(chat({ role: 'assistant', content: 'x', extra_content: { responses: 7 } }), 'two'),
  ).toBe(false)
  expect(JSON.stringify(state)).not.toMatch(/two|gpt/)
})

describe('keys of a vendor', () => {
  test('share the calls by their weights where any is given', () => {
    const vendor = anthropic({ apiKey: ['one', { key: 'two', weight: 3 }, ' '] })

    expect(vendor.apiKeys).toEqual(['one', 'two'])
    expect(vendor.keyWeights).toEqual([1, 3])
  })

  test('have no weights otherwise', () => {
    expect(anthropic({ apiKey: ['one', 'two'] })).not.toHaveProperty('keyWeights')
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('cannot weigh %s', (weight) => {
    expect(() => gemini({ apiKey: [{ key: 'one', weight }] })).toThrow(TypeError)
  })
})
