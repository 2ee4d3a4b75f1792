import { afterEach, describe, expect, test } from 'vitest'
import type { AnyHook, HookCall } from '../../../src/hooks/hook.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { completion, type HookedGateway, hookedGateway, type Script, spoken } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'

/** One thousandth of a dollar, so that one unit is a million nano-dollars. */
const UNIT = { model: 'chat-relayed', meter: 'hook_unit', amount: '0.001' } as const
const PRICES = { currency: 'USD' as const, prices: [...testPrices.prices, UNIT] }
/** 7 tokens in at 1 dollar a million, 5 out at 4. */
const TOKENS = 27_000n
const PER_UNIT = 1_000_000n

const charging = (units: number, name = 'guard'): AnyHook => ({
  name,
  request: (call: HookCall) => void call.charge('hook_unit', units),
})
const DENY: AnyHook = { name: 'deny', request: () => ({ deny: { message: 'No.' } }) }

let gateway: HookedGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

async function start(
  hooks: readonly AnyHook[],
  options: Parameters<typeof hookedGateway>[2] = {},
  script?: Script,
): Promise<HookedGateway> {
  gateway = await hookedGateway(hooks, script, { prices: PRICES, usage: {}, ...options })
  return gateway
}

async function spent({ account }: HookedGateway, before: bigint): Promise<bigint> {
  const { balance, held } = await account()
  expect(held).toBe(0n)
  return before - balance
}

