import { expect, test } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { endOfTurn, sendAtEndOfTurn, workAtEndOfTurn } from '../../src/core/end-of-turn.ts'
import { InFlight } from '../../src/gateway/in-flight.ts'

/** A sender that notes its name when it sends. */
function sender(noted: string[], name: string) {
  return { sendHeld: () => void noted.push(name) }
}

test('what waits for the end of a turn is sent in its order, before work that was asked for earlier', async () => {
  const noted: string[] = []
  workAtEndOfTurn(() => noted.push('work'))
  sendAtEndOfTurn(sender(noted, 'first'))
  sendAtEndOfTurn(sender(noted, 'second'))
  await Promise.resolve()

  expect(noted).toEqual([])
  await endOfTurn()
  expect(noted).toEqual(['first', 'second', 'work'])
})

test('what is held back while others are sent is sent too', async () => {
  const noted: string[] = []
  sendAtEndOfTurn({
    sendHeld: () => {
      noted.push('first')
      sendAtEndOfTurn(sender(noted, 'next'))
    },
  })
  await endOfTurn()

  expect(noted).toEqual(['first', 'next'])
})

test('a shutdown waits until the last answers are sent', async () => {
  const noted: string[] = []
  const inFlight = new InFlight()
  const request = { abort: () => undefined, place: 0 }
  inFlight.add(request)
  const drained = inFlight.drain(systemClock, 1_000).then(() => noted.push('drained'))
  sendAtEndOfTurn(sender(noted, 'sent'))
  inFlight.delete(request)
  await drained

  expect(noted).toEqual(['sent', 'drained'])
})
