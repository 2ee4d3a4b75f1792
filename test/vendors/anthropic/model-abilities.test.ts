import { describe, expect, it } from 'vitest'
import { modelAbilities } from '../../../src/vendors/shared/messages-abilities.ts'

describe('modelAbilities', () => {
  // Columns: sampling, thinking, way to turn it off, forced tool choice, prefill, most output tokens.
  it.each([
    ['claude-sonnet-4-5-20250929', 'either', 'budget', 'unasked', 'without_thinking', true, 64_000],
    ['claude-haiku-4-5', 'either', 'budget', 'unasked', 'without_thinking', true, 64_000],
    ['claude-opus-4-5-latest', 'either', 'budget', 'unasked', 'without_thinking', true, 64_000],
    ['claude-opus-4-6', 'either', 'adaptive', 'disabled', 'without_thinking', false, 128_000],
    ['claude-sonnet-4-6', 'either', 'adaptive', 'disabled', 'without_thinking', false, 128_000],
    ['claude-opus-4-7', 'default_only', 'adaptive', 'disabled', 'always', false, 128_000],
    ['claude-opus-4-8', 'default_only', 'adaptive', 'disabled', 'always', false, 128_000],
    ['claude-sonnet-5', 'default_only', 'adaptive', 'disabled', 'always', false, 128_000],
    ['claude-opus-5', 'default_only', 'adaptive', 'disabled', 'always', false, 128_000],
    ['claude-fable-5', 'default_only', 'adaptive', 'impossible', 'always', false, 128_000],
    ['claude-mythos-5', 'default_only', 'adaptive', 'impossible', 'always', false, 128_000],
    ['claude-haiku-5-5', 'default_only', 'adaptive', 'disabled', 'always', false, 128_000],
    ['claude-opus-5-5-20260915', 'default_only', 'adaptive', 'impossible', 'never', false, 128_000],
    ['claude-fable-5-1', 'default_only', 'adaptive', 'impossible', 'never', false, 128_000],
    ['claude-sonnet-5-5', 'default_only', 'adaptive', 'between_tools', 'never', false, 128_000],
    ['claude-not-released-yet', 'default_only', 'adaptive', 'impossible', 'never', false, 128_000],
  ])('knows what %s accepts', (id, sampling, thinking, thinkingOff, forcedToolChoice, prefill, maxOutputTokens) => {
    expect(modelAbilities(id)).toMatchObject({
      sampling,
      thinking,
      thinkingOff,
      forcedToolChoice,
      prefill,
      maxOutputTokens,
    })
  })

  it('does not take a longer id for a shorter family', () => {
    expect(modelAbilities('claude-opus-4-99')).toBe(modelAbilities('claude-opus-5-5'))
  })
})
