import { expect, test } from 'vitest'
import { SettlementRetries } from '../../src/pipeline/store-health.ts'
import { fakeClock } from '../../src/testing/index.ts'

const down = (): never => {
  throw new Error('the database is down')
}

function waitingRoom() {
  const clock = fakeClock()
  const retries = new SettlementRetries(clock, () => undefined)
  const told: (readonly [name: string, reason: string, error: unknown])[] = []
  const add = (name: string, run: () => unknown, lastsMs: number): void =>
    retries.add({
      run,
      untilMs: clock.now() + lastsMs,
      error: 'first',
      giveUp: (reason, error) => told.push([name, reason, error instanceof Error ? error.message : error]),
    })
  return { clock, retries, told, add }
}

test('the 10,001st settlement that waits is given up at once, and the others go on waiting', async () => {
  const { retries, told, add } = waitingRoom()
  let settled = 0
  for (let index = 0; index < 10_000; index++) add(`settlement ${index}`, () => settled++, 1_000)

  add('one more', () => settled++, 1_000)
  await retries.flush()

  expect(told).toEqual([['one more', 'too-many', 'first']])
  expect(settled).toBe(10_000)
})

test('gives up all expired settlements in one turn, though the store answers none of them', async () => {
  const { clock, retries, told, add } = waitingRoom()
  for (const name of ['first', 'second', 'third']) add(name, down, 1_000)
  add('fourth', down, 60_000)
  clock.advance(1_000)

  await retries.flush()

  expect(told.toSorted(([left], [right]) => left.localeCompare(right))).toEqual([
    ['first', 'expired', 'the database is down'],
    ['second', 'expired', 'the database is down'],
    ['third', 'expired', 'the database is down'],
  ])
  expect(retries.size).toBe(1)
})

test('retries an expired settlement when the store is back, before anybody frees its hold', async () => {
  const { clock, retries, told, add } = waitingRoom()
  let settled = 0
  add('late', () => settled++, 1_000)
  clock.advance(2_000)

  await retries.flush()

  expect([settled, told]).toEqual([1, []])
})

test('after the end of the drain nothing waits any more: what comes then is given up at once', async () => {
  const { retries, told, add } = waitingRoom()
  add('waiting', down, 60_000)
  await retries.drain(0)
  add('too late', down, 60_000)

  expect(told).toEqual([
    ['waiting', 'closing', 'the database is down'],
    ['too late', 'closing', 'first'],
  ])
  expect(retries.size).toBe(0)
})
