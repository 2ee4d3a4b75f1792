import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import type { StandInAnswer } from '../../routing/support/stand-in-vendor.ts'
import { ROUTED_PRICES, type Routed, type RoutedOptions, startRouted } from '../../routing/support/start-routed.ts'
import { TEST_ACCOUNT } from '../../support/start-gateway.ts'

let started: Routed

afterEach(() => started.close())

async function start(options?: RoutedOptions): Promise<Routed> {
  started = await startRouted(options)
  return started
}

const keysAsked = (index: number): string[] => started.stands[index]!.calls.map(({ key }) => key)
const counts = (names: readonly string[]): Record<string, number> => {
  const byName: Record<string, number> = {}
  for (const name of names) byName[name] = (byName[name] ?? 0) + 1
  return byName
}
const eventsOf = <Type extends GatewayEvent['type']>(type: Type): Extract<GatewayEvent, { type: Type }>[] =>
  started.events.filter((event): event is Extract<GatewayEvent, { type: Type }> => event.type === type)

describe('a model with several routes', () => {
  test('shares its calls by weight, and each vendor gets its own id of the model', async () => {
    await start({
      model: {
        routes: [
          { vendor: 'one', weight: 3 },
          { vendor: 'two', upstream: 'second-id' },
        ],
      },
    })

    expect(counts(await started.ask(20))).toEqual({ one: 15, two: 5 })
    expect(new Set(started.stands.map(({ calls }) => calls[0]?.model))).toEqual(new Set(['upstream-id', 'second-id']))
  })

  test('needs no vendor of its own', async () => {
    await start({ model: { vendor: undefined, routes: [{ vendor: 'two' }, { vendor: 'one', priority: 1 }] } })
    const [row] = started.gateway.models().filter(({ id }) => id === 'routed')

    expect(await started.ask(2)).toEqual(['two', 'two'])
    expect(row).toMatchObject({ owned_by: 'two', available: true })
    expect(started.gateway.warnings().filter(({ code }) => code === 'vendor-unconfigured')).toEqual([])
  })

  test('names in header and events who answered, and bills once, by the public model', async () => {
    await start()
    started.stands[0]!.answer = () => ({ status: 503, retryAfterSeconds: 60 })
    const before = await started.account()

    const [vendor] = await started.ask(1)
    const [ended] = eventsOf('request-ended')

    expect(vendor).toBe('two')
    expect(ended).toMatchObject({ vendor: 'two', model: 'routed', costNanoDollars: 20_000n })
    expect(eventsOf('attempt-failed')).toMatchObject([{ vendor: 'one', status: 503 }])
    expect(await started.account()).toEqual({ balance: before.balance - 20_000n, held: 0n })
  })

  test('asks a vendor again in time when the clock was set back while its circuit was open', async () => {
    const clock = fakeClock()
    let aheadMs = 86_400_000
    const moved = { ...clock, now: () => clock.now() + aheadMs }
    await start({ gateway: { clock: moved }, model: { routes: [{ vendor: 'one' }, { vendor: 'two', priority: 1 }] } })
    started.stands[0]!.answer = () => ({ status: 503, retryAfterSeconds: 60 })
    const atFirst = await started.ask(2)
    started.stands[0]!.answer = () => ({})
    aheadMs = 0
    const setBack = await started.ask(1)
    clock.advance(60_000)

    expect([atFirst, setBack, await started.ask(2)]).toEqual([['two', 'two'], ['two'], ['one', 'one']])
  })

  test('uses a later priority only while the earlier one is ejected', async () => {
    const clock = fakeClock()
    await start({ gateway: { clock }, model: { routes: [{ vendor: 'one' }, { vendor: 'two', priority: 1 }] } })
    const well = await started.ask(3)
    started.stands[0]!.answer = () => ({ status: 503, retryAfterSeconds: 60 })
    const ill = await started.ask(3)
    started.stands[0]!.answer = () => ({})
    clock.advance(60_000)

    expect([well, ill, await started.ask(2)]).toEqual([
      ['one', 'one', 'one'],
      ['two', 'two', 'two'],
      ['one', 'one'],
    ])
    expect(started.stands[0]!.calls).toHaveLength(3 + 1 + 2)
  })

  test('may have routes for certain calls only, and says so when none is left', async () => {
    await start({ model: { kind: ['chat', 'embedding'], routes: [{ vendor: 'one', when: { kind: 'embedding' } }] } })
    const response = await started.post('/v1/chat/completions', {
      model: 'routed',
      messages: [{ role: 'user', content: 'x' }],
    })

    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ error: { code: 'model_not_configured' } })
    expect((await started.account()).held).toBe(0n)
  })

  test('is served although the vendor of its row is not configured', async () => {
    await start({ model: { vendor: 'elsewhere', routes: [{ vendor: 'elsewhere' }, { vendor: 'two' }] } })

    expect(await started.ask(2)).toEqual(['two', 'two'])
    expect(started.gateway.models().find(({ id }) => id === 'routed')).toMatchObject({
      available: true,
      owned_by: 'two',
    })
  })

  test('passes over a vendor that cannot do what is asked, and tells why when none can', async () => {
    const withoutChat = ({ chat: _chat, ...vendor }: Vendor): Vendor => vendor
    await start({ vendor: (vendor) => (vendor.id === 'one' ? withoutChat(vendor) : vendor) })
    expect(await started.ask(4)).toEqual(['two', 'two', 'two', 'two'])
    await started.close()
    await start({ vendor: withoutChat })

    expect(await started.ask(1)).toEqual(['400'])
  })
})

