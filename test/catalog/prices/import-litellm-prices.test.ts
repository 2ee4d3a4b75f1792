import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { importLitellmPrices } from '../../../src/catalog/prices/price-import.ts'
import { charge, definePrices } from '../../../src/catalog/prices/prices.ts'
import type { Usage } from '../../../src/core/usage.ts'

const list = JSON.parse(readFileSync(new URL('fixtures/litellm-prices.json', import.meta.url), 'utf8')) as Record<
  string,
  Record<string, unknown>
>

const MILLION = 1_000_000

describe('a price list in the format of LiteLLM', () => {
  test('becomes price rows for the models of the catalog at their own vendors', () => {
    const { file } = importLitellmPrices(list)

    expect(file.prices).toEqual([
      { model: 'cl-sonnet-4-6', meter: 'input_token', amount: '3.1', per: MILLION },
      { model: 'cl-sonnet-4-6', meter: 'output_token', amount: '15.5', per: MILLION },
      { model: 'cl-sonnet-4-6', meter: 'cached_input_token', amount: '0.31', per: MILLION },
      { model: 'cl-sonnet-4-6', meter: 'cache_write_token', amount: '3.875', per: MILLION },
      { model: 'cl-sonnet-4-6', meter: 'cache_write_1h_token', amount: '6.2', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'input_token', amount: '1.3', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'output_token', amount: '11', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'reasoning_token', amount: '12', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'input_token', amount: '2.6', per: MILLION, when: { inputTokensAbove: 200_000 } },
      { model: 'gmn-2.5-pro', meter: 'output_token', amount: '22', per: MILLION, when: { inputTokensAbove: 128_000 } },
      { model: 'text-embedding-v4', meter: 'input_token', amount: '0.07', per: MILLION },
      { model: 'vy-4', meter: 'input_token', amount: '0.061', per: MILLION },
      { model: 'vy-4', meter: 'output_token', amount: '0', per: MILLION },
      { model: 'gmn-3-pro-image-preview', meter: 'input_token', amount: '2.1', per: MILLION },
      { model: 'gmn-3-pro-image-preview', meter: 'output_token', amount: '12.5', per: MILLION },
      { model: 'gmn-3-pro-image-preview', meter: 'image', amount: '0.135' },
      { model: 'gmn-3-pro-image-preview', meter: 'output_image_token', amount: '0', per: MILLION },
      { model: 'gmn-2.5-flash-image', meter: 'input_token', amount: '0.32', per: MILLION },
      { model: 'gmn-2.5-flash-image', meter: 'output_token', amount: '2.6', per: MILLION },
      { model: 'gmn-2.5-flash-image', meter: 'output_image_token', amount: '31', per: MILLION },
      { model: 'de-2', meter: 'image', amount: '0.021' },
      { model: 'wv2.7-t2v', meter: 'video_second', amount: '0.11' },
      { model: 'wv2.7-t2v', meter: 'video_second', amount: '0.16', when: { resolution: '1080p' } },
      { model: 'qw3-tts-flash', meter: 'character', amount: '10.5', per: MILLION },
    ])
    expect(definePrices(file).quote('wv2.7-t2v', { resolution: '1080p' })?.prices).toEqual([
      { meter: 'video_second', amount: '0.16', per: 1 },
    ])
  })

  test('finds models at vendors that have another id in the list', () => {
    const vendors = {
      'azure/large': ['azure', 'azure-openai'],
      'azure_ai/large-claude': ['azure_ai', 'anthropic-foundry'],
      'eu.maker.large-v1:0': ['bedrock_converse', 'amazon-bedrock'],
      'fireworks_ai/accounts/a/models/large': ['fireworks_ai', 'fireworks'],
      'together_ai/maker/large': ['together_ai', 'together'],
      'vertex_ai/large@20260101': ['vertex_ai-anthropic_models', 'anthropic-vertex'],
      'large-pro': ['vertex_ai-language-models', 'vertex'],
      'groq/large': ['groq', 'groq'],
    }
    const upstreamOf = (key: string) => key.replace(/^(?:azure|azure_ai|fireworks_ai|together_ai|vertex_ai|groq)\//, '')
    const catalog = createCatalog(
      Object.entries(vendors).map(([key, [, vendor]]) => ({
        ...{ id: key, kind: 'chat', vendor: vendor! },
        upstream: upstreamOf(key),
      })),
    )
    const prices = { input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 }
    const entries = Object.entries(vendors).map(([key, [provider]]) => [key, { litellm_provider: provider, ...prices }])

    const { file, skipped } = importLitellmPrices(Object.fromEntries(entries), catalog)

    expect(skipped).toEqual([])
    expect(new Set(file.prices.map(({ model }) => model))).toEqual(new Set(Object.keys(vendors)))
  })

  test('reads prices of searches and of seconds of audio; one of 0 next to another price is ignored', () => {
    const catalog = createCatalog([
      { id: 'sorter', kind: 'rerank', vendor: 'cohere' },
      { id: 'sorter-by-tokens', kind: 'rerank', vendor: 'voyage' },
      { id: 'listener', kind: 'transcription', vendor: 'openai' },
      { id: 'other-listener', kind: 'transcription', vendor: 'groq' },
      { id: 'talker', kind: ['chat', 'transcription'], vendor: 'openai' },
    ])
    const { file, reported } = importLitellmPrices(
      {
        sorter: { litellm_provider: 'cohere', input_cost_per_token: 0, input_cost_per_query: 0.002 },
        'sorter-by-tokens': { litellm_provider: 'voyage', input_cost_per_token: 5e-8, input_cost_per_query: 5e-8 },
        listener: { litellm_provider: 'openai', input_cost_per_second: 0, output_cost_per_second: 0.0001 },
        'groq/other-listener': {
          litellm_provider: 'groq',
          input_cost_per_second: 3e-5,
          output_cost_per_second: 0,
        },
        talker: {
          litellm_provider: 'openai',
          ...{ input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, input_cost_per_second: 0.0001 },
        },
      },
      catalog,
    )

    expect(file.prices.map(({ model, meter, amount }) => [model, meter, amount])).toEqual([
      ['sorter', 'input_token', '0'],
      ['sorter', 'search_unit', '0.002'],
      ['sorter-by-tokens', 'input_token', '0.05'],
      ['listener', 'audio_second', '0.0001'],
      ['other-listener', 'audio_second', '0.00003'],
      ['talker', 'input_token', '1'],
      ['talker', 'output_token', '2'],
    ])
    const sold = definePrices(file).quote('sorter', {})?.prices
    expect(sold).toContainEqual({ meter: 'search_unit', amount: '0.002', per: 1 })
    expect(reported.map(({ key, field }) => [key, field])).toEqual([
      ['sorter-by-tokens', 'input_cost_per_query'],
      ['talker', 'input_cost_per_second'],
    ])
  })

  test('has rows of `tiered_pricing` by the size of the prompt and, at vendors that price by it, by mode', () => {
    const catalog = createCatalog([
      { id: 'coder', kind: 'chat', vendor: 'dashscope', upstream: 'qwen3-coder-plus' },
      { id: 'plus', kind: 'chat', vendor: 'dashscope', upstream: 'qwen-plus' },
      { id: 'odd', kind: 'chat', vendor: 'dashscope', upstream: 'qwen-odd' },
      { id: 'other', kind: 'chat', vendor: 'openai' },
    ])
    const tier = (range: unknown, input: number, output: number, reasoning?: number) => ({
      ...{ range, input_cost_per_token: input, output_cost_per_token: output },
      ...(reasoning === undefined ? {} : { output_cost_per_reasoning_token: reasoning }),
    })
    const entry = (...tiers: object[]) => ({ litellm_provider: 'dashscope', tiered_pricing: tiers })
    const prices = {
      'dashscope/qwen3-coder-plus': entry(tier([0, 32_000], 1e-6, 5e-6), tier([256_000, 1_000_000], 6e-6, 6e-5)),
      'dashscope/qwen-plus': entry(tier([0, 256_000], 4e-7, 1.2e-6, 4e-6), tier([256_000, 1e6], 1.2e-6, 3.6e-6)),
      'dashscope/qwen-odd': entry(
        { ...tier([0, 1_000], 1e-6, 2e-6), output_cost_per_token_batches: 1e-6 },
        tier('all', 3e-6, 4e-6),
      ),
      other: {
        litellm_provider: 'openai',
        ...{ input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, output_cost_per_reasoning_token: 3e-6 },
      },
    }
    const { file, reported } = importLitellmPrices(prices, catalog)
    const list = definePrices(file)
    const dollars = (model: string, usage: Usage) => Number(charge(list.quote(model, {})!, usage)) / 1e9

    expect(dollars('coder', { inputTokens: 300_000, outputTokens: 10_000 })).toBe(2.4)
    expect(dollars('coder', { inputTokens: 10_000, outputTokens: 10_000 })).toBe(0.06)
    expect(dollars('plus', { inputTokens: 1_000, outputTokens: 8_100, reasoningTokens: 100 })).toBe(0.0328)
    // A tier with one price of output has it for both modes.
    expect(dollars('plus', { inputTokens: 300_000, outputTokens: 10_000, reasoningTokens: 1 })).toBe(0.396)
    expect(dollars('other', { inputTokens: 0, outputTokens: 10_000, reasoningTokens: 1_000 })).toBe(0.021)
    expect(reported.map(({ field, reason }) => [field, reason])).toEqual([
      ['tiered_pricing[0].output_cost_per_token_batches', 'applies only to another service tier'],
      ['tiered_pricing[1]', 'has a condition that cannot be expressed'],
    ])
  })

  test('has every price named that a price file cannot say', () => {
    const { reported } = importLitellmPrices(list)

    expect(reported.map(({ key, field, reason }) => [key, field, reason])).toEqual([
      ['claude-sonnet-4-6', 'search_context_cost_per_query', 'prices by the size of a search cannot be expressed'],
      ['gemini/gemini-2.5-pro', 'input_cost_per_token_batches', 'applies only to another service tier'],
      [
        'gemini/gemini-2.5-flash-image',
        'output_cost_per_image',
        'image tokens have a price, so the image would be charged twice',
      ],
      ['dashscope/qwen3-tts-flash', 'output_cost_per_second', 'there is no meter for it'],
    ])
    expect(reported[1]?.model).toBe('gmn-2.5-pro')
  })

  test('has every entry named that gave no price', () => {
    const { skipped } = importLitellmPrices(list)

    const elsewhere = 'not a model of the catalog at its vendor'
    expect(skipped.map(({ key, reason }) => [key, reason])).toEqual([
      ['sample_spec', elsewhere],
      ['updated', 'not an entry of a model'],
      ['vertex_ai/claude-sonnet-4-6', elsewhere],
      ['gemini-2.5-pro', elsewhere],
      ['gemini/gemini-2.5-flash', 'every price is 0; if gmn-2.5-flash is free, add a price of 0 yourself'],
      ['claude-opus-4-7', 'cl-opus-4-7 needs a price of input and of output'],
      ['512-x-512/dall-e-2', elsewhere],
    ])
  })

  test('prices the models of a catalog of the host’s own', () => {
    const catalog = createCatalog([
      { id: 'our-chat', kind: 'chat', vendor: 'north', upstream: 'north-large' },
      { id: 'our-other-chat', kind: 'chat', vendor: 'north', upstream: 'north-large' },
    ])
    const prices = { litellm_provider: 'north', input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 }

    const { file } = importLitellmPrices({ 'north/north-large': prices }, catalog)

    expect(file.prices.map(({ model, meter, amount }) => [model, meter, amount])).toEqual([
      ['our-chat', 'input_token', '1'],
      ['our-chat', 'output_token', '2'],
      ['our-other-chat', 'input_token', '1'],
      ['our-other-chat', 'output_token', '2'],
    ])
  })

  test('takes the entry under the vendor’s own id before entries under other names', () => {
    const catalog = createCatalog([
      { id: 'our-chat', kind: 'chat', vendor: 'north', upstream: 'large-2', aliases: ['large-1'] },
    ])
    const entry = (dollars: number) => ({
      litellm_provider: 'north',
      input_cost_per_token: dollars,
      output_cost_per_token: dollars,
    })

    const { file } = importLitellmPrices({ 'large-1': entry(1e-6), 'north/large-2': entry(2e-6) }, catalog)

    expect(file.prices.map(({ amount }) => amount)).toEqual(['2', '2'])
  })

  test('takes neither of two entries for one model that differ, and says so', () => {
    const catalog = createCatalog([{ id: 'our-chat', kind: 'chat', vendor: 'north', upstream: 'large' }])
    const entry = (dollars: number) => ({
      litellm_provider: 'north',
      input_cost_per_token: dollars,
      output_cost_per_token: dollars,
    })

    const { file, reported } = importLitellmPrices({ large: entry(1e-6), 'north/large': entry(2e-6) }, catalog)

    expect(file.prices).toEqual([])
    expect(reported.map(({ key, reason }) => [key, reason])).toEqual([
      ['large', 'large and north/large differ, so neither was used'],
      ['north/large', 'large and north/large differ, so neither was used'],
    ])
  })

  test.each([
    ['3e-06', '"3e-06"'],
    [-1e-6, '-0.000001'],
    [5e-324, '5e-324'],
    [1e30, '1e+30'],
    [true, 'true'],
  ])('is refused for the price %j of a known model, naming entry and field', (price, shown) => {
    const bad = { ...list, 'claude-sonnet-4-6': { ...list['claude-sonnet-4-6'], input_cost_per_token: price } }

    expect(() => importLitellmPrices(bad)).toThrow(TypeError)
    expect(() => importLitellmPrices(bad)).toThrow(
      `"claude-sonnet-4-6".input_cost_per_token: ${shown} is not a price in dollars`,
    )
  })

  test.each([null, [], 'text', 7])('is refused when it is %j', (json) => {
    expect(() => importLitellmPrices(json)).toThrow('prices: must be an object')
  })
})
