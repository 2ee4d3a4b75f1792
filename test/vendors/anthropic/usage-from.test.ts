import { describe, expect, it } from 'vitest'
import {
  latestUsage,
  normalisedUsage,
  readMessagesUsage,
  usageFrom,
} from '../../../src/vendors/shared/messages-answer.ts'

describe('usage of Anthropic', () => {
  it('counts fresh, written and read input once each', () => {
    const usage = usageFrom({
      input_tokens: 41,
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: 2000,
      cache_creation: { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 40 },
      output_tokens: 7,
      server_tool_use: { web_search_requests: 2, web_fetch_requests: 9 },
    })

    expect(usage).toEqual({
      inputTokens: 2141,
      cacheWriteTokens: 100,
      cacheWrite1hTokens: 40,
      cachedInputTokens: 2000,
      outputTokens: 7,
      webSearches: 2,
    })
  })

  it('keeps what only one event of a stream tells', () => {
    const start = readMessagesUsage({
      input_tokens: 9,
      cache_creation_input_tokens: 8,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 8 },
      server_tool_use: null,
    })
    const end = readMessagesUsage({
      cache_creation_input_tokens: 8,
      output_tokens: 5,
      server_tool_use: { web_search_requests: 1 },
    })

    expect(normalisedUsage(latestUsage(start, end))).toEqual({
      inputTokens: 17,
      cacheWriteTokens: 8,
      cacheWrite1hTokens: 8,
      outputTokens: 5,
      webSearches: 1,
    })
  })

  it.each([
    [{ ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1_000 }, 5_000],
    [{ ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 }, 600],
    [{ ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 0 }, 0],
  ])('takes what a later event adds to %j for an hour only where nothing else was written', (parts, forAnHour) => {
    const start = readMessagesUsage({ cache_creation_input_tokens: 1_000, cache_creation: parts })
    const end = readMessagesUsage({ cache_creation_input_tokens: 5_000, output_tokens: 1 })

    expect(latestUsage(start, end)).toMatchObject({ cacheWriteTokens: 5_000, cacheWrite1hTokens: forAnHour })
  })

  it('keeps zeros and leaves out what is absent or null', () => {
    expect(usageFrom({ input_tokens: 0, cache_read_input_tokens: null, output_tokens: 0 })).toEqual({
      inputTokens: 0,
      outputTokens: 0,
    })
  })

  it('a later zero replaces an earlier count, a later null does not', () => {
    const start = readMessagesUsage({ input_tokens: 9, cache_read_input_tokens: 5, output_tokens: 1 })
    const end = readMessagesUsage({ input_tokens: null, cache_read_input_tokens: 0, output_tokens: 0 })

    expect(normalisedUsage(latestUsage(start, end))).toEqual({ inputTokens: 9, cachedInputTokens: 0, outputTokens: 0 })
  })

  it.each([undefined, null, 'x', [], {}, { input_tokens: '12' }])('is undefined for %j', (value) => {
    expect(usageFrom(value)).toBeUndefined()
  })

  it.each([-1, 1.5, 2 ** 31, Number.NaN])('passes %d on without a throw, for settling to judge', (value) => {
    expect(usageFrom({ input_tokens: value, output_tokens: value })).toEqual({
      inputTokens: value,
      outputTokens: value,
    })
  })
})
