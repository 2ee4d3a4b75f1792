import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { listPriceRows, listPrices } from '../../../src/catalog/prices/list-prices.ts'
import { definePrices } from '../../../src/catalog/prices/prices.ts'
import { BUILT_IN_SNAPSHOT } from '../../../src/catalog/vendor-models/snapshot.ts'
import { VendorModels } from '../../../src/catalog/vendor-models/vendor-models.ts'

const kinds = new Map([
  ['chat', undefined],
  ['embedding', undefined],
  ['image', undefined],
  ['speech', undefined],
  ['transcription', undefined],
])
const source = new VendorModels([{ id: 'openai', isConfigured: true, kinds, passUnknownModels: true }])
const catalog = createCatalog(
  [
    { id: 'ours', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o' },
    { id: 'dearer', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o' },
  ],
  source,
)
const list = listPrices().forCatalog(catalog)
const OUTPUT = { model: 'm', meter: 'output_token', per: 1_000_000 }
const amounts = (model: string, markup?: string) =>
  listPrices({ markup })
    .forCatalog(catalog)
    .quote(model, {})
    ?.prices.map(({ meter, amount, inputTokensAbove }) => [meter, amount, inputTokensAbove])

describe('list prices', () => {
  test('charge what the vendor lists, times the markup, exactly', () => {
    expect(amounts('gpt-4o-mini')).toEqual([
      ['input_token', '0.15', undefined],
      ['output_token', '0.6', undefined],
      ['cached_input_token', '0.075', undefined],
    ])
    expect(amounts('gpt-4o-mini', '1.1')).toEqual([
      ['input_token', '0.165', undefined],
      ['output_token', '0.66', undefined],
      ['cached_input_token', '0.0825', undefined],
    ])
  })

  test('hold for rows of the host by what their vendor calls them, and have the tiers of long prompts', () => {
    expect(amounts('ours')?.[0]).toEqual(['input_token', '2.5', undefined])
    expect(amounts('gpt-5.5')).toContainEqual(['input_token', '10', 272_000])
  })

  test('leave a model that has a price of the host to that price, and know none of a model without one', () => {
    const prices = { currency: 'USD', prices: [{ model: 'dearer', meter: 'request', amount: '1' }] } as const
    const list = listPrices({ prices }).forCatalog(catalog)

    expect(list.quote('dearer', {})?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
    expect(list.quote('unheard-of', {})).toBeUndefined()
    expect(list.quote('gpt-4o-audio-preview', {})).toBeUndefined()
  })

  test('take precedence over a pattern of the host, which applies to models without one', () => {
    const prices = { currency: 'USD', prices: [{ model: 'gpt-*', meter: 'request', amount: '1' }] } as const
    const list = listPrices({ prices }).forCatalog(catalog)

    expect(list.quote('gpt-4o', {})?.prices[0]).toMatchObject({ meter: 'input_token', amount: '2.5' })
    expect(list.quote('gpt-of-tomorrow', {})?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
  })

  test.each([{ batch: 'true' }, { cache: 'hit' }])('apply to calls next to rows of the host for only %o', (when) => {
    const prices = { currency: 'USD', prices: [{ model: 'gpt-4o', meter: 'request', amount: '1', when }] } as const
    const list = listPrices({ prices }).forCatalog(catalog)

    expect(list.quote('gpt-4o', {})?.prices[0]).toMatchObject({ meter: 'input_token', amount: '2.5' })
    expect(list.quote('gpt-4o', when)?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
  })

  test('charge batches by rows of their own where that is asked for, with tiers and the markup', () => {
    const when = { batch: 'true' }
    const list = listPrices({ batches: true, markup: '2' }).forCatalog(catalog)

    expect(list.quote('gpt-6-sol', {})?.prices[0]).toMatchObject({ meter: 'input_token', amount: '4' })
    expect(list.quote('gpt-6-sol', when)?.prices).toEqual(
      expect.arrayContaining([
        { meter: 'input_token', amount: '2', per: 1_000_000 },
        { meter: 'output_token', amount: '15', per: 1_000_000, inputTokensAbove: 272_000 },
      ]),
    )
    expect(list.quote('text-embedding-3-small', when)).toBeUndefined()
    expect(listPrices().forCatalog(catalog).quote('gpt-6-sol', when)).toBeUndefined()
  })

  test('leave a model whose batches have a price of the host to that price', () => {
    const when = { batch: 'true' }
    const prices = { currency: 'USD', prices: [{ model: 'gpt-6-sol', meter: 'request', amount: '1', when }] } as const
    const list = listPrices({ batches: true, prices }).forCatalog(catalog)

    expect(list.quote('gpt-6-sol', when)?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
  })

  test.each([
    ['pictures that are read and made', 'gpt-image-1.5', ['input_image_token', '8', 1_000_000]],
    ['pictures that are made', 'gpt-image-1.5', ['output_image_token', '32', 1_000_000]],
    ['sound by tokens', 'gpt-4o-transcribe', ['input_audio_token', '6', 1_000_000]],
    ['sound by the hour', 'whisper-1', ['audio_second', '0.36', 3_600]],
    ['speech by characters', 'tts-1', ['character', '15', 1_000_000]],
  ])('charge %s', (_what, model, row) => {
    const rows = list.quote(model, {})?.prices.map(({ meter, amount, per }) => [meter, amount, per])

    expect(rows).toContainEqual(row)
  })

  test('charge the introductory price of a model up to its last day, and then the one after it', () => {
    const gemini = createCatalog(
      [],
      new VendorModels([{ id: 'gemini', isConfigured: true, kinds, passUnknownModels: false }]),
    )
    const quote = (day: string, billing = {}) => {
      vi.setSystemTime(day)
      return listPrices({ batches: true }).forCatalog(gemini).quote('gemini-3.8-flash', billing)?.prices[0]
    }
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())

    expect(quote('2026-12-31T23:59:59Z')).toMatchObject({ meter: 'input_token', amount: '0.75' })
    expect(quote('2026-12-31T23:59:59Z', { batch: 'true' })).toMatchObject({ meter: 'input_token', amount: '0.375' })
    expect(quote('2027-01-01T00:00:00Z')).toMatchObject({ meter: 'input_token', amount: '1.5' })
    expect(quote('2027-01-01T00:00:00Z', { batch: 'true' })).toBeUndefined()
  })

  test('has prices by thinking mode, also in a tier that lists one price of output', () => {
    const facts = BUILT_IN_SNAPSHOT.of('dashscope').get('qwen-plus')!
    const rows = listPriceRows({ id: 'm', kinds: ['chat'] }, facts, '2')
    const oneOutput = { ...facts, tiers: [{ inputTokensAbove: 9, input: '1', output: '5' }] }
    const ofTier = listPriceRows({ id: 'm', kinds: ['chat'] }, oneOutput, '1')

    expect(rows).toContainEqual({ ...OUTPUT, amount: '8', when: { thinking: 'on' } })
    expect(rows).toContainEqual({ ...OUTPUT, amount: '24', when: { thinking: 'on', inputTokensAbove: 256_000 } })
    expect(ofTier).toContainEqual({ ...OUTPUT, amount: '5', when: { thinking: 'on', inputTokensAbove: 9 } })
    expect(() => definePrices({ currency: 'USD', prices: ofTier })).not.toThrow()
  })

  test('know no price of speech that is sold by tokens, because characters are counted', () => {
    expect(BUILT_IN_SNAPSHOT.of('openai').get('gpt-4o-mini-tts')?.price).toEqual({ input: '0.6', output: '12' })
    expect(list.quote('gpt-4o-mini-tts', {})).toBeUndefined()
  })

  test.each(['0', '-1', '', 'ten', '1e3'])('refuse the markup %j', (markup) => {
    expect(() => listPrices({ markup })).toThrow('a markup must be a decimal string above zero')
  })
})

describe('a price row whose model is a pattern', () => {
  const prices = definePrices({
    currency: 'USD',
    prices: [
      { model: 'openai/*', meter: 'request', amount: '1' },
      { model: 'openai/gpt-*', meter: 'request', amount: '2' },
      { model: 'openai/gpt-4o', meter: 'request', amount: '3' },
    ],
  })
  const amount = (model: string) => prices.quote(model, {})?.prices[0]?.amount

  test('holds for the models that match and have no row; the most specific pattern counts', () => {
    expect(amount('openai/o3')).toBe('1')
    expect(amount('openai/gpt-5')).toBe('2')
    expect(amount('openai/gpt-4o')).toBe('3')
    expect(amount('gpt-4o')).toBeUndefined()
  })

  test('gives a rate of the model that was asked for', () => {
    expect(prices.quote('openai/gpt-5', {})?.model).toBe('openai/gpt-5')
  })
})
