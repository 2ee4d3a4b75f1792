import { describe, expect, it } from 'vitest'
import { openaiUsage } from '../../../src/vendors/shared/openai-chat-answer.ts'

describe('openaiUsage', () => {
  it('takes prompt tokens as a total that already includes cached and cache-written tokens', () => {
    const wire = {
      prompt_tokens: 100,
      completion_tokens: 9,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
    }

    expect(openaiUsage(wire)).toEqual({
      inputTokens: 100,
      cachedInputTokens: 60,
      cacheWriteTokens: 30,
      outputTokens: 9,
    })
  })

  it('reads cache writes under the name that other servers of the dialect use', () => {
    expect(openaiUsage({ prompt_tokens: 5, prompt_tokens_details: { cache_creation_input_tokens: 4 } })).toEqual({
      inputTokens: 5,
      cacheWriteTokens: 4,
    })
  })

  it('reads how much was written for an hour, if a lifetime is reported', () => {
    const read = (lifetimes: unknown): number | undefined =>
      openaiUsage({ prompt_tokens_details: { cache_creation_tokens: 4, cache_creation_token_details: lifetimes } })
        ?.cacheWrite1hTokens

    expect(read({ ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 3 })).toBe(3)
    expect(read({ ephemeral_5m_input_tokens: 4 })).toBe(0)
    expect(read({ ephemeral_5m_input_tokens: null, ephemeral_1h_input_tokens: null })).toBeUndefined()
    expect(read({})).toBeUndefined()
  })

  const paths = [
    ['inputTokens', (value: unknown) => ({ prompt_tokens: value })],
    ['outputTokens', (value: unknown) => ({ completion_tokens: value })],
    ['cachedInputTokens', (value: unknown) => ({ prompt_tokens_details: { cached_tokens: value } })],
    ['cacheWriteTokens', (value: unknown) => ({ prompt_tokens_details: { cache_write_tokens: value } })],
    ['reasoningTokens', (value: unknown) => ({ completion_tokens_details: { reasoning_tokens: value } })],
  ] as const
  for (const [field, wireWith] of paths) {
    it(`keeps a zero of ${field}, and leaves it out when unsaid`, () => {
      expect(openaiUsage(wireWith(0))).toEqual({ [field]: 0 })
      expect(openaiUsage(wireWith(undefined))).toEqual({})
      expect(openaiUsage(wireWith(null))).toEqual({})
    })

    it(`passes any number of ${field} on and ignores other values`, () => {
      for (const number of [-1, 1.5, 2 ** 31, Number.NaN])
        expect(openaiUsage(wireWith(number))).toEqual({ [field]: number })
      for (const other of ['12', [], {}, true]) expect(openaiUsage(wireWith(other))).toEqual({})
    })
  }

  it('never throws on values other than usage', () => {
    for (const value of [undefined, null, 7, 'x', []]) expect(openaiUsage(value)).toBeUndefined()
    expect(openaiUsage({ prompt_tokens_details: null, completion_tokens_details: 'x' })).toEqual({})
  })
})
