import { afterEach, describe, expect, test } from 'vitest'
import { BUILT_IN_SNAPSHOT } from '../../../src/catalog/vendor-models/snapshot.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type Routed, startRouted } from '../../routing/support/start-routed.ts'
import { TEST_KEY } from '../../support/start-gateway.ts'

const OPERATOR_KEY = 'operator-0123456789-abcdef'

let started: Routed

afterEach(() => started.close())

function health(query: string, authorization?: string): Promise<Response> {
  return fetch(`${started.url}/healthz${query}`, { headers: authorization === undefined ? {} : { authorization } })
}

describe('GET /healthz?verbose', () => {
  test('shows vendors and keys to the operator, and no key', async () => {
    started = await startRouted({ keys: [['canary-a', 'canary-b']], gateway: { operatorKey: OPERATOR_KEY } })
    started.stands[0]!.answer = ({ key }) => (key === 'canary-a' ? { status: 401 } : {})
    await started.ask(3)

    const response = await health('?verbose', `Bearer ${OPERATOR_KEY}`)
    const text = await response.text()

    expect(response.status).toBe(200)
    expect(text).not.toMatch(/canary|operator-/)
    expect(JSON.parse(text)).toEqual({
      status: 'ok',
      store: { status: 'ok' },
      inFlight: 0,
      catalog: { date: BUILT_IN_SNAPSHOT.date, ageDays: expect.any(Number), isOld: expect.any(Boolean) },
      ...started.gateway.routes(),
    })
    expect(JSON.parse(text)).toMatchObject({
      status: 'ok',
      retriesLeft: expect.any(Number),
      vendors: [
        {
          vendor: 'one',
          inFlight: 0,
          keys: [
            { circuit: 'open', reason: 'refused', openUntilMs: expect.any(Number) },
            { circuit: 'closed', reason: null, openUntilMs: null, latencyMs: expect.any(Number), openModels: [] },
          ],
        },
      ],
    })
  })

  test.each([
    ['no key', undefined],
    ['a wrong key', `Bearer ${OPERATOR_KEY}x`],
    ["a caller's key", `Bearer ${TEST_KEY}`],
  ])('gets 401 with %s', async (_name, authorization) => {
    started = await startRouted({ gateway: { operatorKey: OPERATOR_KEY } })
    const response = await health('?verbose', authorization)

    expect(response.status).toBe(401)
    expect(await response.text()).not.toContain('vendors')
  })

  test('gets 401 for everybody if no operator key is set', async () => {
    started = await startRouted()

    expect((await health('?verbose', 'Bearer undefined')).status).toBe(401)
    expect(await (await health('')).json()).toEqual({ status: 'ok' })
  })
})

test('distinguishes a busy model from its key', async () => {
  started = await startRouted({ keys: [['canary-a', 'canary-b']] })
  started.stands[0]!.answer = ({ key }) => (key === 'canary-a' ? { status: 429, retryAfterSeconds: 60 } : {})
  await started.ask(2)

  expect(started.gateway.routes().vendors[0]?.keys[0]).toMatchObject({ circuit: 'closed', openModels: ['routed'] })
})

describe('options that cannot be meant', () => {
  const fine: GatewayOptions = { vendors: [], billing: 'off' }

  test.each([
    ['an unknown member of routing', { routing: { stratgy: 'cost' } }, 'routing.stratgy'],
    ['an unknown strategy', { routing: { strategy: 'luck' } }, 'routing.strategy'],
    ['an unknown policy', { routing: { fallback: 'sometimes' } }, 'routing.fallback'],
    ['statuses that are none', { routing: { fallback: { statuses: ['503'] } } }, 'routing.fallback.statuses'],
    ['a short operator key', { operatorKey: 'short' }, 'operatorKey'],
    ['an empty operator key', { operatorKey: '' }, 'operatorKey'],
  ])('%s: an error at start', async (_name, options, named) => {
    started = await startRouted()

    expect(() => createGateway({ ...fine, ...(options as Partial<GatewayOptions>) })).toThrow(named)
  })

  test.each([[[1, 2]], [[0]], [[Number.NaN]]])(
    'weights of keys that are %j for one key: an error at start',
    async (keyWeights) => {
      started = await startRouted()
      const vendor = { ...openai({ apiKey: 'key' }), keyWeights }

      expect(() => createGateway({ vendors: [vendor], billing: 'off' })).toThrow('keyWeights')
    },
  )
})
