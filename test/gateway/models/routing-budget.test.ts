import { afterEach, expect, test } from 'vitest'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { type Routed, startRouted } from '../../routing/support/start-routed.ts'

let started: Routed

afterEach(() => started.close())

const PRIMARY_AND_SPARE = { model: { routes: [{ vendor: 'one' }, { vendor: 'two', priority: 1 }] } }

/** Fails every second call, so that it is never ejected. */
function failEverySecond(): void {
  let calls = 0
  started.stands[0]!.answer = () => (calls++ % 2 === 0 ? { status: 500 } : {})
}

test('asking another vendor counts as a retry: a vendor that half fails cannot use the spare one up', async () => {
  started = await startRouted(PRIMARY_AND_SPARE)
  failEverySecond()

  const answered = await started.ask(60)

  const attempts = started.stands.reduce((total, { calls }) => total + calls.length, 0)
  expect(answered.slice(0, 10)).not.toContain('503')
  expect(answered).toContain('503')
  expect(attempts).toBeLessThanOrEqual(60 + 10 + 60 * 0.09)
  expect(started.gateway.routes().retriesLeft).toBe(0)
})

test('without a retry left nobody is spent on finding out whether a vendor is well, while another one is', async () => {
  const clock = fakeClock()
  started = await startRouted({ ...PRIMARY_AND_SPARE, gateway: { clock } })
  failEverySecond()
  while (started.gateway.routes().retriesLeft > 0) await started.ask(1)
  // The next that could be saved takes with it whatever was left of the budget.
  let answered: string | undefined
  while (answered !== 'two') [answered] = await started.ask(1)
  started.stands[0]!.answer = () => ({ status: 503, retryAfterSeconds: 60 })
  await started.ask(1)
  const asked = started.stands[0]!.calls.length
  clock.advance(60_000)

  expect(started.gateway.routes().vendors[0]?.keys[0]?.openModels).toEqual(['routed'])
  expect(await started.ask(3)).toEqual(['two', 'two', 'two'])
  expect(started.stands[0]!.calls).toHaveLength(asked)
  // The requests that went well have earned a retry meanwhile, so that one of them can be spared.
  started.stands[0]!.answer = () => ({})
  await started.ask(12)
  expect(started.stands[0]!.calls.length).toBeGreaterThan(asked)
})

test('retries the same vendor only if no other vendor has the model', async () => {
  started = await startRouted({ keys: [['key-one']] })
  let calls = 0
  started.stands[0]!.answer = () => (calls++ === 0 ? { status: 500 } : {})
  const alone = await started.ask(1)
  const attemptsAlone = started.stands[0]!.calls.length
  await started.close()

  started = await startRouted(PRIMARY_AND_SPARE)
  started.stands[0]!.answer = () => ({ status: 500 })
  const answered = await started.ask(1)

  expect([alone, attemptsAlone]).toEqual([['one'], 2])
  expect([answered, started.stands[0]!.calls.length]).toEqual([['two'], 1])
})
