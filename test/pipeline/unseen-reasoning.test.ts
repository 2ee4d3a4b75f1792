import { describe, expect, test } from 'vitest'
import { estimatedUsage } from '../../src/pipeline/estimate.ts'
import { TokenSizes } from '../../src/pipeline/token-sizes.ts'

const MODELS = [{ id: 'thinker' }, { id: 'other' }]

/** Sizes of a model whose reports contained these numbers of reasoning tokens. */
function told(...tokens: readonly number[]): TokenSizes {
  const sizes = new TokenSizes()
  for (const each of tokens) sizes.noteReasoning('thinker', each)
  return sizes
}

const reports = (count: number, tokens: number): number[] => Array.from({ length: count }, () => tokens)

describe('unseen reasoning', () => {
  test('is not known until twenty reports have told of it', () => {
    expect(told(...reports(19, 100)).habitsOf(MODELS).reasoningTokens).toBeUndefined()
    expect(told(...reports(20, 100)).habitsOf(MODELS).reasoningTokens).toBe(120)
  })

  test('is a fifth more than the average, and calls that did not reason do not count', () => {
    expect(told(...reports(10, 100), ...reports(10, 300), ...reports(50, 0)).habitsOf(MODELS).reasoningTokens).toBe(240)
  })

  test('follows a model that comes to reason otherwise', () => {
    const sizes = told(...reports(1_001, 1_000))
    for (const each of reports(500, 0).map(() => 100)) sizes.noteReasoning('thinker', each)
    expect(sizes.habitsOf(MODELS).reasoningTokens).toBeLessThan(700)
  })

  test('is charged as usual where the vendor ended the call, by the time where its caller did, and never above the hold', () => {
    const estimate = { inputTokens: 10, outputTokens: 1_000 }
    const call = { estimate, bytesPerToken: 4, usualReasoningTokens: 300, tokensPerSecond: 200 }
    const output = { outputBytes: 400, isUnseen: true }
    const outputOf = (usage: { readonly outputTokens?: number }) => usage.outputTokens

    expect(outputOf(estimatedUsage(call, output))).toBe(400)
    expect(outputOf(estimatedUsage(call, { ...output, isStopped: true }))).toBe(1_000)
    const stoppedAfter = (stoppedAfterMs: number) =>
      outputOf(estimatedUsage(call, { ...output, isStopped: true, stoppedAfterMs }))
    expect([200, 2_000, 60_000].map(stoppedAfter)).toEqual([100, 400, 1_000])
    expect(outputOf(estimatedUsage({ ...call, usualReasoningTokens: undefined }, output))).toBe(1_000)
    expect(outputOf(estimatedUsage({ ...call, usualReasoningTokens: 5_000 }, output))).toBe(1_000)
    expect(outputOf(estimatedUsage(call, { ...output, isUnseen: false }))).toBe(100)
  })
})