describe('several keys of one vendor', () => {
  const keys = [['canary-a', 'canary-b'], ['canary-c']]
  const model = { routes: [{ vendor: 'one' }, { vendor: 'two', weight: 0.001 }] }

  test.each<[string, StandInAnswer, string]>([
    ['401', { status: 401 }, 'refused'],
    ['402', { status: 402 }, 'refused'],
    ['403', { status: 403 }, 'refused'],
    ['429', { status: 429 }, 'busy'],
    ['429 for quota', { status: 429, code: 'insufficient_quota' }, 'refused'],
  ])(
    'a %s at one sends the call to the next of the same vendor, and leaves that one alone',
    async (_name, answer, reason) => {
      const clock = fakeClock()
      await start({ keys, model, gateway: { clock } })
      started.stands[0]!.answer = ({ key }) => (key === 'canary-a' ? answer : {})

      expect(await started.ask(5)).toEqual(['one', 'one', 'one', 'one', 'one'])
      expect(counts(keysAsked(0))).toEqual({ 'canary-a': 1, 'canary-b': 5 })
      expect(started.stands[1]!.calls).toHaveLength(0)
      expect(eventsOf('circuit-opened')).toMatchObject([{ vendor: 'one', reason }])
    },
  )

  test('a model that a key may not use leaves the key to its other models', async () => {
    const other = { id: 'other', kind: 'chat', vendor: 'one', limits: { maxOutputTokens: 100 } } as const
    await start({
      keys: [['canary-a', 'canary-b']],
      moreModels: [other],
      model: { routes: [{ vendor: 'one' }] },
      gateway: { clock: fakeClock() },
    })
    started.stands[0]!.answer = ({ key, model: asked }) =>
      key === 'canary-a' && asked === 'upstream-id' ? { status: 403, code: 'model_not_found' } : {}

    // Other calls in between do not speak for the model.
    for (let turn = 0; turn < 12; turn++) {
      expect(await started.ask(1)).toEqual(['one'])
      expect(await started.ask(1, { model: 'other' })).toEqual(['one'])
    }

    const refused = started.stands[0]!.calls.filter((call) => call.key === 'canary-a' && call.model === 'upstream-id')
    expect(refused).toHaveLength(5)
    expect(eventsOf('circuit-opened')).toMatchObject([{ vendor: 'one', model: 'routed', reason: 'refused' }])
    const others = started.stands[0]!.calls.filter((call) => call.model === 'other').map(({ key }) => key)
    expect(others.slice(-2).toSorted()).toEqual(['canary-a', 'canary-b'])
  })

  test('no event and no report holds a key', async () => {
    await start({ keys, model })
    started.stands[0]!.answer = () => ({ status: 401 })
    await started.ask(6)
    const text = JSON.stringify([started.events, started.gateway.routes()], (_name, value) =>
      typeof value === 'bigint' ? String(value) : value,
    )

    expect(eventsOf('circuit-opened').length).toBeGreaterThan(0)
    expect(text).not.toContain('canary')
  })

  test('share calls by their weights', async () => {
    await start({
      keys: [['canary-a', 'canary-b']],
      vendor: (vendor) => ({ ...vendor, keyWeights: [3, 1] }),
    })
    await started.ask(16)

    expect(counts(keysAsked(0))).toEqual({ 'canary-a': 12, 'canary-b': 4 })
  })

  test('a retry-after is obeyed to the second', async () => {
    const clock = fakeClock()
    await start({ keys: [['canary-a', 'canary-b']], gateway: { clock } })
    started.stands[0]!.answer = ({ key }) => (key === 'canary-a' ? { status: 429, retryAfterSeconds: 7 } : {})
    await started.ask(4)
    clock.advance(6_999)
    await started.ask(4)
    const before = counts(keysAsked(0))['canary-a']
    started.stands[0]!.answer = () => ({})
    clock.advance(1)
    await started.ask(4)

    expect(before).toBe(1)
    expect(counts(keysAsked(0))['canary-a']).toBeGreaterThan(1)
    expect(eventsOf('circuit-closed')).toHaveLength(1)
  })

  test("reports a circuit that a rejection of the caller's input closes, too", async () => {
    const clock = fakeClock()
    await start({ keys: [['canary-a']], gateway: { clock } })
    started.stands[0]!.answer = () => ({ status: 401 })
    await started.ask(1)
    started.stands[0]!.answer = () => ({ status: 400 })
    clock.advance(30_000)
    await started.ask(1)

    const { credentialId } = eventsOf('circuit-opened')[0]!
    expect(eventsOf('circuit-closed')).toEqual([
      { type: 'circuit-closed', vendor: 'one', credentialId, model: undefined },
    ])
    expect(started.gateway.routes().vendors[0]!.keys[0]!.circuit).toBe('closed')
  })

  test('the same end user, prompt cache or session stays with one key, and others spread', async () => {
    await start({ keys: [['canary-a', 'canary-b', 'canary-c']] })
    const keysOf = async (body: Record<string, unknown>): Promise<Set<string>> => {
      const from = started.stands[0]!.calls.length
      await started.ask(4, body)
      return new Set(keysAsked(0).slice(from))
    }
    const users = await Promise.all([keysOf({ user: 'user-1' })])
    const caches = [await keysOf({ prompt_cache_key: 'cache-1', user: 'user-7' })]
    const many = new Set<string>()
    for (let user = 0; user < 20; user++) for (const key of await keysOf({ user: `user-${user}` })) many.add(key)

    expect([...users, ...caches].map((seen) => seen.size)).toEqual([1, 1])
    expect(many.size).toBe(3)
  })

  test('an end user whose key is ejected goes on with another one, always the same', async () => {
    await start({ keys: [['canary-a', 'canary-b', 'canary-c']] })
    await started.ask(1, { user: 'someone' })
    const [home] = keysAsked(0)
    started.stands[0]!.answer = ({ key }) => (key === home ? { status: 401 } : {})
    await started.ask(5, { user: 'someone' })

    expect(new Set(keysAsked(0).slice(2)).size).toBe(1)
    expect(keysAsked(0).slice(2)).not.toContain(home)
  })
})

