import { describe, expect, it } from 'vitest'
import { usageFrom as geminiUsage } from '../../../src/vendors/gemini/usage-from.ts'
import { usageFrom as messagesUsage } from '../../../src/vendors/shared/messages-answer.ts'
import { responsesUsage } from '../../../src/vendors/shared/openai-responses-usage.ts'
import { usageAtTier } from '../../../src/vendors/shared/vendor-cost.ts'

const usage = { inputTokens: 1 }

describe('usageAtTier', () => {
  it.each(['priority', 'flex', 'Priority'])('adds the tier %s', (told) => {
    expect(usageAtTier(usage, told)).toEqual({ ...usage, serviceTier: told.toLowerCase() })
  })

  it.each(['default', 'standard', 'on_demand'])(
    'adds the ordinary tier %s to a request for another tier only',
    (told) => {
      expect(usageAtTier(usage, told)).toBe(usage)
      expect(usageAtTier(usage, told, 'flex')).toBe(usage)
      expect(usageAtTier(usage, told, 'priority')).toEqual({ ...usage, serviceTier: 'default' })
    },
  )

  it.each([undefined, null, '', 'auto', 7])('adds nothing for %s', (told) => {
    expect(usageAtTier(usage, told, 'priority')).toBe(usage)
  })
})

it('reads the tier of a response', () => {
  const response = { usage: { input_tokens: 1 }, service_tier: 'priority' }

  expect(responsesUsage(response)).toMatchObject({ serviceTier: 'priority' })
  expect(responsesUsage({ ...response, service_tier: 'default' }, 'priority')).toMatchObject({ serviceTier: 'default' })
})

it('reads the tier of a message', () => {
  expect(messagesUsage({ input_tokens: 1, service_tier: 'priority' })).toMatchObject({ serviceTier: 'priority' })
  expect(messagesUsage({ input_tokens: 1, service_tier: 'standard' })).toEqual(usage)
})

it('reads the traffic type of Vertex AI as a tier', () => {
  const told = (trafficType: string) => geminiUsage({ promptTokenCount: 1, trafficType })?.serviceTier

  expect(['ON_DEMAND', 'ON_DEMAND_PRIORITY', 'ON_DEMAND_FLEX'].map(told)).toEqual([undefined, 'priority', 'flex'])
})