describe('units that hooks charge', () => {
  test('are held and charged with the call, rounded once, and are in header, event and record', async () => {
    const hooked = await start([charging(2, 'one'), charging(3, 'two')])
    const { balance } = await hooked.account()
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))
    const event = await hooked.ended(response)

    expect(response.headers.get('x-signalbox-cost')).toBe('0.005027')
    expect(event).toMatchObject({ costNanoDollars: TOKENS + 5n * PER_UNIT, usage: { inputTokens: 7, hookUnits: 5 } })
    expect(await spent(hooked, balance)).toBe(TOKENS + 5n * PER_UNIT)
    const { records } = await hooked.gateway.usage.records()
    expect(records).toMatchObject([{ usage: { inputTokens: 7, outputTokens: 5, hookUnits: 5 }, isEstimated: false }])
  })

  test('are in the cost that a stream tells', async () => {
    const hooked = await start([charging(2)], {}, spoken(['Hel', 'lo.']))
    const body = chatBody('chat-relayed', 'hi', { stream: true, stream_options: { include_usage: true } })
    const response = await hooked.post(CHAT, body)
    await response.text()

    expect((await hooked.ended(response)).costNanoDollars).toBe(TOKENS + 2n * PER_UNIT)
  })

  test('are part of the hold, so that a balance without them is rejected before a vendor is called', async () => {
    const hooked = await start([charging(200_000)])
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi', { max_tokens: 10 }))

    expect(response.status).toBe(402)
    expect(hooked.vendor.calls).toBe(0)
  })

  test('are nothing where the vendor fails', async () => {
    const hooked = await start([charging(2)], {}, (response) => void response.writeHead(400).end('{}'))
    const { balance } = await hooked.account()
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))
    await hooked.ended(response)

    expect(response.ok).toBe(false)
    expect(await spent(hooked, balance)).toBe(0n)
  })

  test('are charged where a later hook denies the request, and nothing else is', async () => {
    const hooked = await start([charging(2), DENY])
    const { balance } = await hooked.account()
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))
    const event = await hooked.ended(response)

    expect([response.status, hooked.vendor.calls]).toEqual([400, 0])
    expect(event).toMatchObject({ ending: 'failed', code: 'request_denied', usage: { hookUnits: 2 } })
    expect(await spent(hooked, balance)).toBe(2n * PER_UNIT)
    expect(hooked.eventsOf('request-refused')).toEqual([])
  })

  test('are charged where the same hook denies', async () => {
    const guard: AnyHook = {
      name: 'guard',
      request(call: HookCall) {
        call.charge('hook_unit', 1)
        return { deny: {} }
      },
    }
    const hooked = await start([guard])
    const { balance } = await hooked.account()
    await hooked.ended(await hooked.post(CHAT, chatBody('chat-relayed', 'hi')))

    expect(await spent(hooked, balance)).toBe(PER_UNIT)
  })

  test('never undo a denial: what cannot be charged is told to the operator', async () => {
    const hooked = await start([charging(200_000), DENY])
    const { balance } = await hooked.account()
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.status).toBe(400)
    expect(await spent(hooked, balance)).toBe(0n)
    expect(hooked.eventsOf('internal-error')).toMatchObject([{ where: 'the charge of hooks for a denied request' }])
    expect(hooked.eventsOf('request-refused')).toHaveLength(1)
  })

  test('are nothing where a hook fails, closed or open', async () => {
    const fail = (onFailure: 'deny' | 'allow'): AnyHook => ({
      name: 'fails',
      onFailure,
      request(call: HookCall) {
        call.charge('hook_unit', 9)
        throw new Error('broken')
      },
    })
    const closed = await start([charging(2), fail('deny')])
    const before = await closed.account()
    expect((await closed.post(CHAT, chatBody('chat-relayed', 'hi'))).status).toBe(503)
    expect(await spent(closed, before.balance)).toBe(0n)
    await closed.close()
    const open = await start([charging(2), fail('allow')])
    const event = await open.ended(await open.post(CHAT, chatBody('chat-relayed', 'hi')))

    expect(event.costNanoDollars).toBe(TOKENS + 2n * PER_UNIT)
  })

  test.each([[-1], [0.5], [Number.NaN], [2 ** 53], ['2']])('cannot be %s', async (units) => {
    const hooked = await start([charging(units as number)])

    expect((await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))).status).toBe(503)
    expect(hooked.vendor.calls).toBe(0)
  })

  test('cannot be charged after the hook has answered', async () => {
    let late: unknown
    const hook: AnyHook = {
      name: 'late',
      request(call: HookCall) {
        queueMicrotask(() => {
          try {
            call.charge('hook_unit', 5)
          } catch (error) {
            late = error
          }
        })
      },
    }
    const hooked = await start([hook])
    const event = await hooked.ended(await hooked.post(CHAT, chatBody('chat-relayed', 'hi')))

    expect(late).toBeInstanceOf(TypeError)
    expect(event.costNanoDollars).toBe(TOKENS)
  })

  test('are not charged again with a replay', async () => {
    const hooked = await start([charging(2)])
    const headers = { 'idempotency-key': 'once' }
    await hooked.ended(await hooked.post(CHAT, chatBody('chat-relayed', 'hi'), headers))
    const { balance } = await hooked.account()
    const replay = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'), headers)

    expect(replay.headers.get('idempotent-replayed')).toBe('true')
    expect(await spent(hooked, balance)).toBe(0n)
  })

  test.each([
    ['by the price of the model', [], 0n],
    [
      'beside a price of hits',
      [{ model: 'chat-relayed', meter: 'request', amount: '0.01', when: { cache: 'hit' } }],
      10_000_000n,
    ],
  ] as const)('are charged on a hit of the cache, %s', async (_name, rows, ofHit) => {
    const prices = { ...PRICES, prices: [...PRICES.prices, ...rows] }
    const hooked = await start([charging(2)], { prices, cache: { rules: [{ sampling: 'any' }] } })
    await hooked.ended(await hooked.post(CHAT, chatBody('chat-relayed', 'hi')))
    const { balance } = await hooked.account()
    const hit = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))
    const event = await hooked.ended(hit)

    expect(hit.headers.get('x-signalbox-cache')).toBe('hit')
    expect(await spent(hooked, balance)).toBe(2n * PER_UNIT + ofHit)
    expect(event).toMatchObject({ usage: { hookUnits: 2 }, cachedUsage: { inputTokens: 7 } })
  })

  test('without a price are refused with words for both sides, and are never free', async () => {
    const hooked = await start([charging(1)], { prices: testPrices })
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))
    const { error } = (await response.json()) as { error: { code: string; message: string } }

    expect([response.status, error.code]).toEqual([400, 'model_not_priced'])
    expect(error.message).toContain('no price for the hook units of this service')
    expect(hooked.vendor.calls).toBe(0)
    const warnings = hooked.eventsOf('configuration-warning').filter(({ code }) => code === 'hook-units-unpriced')
    expect(warnings).toMatchObject([{ message: expect.stringContaining('meter: "hook_unit"') }])
  })

  test('are reported without a price on a cache hit too, and release its place', async () => {
    let units = 0
    const hook: AnyHook = { name: 'guard', request: (call: HookCall) => void call.charge('hook_unit', units) }
    const hooked = await start([hook], {
      prices: testPrices,
      cache: { rules: [{ sampling: 'any' }] },
      limits: { concurrency: 1 },
    })
    await hooked.ended(await hooked.post(CHAT, chatBody('chat-relayed', 'hi')))
    units = 1
    expect((await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))).status).toBe(400)
    units = 0

    expect((await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))).headers.get('x-signalbox-cache')).toBe('hit')
  })

  test('are only counted with billing off', async () => {
    gateway = await hookedGateway([charging(4)], completion('Hello.'), { billing: 'off', usage: {} })
    const response = await gateway.post(CHAT, chatBody('chat-relayed', 'hi'))
    const event = await gateway.ended(response)

    expect(response.headers.get('x-signalbox-cost')).toBeNull()
    expect(event).toMatchObject({ usage: { hookUnits: 4 }, costNanoDollars: 0n })
  })
})
