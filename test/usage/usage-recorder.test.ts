import { expect, test } from 'vitest'
import { fakeClock } from '../../src/testing/index.ts'
import { type UsageRecord, usageRecord } from '../../src/usage/usage-record.ts'
import { UsageRecorder } from '../../src/usage/usage-recorder.ts'
import type { UsageRetention, UsageStore } from '../../src/usage/usage-store.ts'

const RECORD: UsageRecord = usageRecord(
  {
    ...{ id: 'request_1', accountId: 'a', keyId: 'k', endUser: undefined, tags: [], endpoint: 'chat', model: 'm' },
    ...{ requestedModel: 'm', vendor: undefined, credentialId: undefined, vendorRequestId: undefined },
    ...{ ending: 'failed', status: 503, code: undefined, isStream: false, usage: {}, isEstimated: false },
    ...{ durationMs: 1, firstByteMs: undefined, attempts: undefined },
  },
  { endedAtMs: 1, dueNanoDollars: 0n, chargedNanoDollars: 0n },
)

/** A recorder on a store that notes what it is asked for, and fails or waits where it should. */
function begin(
  answer: () => Promise<void> = async () => undefined,
  deleted: () => Promise<void> = async () => undefined,
) {
  const clock = fakeClock()
  const time = { backMs: 0 }
  const writes: number[] = []
  const drops: [number, unknown][] = []
  const faults: unknown[] = []
  const forgotten: UsageRetention[] = []
  const left = { unadded: 3 }
  const calls = { rollUps: 0 }
  const store: Pick<UsageStore, 'write' | 'rollUp' | 'forget'> = {
    async write(records) {
      writes.push(records.length)
      await answer()
    },
    async rollUp() {
      calls.rollUps += 1
      await answer()
      const added = Math.min(1, left.unadded)
      left.unadded -= added
      return { added, asOfMs: clock.now() }
    },
    async forget(retention) {
      forgotten.push(retention)
      await deleted()
      return 0
    },
  }
  const recorder = new UsageRecorder({
    store: store as UsageStore,
    clock: { now: () => clock.now() - time.backMs, schedule: clock.schedule },
    retention: async () => ({ recordDays: 2, hourDays: Number.POSITIVE_INFINITY, dayDays: Number.POSITIVE_INFINITY }),
    dropped: (count, error) => drops.push([count, error]),
    failed: (error) => faults.push(error),
  })
  return { recorder, clock, time, writes, drops, faults, forgotten, left, calls }
}

async function turns(): Promise<void> {
  for (let count = 0; count < 20; count++) await new Promise((resolve) => setImmediate(resolve))
}

test('writes many records at once, and few after a second', async () => {
  const { recorder, clock, writes } = begin()
  for (let call = 0; call < 500; call++) recorder.add(RECORD)
  await turns()
  expect(writes).toEqual([500])
  recorder.add(RECORD)
  await turns()
  expect(writes).toEqual([500])
  clock.advance(1_000)
  await turns()

  expect(writes).toEqual([500, 1])
})

test('asks the store nothing while no call ends', async () => {
  const { clock, writes, calls } = begin()
  clock.advance(3_600_000)
  await turns()

  expect([writes, calls.rollUps]).toEqual([[], 0])
})

test('adds up what was recorded ten seconds later, until nothing is left, and deletes what is old', async () => {
  const { recorder, clock, calls, forgotten } = begin()
  recorder.noted()
  recorder.noted()
  clock.advance(10_000)
  await turns()

  expect(calls.rollUps).toBe(4)
  expect(forgotten).toEqual([
    {
      recordsUntilMs: clock.now() - 2 * 86_400_000,
      hoursUntilMs: undefined,
      daysUntilMs: undefined,
      limit: 500,
    },
  ])
})

test('deletes what is old, and adds up, after the clock was set back by an hour as before', async () => {
  const { recorder, clock, time, forgotten, left } = begin()
  recorder.noted()
  clock.advance(10_000)
  await turns()
  time.backMs = 3_600_000
  left.unadded = 2
  recorder.noted()
  clock.advance(10_000)
  await turns()

  expect(left.unadded).toBe(0)
  expect(recorder.rollUpAgeMs).toBe(0)
  expect(forgotten).toHaveLength(2)
})

test('adds up what was recorded while old rows were being deleted, however long that takes', async () => {
  let end: () => void = () => undefined
  const deleting = new Promise<void>((resolve) => {
    end = resolve
  })
  const { recorder, clock, left } = begin(undefined, () => deleting)
  recorder.noted()
  clock.advance(10_000)
  await turns()
  left.unadded = 1
  recorder.noted()
  clock.advance(10_000)
  await turns()
  end()
  await turns()
  clock.advance(10_000)
  await turns()

  expect(left.unadded).toBe(0)
  expect(recorder.rollUpAgeMs).toBe(0)
})

test('holds 10,000 records while the store stalls, drops the others and tells how many', async () => {
  let release: () => void = () => undefined
  const stalled = new Promise<void>((resolve) => {
    release = resolve
  })
  const { recorder, clock, writes, drops } = begin(() => stalled)
  for (let call = 0; call < 12_000; call++) recorder.add(RECORD)
  await turns()
  expect(writes).toEqual([500])
  release()
  for (let round = 0; round < 50; round++) {
    clock.advance(1_000)
    await turns()
  }
  const written = writes.reduce((sum, count) => sum + count, 0)
  const dropped = drops.reduce((sum, [count]) => sum + count, 0)

  expect(written + dropped).toBe(12_000)
  expect(written).toBeLessThanOrEqual(10_500)
  expect(drops.every(([, error]) => error === undefined)).toBe(true)
})

test('never writes a record twice: what the store fails to take is dropped, told, and the next is written', async () => {
  const fault = new Error('the disk is full')
  let isDown = true
  const { recorder, clock, writes, drops, faults } = begin(async () => {
    if (isDown) throw fault
  })
  recorder.add(RECORD)
  clock.advance(10_000)
  await turns()
  expect(drops).toEqual([[1, fault]])
  expect(faults).toEqual([fault])
  isDown = false
  recorder.add(RECORD)
  clock.advance(1_000)
  await turns()

  expect(writes).toEqual([1, 1])
  expect(drops).toHaveLength(1)
})

test('writes waiting records when it is closed, and reports later ones', async () => {
  const { recorder, clock, writes, drops, calls } = begin()
  recorder.add(RECORD)
  await recorder.close()
  recorder.add(RECORD)
  clock.advance(60_000)
  await turns()

  expect(writes).toEqual([1])
  expect(drops).toEqual([[1, undefined]])
  expect(calls.rollUps).toBe(0)
})
