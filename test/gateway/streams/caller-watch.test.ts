import { expect, test } from 'vitest'
import { CallerWatch } from '../../../src/gateway/in-flight.ts'
import type { CallerWork } from '../../../src/pipeline/authenticate.ts'
import type { PipelineContext } from '../../../src/pipeline/pipeline-context.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function bench() {
  const clock = fakeClock()
  let scheduled = 0
  const counted = {
    ...clock,
    schedule: (...given: Parameters<typeof clock.schedule>) => {
      scheduled++
      return clock.schedule(...given)
    },
  }
  const ended: string[] = []
  const works: CallerWork[] = []
  const source = { size: 0, work: () => works }
  const revoked = { accountId: 'acct', revokedAtMs: 1 }
  const store = { keys: { find: async () => revoked }, ledger: { account: async () => undefined } }
  const watch = new CallerWatch({ clock: counted, store } as unknown as PipelineContext, () => [source])
  watch.start()
  const revokedWork: CallerWork = {
    caller: { accountId: 'acct', keyId: 'key' },
    endpointIds: [],
    model: undefined,
    end: ({ code }) => void ended.push(code),
  }
  return { clock, watch, source, works, revokedWork, ended, checks: () => scheduled }
}

test('schedules no check while there is no work', async () => {
  const { clock, checks } = bench()
  clock.advance(10 * 86_400_000)
  await turns()
  expect(checks()).toBe(1)
})

test('checks again while a request has no caller yet, and stops after it', async () => {
  const { clock, watch, source, checks } = bench()
  clock.advance(2_000)
  await turns()
  source.size = 1
  watch.wake()
  watch.wake()
  clock.advance(4_000)
  await turns()
  expect(checks()).toBe(4)
  source.size = 0
  clock.advance(86_400_000)
  await turns()
  expect(checks()).toBe(4)
})

test('ends the work of a revoked key that begins after a pause', async () => {
  const { clock, watch, works, revokedWork, ended } = bench()
  clock.advance(86_400_000)
  await turns()
  works.push(revokedWork)
  watch.wake()
  clock.advance(2_000)
  await turns()
  expect(ended).toEqual(['invalid_api_key'])
})
