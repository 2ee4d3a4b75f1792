import { afterEach, describe, expect, test } from 'vitest'
import { memoryCache } from '../../../src/stores/memory/memory-cache.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody, type StartedGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { askCached, EMBEDDING, SURE, startCached } from './cached-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const ask = (body: unknown, headers?: Record<string, string>) => askCached(started, body, headers)

describe('a hit', () => {
  const body = chatBody('chat-relayed', 'hello', SURE)

  test('leaves the journal as it is, and tells what the first call had used', async () => {
    started = await startCached({ cache: {} })
    const first = await ask(body)
    const journal = await started.gateway.accounts.journal(TEST_ACCOUNT)
    const second = await ask(body)
    const [madeEvent, hitEvent] = [await started.ended(first.response), await started.ended(second.response)]

    expect(await started.gateway.accounts.journal(TEST_ACCOUNT)).toEqual(journal)
    expect(madeEvent.cachedUsage).toBeUndefined()
    expect(hitEvent).toMatchObject({ usage: undefined, cachedUsage: madeEvent.usage, costNanoDollars: 0n })
    expect(hitEvent).toMatchObject({ ending: 'completed', vendor: undefined, model: 'chat-relayed' })
    // The model may end soon, which an event announces.
    const types = started.events.map(({ type }) => type).filter((type) => type !== 'model-retiring')
    expect(types).toEqual([
      ...['request-started', 'request-ended'],
      ...['request-started', 'request-ended', 'cache-hit'],
    ])
    expect(started.events.filter(({ type }) => type === 'cache-hit')).toMatchObject([
      { endpoint: 'chat', model: 'chat-relayed', accountId: TEST_ACCOUNT, ageMs: expect.any(Number) },
    ])
  })

  test('costs what a price for hits says, and nothing else', async () => {
    const prices = [
      ...testPrices.prices,
      { model: 'chat-relayed', meter: 'request' as const, amount: '0.000123', when: { cache: 'hit' } },
    ]
    started = await startCached({ prices: { currency: 'USD', prices }, cache: {} })
    await ask(body)
    const before = await started.account()
    const second = await ask(body)

    expect(second.response.headers.get('x-signalbox-cost')).toBe('0.000123')
    expect((await started.account()).balance).toBe(before.balance - 123_000n)
    expect((await started.account()).held).toBe(0n)
    const { entries } = await started.gateway.accounts.journal(TEST_ACCOUNT)
    expect(entries[0]).toMatchObject({ kind: 'charge', amount: -123_000n, details: { vendor: 'cache' } })
    expect(started.events.filter(({ type }) => type === 'configuration-warning')).toEqual([])
  })

  test('needs no money when it is free, and is refused without money when it is not', async () => {
    const prices = [
      ...testPrices.prices,
      { model: 'chat-relayed', meter: 'input_token' as const, amount: '1', when: { cache: 'hit' } },
      { model: 'chat-relayed', meter: 'output_token' as const, amount: '1', when: { cache: 'hit' } },
    ]
    const cache = { rules: [{ partition: 'gateway' as const }] }
    started = await startCached({ prices: { currency: 'USD', prices }, cache })
    const { id } = await started.gateway.accounts.create()
    const { key } = await started.gateway.keys.create({ accountId: id })
    const poor = { authorization: `Bearer ${key}` }
    const free = chatBody('cl-sonnet-4-6', 'hello', SURE)
    await ask(body)
    await ask(free)

    expect((await ask(free, poor)).cache).toBe('hit')
    expect((await ask(body, poor)).response.status).toBe(402)
  })

  test('counts against requests per minute, and gives its tokens back', async () => {
    started = await startCached({ cache: {}, limits: { requestsPerMinute: 3, tokensPerMinute: 5000 } })
    await ask(body)
    const left = (await ask(body)).response.headers.get('x-ratelimit-remaining-requests')
    await ask(body)
    const refused = await ask(body)

    expect(left).toBe('1')
    expect(refused.response.status).toBe(429)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('gives its place among the requests at once back', async () => {
    started = await startCached({ cache: {}, limits: { concurrency: 1 } })
    for (let count = 0; count < 4; count++) expect((await ask(body)).response.status).toBe(200)
  })

  test('repeats the answer of an Idempotency-Key after the entry has gone', async () => {
    const clock = fakeClock()
    started = await startCached({ clock, cache: {} })
    await ask(body)
    const key = { 'idempotency-key': 'order-1' }
    const hit = await ask(body, key)
    clock.advance(3_600_000)
    const replayed = await ask(body, key)
    const other = await ask(chatBody('chat-relayed', 'other', SURE), key)

    expect([hit.cache, replayed.response.headers.get('idempotent-replayed')]).toEqual(['hit', 'true'])
    expect(replayed.text).toBe(hit.text)
    expect(other.response.status).toBe(422)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('counts as a request without usage in reports', async () => {
    started = await startCached({ cache: {} })
    const first = await ask(body)
    const { usage } = await started.ended(first.response)
    await ask(body)
    await ask(body)
    const read = async () => {
      const { rows } = await started.gateway.usage.query({ from: Date.now() - 3_600_000, groupBy: ['model'] })
      return rows[0]
    }

    // Records of calls that were not charged are written together, a little later.
    await expect.poll(async () => (await read())?.requests).toBe(3)
    expect((await read())?.usage.inputTokens).toBe(usage?.inputTokens)
  })
})

describe('clearing', () => {
  test('makes the answers of one account unreachable, or those of all', async () => {
    started = await startCached({ cache: { rules: [{ endpoints: ['chat'] }, { partition: 'gateway' }] } })
    const body = chatBody('chat-relayed', 'hello', SURE)
    const shared = { path: '/v1/embeddings' }
    await ask(body)
    await ask(EMBEDDING, shared)
    await started.gateway.cache.clear({ account: 'another' })
    expect([(await ask(body)).cache, (await ask(EMBEDDING, shared)).cache]).toEqual(['hit', 'hit'])
    await started.gateway.cache.clear({ account: TEST_ACCOUNT })
    expect([(await ask(body)).cache, (await ask(EMBEDDING, shared)).cache]).toEqual(['miss', 'hit'])
    await started.gateway.cache.clear()
    expect([(await ask(body)).cache, (await ask(EMBEDDING, shared)).cache]).toEqual(['miss', 'miss'])
  })

  test('is not needed when the row of a model changes', async () => {
    const store = memoryCache()
    const row = { id: 'chat-own', kind: 'chat', vendor: 'openai', limits: { maxOutputTokens: 2000 } } as const
    const seen = []
    for (const upstream of ['gpt-4.1-mini', 'gpt-4.1-mini', 'gpt-4.1']) {
      const models = [{ ...row, upstream }]
      started = await startCached({ billing: 'off', models, cache: { store, rules: [{ partition: 'gateway' }] } })
      seen.push((await ask(chatBody('chat-own', 'hello', SURE))).cache)
      await started.close()
    }
    started = await startCached()

    expect(seen).toEqual(['miss', 'hit', 'miss'])
  })
})
