import { expect, test } from 'vitest'
import { endOfTurn, sendAtEndOfTurn, workAtEndOfTurn } from '../../src/core/calls-in-flight.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { openai } from '../../src/vendors/openai/openai.ts'

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

test('where many wait, 32 are sent together before the turn ends', async () => {
  const noted: string[] = []
  for (let number = 1; number <= 33; number++) sendAtEndOfTurn(sender(noted, `${number}`))

  expect(noted.length).toBe(32)
  await endOfTurn()
  expect(noted.at(-1)).toBe('33')
  expect(noted.length).toBe(33)
})

test('a gateway is closed after the last answers are sent, because its host may end the process then', async () => {
  const noted: string[] = []
  const close = async (): Promise<void> => sendAtEndOfTurn(sender(noted, 'sent'))
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'sk-vendor' })],
    billing: 'off',
    store: { ...memoryStore(), close },
  })
  await gateway.start()
  await gateway.close().then(() => noted.push('closed'))

  expect(noted).toEqual(['sent', 'closed'])
})
