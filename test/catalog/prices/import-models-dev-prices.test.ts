import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { importLitellmPrices, importModelsDevPrices } from '../../../src/catalog/prices/price-import.ts'
import { definePrices } from '../../../src/catalog/prices/prices.ts'

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`fixtures/${name}`, import.meta.url), 'utf8'))
const list = fixture('models-dev-api.json')
const MILLION = 1_000_000

describe('a price list in the format of models.dev', () => {
  test('becomes price rows for the models of the catalog at their own vendors', () => {
    const { file } = importModelsDevPrices(list)

    expect(file.prices).toEqual([
      { model: 'cl-sonnet-4-6', meter: 'input_token', amount: '3.1', per: MILLION },
      { model: 'cl-sonnet-4-6', meter: 'output_token', amount: '15.5', per: MILLION },
      { model: 'cl-sonnet-4-6', meter: 'cached_input_token', amount: '0.31', per: MILLION },
      { model: 'cl-sonnet-4-6', meter: 'cache_write_token', amount: '3.875', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'input_token', amount: '1.3', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'output_token', amount: '11', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'cached_input_token', amount: '0.13', per: MILLION },
      { model: 'gmn-2.5-pro', meter: 'input_token', amount: '2.6', per: MILLION, when: { inputTokensAbove: 200_000 } },
      { model: 'gmn-2.5-pro', meter: 'output_token', amount: '16', per: MILLION, when: { inputTokensAbove: 200_000 } },
      { model: 'gmn-2.5-flash', meter: 'input_token', amount: '0.31', per: MILLION },
      { model: 'gmn-2.5-flash', meter: 'output_token', amount: '2.6', per: MILLION },
      { model: 'gmn-2.5-flash', meter: 'reasoning_token', amount: '2.7', per: MILLION },
      { model: 'gmn-2.5-flash', meter: 'input_audio_token', amount: '1.1', per: MILLION },
      { model: 'text-embedding-v4', meter: 'input_token', amount: '0.07', per: MILLION },
      { model: 'text-embedding-v4', meter: 'output_token', amount: '0', per: MILLION },
      { model: 'gmn-2.5-flash-image', meter: 'input_token', amount: '0.32', per: MILLION },
      { model: 'gmn-2.5-flash-image', meter: 'output_token', amount: '31', per: MILLION },
    ])
    expect(definePrices(file).quote('gmn-2.5-pro', {})?.pricesTokens).toBe(true)
  })

  test('has prices named that differ from those of a tier, or hold under another condition', () => {
    const cost = {
      input: 1,
      output: 2,
      output_audio: 9,
      context_over_200k: { input: 3, output: 4 },
      tiers: [
        { input: 3, output: 5, tier: { type: 'context', size: 200_000 } },
        { input: 7, tier: { type: 'hour', size: 1 } },
      ],
    }
    const { file, reported } = importModelsDevPrices({ google: { models: { 'gemini-2.5-pro': { cost } } } })

    expect(file.prices.map(({ meter, amount, when }) => [meter, amount, when?.inputTokensAbove])).toEqual([
      ['input_token', '1', undefined],
      ['output_token', '2', undefined],
      ['input_token', '3', 200_000],
      ['output_token', '5', 200_000],
    ])
    expect(reported.map(({ field, reason }) => [field, reason])).toEqual([
      ['cost.output_audio', 'there is no meter for it'],
      ['cost.tiers[1]', 'has a condition that cannot be expressed'],
      ['cost.context_over_200k.output', 'cost.tiers[0].output has another value, which was used'],
    ])
  })

  test('has every entry named that gave no price', () => {
    const { skipped } = importModelsDevPrices(list)

    expect(skipped.map(({ key, reason }) => [key, reason])).toEqual([
      ['google/another-model', 'not a model of the catalog at its vendor'],
      ['anthropic/claude-opus-4-7', 'no price that can be used for cl-opus-4-7'],
      ['reseller/claude-sonnet-4-6', 'not a model of the catalog at its vendor'],
      ['alibaba/qwen3-tts-flash', 'qw3-tts-flash is not sold by the token'],
    ])
  })

  test('gives the same rows as the other format for the same prices', () => {
    const rowsOf = (imported: ReturnType<typeof importModelsDevPrices>) =>
      // This format has one price of writing to a cache.
      imported.file.prices.filter(({ model, meter }) => model === 'cl-sonnet-4-6' && meter !== 'cache_write_1h_token')

    expect(rowsOf(importModelsDevPrices(list))).toEqual(rowsOf(importLitellmPrices(fixture('litellm-prices.json'))))
  })

  test.each([
    [{ google: 7 }, '"google": must be an object'],
    [{ google: { id: 'google' } }, '"google".models: must be an object'],
    [{ google: { models: { 'gemini-2.5-pro': { cost: [1] } } } }, '"google/gemini-2.5-pro".cost: must be an object'],
    [
      { google: { models: { 'gemini-2.5-pro': { cost: { input: '1.25', output: 1 } } } } },
      '"google/gemini-2.5-pro".input: "1.25" is not a price in dollars',
    ],
    [
      { google: { models: { 'gemini-2.5-pro': { cost: { input: 1, output: -1 } } } } },
      '"google/gemini-2.5-pro".output: -1 is not a price in dollars',
    ],
  ])('is refused when it is %j, naming the place', (json, message) => {
    expect(() => importModelsDevPrices(json)).toThrow(new TypeError(message))
  })
})