test('a request with the reasoning of one vendor goes to that vendor first', async () => {
  await start({
    vendor: (vendor) =>
      vendor.id === 'two'
        ? { ...vendor, ownsReasoning: (body) => JSON.stringify(body).includes('signed-by-two') }
        : vendor,
  })
  const signed = [{ role: 'user', content: 'signed-by-two' }]

  expect(await started.ask(4, { messages: signed })).toEqual(['two', 'two', 'two', 'two'])
  expect(counts(await started.ask(4))).toEqual({ one: 2, two: 2 })
})

describe('the strategy', () => {
  test('latency sends calls where they are answered sooner', async () => {
    await start({ gateway: { routing: { strategy: 'latency' } } })
    started.stands[0]!.answer = () => ({ delayMs: 60 })
    const answered = counts(await started.ask(20))

    expect(answered['two']).toBeGreaterThan(16)
  })

  test('cost sends calls where the price list says that they are cheapest', async () => {
    const costs = [
      { model: 'one/upstream-id', meter: 'input_token' as const, amount: '0.90', per: 1_000_000 },
      { model: 'one/upstream-id', meter: 'output_token' as const, amount: '0.90', per: 1_000_000 },
      { model: 'two/upstream-id', meter: 'input_token' as const, amount: '0.20', per: 1_000_000 },
      { model: 'two/upstream-id', meter: 'output_token' as const, amount: '0.20', per: 1_000_000 },
    ]
    const prices = { ...ROUTED_PRICES, prices: [...ROUTED_PRICES.prices, ...costs] }
    await start({ gateway: { routing: { strategy: 'cost' }, prices } })

    expect(await started.ask(3)).toEqual(['two', 'two', 'two'])
    expect(eventsOf('request-ended')[0]?.costNanoDollars).toBe(20_000n)
  })
})

