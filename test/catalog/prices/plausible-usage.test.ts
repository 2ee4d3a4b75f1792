import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { plausibleUsage, SAMPLINGS_WITH_TOOLS } from '../../../src/catalog/prices/plausible-usage.ts'
import { charge, createRate, METERS } from '../../../src/catalog/prices/rate.ts'

const hold = { inputTokens: 100, outputTokens: 50, images: 1, videoSeconds: 4, characters: 30 }
const limits = { contextTokens: 1_000, maxOutputTokens: 200 }
const FIELDS = [
  'inputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'reasoningTokens',
  'inputImageTokens',
  'outputImageTokens',
  'images',
  'videoSeconds',
  'characters',
  'webSearches',
] as const

/** Without the fields that are there and undefined. */
function withoutGaps(usage: object): object {
  return Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== undefined))
}

describe('plausibleUsage', () => {
  it('leaves a believable report as it is', () => {
    const usage = { inputTokens: 90, cachedInputTokens: 40, outputTokens: 60, reasoningTokens: 10, videoSeconds: 5.04 }

    expect(plausibleUsage(usage, { hold, limits })).toEqual({ usage, implausible: [] })
  })

  it('reads a report of token counts alone as it reads one with other counts', () => {
    const count = fc.oneof(fc.constantFrom(undefined, null, -1, 0.5, '7'), fc.integer({ min: -2, max: 2_500 }))
    const tokens = ['inputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'outputTokens', 'reasoningTokens'] as const
    const reports = fc.dictionary(fc.constantFrom(...tokens), count)
    fc.assert(
      fc.property(reports, (reported) => {
        const alone = plausibleUsage(reported, { hold, limits })
        const { usage, implausible } = plausibleUsage({ ...reported, images: 0 }, { hold, limits })
        const { images: _, ...others } = usage

        expect({ usage: withoutGaps(alone.usage), implausible: alone.implausible }).toEqual({
          usage: others,
          implausible,
        })
      }),
    )
  })

  it('keeps zero zero and absent absent', () => {
    expect(plausibleUsage({ inputTokens: 0, outputTokens: 0, images: 0 }, { hold, limits })).toEqual({
      usage: { inputTokens: 0, outputTokens: 0, images: 0 },
      implausible: [],
    })
    expect(plausibleUsage({}, { hold, limits })).toEqual({ usage: {}, implausible: [] })
    expect(plausibleUsage({ inputTokens: null }, { hold, limits })).toEqual({ usage: {}, implausible: [] })
  })

  it.each([-1, 1.5, '12', Number.NaN, Number.POSITIVE_INFINITY, 10n, {}, true])(
    'puts the hold in place of %s and names the field',
    (value) => {
      const reported = { inputTokens: value, outputTokens: value }

      expect(plausibleUsage(reported, { hold, limits })).toEqual({
        usage: { inputTokens: 100, outputTokens: 50 },
        implausible: ['inputTokens', 'outputTokens'],
      })
    },
  )

  it.each([-1, 1.5, '12', Number.NaN])('does so for every other field, and drops what was not held: %s', (value) => {
    for (const field of FIELDS) {
      if (field === 'videoSeconds' && value === 1.5) continue
      const held = (hold as Record<string, number>)[field]
      const expected = held === undefined ? {} : { [field]: held }

      expect(plausibleUsage({ [field]: value }, { hold, limits })).toEqual({ usage: expected, implausible: [field] })
    }
  })

  it.each([undefined, null, 7, 'usage', [1, 2]])('takes the hold when the report is %j', (reported) => {
    expect(plausibleUsage(reported, { hold, limits })).toEqual({ usage: hold, implausible: ['usage'] })
  })

  it('keeps counts up to four times the limits and cuts higher counts to that', () => {
    const atMost = { inputTokens: 4_000, outputTokens: 1_000, videoSeconds: 10 }

    expect(plausibleUsage(atMost, { hold, limits })).toEqual({ usage: atMost, implausible: [] })
    expect(plausibleUsage({ inputTokens: 2 ** 31, outputTokens: 1_001 }, { hold, limits })).toEqual({
      usage: { inputTokens: 4_000, outputTokens: 1_000 },
      implausible: ['inputTokens', 'outputTokens'],
    })
  })

  it('multiplies the limits by the samplings of the call', () => {
    const many = { hold, limits, samplings: () => SAMPLINGS_WITH_TOOLS }
    const usage = { inputTokens: 256_000, outputTokens: 64_000, webSearches: 1_024 }

    expect(plausibleUsage(usage, many)).toEqual({ usage, implausible: [] })
    expect(plausibleUsage({ webSearches: 2 ** 31 }, many).usage).toEqual({ webSearches: 1_024 })
  })

  it('accepts thinking that is longer than the longest answer', () => {
    const small = { hold: {}, limits: { contextTokens: 131_072, maxOutputTokens: 2_048 } }

    expect(plausibleUsage({ outputTokens: 30_000 }, small).implausible).toEqual([])
  })

  it('keeps the tier of service', () => {
    const usage = { inputTokens: 1, serviceTier: 'priority' }

    expect(plausibleUsage(usage, { hold, limits }).usage).toEqual(usage)
    expect(plausibleUsage({ ...usage, inputTokens: -1 }, { hold, limits }).usage).toEqual({
      ...usage,
      inputTokens: 100,
    })
  })

  it('believes a batch that is larger than the context of one text when the hold was large too', () => {
    const batch = { hold: { inputTokens: 20_000 }, limits: { contextTokens: 1_000 } }

    expect(plausibleUsage({ inputTokens: 15_000 }, batch).implausible).toEqual([])
  })

  it('has a ceiling where the limits of the model are not known', () => {
    const unknown = { hold: { inputTokens: 100, outputTokens: 50 }, limits: {} }

    expect(plausibleUsage({ inputTokens: 4_194_304 }, unknown).implausible).toEqual([])
    expect(plausibleUsage({ inputTokens: 4_194_305, outputTokens: 2 ** 31 }, unknown).usage).toEqual({
      inputTokens: 4_194_304,
      outputTokens: 524_288,
    })
  })

  it('cuts tokens of images to four times the hold where the limits of the model are not known', () => {
    expect(plausibleUsage({ outputTokens: 201 }, { hold, limits: {} }).usage).toEqual({ outputTokens: 200 })
  })

  it('cuts parts to their total, a replaced total included', () => {
    const reported = {
      inputTokens: -5,
      cachedInputTokens: 500,
      outputTokens: 20,
      reasoningTokens: 30,
      outputImageTokens: 21,
    }

    expect(plausibleUsage(reported, { hold, limits })).toEqual({
      usage: { inputTokens: 100, cachedInputTokens: 100, outputTokens: 20, reasoningTokens: 20, outputImageTokens: 20 },
      implausible: ['inputTokens'],
    })
  })

  it('never throws, and what it gives can always be charged', () => {
    const rate = createRate(
      'example',
      METERS.map((meter) => ({ meter, amount: '0.5', per: 1_000 })),
    )
    const report = fc.oneof(
      fc.anything(),
      fc.record(
        Object.fromEntries(FIELDS.map((field) => [field, fc.oneof(fc.anything(), fc.double(), fc.integer())])),
        {
          requiredKeys: [],
        },
      ),
    )
    fc.assert(
      fc.property(report, (reported) => {
        const { usage } = plausibleUsage(reported, { hold, limits })

        expect(charge(rate, usage)).toBeGreaterThan(0n)
      }),
      { numRuns: 1_000 },
    )
  })
})
