import { describe, expect, it } from 'vitest'
import {
  latestUsage,
  normalisedUsage,
  readMessagesUsage,
  usageFrom,
} from '../../../src/vendors/anthropic/messages-usage.ts'

describe('usage of Anthropic', () => {
  it('C1: counts fresh, written and read input once each', () => {
    const usage = usageFrom({
      input_tokens: 41,
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: 2000,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 0 },
      output_tokens: 7,
    })

    expect(usage).toEqual({ inputTokens: 2141, cacheWriteTokens: 100, cachedInputTokens: 2000, outputTokens: 7 })
  })

  it('A6: keeps zeros and leaves out what is absent or null', () => {
    expect(usageFrom({ input_tokens: 0, cache_read_input_tokens: null, output_tokens: 0 })).toEqual({
      inputTokens: 0,
      outputTokens: 0,
    })
  })

  it('A6: a later zero replaces an earlier count, a later null does not', () => {
    const start = readMessagesUsage({ input_tokens: 9, cache_read_input_tokens: 5, output_tokens: 1 })
    const end = readMessagesUsage({ input_tokens: null, cache_read_input_tokens: 0, output_tokens: 0 })

    expect(normalisedUsage(latestUsage(start, end))).toEqual({ inputTokens: 9, cachedInputTokens: 0, outputTokens: 0 })
  })

  it.each([undefined, null, 'x', [], {}, { input_tokens: '12' }])('of %j is nothing', (value) => {
    expect(usageFrom(value)).toBeUndefined()
  })

  it.each([-1, 1.5, 2 ** 31, Number.NaN])('S29: passes %d on without a throw, for settling to judge', (value) => {
    expect(usageFrom({ input_tokens: value, output_tokens: value })).toEqual({
      inputTokens: value,
      outputTokens: value,
    })
  })
})
