import { describe, expect, it } from 'vitest'
import { type LooseRequest, translated } from './chat-call.ts'

const SUMMARIZED = { type: 'adaptive', display: 'summarized' }
const budget = (tokens: number) => ({ type: 'enabled', budget_tokens: tokens })

const TOOL_LOOP: LooseRequest = {
  reasoning_effort: 'high',
  messages: [
    { role: 'user', content: 'Go' },
    { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'a', content: 'A' },
  ],
}

describe('reasoning_effort', () => {
  it.each([
    // upstream, effort, thinking, effort sent, reported
    ['claude-sonnet-4-5', 'minimal', budget(1024), undefined, false],
    ['claude-sonnet-4-5', 'medium', budget(8192), undefined, false],
    ['claude-sonnet-4-5', 'max', budget(32_000), undefined, false],
    ['claude-sonnet-4-5', 'none', undefined, undefined, false],
    ['claude-sonnet-4-6', 'none', { type: 'disabled' }, undefined, false],
    ['claude-sonnet-4-6', 'minimal', { type: 'adaptive' }, 'low', true],
    ['claude-sonnet-4-6', 'high', { type: 'adaptive' }, 'high', false],
    ['claude-sonnet-4-6', 'xhigh', { type: 'adaptive' }, 'high', true],
    ['claude-sonnet-4-6', 'max', { type: 'adaptive' }, 'max', false],
    ['claude-opus-4-7', 'low', SUMMARIZED, 'low', false],
    ['claude-opus-4-7', 'xhigh', SUMMARIZED, 'xhigh', false],
    ['claude-sonnet-5-5', 'none', { type: 'between_tools' }, undefined, false],
    ['claude-opus-5-5', 'none', undefined, 'low', true],
    ['claude-unheard-of-9', 'none', undefined, 'low', true],
  ])('on %s with %s', (upstream, effort, thinking, sent, isReported) => {
    const { body, dropped } = translated({ reasoning_effort: effort }, { upstream })

    expect(body.thinking).toEqual(thinking)
    expect(body.output_config?.effort).toBe(sent)
    expect(dropped).toEqual(isReported ? ['reasoning_effort'] : [])
  })

  it('is silent about reasoning when the request is', () => {
    const { body } = translated({}, { upstream: 'claude-opus-5' })

    expect(body).not.toHaveProperty('thinking')
    expect(body).not.toHaveProperty('output_config')
  })

  it('keeps the budget within the bound of the caller', () => {
    const { body } = translated({ reasoning_effort: 'high', max_tokens: 4000 }, { upstream: 'claude-haiku-4-5' })

    expect(body.max_tokens).toBe(4000)
    expect(body.thinking).toEqual(budget(3000))
  })

  it('does not think when the bound leaves no room for the least budget, and reports it', () => {
    const { body, dropped } = translated(
      { reasoning_effort: 'high', max_tokens: 1200 },
      { upstream: 'claude-haiku-4-5' },
    )

    expect(body).not.toHaveProperty('thinking')
    expect(dropped).toEqual(['reasoning_effort'])
  })

  it('takes no budget in a tool loop whose thinking block was lost, where the API would refuse it', () => {
    const { body, dropped } = translated(TOOL_LOOP, { upstream: 'claude-haiku-4-5' })

    expect(body).not.toHaveProperty('thinking')
    expect(dropped).toEqual(['reasoning_effort'])
  })

  it('thinks on in that loop when the amount is left to the model', () => {
    expect(translated(TOOL_LOOP).body.thinking).toEqual({ type: 'adaptive' })
  })

  it('takes a budget in a tool loop that begins with its thinking block', () => {
    const messages = (TOOL_LOOP['messages'] as Record<string, unknown>[]).map((message) =>
      message['role'] === 'assistant'
        ? { ...message, thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature: 'EqQB' }] }
        : message,
    )

    const { body } = translated({ ...TOOL_LOOP, messages }, { upstream: 'claude-haiku-4-5' })

    expect(body.thinking).toEqual(budget(16_384))
  })
})
