import { expect, test } from 'vitest'
import { type Connection, ConnectionList, MAX_IDLE_CONNECTIONS } from '../../src/transport/undici.ts'

class FakeConnection implements Connection {
  isOpen = true
  ended: 'closed' | 'destroyed' | undefined
  readonly number: number

  constructor(number: number) {
    this.number = number
  }

  async close(): Promise<void> {
    this.ended = 'closed'
  }

  destroy(): void {
    this.ended = 'destroyed'
  }
}

function listed(): ConnectionList<FakeConnection> {
  let made = 0
  return new ConnectionList(() => new FakeConnection(made++))
}

const taken = (list: ConnectionList<FakeConnection>, count: number): FakeConnection[] =>
  Array.from({ length: count }, () => list.take())

test('every call has a connection of its own, and the one used last is used next', () => {
  const list = listed()
  const [first, second, third] = taken(list, 3)
  list.giveBack(second!)
  list.giveBack(first!)

  expect(new Set([first, second, third]).size).toBe(3)
  expect(list.isUnused).toBe(false)
  expect(taken(list, 3).map(({ number }) => number)).toEqual([0, 1, 3])
})

test('a connection that was lost while idle is not handed out, and not kept', () => {
  const list = listed()
  const [first, second] = taken(list, 2) as [FakeConnection, FakeConnection]
  list.giveBack(first)
  list.giveBack(second)
  first.isOpen = false
  list.lost(first)

  expect(first.ended).toBe('destroyed')
  expect(list.size).toBe(1)
  expect(list.take()).toBe(second)
  expect(list.take().number).toBe(2)
})

test('a connection that was lost under its call is not handed out again', () => {
  const list = listed()
  const connection = list.take()
  connection.isOpen = false
  list.lost(connection)
  expect(connection.ended).toBeUndefined()
  list.giveBack(connection)

  expect(connection.ended).toBe('closed')
  expect(list.size).toBe(0)
  expect(list.isUnused).toBe(true)
  expect(list.take()).not.toBe(connection)
})

test('a connection whose call has failed is destroyed', () => {
  const list = listed()
  const connection = list.take()
  list.giveUp(connection)

  expect(connection.ended).toBe('destroyed')
  expect(list.size).toBe(0)
})

test('after a burst no more than a bound of idle connections is kept', () => {
  const list = listed()
  const burst = taken(list, MAX_IDLE_CONNECTIONS + 10)
  expect(list.size).toBe(MAX_IDLE_CONNECTIONS + 10)
  for (const connection of burst) list.giveBack(connection)

  expect(list.size).toBe(MAX_IDLE_CONNECTIONS)
  expect(burst.filter(({ ended }) => ended === 'closed')).toHaveLength(10)
})

test('closing closes those with a call too', async () => {
  const list = listed()
  const [idle, busy] = taken(list, 2) as [FakeConnection, FakeConnection]
  list.giveBack(idle)
  await list.close()

  expect([idle.ended, busy.ended]).toEqual(['closed', 'closed'])
})