describe('streams', () => {
  test('a vendor whose streams break is found out, though no stream is begun twice', async () => {
    await start({ model: { routes: [{ vendor: 'one' }, { vendor: 'two', priority: 1 }] } })
    started.stands[0]!.answer = () => ({ breaksOff: true })

    const answered = await started.ask(8, { stream: true })

    expect(answered).toEqual(['one', 'one', 'one', 'one', 'one', 'two', 'two', 'two'])
    expect(started.stands.map(({ calls }) => calls.length)).toEqual([5, 3])
  })

  test('a stream that fails before its first content goes to another vendor', async () => {
    await start()
    started.stands[0]!.answer = () => ({ status: 'reset' })

    expect(await started.ask(4, { stream: true })).toEqual(['two', 'two', 'two', 'two'])
  })

  test('count as calls in progress until they end, and a disconnect reveals nothing about its vendor', async () => {
    await start({ model: { routes: [{ vendor: 'one' }] } })
    started.stands[0]!.answer = () => ({ stops: true })
    const underWay = (): number[] => started.gateway.routes().vendors.map(({ inFlight }) => inFlight)
    for (let count = 0; count < 6; count++) {
      const leaving = new AbortController()
      const ended = started.nextEnded()
      const body = { model: 'routed', stream: true, messages: [{ role: 'user', content: 'hello' }] }
      const response = await started.post('/v1/chat/completions', body, {}, leaving.signal)
      expect(underWay()).toEqual([1, 0])
      leaving.abort()
      await expect(response.text()).rejects.toThrow()
      await ended
    }

    expect(underWay()).toEqual([0, 0])
    expect(started.gateway.routes().vendors[0]?.keys[0]).toMatchObject({ circuit: 'closed', failures: 0, inFlight: 0 })
  })
})

describe('fallback models', () => {
  const other = { id: 'other', kind: 'chat', vendor: 'two', limits: { maxOutputTokens: 100 } } as const
  const base = { model: { routes: [{ vendor: 'one' }], fallbacks: ['other'] }, moreModels: [other] }

  test.each([
    ['on-failure', 503, 'two'],
    ['never', 503, '503'],
    [{ statuses: [503] }, 503, 'two'],
    [{ statuses: [429] }, 503, '503'],
    [{ statuses: [429] }, 429, 'two'],
  ] as const)('applies the policy %j to a %i: %s answers', async (fallback, status, expected) => {
    await start({ ...base, gateway: { routing: { fallback } } })
    started.stands[0]!.answer = () => ({ status })

    expect(await started.ask(1)).toEqual([expected])
  })

  test('answer at once when every route of the model is ejected, and the policy counts that as 503', async () => {
    await start({ ...base, gateway: { routing: { fallback: { statuses: [503] } } } })
    started.stands[0]!.answer = () => ({ status: 503, retryAfterSeconds: 60 })
    await started.ask(4)

    expect(started.stands[0]!.calls).toHaveLength(1)
  })

  test('hold no money under the policy never', async () => {
    const prices = { ...ROUTED_PRICES, prices: ROUTED_PRICES.prices.filter(({ model }) => model === 'routed') }
    await start({ ...base, gateway: { prices, routing: { fallback: 'never' } } })

    expect(await started.ask(1)).toEqual(['one'])
  })
})

describe('a host', () => {
  const principal = { accountId: TEST_ACCOUNT, keyId: 'nightly', tier: 'paid' } as const
  const request = { model: 'routed', messages: [{ role: 'user' as const, content: 'hello' }] }

  test('sends its own requests where it wants them', async () => {
    await start()
    const client = started.gateway.client(principal, { route: { vendor: 'two' } })
    for (let count = 0; count < 4; count++) await client.chat.completions.create(request)

    expect(started.stands.map(({ calls }) => calls.length)).toEqual([0, 4])
  })

  test('forbids fallbacks for single requests', async () => {
    const other = { id: 'other', kind: 'chat', vendor: 'two', limits: { maxOutputTokens: 100 } } as const
    await start({ model: { routes: [{ vendor: 'one' }], fallbacks: ['other'] }, moreModels: [other] })
    started.stands[0]!.answer = () => ({ status: 503 })
    const client = started.gateway.client(principal, { route: { fallback: 'never' } })

    await expect(client.chat.completions.create(request)).rejects.toMatchObject({ status: 503 })
    expect(started.stands[1]!.calls).toHaveLength(0)
  })

  test('gets an error for a strategy that does not exist', async () => {
    await start()

    expect(() => started.gateway.client(principal, { route: { strategy: 'luck' as 'cost' } })).toThrow(TypeError)
  })

  test('alone decides: a caller over HTTP chooses neither vendor nor key by body, query or header', async () => {
    await start({ model: { routes: [{ vendor: 'one' }, { vendor: 'two', priority: 1 }] } })
    const wish = { vendor: 'two', strategy: 'cost', fallback: 'never' }
    const response = await started.post(
      '/v1/chat/completions?vendor=two&route=two',
      {
        ...request,
        route: wish,
        routes: [{ vendor: 'two' }],
        routeOverride: wish,
        vendor: 'two',
        base_url: 'http://two',
      },
      { 'x-signalbox-vendor': 'two', 'x-signalbox-route': JSON.stringify(wish) },
    )
    await response.text()

    expect(response.headers.get('x-signalbox-vendor')).toBe('one')
    expect(started.stands.map(({ calls }) => calls.length)).toEqual([1, 0])
  })
})
