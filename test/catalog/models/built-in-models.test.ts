import { describe, expect, it } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../../src/catalog/models/built-in-models.ts'

const catalog = createCatalog(BUILT_IN_MODELS)

type Specified = readonly [id: string, kinds: string, vendor: string, upstream: string, protocol?: string]

// Typed by hand from the API specification: public id, kinds, vendor, the vendor's id, protocol.
const SPECIFIED: readonly Specified[] = [
  ['cl-opus-4-7', 'chat', 'anthropic', 'claude-opus-4-7'],
  ['cl-sonnet-4-6', 'chat', 'anthropic', 'claude-sonnet-4-6'],
  ['gmn-2.5-pro', 'chat,transcription', 'gemini', 'gemini-2.5-pro'],
  ['gmn-2.5-flash', 'chat,transcription', 'gemini', 'gemini-2.5-flash'],
  ['text-embedding-v4', 'embedding', 'dashscope', 'text-embedding-v4'],
  ['text-embedding-004', 'embedding', 'gemini', 'text-embedding-004'],
  ['gmn-embedding-001', 'embedding', 'gemini', 'gemini-embedding-001'],
  ['gmn-embedding-2-preview', 'embedding', 'gemini', 'gemini-embedding-2-preview'],
  ['vy-4-large', 'embedding', 'voyage', 'voyage-4-large'],
  ['vy-4', 'embedding', 'voyage', 'voyage-4'],
  ['vy-4-lite', 'embedding', 'voyage', 'voyage-4-lite'],
  ['qw-image-2.0', 'image', 'dashscope', 'qwen-image-2.0', 'multimodal'],
  ['qw-image-2.0-pro', 'image', 'dashscope', 'qwen-image-2.0-pro', 'multimodal'],
  ['qw-image-max', 'image', 'dashscope', 'qwen-image-max', 'multimodal'],
  ['qw-image-edit', 'image', 'dashscope', 'qwen-image-edit', 'multimodal'],
  ['qw-image-edit-plus', 'image', 'dashscope', 'qwen-image-edit-plus', 'multimodal'],
  ['qw-image-edit-max', 'image', 'dashscope', 'qwen-image-edit-max', 'multimodal'],
  ['gmn-3.1-flash-image-preview', 'image', 'gemini', 'gemini-3.1-flash-image-preview', 'interactions'],
  ['gmn-3-pro-image-preview', 'image', 'gemini', 'gemini-3-pro-image-preview', 'interactions'],
  ['gmn-2.5-flash-image', 'image', 'gemini', 'gemini-2.5-flash-image', 'interactions'],
  ['gmn-2.5-flash-image-preview', 'image', 'gemini', 'gemini-2.5-flash-image', 'interactions'],
  ['gp-image-2', 'image,image_edit', 'openai', 'gpt-image-2', 'generations'],
  ['gp-image-1', 'image,image_edit', 'openai', 'gpt-image-1', 'generations'],
  ['de-2', 'image,image_edit', 'openai', 'dall-e-2', 'generations'],
  ['wv2.5-t2v-preview', 'video', 'dashscope', 'wan2.5-t2v-preview', 'wan-2-6'],
  ['wv2.5-i2v-preview', 'video', 'dashscope', 'wan2.5-i2v-preview', 'wan-2-6'],
  ['wv2.6-t2v', 'video', 'dashscope', 'wan2.6-t2v', 'wan-2-6'],
  ['wv2.6-i2v', 'video', 'dashscope', 'wan2.6-i2v', 'wan-2-6'],
  ['wv2.6-i2v-flash', 'video', 'dashscope', 'wan2.6-i2v-flash', 'wan-2-6'],
  ['wv2.6-r2v', 'video', 'dashscope', 'wan2.6-r2v', 'wan-2-6'],
  ['wv2.6-r2v-flash', 'video', 'dashscope', 'wan2.6-r2v-flash', 'wan-2-6'],
  ['wv2.7-t2v', 'video', 'dashscope', 'wan2.7-t2v', 'wan-2-7'],
  ['wv2.7-t2v-2026-04-25', 'video', 'dashscope', 'wan2.7-t2v-2026-04-25', 'wan-2-7'],
  ['wv2.7-i2v', 'video', 'dashscope', 'wan2.7-i2v', 'wan-2-7'],
  ['wv2.7-i2v-2026-04-25', 'video', 'dashscope', 'wan2.7-i2v-2026-04-25', 'wan-2-7'],
  ['wv2.7-r2v', 'video', 'dashscope', 'wan2.7-r2v', 'wan-2-7'],
  ['qw3-tts-flash', 'speech', 'dashscope', 'qwen3-tts-flash', 'multimodal'],
  ['qw3-tts-instruct-flash', 'speech', 'dashscope', 'qwen3-tts-instruct-flash', 'multimodal'],
]

/** Models of endpoints that the specification does not have; they follow it. */
const FURTHER: readonly Specified[] = [
  ['vy-rerank-2.5', 'rerank', 'voyage', 'rerank-2.5'],
  ['vy-rerank-2.5-lite', 'rerank', 'voyage', 'rerank-2.5-lite'],
  ['qw3-rerank', 'rerank', 'dashscope', 'qwen3-rerank'],
  ['gte-rerank-v2', 'rerank', 'dashscope', 'gte-rerank-v2'],
  ['qw3-vl-rerank', 'rerank', 'dashscope', 'qwen3-vl-rerank'],
]

describe('built-in models', () => {
  for (const [id, kinds, vendor, upstream, protocol] of [...SPECIFIED, ...FURTHER]) {
    it(`has ${id} as ${kinds} of ${vendor}, called ${upstream} there`, () => {
      const model = catalog.find(id)

      expect(model?.kinds.join(',')).toBe(kinds)
      expect(model?.vendor).toBe(vendor)
      expect(model?.upstream).toBe(upstream)
      expect(model?.protocol).toBe(protocol)
      expect(catalog.find(upstream)).toBe(model)
    })
  }

  it('has the models that the specification names, in this order, then those of rerank, and no others', () => {
    const specified = new Set([...SPECIFIED, ...FURTHER].map(([id]) => catalog.find(id)?.id))

    expect(catalog.list().map(({ id }) => id)).toEqual([...specified])
  })

  it('knows the longest answer of every chat model', () => {
    const longest = catalog
      .list()
      .filter((model) => model.kinds.includes('chat'))
      .map((model) => [model.id, model.limits.maxOutputTokens])

    expect(longest).toEqual([
      ['cl-opus-4-7', 128_000],
      ['cl-sonnet-4-6', 128_000],
      ['gmn-2.5-pro', 65_536],
      ['gmn-2.5-flash', 65_536],
    ])
  })

  it('knows the vector sizes of every embedding model', () => {
    expect(catalog.find('text-embedding-v4')?.limits).toEqual({
      contextTokens: 8192,
      dimensions: 1024,
      nativeDimensions: [2048, 1536, 1024, 768, 512, 256, 128, 64],
    })
    expect(catalog.find('text-embedding-004')?.limits.dimensions).toBe(768)
    for (const id of ['gmn-embedding-001', 'gmn-embedding-2-preview']) {
      expect(catalog.find(id)?.limits).toMatchObject({ dimensions: 3072, nativeDimensions: { min: 128, max: 3072 } })
    }
    for (const id of ['vy-4-large', 'vy-4', 'vy-4-lite']) {
      expect(catalog.find(id)?.limits).toMatchObject({
        dimensions: 1024,
        nativeDimensions: [256, 512, 1024, 2048],
        truncatesDimensions: false,
      })
    }
  })
})
