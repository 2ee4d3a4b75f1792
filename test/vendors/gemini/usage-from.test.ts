import { describe, expect, test } from 'vitest'
import { usageFrom } from '../../../src/vendors/gemini/usage-from.ts'

describe('usage of Gemini answers', () => {
  test.each([
    ['nothing', undefined, undefined],
    ['an empty object', {}, {}],
    ['prompt and answer', { promptTokenCount: 5, candidatesTokenCount: 3 }, { inputTokens: 5, outputTokens: 3 }],
    ['tool use outside the prompt', { promptTokenCount: 5, toolUsePromptTokenCount: 2 }, { inputTokens: 7 }],
    [
      'cached tokens inside the prompt',
      { promptTokenCount: 5, cachedContentTokenCount: 4 },
      { inputTokens: 5, cachedInputTokens: 4 },
    ],
    [
      'thoughts outside the answer',
      { candidatesTokenCount: 3, thoughtsTokenCount: 6 },
      { outputTokens: 9, reasoningTokens: 6 },
    ],
    [
      'thoughts without an answer',
      { promptTokenCount: 5, thoughtsTokenCount: 6 },
      { inputTokens: 5, outputTokens: 6, reasoningTokens: 6 },
    ],
    ['an answer told by the total', { promptTokenCount: 5, totalTokenCount: 5 }, { inputTokens: 5, outputTokens: 0 }],
    ['a total below its part', { promptTokenCount: 5, totalTokenCount: 4 }, { inputTokens: 5 }],
    [
      'zeros',
      { promptTokenCount: 0, cachedContentTokenCount: 0, candidatesTokenCount: 0, thoughtsTokenCount: 0 },
      { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    ],
    ['numbers as text', { promptTokenCount: '12', candidatesTokenCount: 1 }, { outputTokens: 1 }],
  ])('%s', (_case, metadata, usage) => {
    expect(usageFrom(metadata)).toEqual(usage)
  })
})
