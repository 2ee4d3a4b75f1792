import { describe, expect, test } from 'vitest'
import { withDefaultLimits } from '../../src/pipeline/authenticate.ts'
import type { Principal } from '../../src/stores/principal.ts'
import { startGateway } from '../support/start-gateway.ts'

const DEFAULTS = { requestsPerMinute: 600, tokensPerMinute: 1000 }

describe("the gateway's own limits", () => {
  const caller: Principal = { accountId: 'acct_1', keyId: 'key_1', tier: 'paid' }

  test('hold one by one, for whatever a key does not limit itself', () => {
    const limits = (own: Principal['limits']): Principal['limits'] =>
      withDefaultLimits({ ...caller, limits: own }, DEFAULTS).limits

    expect(limits({ requestsPerMinute: 1 })).toEqual({ ...DEFAULTS, requestsPerMinute: 1 })
    expect(limits({ concurrency: 5 })).toEqual({ ...DEFAULTS, concurrency: 5 })
    expect(limits({ tokensPerMinute: 2000, requestsPerMinute: undefined })).toEqual({
      requestsPerMinute: 600,
      tokensPerMinute: 2000,
    })
    expect(limits({})).toEqual(DEFAULTS)
  })

  test('cost nothing where a key sets all, or none', () => {
    const complete = { ...caller, limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 } }

    expect(withDefaultLimits(caller, DEFAULTS)).toBe(caller)
    expect(withDefaultLimits(complete, DEFAULTS)).toBe(complete)
  })

  test('bind a key that sets another limit, which may be above them', async () => {
    const started = await startGateway({ limits: { requestsPerMinute: 2, tokensPerMinute: 50 } })
    try {
      const { key } = await started.gateway.keys.create({
        accountId: 'acct_test',
        limits: { concurrency: 5, tokensPerMinute: 90_000 },
      })
      const ask = (): Promise<Response> =>
        started.post('/v1/embeddings', { model: 'vy-4', input: 'hello' }, { authorization: `Bearer ${key}` })
      const answers = [await ask(), await ask(), await ask()]

      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(answers[0]?.headers.get('x-ratelimit-limit-requests')).toBe('2')
      expect(answers[0]?.headers.get('x-ratelimit-limit-tokens')).toBe('90000')
    } finally {
      await started.close()
    }
  })
})
