import { describe, expect, test } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import { createMessagesOperation } from '../../../src/endpoints/messages/messages-operation.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { openai, takesBreakpoints } from '../../../src/vendors/openai/openai.ts'
import { NOW_MS } from '../shared/vendor-call.ts'

const vendor = openai({ apiKey: 'key-0123456789' })
const control = { cache_control: { type: 'ephemeral' } }

/** Returns the translation of a Messages request. */
function sent(request: object, upstream: string, protocol?: string) {
  const model = defineModel({ id: 'm', kind: 'chat', vendor: 'openai', upstream, ...(protocol ? { protocol } : {}) })
  const call = { bytes: undefined, model, publicModel: 'm', apiKey: 'key-0123456789', stream: false, nowMs: NOW_MS }
  const body = { model: 'm', max_tokens: 100, ...request } as MessagesRequest
  const [wire] = createMessagesOperation({ chat: vendor.chat! }, { ...call, request: body })!.requests
  return { body: JSON.parse(String(wire!.body)) as Record<string, unknown>, dropped: wire!.dropped }
}

const text = (value: string, mark = {}): object => ({ type: 'text', text: value, ...mark })
const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } }

describe('marks of Messages at a model of OpenAI', () => {
  test('become breakpoints, the last three of them, from GPT-5.6 on', () => {
    const { body, dropped } = sent(
      {
        system: [text('one', control), text('two', control)],
        messages: [{ role: 'user', content: [text('three', control), text('four'), text('five', control)] }],
        tools: [{ name: 'look', input_schema: { type: 'object' }, ...control }],
        thinking: { type: 'disabled' },
      },
      'gpt-5.6',
    )

    expect(body['messages']).toEqual([
      { role: 'system', content: [text('one'), text('two', breakpoint)] },
      { role: 'user', content: [text('three', breakpoint), text('four'), text('five', breakpoint)] },
    ])
    expect(JSON.stringify(body)).not.toContain('cache_control')
    expect([...dropped].sort()).toEqual(['cache_control', 'tools.cache_control'])
  })

  test.each([
    ['gpt-5.6', undefined],
    ['gpt-5.6-pro', 'responses'],
  ])('become breakpoints where the chat is sent as Responses: %s', (upstream, protocol) => {
    const result = { type: 'tool_result', tool_use_id: 'a', content: [text('found', control)] }
    const { body, dropped } = sent(
      {
        system: [text('one', control)],
        messages: [
          { role: 'user', content: [text('two', control)] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] },
          { role: 'user', content: [result] },
        ],
        tools: [{ name: 'look', input_schema: { type: 'object' } }],
      },
      upstream,
      protocol,
    )

    expect(body['input']).toMatchObject([
      { role: 'system', content: [{ type: 'input_text', text: 'one', ...breakpoint }] },
      { role: 'user', content: [{ type: 'input_text', text: 'two', ...breakpoint }] },
      { type: 'function_call' },
      { type: 'function_call_output' },
    ])
    expect(JSON.stringify(body)).not.toContain('cache_control')
    expect(JSON.stringify(body).match(/breakpoint/g)).toHaveLength(2)
    expect(dropped).toEqual(['cache_control'])
  })

  test('are reported at models that take none', () => {
    const { body, dropped } = sent({ messages: [{ role: 'user', content: [text('a', control)] }] }, 'gpt-5.4')

    expect(JSON.stringify(body)).not.toMatch(/cache_control|breakpoint/)
    expect(dropped).toEqual(['cache_control'])
  })
})

test.each([
  ['gpt-5.4', false],
  ['gpt-5', false],
  ['gpt-4.9', false],
  ['o3', false],
  ['gpt-5.6', true],
  ['gpt-5.6-mini-2026-07-01', true],
  ['gpt-5.10', true],
  ['gpt-6', true],
  ['ft:gpt-5.7:org', true],
])('the model %s takes breakpoints: %s', (upstream, takes) => {
  expect(takesBreakpoints(upstream)).toBe(takes)
})
