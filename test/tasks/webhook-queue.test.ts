import { describe, expect, test } from 'vitest'
import { type TakenDelivery, WebhookQueue } from '../../src/tasks/webhook-deliverer.ts'

const ROOM = 512

function taken(host: string, takenAtMs = 0, id = 'msg_1', accountId = 'acct_one'): TakenDelivery {
  const url = `https://${host}/hook`
  return {
    delivery: {
      ...{ id, accountId, taskId: 'task_one', url, body: '{}', createdAtMs: 0, nextAttemptAtMs: 0 },
      state: 'pending',
      attempts: [],
      resentAtMs: undefined,
    },
    host,
    takenAtMs,
    startUntilMs: takenAtMs + 60_000,
  }
}

function fill(queue: WebhookQueue, count: number, host: (index: number) => string, takenAtMs = 0): void {
  for (let index = 0; index < count; index++) queue.add(taken(host(index), takenAtMs))
}

function begin(queue: WebhookQueue, nowMs = 0): TakenDelivery[] {
  const begun: TakenDelivery[] = []
  for (let next = queue.next(nowMs); next !== undefined; next = queue.next(nowMs)) begun.push(next)
  return begun
}

describe('WebhookQueue', () => {
  test('begins messages in the order of taking', () => {
    const queue = new WebhookQueue()
    for (const id of ['msg_1', 'msg_2', 'msg_3']) queue.add(taken(`${id}.example`, 0, id))

    expect(begin(queue).map(({ delivery }) => delivery.id)).toEqual(['msg_1', 'msg_2', 'msg_3'])
  })

  test('begins at most 4 to one host, and others past them', () => {
    const queue = new WebhookQueue()
    fill(queue, 10, () => 'one.example')
    fill(queue, 2, () => 'two.example')

    const begun = begin(queue)

    expect(begun.map(({ host }) => host)).toEqual([...Array(4).fill('one.example'), ...Array(2).fill('two.example')])
    queue.ended(begun[0]!)
    expect(begin(queue).map(({ host }) => host)).toEqual(['one.example'])
  })

  test('begins at most 32 at once', () => {
    const queue = new WebhookQueue()
    fill(queue, 40, (index) => `${index}.example`)

    const begun = begin(queue)

    expect(begun).toHaveLength(32)
    for (const one of begun.slice(0, 3)) queue.ended(one)
    expect(begin(queue)).toHaveLength(3)
  })

  test('begins the message of another account before those of one that takes all places', () => {
    const queue = new WebhookQueue()
    fill(queue, 100, (index) => `${index}.example`)
    const [first, second] = begin(queue)
    for (const id of ['msg_2', 'msg_3']) queue.add(taken(`${id}.example`, 0, id, 'acct_two'))

    queue.ended(first!)
    expect(begin(queue).map(({ delivery }) => delivery.id)).toEqual(['msg_2'])
    queue.ended(second!)
    expect(begin(queue).map(({ delivery }) => delivery.id)).toEqual(['msg_3'])
  })

  test('never begins a message whose lease could end under it', () => {
    const queue = new WebhookQueue()
    fill(queue, 1, () => 'one.example')
    fill(queue, 1, () => 'two.example', 1)

    expect(begin(queue, 60_001).map(({ host }) => host)).toEqual(['two.example'])
    expect(queue.room(60_001)).toBe(ROOM)
  })

  test('has limited room, and makes room when messages to busy hosts have waited for 10 seconds', () => {
    const queue = new WebhookQueue()
    fill(queue, 500, () => 'hanging.example')
    fill(queue, 16, () => 'hanging.example', 9_000)
    begin(queue)

    const [before, after] = [queue.room(9_999), queue.room(10_000)]

    expect(before).toBe(0)
    expect(after).toBe(ROOM - 16)
  })

  test('makes room also after the clock was set back: nobody knows how long those have waited', () => {
    const queue = new WebhookQueue()
    fill(queue, 516, () => 'hanging.example', 3_600_000)
    begin(queue)

    expect(queue.room(10_000)).toBe(ROOM)
  })

  test('gives up what waits, and names what certainly nobody else has leased since', () => {
    const queue = new WebhookQueue()
    for (const [id, takenAtMs] of [
      ['begun', 0],
      ['old', 0],
      ['new', 1],
    ] as const)
      queue.add(taken('one.example', takenAtMs, id))
    queue.next(0)

    expect(queue.giveUp(60_001)).toEqual(['new'])
    expect(begin(queue)).toEqual([])
  })

  test('keeps messages that wait long while there is room for others', () => {
    const queue = new WebhookQueue()
    fill(queue, 100, () => 'slow.example')

    expect(queue.room(30_000)).toBe(ROOM - 100)
  })
})
