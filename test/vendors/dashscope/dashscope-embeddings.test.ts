import { describe, expect, it } from 'vitest'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { bodyOf, callFromRequest, callFromText, fixture, textOf } from '../shared/vendor-call.ts'

const embeddings = dashscope({ apiKey: 'sk-test-0123456789abcdef' }).embeddings!
const call = callFromText<EmbeddingsRequest>('{"model":"text-embedding-v4","input":["a","b"],"dimensions":256}')

describe('dashscope embeddings', () => {
  it('takes ten texts and no token ids', () => {
    expect(embeddings).toMatchObject({ maxInputs: 10, takesTokens: false })
  })

  it('sends the very same bytes where it can', () => {
    expect(embeddings.toWire(call)).toMatchObject({
      path: '/compatible-mode/v1/embeddings',
      body: call.bytes,
      dropped: [],
    })
  })

  it('asks for numbers when the caller wants base64, and leaves that to translation', () => {
    const wantsBase64 = callFromText<EmbeddingsRequest>(
      '{"model":"text-embedding-v4","input":"a","encoding_format":"base64"}',
    )

    expect(embeddings.passThrough!.applies(wantsBase64)).toBe(false)
    expect(bodyOf(embeddings.toWire(wantsBase64).body)['encoding_format']).toBe('float')
    expect(embeddings.passThrough!.applies(call)).toBe(true)
  })

  it('never asks for base64, not even when translating', () => {
    const body = bodyOf(embeddings.toWire(callFromRequest<EmbeddingsRequest>({ model: 'm', input: 'a' })).body)

    expect(body).toEqual({ model: 'm', input: 'a' })
  })

  it('relays the vectors and keeps the other members', () => {
    const relayed = embeddings.passThrough!.fromWire([fixture(import.meta.url, 'embeddings.json')], {
      ...call,
      request: { ...call.request, dimensions: 2 },
      publicModel: 'text-embedding-4',
    })

    expect(textOf(relayed?.chunks ?? [])).toBe(
      '{"object":"list","data":[{"embedding":[0.012,-0.034],"index":0,"object":"embedding"},' +
        '{"embedding":[0.5,0.25],"index":1,"object":"embedding"}],"model":"text-embedding-4",' +
        '"usage":{"prompt_tokens":9,"total_tokens":9},"id":"8a77f0"}',
    )
    expect(relayed?.usage).toEqual({ inputTokens: 9 })
  })
})
