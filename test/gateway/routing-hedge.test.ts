import { afterEach, expect, test } from 'vitest'
import type { CredentialProvider } from '../../src/core/credential.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { fakeClock } from '../../src/testing/index.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { undiciTransport } from '../../src/transport/undici.ts'
import { type Routed, startRouted } from '../routing/support/start-routed.ts'

let started: Routed

afterEach(() => started.close())

const HEDGED = { gateway: { routing: { hedge: { afterMs: 40 } } } }

const BODY = { model: 'routed', messages: [{ role: 'user', content: 'hello' }] }

function told(): Extract<GatewayEvent, { type: 'unbilled-usage' }>[] {
  return started.events.filter((event) => event.type === 'unbilled-usage')
}

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

test('reports what the vendor of the cancelled call may bill in unbilled-usage (nothing before)', async () => {
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

test('fails both calls when the total time has expired, and reports each', async () => {
  const clock = fakeClock()
  started = await startRouted({ gateway: { ...HEDGED.gateway, clock } })
  for (const stand of started.stands) stand.answer = () => ({ delayMs: 5_000 })
  const before = await started.account()
  const asked = started.ask(1)
  await expect.poll(() => started.stands[0]!.calls.length).toBe(1)
  clock.advance(40)
  await expect.poll(() => started.stands[1]!.calls.length).toBe(1)
  clock.advance(600_000)

  expect(await asked).toEqual(['504'])
  expect(told().map(({ vendor, usage }) => [vendor, usage.outputTokens])).toEqual([
    ['one', 100],
    ['two', 100],
  ])
  expect(started.events.filter(({ type }) => type === 'attempt-failed')).toHaveLength(2)
  expect(await started.account()).toEqual({ balance: before.balance, held: 0n })
})

/** A transport that never gets a connection to one of the stand-ins, and counts the calls that wait for it. */
function unconnected(index: number): { readonly transport: Transport; readonly waiting: () => number } {
  const inner = undiciTransport()
  let waiting = 0
  const transport: Transport = {
    send(request, handler) {
      if (!started.stands[index]!.baseURL.startsWith(request.origin)) return inner.send(request, handler)
      waiting += 1
      const failure = { phase: 'connect', kind: 'aborted', error: new Error('aborted') } as const
      return { abort: () => handler.onFailure(failure), pause: () => undefined, resume: () => undefined }
    },
    close: () => inner.close(),
  }
  return { transport, waiting: () => waiting }
}

test('does not charge or report a call without a connection when the other one is answered', async () => {
  const { transport, waiting } = unconnected(0)
  started = await startRouted({ gateway: { ...HEDGED.gateway, transport } })

  expect(await started.ask(1)).toEqual(['two'])
  expect(waiting()).toBe(1)
  expect(told()).toEqual([])
})

test('charges the first call if the caller disconnects while the second has no connection yet', async () => {
  const { transport, waiting } = unconnected(1)
  started = await startRouted({ gateway: { ...HEDGED.gateway, drainMs: 100, transport } })
  started.stands[0]!.answer = () => ({ delayMs: 5_000 })
  const leaving = new AbortController()
  const ended = started.nextEnded()
  const response = started.post('/v1/chat/completions', BODY, {}, leaving.signal)
  await expect.poll(() => [started.stands[0]!.calls.length, waiting()]).toEqual([1, 1])
  leaving.abort()

  await expect(response).rejects.toThrow()
  const { ending, usage } = await ended
  expect(ending).toBe('abandoned')
  expect(usage?.outputTokens).toBeGreaterThanOrEqual(10)
  expect(told()).toEqual([])
})

test('ends both calls if the caller disconnects, charges one of them, and reports the other', async () => {
  started = await startRouted({ gateway: { ...HEDGED.gateway, drainMs: 100 } })
  for (const stand of started.stands) stand.answer = () => ({ delayMs: 5_000 })
  const leaving = new AbortController()
  const ended = started.nextEnded()
  const response = started.post('/v1/chat/completions', BODY, {}, leaving.signal)
  await expect.poll(() => started.stands.map(({ calls }) => calls.length)).toEqual([1, 1])
  leaving.abort()

  await expect(response).rejects.toThrow()
  await untilAbandoned(0)
  await untilAbandoned(1)
  const { ending, usage } = await ended
  expect(ending).toBe('abandoned')
  expect(usage?.outputTokens).toBeGreaterThanOrEqual(10)
  expect(told()).toEqual([expect.objectContaining({ usage: expect.objectContaining({ outputTokens: 100 }) })])
})

test('makes no second call for a disconnected caller, though the first one is read on', async () => {
  const clock = fakeClock()
  started = await startRouted({ gateway: { ...HEDGED.gateway, clock } })
  started.stands[0]!.answer = () => ({ delayMs: 300 })
  const leaving = new AbortController()
  const ended = started.nextEnded()
  const response = started.post('/v1/chat/completions', BODY, {}, leaving.signal)
  await expect.poll(() => started.stands[0]!.calls.length).toBe(1)
  const { pending } = clock
  leaving.abort()
  await expect(response).rejects.toThrow()
  await expect.poll(() => clock.pending).toBeGreaterThan(pending)
  clock.advance(40)

  expect(await ended).toMatchObject({ ending: 'completed', vendor: 'one', costNanoDollars: 20_000n })
  expect(started.stands[1]!.calls).toHaveLength(0)
  expect(told()).toEqual([])
})

test('does not send a second call that waits for its credential when the caller disconnects', async () => {
  const clock = fakeClock()
  let give: (() => void) | undefined
  const provider: CredentialProvider = () =>
    new Promise((resolve) => {
      give = () => resolve({ token: 'token' })
    })
  started = await startRouted({
    gateway: { ...HEDGED.gateway, clock },
    vendor: (plain) => (plain.id === 'two' ? { ...plain, credentialProviders: [provider] } : plain),
  })
  started.stands[0]!.answer = () => ({ delayMs: 300 })
  const leaving = new AbortController()
  const ended = started.nextEnded()
  const response = started.post('/v1/chat/completions', BODY, {}, leaving.signal)
  await expect.poll(() => started.stands[0]!.calls.length).toBe(1)
  clock.advance(40)
  await expect.poll(() => give).toBeDefined()
  const { pending } = clock
  leaving.abort()
  await expect(response).rejects.toThrow()
  await expect.poll(() => clock.pending).toBeGreaterThan(pending)
  give?.()

  expect(await ended).toMatchObject({ ending: 'completed', vendor: 'one', costNanoDollars: 20_000n })
  expect(started.stands[1]!.calls).toHaveLength(0)
  expect(told()).toEqual([])
})

test('streams are never doubled', async () => {
  started = await startRouted(HEDGED)
  started.stands[0]!.answer = () => ({ delayMs: 150 })

  expect(await started.ask(1, { stream: true })).toEqual(['one'])
  expect(started.stands[1]!.calls).toHaveLength(0)
})
