import { describe, expect, it } from 'vitest'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import { anthropicFoundry } from '../../../src/vendors/anthropic/anthropic.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { callFromRequest } from '../shared/vendor-call.ts'

const request = { model: 'public', max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hi' }] }
const call = callFromRequest(request, { upstream: 'claude-opus-4-8', apiKey: 'k-012345678' })

describe('Claude in Foundry', () => {
  for (const options of [
    { resource: 'res' },
    { endpoint: 'https://res.services.ai.azure.com' },
    { endpoint: 'https://res.services.ai.azure.com/anthropic' },
    { endpoint: 'https://res.services.ai.azure.com/anthropic/v1/' },
    { endpoint: 'https://res.services.ai.azure.com/anthropic/v1/messages' },
  ]) {
    it(`is asked at one address, given ${JSON.stringify(options)}`, () => {
      const vendor = anthropicFoundry({ apiKey: 'k-012345678', ...options })
      const wire = vendor.messages!.toWire(call as unknown as VendorCall<MessagesRequest>)
      const count = vendor.messages!.tokenCount.toWire(call as unknown as VendorCall<MessagesRequest>)

      expect(vendor).toMatchObject({ id: 'anthropic-foundry', origin: 'https://res.services.ai.azure.com' })
      expect(wire.path).toBe('/anthropic/v1/messages')
      expect(count.path).toBe('/anthropic/v1/messages/count_tokens')
      expect(wire.headers).toContain('x-api-key')
      expect(vendor.chat!.toWire(call).path).toBe('/anthropic/v1/messages')
    })
  }

  it('says what to set when it is not', () => {
    expect(() => anthropicFoundry({ apiKey: 'k' })).toThrow(/resource or endpoint/)
    expect(() => anthropicFoundry({ resource: 'a b' })).toThrow(/resource/)
    expect(anthropicFoundry({ resource: 'res' })).toMatchObject({
      apiKeys: [],
      configuredBy: 'ANTHROPIC_FOUNDRY_API_KEY or anthropicFoundry({ apiKey })',
    })
    expect(anthropicFoundry({ id: 'foundry-eu', resource: 'res', apiKey: 'k' }).id).toBe('foundry-eu')
  })
})
