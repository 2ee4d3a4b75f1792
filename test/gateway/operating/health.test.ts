import { afterEach, describe, expect, test, vi } from 'vitest'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

const OPERATOR_KEY = 'operator-0123456789-abcdef'

let started: StartedGateway | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await started?.close()
  started = undefined
})

async function probe(path: string, authorization?: string): Promise<{ status: number; body: unknown }> {
  const headers = authorization === undefined ? undefined : { authorization }
  const response = await fetch(`${started?.url}${path}`, headers && { headers })
  expect(response.headers.get('cache-control')).toBe('no-store')
  return { status: response.status, body: await response.json() }
}

function deferred<Value>() {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

describe('probes', () => {
  test.each(['/livez', '/readyz', '/healthz'])('%s is 200 without a key while the gateway can work', async (path) => {
    started = await startGateway()

    expect(await probe(path)).toEqual({ status: 200, body: { status: 'ok' } })
  })

  test.each(['/readyz', '/healthz'])(
    'answers %s with 503 if the store is down, and shows the failing part only to the operator',
    async (path) => {
      const store = memoryStore()
      started = await startGateway({ store, operatorKey: OPERATOR_KEY })
      vi.spyOn(store.ledger, 'account').mockRejectedValue(new Error('connect ECONNREFUSED 10.0.0.7:5432'))

      expect(await probe(path)).toEqual({ status: 503, body: { status: 'unavailable' } })
      expect(await probe(`${path}?verbose`, `Bearer ${OPERATOR_KEY}`)).toMatchObject({
        status: 503,
        body: {
          status: 'unavailable',
          store: { status: 'unavailable', error: 'connect ECONNREFUSED 10.0.0.7:5432' },
          inFlight: 0,
          vendors: expect.any(Array),
        },
      })
      const answers = [
        await fetch(`${started.url}${path}?verbose`, { headers: { authorization: `Bearer ${TEST_KEY}` } }),
      ]
      expect(answers[0]?.status).toBe(401)
      expect(await answers[0]?.text()).not.toContain('10.0.0.7')
      expect(await probe('/livez')).toEqual({ status: 200, body: { status: 'ok' } })
    },
  )

  test('a gateway that is closed is alive and not ready', async () => {
    started = await startGateway()
    await started.gateway.close()

    expect(await probe('/readyz')).toEqual({ status: 503, body: { status: 'closing' } })
    expect(await probe('/livez')).toEqual({ status: 200, body: { status: 'ok' } })
  })

  test('during the delay of close it is not ready and takes requests still', async () => {
    const clock = fakeClock()
    started = await startGateway({ clock })
    const closing = started.gateway.close({ delayMs: 10_000 })
    expect(await probe('/readyz')).toEqual({ status: 503, body: { status: 'closing' } })
    const during = await fetch(`${started.url}/v1/models`, { headers: { authorization: `Bearer ${TEST_KEY}` } })
    clock.advance(10_000)
    await closing
    const after = await fetch(`${started.url}/v1/models`, { headers: { authorization: `Bearer ${TEST_KEY}` } })

    expect([during.status, after.status]).toEqual([200, 503])
  })
})

describe('health', () => {
  test('opens the store of a gateway that nobody has called, and is starting while that takes longer', async () => {
    const store = memoryStore()
    const clock = fakeClock()
    const opened = deferred<void>()
    vi.spyOn(store, 'start').mockReturnValue(opened.promise)
    await using gateway = createGateway({ vendors: [], billing: 'off', store, clock })

    const first = gateway.health()
    clock.advance(2_000)
    expect(await first).toMatchObject({ status: 'starting', store: { status: 'starting' } })

    opened.resolve()
    await opened.promise
    clock.advance(1_000)
    expect(await gateway.health()).toMatchObject({ status: 'ok', inFlight: 0 })
  })

  test('tells a store that does not answer, without asking it twice', async () => {
    const store = memoryStore()
    const clock = fakeClock()
    await using gateway = createGateway({ vendors: [], billing: 'off', store, clock })
    await gateway.start()
    const answer = deferred<undefined>()
    const asked = vi.spyOn(store.ledger, 'account').mockReturnValue(answer.promise)

    const probes = [gateway.health(), gateway.health(), gateway.health()]
    clock.advance(2_000)
    for (const health of await Promise.all(probes))
      expect(health).toMatchObject({ status: 'unavailable', store: { error: 'no answer within 2000 ms' } })
    expect(asked).toHaveBeenCalledTimes(1)

    answer.resolve(undefined)
    clock.advance(1_000)
    expect(await gateway.health()).toMatchObject({ status: 'ok' })
  })

  test('asks the store at most once a second, however many probes come', async () => {
    const store = memoryStore()
    const clock = fakeClock()
    await using gateway = createGateway({ vendors: [], billing: 'off', store, clock })
    await gateway.start()
    const asked = vi.spyOn(store.ledger, 'account')

    for (let count = 0; count < 100; count++) await gateway.health()
    expect(asked).toHaveBeenCalledTimes(1)

    clock.advance(1_000)
    await gateway.health()
    expect(asked).toHaveBeenCalledTimes(2)
  })

  test.each([
    ['unavailable', 'cannot change anything', { prices: testPrices }],
    ['ok', undefined, { billing: 'off' }],
  ] as const)('reports %s for a store that is read-only', async (status, error, billing) => {
    const store = { ...memoryStore(), checkWritable: () => Promise.reject(new Error('cannot change anything')) }
    await using gateway = createGateway({ vendors: [], store, ...billing })

    expect(await gateway.health()).toMatchObject({ status, store: { status, error } })
  })

  test('tells why the store cannot be opened, and tries again', async () => {
    const store = memoryStore()
    const clock = fakeClock()
    vi.spyOn(store, 'start').mockRejectedValueOnce(new Error('the file is locked'))
    await using gateway = createGateway({ vendors: [], billing: 'off', store, clock })

    expect(await gateway.health()).toMatchObject({ status: 'unavailable', store: { error: 'the file is locked' } })
    clock.advance(1_000)
    expect(await gateway.health()).toMatchObject({ status: 'ok' })
  })
})
