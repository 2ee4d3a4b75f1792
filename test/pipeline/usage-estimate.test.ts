import { describe, expect, test } from 'vitest'
import type { Usage } from '../../src/core/usage.ts'
import {
  abandonedPictures,
  chargeableUsage,
  cutUsage,
  estimatedUsage,
  mostUsage,
  usagePart,
} from '../../src/pipeline/estimate.ts'

function measured(estimate: Usage) {
  return { estimate, bytesPerToken: 4, usualReasoningTokens: undefined, tokensPerSecond: 100 }
}

describe('what is charged for without a report', () => {
  test.each<[string, Usage]>([
    ['text', {}],
    ['pictures in the prompt', { inputImageTokens: 30 }],
    ['sound in the prompt', { inputAudioTokens: 40 }],
    ['seconds of sound', { audioSeconds: 2.5 }],
    ['all of them', { inputImageTokens: 30, inputAudioTokens: 40, audioSeconds: 2.5 }],
  ])('has the parts of the prompt that were held for, and no other (%s)', (_parts, parts) => {
    const estimate = { inputTokens: 100, outputTokens: 500, ...parts }

    expect(estimatedUsage(measured(estimate), { outputBytes: 80, isUnseen: false })).toStrictEqual({
      inputTokens: 100,
      outputTokens: 20,
      ...parts,
    })
  })
})

describe('what is charged for an answer that was cut', () => {
  test('has at least the output that was seen, and the prompt where only zeros were reported', () => {
    const seen = { inputTokens: 100, outputTokens: 20 }

    expect(cutUsage({ inputTokens: 90, outputTokens: 25 }, seen)).toEqual({ inputTokens: 90, outputTokens: 25 })
    expect(cutUsage({ inputTokens: 90, outputTokens: 1 }, seen)).toEqual({ inputTokens: 90, outputTokens: 20 })
    expect(cutUsage({ inputTokens: 0, outputTokens: 0 }, seen)).toEqual(seen)
    expect(cutUsage({}, seen)).toEqual(seen)
  })

  test('has the seconds of sound as reported, else as held for', () => {
    const seen = { inputTokens: 100, audioSeconds: 12, outputTokens: 20 }

    expect(cutUsage({ audioSeconds: 3 }, seen).audioSeconds).toBe(3)
    expect(cutUsage({ inputTokens: 0 }, seen)).toMatchObject({ inputTokens: 0, audioSeconds: 12 })
  })
})

describe('counts of usage', () => {
  test('combine the greater of each of two reports, whichever has it', () => {
    expect(mostUsage({ inputTokens: 5, reasoningTokens: 1 }, { inputTokens: 3, outputTokens: 4 })).toStrictEqual({
      inputTokens: 5,
      reasoningTokens: 1,
      outputTokens: 4,
    })
    expect(mostUsage({}, { outputTokens: 4, cachedInputTokens: undefined } as unknown as Usage)).toStrictEqual({
      outputTokens: 4,
      cachedInputTokens: 0,
    })
  })

  test('a share of each is rounded up', () => {
    expect(usagePart({ inputTokens: 10, outputTokens: 3 }, 0.25)).toStrictEqual({ inputTokens: 3, outputTokens: 1 })
    expect(usagePart({ inputTokens: undefined } as unknown as Usage, 0.5)).toStrictEqual({ inputTokens: 0 })
  })

  test('count the received images of a disconnected stream as reported, and the others as held', () => {
    const held = { images: 4, outputTokens: 400 }

    expect(abandonedPictures(held, { images: 1, outputTokens: 90 })).toEqual({ images: 4, outputTokens: 390 })
    expect(abandonedPictures(held, { outputTokens: 90 })).toEqual({ images: 4, outputTokens: 490 })
    expect(abandonedPictures(held, { images: 4, outputTokens: 360 })).toEqual({ images: 4, outputTokens: 360 })
    expect(abandonedPictures(held, { images: 5, outputTokens: 450 })).toEqual({ images: 5, outputTokens: 450 })
  })
})

describe('a report', () => {
  const bounds = { hold: { inputTokens: 100, outputTokens: 100 }, limits: {} }

  test('is filled by the estimate where it lacks a count that was held for', () => {
    expect(chargeableUsage({ inputTokens: 7 }, bounds, { inputTokens: 9, outputTokens: 3 })).toEqual({
      usage: { inputTokens: 7, outputTokens: 3 },
      replaced: ['outputTokens'],
    })
  })

  test('is complete for audio if it contains tokens or seconds', () => {
    const estimated = { inputTokens: 9, audioSeconds: 2, outputTokens: 3 }

    expect(chargeableUsage({ inputTokens: 7, outputTokens: 1 }, bounds, estimated).replaced).toEqual([])
    expect(chargeableUsage({ audioSeconds: 1 }, bounds, estimated).replaced).toEqual([])
    expect(chargeableUsage({}, bounds, estimated).replaced).toEqual(['inputTokens', 'audioSeconds', 'outputTokens'])
    expect(chargeableUsage({ inputTokens: 7 }, bounds, { inputTokens: 9, outputTokens: 3 }).replaced).toEqual([
      'outputTokens',
    ])
  })
})
