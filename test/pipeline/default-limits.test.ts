import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { limitsOf } from '../../src/pipeline/admission.ts'
import { AccountPlans, withDefaults } from '../../src/pipeline/pipeline-context.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { Principal } from '../../src/stores/principal.ts'
import { startGateway } from '../support/start-gateway.ts'

const DEFAULTS = { requestsPerMinute: 600, tokensPerMinute: 1000 }

describe("the gateway's own limits", () => {
  const caller: Principal = { accountId: 'acct_1', keyId: 'key_1', tier: 'paid' }

  const SET = { perKey: DEFAULTS, perAccount: {}, perEndUser: {} }
  const settings = {
    limits: SET,
    plans: new Map(),
    accountPlans: new AccountPlans(memoryStore().ledger, systemClock),
  }

  test('hold one by one, for whatever a key does not limit itself', () => {
    expect(withDefaults({ requestsPerMinute: 1 }, DEFAULTS)).toEqual({ ...DEFAULTS, requestsPerMinute: 1 })
    expect(withDefaults({ concurrency: 5 }, DEFAULTS)).toEqual({ ...DEFAULTS, concurrency: 5 })
    expect(withDefaults({ tokensPerMinute: 2000, requestsPerMinute: undefined }, DEFAULTS)).toEqual({
      requestsPerMinute: 600,
      tokensPerMinute: 2000,
    })
    expect(withDefaults({}, DEFAULTS)).toEqual(DEFAULTS)
  })

  test('cost nothing where a key sets none', async () => {
    expect(await limitsOf(settings, caller)).toBe(SET)
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
