import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { CHAT_FIELDS } from '../../../src/vendors/gemini/chat-to-wire.ts'
import { chatCall, sentBody, vendor } from './gemini-call.ts'

/** A value for each field that asks for something this vendor would not do unasked. */
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

/** Fields that the gateway itself serves, so that nothing of them stands in the vendor's body. */
const SERVED_BY_GATEWAY = new Set(['model', 'stream', 'stream_options'])

/** Fields that mean something only beside another. */
const COMPANIONS: Record<string, Partial<ChatRequest>> = {
  top_logprobs: { logprobs: true },
  tool_choice: { tools: [{ type: 'function', function: { name: 'f' } }] },
}

/** 2.0 still reads every setting but effort, which 2.5 has. */
function modelFor(field: string): string {
  return field === 'reasoning_effort' ? 'gemini-2.5-flash' : 'gemini-2.0-flash'
}

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
