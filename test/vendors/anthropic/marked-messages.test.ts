import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import { carriedSignature, type MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { anthropic, anthropicVertex } from '../../../src/vendors/anthropic/anthropic.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { NOW_MS } from '../shared/vendor-call.ts'

const own = anthropic({ apiKey: 'key-0123456789' })
const vertex = anthropicVertex({ project: 'our-project', location: 'global', apiKey: () => ({ token: 'any' }) })

function callOf(text: string, rest: Partial<VendorCall<MessagesRequest>> = {}): VendorCall<MessagesRequest> {
  const request = JSON.parse(text) as MessagesRequest
  return {
    request,
    bytes: Buffer.from(text),
    model: defineModel({ id: 'm', kind: 'chat', vendor: 'anthropic', upstream: 'claude-haiku-4-5' }),
    publicModel: 'm',
    apiKey: 'key-0123456789',
    stream: false,
    nowMs: NOW_MS,
    promptCaching: { promptTokens: 5_000 },
    ...rest,
  }
}

const sent = (text: string, rest: Partial<VendorCall<MessagesRequest>> = {}, vendor = own): string => {
  const { body } = vendor.messages!.toWire(callOf(text, rest))
  return typeof body === 'string' ? body : Buffer.from(body as Uint8Array).toString()
}

/** Replaces `m` by the upstream id, and § by a mark. */
const expected = (text: string): string => text.replace('"m"', '"claude-haiku-4-5"').replaceAll('§', MARK)
const MARK = ',"cache_control":{"type":"ephemeral"}'

/** Bytes of a caller, with § where a mark is added. */
const MARKED: Readonly<Record<string, readonly [asked: string, sent: string]>> = {
  'texts become blocks': [
    '{"model":"m", "system" : "Be \\"brief\\"." ,"messages":[ {"role":"user","content":"née 日本"} ]}',
    '{"model":"m", "system" : [{"type":"text","text":"Be \\"brief\\"."§}] ,"messages":[ {"role":"user","content":[{"type":"text","text":"née 日本"§}]} ]}',
  ],
  'blocks get a member': [
    '{"messages":[{"role":"user","content":"a"},{"content":[{"type":"text","text":"b}"},{ "type":"text","text":"c]" } ] , "role":"user" } ], "system":[{"type":"text","text":"s"}, {"type":"text","text":"t"} ],"model":"m"}',
    '{"messages":[{"role":"user","content":"a"},{"content":[{"type":"text","text":"b}"},{ "type":"text","text":"c]" §} ] , "role":"user" } ], "system":[{"type":"text","text":"s"}, {"type":"text","text":"t"§} ],"model":"m"}',
  ],
  'a tool result is marked at its end': [
    '{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"}]}]}]}',
    '{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"}]§}]}]}',
  ],
  'what can have no mark has none': [
    '{"model":"m","system":"  ","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"thinking","thinking":"t","signature":"s"}]}]}',
    '{"model":"m","system":"  ","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"thinking","thinking":"t","signature":"s"}]}]}',
  ],
}

describe('a prompt of Messages that is marked automatically', () => {
  test.each(Object.entries(MARKED))('%s, and every other byte stays', (_name, [asked, marked]) => {
    expect(sent(asked)).toBe(expected(marked))
    // A request that is serialized again gets the same marks.
    expect(JSON.parse(sent(asked, { bytes: undefined }))).toEqual(JSON.parse(expected(marked)))
  })

  test('goes to Vertex AI with the same marks', () => {
    const [asked, marked] = MARKED['blocks get a member']!
    const { model: _inPath, ...body } = JSON.parse(marked.replaceAll('§', MARK)) as Record<string, unknown>

    expect(JSON.parse(sent(asked, {}, vertex))).toEqual({ ...body, anthropic_version: 'vertex-2023-10-16' })
  })

  test('is serialized again if a name has an escape', () => {
    const text = '{"model":"m","m\\u0065ssages":[{"role":"user","content":"a"}]}'

    expect(JSON.parse(sent(text))).toEqual({
      model: 'claude-haiku-4-5',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] }],
    })
  })

  test('is marked without the thinking that is left out', () => {
    const signature = carriedSignature({ google: { thought_signature: 'abc' } })
    const text = JSON.stringify({
      model: 'm',
      messages: [
        { role: 'user', content: 'a' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 't', signature },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'user', content: 'c' },
      ],
    })

    expect(JSON.parse(sent(text)).messages.slice(1)).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'b' }] },
      { role: 'user', content: [{ type: 'text', text: 'c', cache_control: { type: 'ephemeral' } }] },
    ])
  })
})

describe('a prompt of Messages is sent as it came', () => {
  const PLAIN = '{"model":"m","system":"s","messages":[{"role":"user","content":"a"}]}'
  const control = '"cache_control":{"type":"ephemeral"}'

  test.each([
    ['with a mark at the top', `{"model":"m",${control},"messages":[{"role":"user","content":"a"}]}`],
    [
      'with a mark in its system prompt',
      `{"model":"m","system":[{"type":"text","text":"s",${control}}],"messages":[{"role":"user","content":"a"}]}`,
    ],
    [
      'with a mark at a tool',
      `{"model":"m","tools":[{"name":"t","input_schema":{},${control}}],"messages":[{"role":"user","content":"a"}]}`,
    ],
    [
      'with a mark in a message',
      `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a",${control}}]},{"role":"user","content":"b"}]}`,
    ],
    [
      'with a mark in a tool result',
      `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x",${control}}]}]}]}`,
    ],
  ])('%s', (_name, text) => {
    expect(sent(text)).toBe(expected(text))
  })

  test('if nobody asks for marks, and if it is shorter than what the model caches', () => {
    expect(sent(PLAIN, { promptCaching: undefined })).toBe(expected(PLAIN))
    expect(sent(PLAIN, { promptCaching: { promptTokens: 4_095 } })).toBe(expected(PLAIN))
    expect(sent(PLAIN, { promptCaching: { promptTokens: 4_096 } })).not.toBe(expected(PLAIN))
  })
})
