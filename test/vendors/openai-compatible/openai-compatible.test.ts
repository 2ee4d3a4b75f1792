import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import {
  type OpenAICompatibleOptions,
  openaiCompatible,
} from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { bodyOf, callFromRequest, callFromText } from '../shared/vendor-call.ts'

function vendorWith(options: Partial<OpenAICompatibleOptions> = {}) {
  return openaiCompatible({ id: 'local', baseURL: 'http://llm.example:8000/v1', models: [], ...options })
}

const REASONED = JSON.stringify({
  model: 'm',
  max_tokens: 5,
  messages: [{ role: 'assistant', content: 'x', reasoning_content: 'hm' }],
})

describe('openaiCompatible', () => {
  it('appends the paths to the base URL as SDKs do', () => {
    const vendor = vendorWith()

    expect(vendor.origin).toBe('http://llm.example:8000')
    expect(vendor.chat!.toWire(callFromText<ChatRequest>(REASONED)).path).toBe('/v1/chat/completions')
    expect(vendor.embeddings!.toWire(callFromRequest<EmbeddingsRequest>({ model: 'm', input: 'a' })).path).toBe(
      '/v1/embeddings',
    )
  })

  it('counts as configured without a key, and then sends no credential', () => {
    const vendor = vendorWith()
    const [apiKey = 'none'] = vendor.apiKeys

    expect(apiKey).toBe('')
    const { headers } = vendor.chat!.toWire({ ...callFromText<ChatRequest>(REASONED), apiKey })
    expect(headers).not.toContain('authorization')
  })

  it('brings its models along under its own id', () => {
    const vendor = vendorWith({ models: [{ id: 'small', kind: 'chat', upstream: 'small-7b' }] })

    expect(vendor.models).toEqual([{ id: 'small', kind: 'chat', upstream: 'small-7b', vendor: 'local' }])
    expect(vendor).toMatchObject({ id: 'local', displayName: 'local' })
  })

  it('passes every field, and removes extensions from the history unless the server wants them', () => {
    const call = callFromText<ChatRequest>(REASONED)

    expect(bodyOf(vendorWith().chat!.toWire(call).body)).toEqual({
      model: 'm',
      max_tokens: 5,
      messages: [{ role: 'assistant', content: 'x' }],
    })
    expect(vendorWith({ replaysExtensions: true }).chat!.toWire(call).body).toBe(call.bytes)
  })

  describe('where models may refuse a second system message', () => {
    const sentTo = (messages: ChatRequest['messages'], vendor = vendorWith()): unknown =>
      bodyOf(vendor.chat!.toWire(callFromRequest<ChatRequest>({ model: 'm', messages })).body)['messages']
    const call = { id: 'c', type: 'function' as const, function: { name: 'f', arguments: '{}' } }

    it('gets one at the start, and later ones in the turn of the user, as Claude Code sends them', () => {
      const messages: ChatRequest['messages'] = [
        { role: 'system', content: 'You are an agent.' },
        { role: 'user', content: 'Write hello.txt.' },
        { role: 'system', content: 'Agents: one, two.' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: 'done' },
        { role: 'system', content: [{ type: 'text', text: 'Tools: three.' }] },
      ]
      const sent = [
        { role: 'system', content: 'You are an agent.' },
        {
          role: 'user',
          content: 'Write hello.txt.\n\n<system-reminder>\nAgents: one, two.\n</system-reminder>',
        },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: 'done' },
        { role: 'user', content: '<system-reminder>\nTools: three.\n</system-reminder>' },
      ]

      expect(sentTo(messages)).toEqual(sent)
      expect(sentTo(messages, openaiCompatible(presets.vllm))).toEqual(sent)
    })

    it('gets those at the start as one, as Codex sends them', () => {
      const picture = { type: 'image_url' as const, image_url: { url: 'https://a.example/b.png' } }

      expect(
        sentTo([
          { role: 'developer', content: 'You are an agent.' },
          { role: 'developer', content: [{ type: 'text', text: 'Skills: none.' }] },
          { role: 'user', content: [picture] },
          { role: 'developer', content: 'Be brief.' },
        ]),
      ).toEqual([
        {
          role: 'system',
          content: [
            { type: 'text', text: 'You are an agent.' },
            { type: 'text', text: 'Skills: none.' },
          ],
        },
        {
          role: 'user',
          content: [picture, { type: 'text', text: '<system-reminder>\nBe brief.\n</system-reminder>' }],
        },
      ])
    })

    it('gets the images of later messages next to their text', () => {
      const picture = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,iVBORw0K' } }

      expect(
        sentTo([
          { role: 'user', content: 'Draw.' },
          { role: 'system', content: [{ type: 'text', text: 'In this style:' }, picture] },
        ]),
      ).toEqual([
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Draw.' },
            { type: 'text', text: '<system-reminder>\nIn this style:\n</system-reminder>' },
            picture,
          ],
        },
      ])
    })

    it('gets what its own callers send', () => {
      const messages = [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: 'Be brief.' },
      ]
      const call = callFromText<ChatRequest>(JSON.stringify({ model: 'm', messages }))

      expect(vendorWith().chat!.toWire(call).body).toBe(call.bytes)
    })
  })

  it('never asks a server for base64 that the caller did not ask for', () => {
    const call = callFromRequest<EmbeddingsRequest>({ model: 'm', input: ['a'] })

    expect(bodyOf(vendorWith().embeddings!.toWire(call).body)).toEqual({ model: 'm', input: ['a'] })
  })

  it('refuses an id that would not do in logs and tables', () => {
    for (const id of ['', 'Local', 'a b', '../x']) expect(() => vendorWith({ id })).toThrow(TypeError)
  })
})
