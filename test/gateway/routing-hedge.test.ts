import { afterEach, expect, test } from 'vitest'
import { type Routed, startRouted } from '../routing/support/start-routed.ts'

let started: Routed

afterEach(() => started.close())

const HEDGED = { gateway: { routing: { hedge: { afterMs: 40 } } } }

async function untilAbandoned(index: number): Promise<void> {
  await expect.poll(() => started.stands[index]!.abandoned).toBe(1)
}

test('a slow call is doubled: the first answer counts, the other call is cancelled, and one settlement is made', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 5_000 })
  const before = await started.account()

  const answered = await started.ask(1)
  await untilAbandoned(0)

  expect(answered).toEqual(['two'])
  expect(started.events.filter(({ type }) => type === 'request-ended')).toHaveLength(1)
  expect(started.events.filter(({ type }) => type === 'attempt-failed')).toHaveLength(0)
  expect(await started.account()).toEqual({ balance: before.balance - 20_000n, held: 0n })
  expect(started.gateway.routes().vendors.map(({ inFlight }) => inFlight)).toEqual([0, 0])
  const { records } = await started.gateway.usage.records()
  expect(records.map(({ attempts }) => attempts?.map(({ outcome }) => outcome))).toEqual([['abandoned', 'answered']])
})

test('the event unbilled-usage tells what the vendor of the cancelled call may bill (nothing before)', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 5_000 })

  expect(await started.ask(1)).toEqual(['two'])
  expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([
    expect.objectContaining({
      vendor: 'one',
      isEstimated: true,
      usage: expect.objectContaining({ outputTokens: 100 }),
    }),
  ])
})

test('the first call still counts when it is answered sooner than the second', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 150 })
  started.stands[1]!.answer = () => ({ delayMs: 5_000 })

  expect(await started.ask(1)).toEqual(['one'])
  await untilAbandoned(1)
})

test('the failure of one does not end the other', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 150 })
  started.stands[1]!.answer = () => ({ status: 503 })

  expect(await started.ask(1)).toEqual(['one'])
  // A 503 is not billed.
  expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
})

test('when both fail the caller gets one error, and nothing is charged', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 100, status: 503 })
  started.stands[1]!.answer = () => ({ delayMs: 100, status: 503 })
  const before = await started.account()

  const answered = await started.ask(1)

  expect(answered).toEqual(['503'])
  expect(await started.account()).toEqual({ balance: before.balance, held: 0n })
})

test('a hedge counts as a retry, and there are none when the budget is used up', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 80 })
  started.stands[1]!.answer = () => ({ delayMs: 80 })
  const before = started.gateway.routes().retriesLeft

  await started.ask(4)

  expect(before - started.gateway.routes().retriesLeft).toBeGreaterThanOrEqual(3)
  await started.ask(12)
  const calls = started.stands.reduce((total, stand) => total + stand.calls.length, 0)
  expect(calls).toBeLessThanOrEqual(16 + 11)
})

test('a caller who leaves ends both calls', async () => {
  started = await startRouted({ gateway: { ...HEDGED.gateway, drainMs: 100 } })
  for (const stand of started.stands) stand.answer = () => ({ delayMs: 5_000 })
  const leaving = new AbortController()
  const body = { model: 'routed', messages: [{ role: 'user', content: 'hello' }] }
  const ended = started.nextEnded()
  const response = started.post('/v1/chat/completions', body, {}, leaving.signal)
  await expect.poll(() => started.stands.map(({ calls }) => calls.length)).toEqual([1, 1])
  leaving.abort()

  await expect(response).rejects.toThrow()
  await untilAbandoned(0)
  await untilAbandoned(1)
  expect((await ended).ending).toBe('abandoned')
})

test('streams are never doubled', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 150 })

  expect(await started.ask(1, { stream: true })).toEqual(['one'])
  expect(started.stands[1]!.calls).toHaveLength(0)
})
