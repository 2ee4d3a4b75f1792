import { expect, test } from 'vitest'
import { InFlightCalls } from '../../src/core/calls-in-flight.ts'

test('a name cancels the oldest call that has it, and no other', () => {
  const calls = new InFlightCalls()
  const [first, second, other] = [new AbortController(), new AbortController(), new AbortController()]
  calls.add(first, 'a')
  calls.add(second, 'a')
  calls.add(other)

  calls.cancel('a')
  calls.cancel('b')

  expect([first, second, other].map(({ signal }) => signal.aborted)).toEqual([true, false, false])
})

test('calls are waited for until the last has ended', async () => {
  const calls = new InFlightCalls()
  const [first, second] = [new AbortController(), new AbortController()]
  await calls.ended()
  calls.add(first)
  calls.add(second)
  let hasEnded = false
  const ended = calls.ended().then(() => {
    hasEnded = true
  })

  calls.delete(first)
  await Promise.resolve()
  const hadEndedEarly = hasEnded
  calls.delete(second)
  await ended

  expect(hadEndedEarly).toBe(false)
})

test('all are aborted together, and those that begin afterwards at once', () => {
  const calls = new InFlightCalls()
  const [early, late] = [new AbortController(), new AbortController()]
  calls.add(early)

  calls.abortAll()
  calls.add(late)

  expect([early.signal.aborted, late.signal.aborted]).toEqual([true, true])
})
