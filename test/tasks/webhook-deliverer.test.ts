import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { WebhookStore } from '../../src/stores/webhook-store.ts'
import type { WebhookDeliverer } from '../../src/tasks/webhook-deliverer.ts'
import { GATEWAY_SECRET, type WebhookBench, webhookBench } from './support/webhook-bench.ts'
import { startReceiver, verify, type WebhookReceiver } from './support/webhook-receiver.ts'

const LEASE_MS = 90_000

let bench: WebhookBench
let receiver: WebhookReceiver
let other: WebhookReceiver

beforeEach(async () => {
  bench = webhookBench()
  receiver = await startReceiver(bench.clock.now)
  other = await startReceiver(bench.clock.now)
})
afterEach(async () => {
  await bench.close()
  await receiver.close()
  await other.close()
})

function queueMany(count: number, { origin }: WebhookReceiver, prefix = 'msg'): string[] {
  const ids = Array.from({ length: count }, (_, index) => `${prefix}_${String(index).padStart(3, '0')}`)
  for (const id of ids) bench.queue(id, `${origin}/hook`)
  return ids
}

const idsOf = ({ messages }: WebhookReceiver): string[] => messages.map(({ id }) => id).sort()

describe('several processes on one store', () => {
  test('never send the same attempt twice', async () => {
    const ids = queueMany(150, receiver)

    bench.deliverer().start()
    bench.deliverer().start()

    await bench.recorded(150)
    expect(idsOf(receiver)).toEqual(ids)
  })

  test('send at once what another one that closes has taken and not sent', async () => {
    const ids = queueMany(20, receiver)
    const closing = bench.deliverer()
    closing.start()
    await receiver.received(1)
    await closing.stop()
    const sent = receiver.messages.length

    bench.deliverer().start()

    await bench.recorded(20)
    expect(sent).toBeLessThan(20)
    expect(idsOf(receiver)).toEqual(ids)
  })

  test('deliver a message again, with the same id and body, when one died before it could record', async () => {
    const died: Partial<WebhookStore> = { record: () => new Promise<never>(() => undefined) }
    bench.queue('msg_one', `${receiver.origin}/hook`)
    bench.deliverer({}, died).start()
    await receiver.received(1)
    const survivor = bench.deliverer()
    survivor.start()
    bench.clock.advance(LEASE_MS - 1)
    bench.queue('msg_later', `${receiver.origin}/hook`)
    survivor.wake()
    // Whatever had been due before it would have come before it.
    await bench.recorded(1)

    bench.clock.advance(1)
    survivor.wake()
    await bench.recorded(2)

    const [first, later, second] = await receiver.received(3)
    expect(later?.id).toBe('msg_later')
    expect([second?.id, second?.body]).toEqual([first?.id, first?.body])
    expect(verify(GATEWAY_SECRET, second!)).toEqual(JSON.parse(first?.body ?? ''))
    expect((await bench.delivery('msg_one')).state).toBe('delivered')
  })

  test('leave a message to others when the store was so slow that its lease could end under the attempt', async () => {
    let slow: WebhookDeliverer | undefined
    let release = (): void => undefined
    const asked = new Promise<void>((resolve) => {
      const secrets: WebhookStore['secrets'] = () => {
        resolve()
        return new Promise((answer) => {
          release = () => answer([])
        })
      }
      slow = bench.deliverer({}, { secrets })
    })
    bench.queue('msg_one', `${receiver.origin}/hook`)
    slow?.start()
    await asked
    bench.clock.advance(LEASE_MS - 20_000)
    release()
    await slow?.stop()
    const sentBySlow = receiver.connections

    bench.clock.advance(20_000)
    bench.deliverer().start()

    await bench.recorded(1)
    expect([sentBySlow, receiver.messages.length]).toEqual([0, 1])
  })
})

describe('a crowd of messages', () => {
  test('goes to one host four at a time, and passes others by meanwhile', async () => {
    const open: ServerResponse[] = []
    let mostOpen = 0
    receiver.answerBy((response) => {
      open.push(response)
      mostOpen = Math.max(mostOpen, open.length)
    })
    const slow = queueMany(20, receiver, 'slow')
    const quick = queueMany(20, other, 'quick')

    bench.deliverer().start()

    await bench.recorded(20)
    await receiver.received(4)
    expect(idsOf(other)).toEqual(quick)
    expect(receiver.messages).toHaveLength(4)
    receiver.answerBy((response) => void response.writeHead(204).end())
    for (const response of open.splice(0)) response.writeHead(204).end()
    await bench.recorded(40)
    expect(idsOf(receiver)).toEqual(slow)
    expect(mostOpen).toBe(4)
  })

  test('delivers hundreds to one host without waiting for leases to expire', async () => {
    const ids = queueMany(600, receiver)

    bench.deliverer().start()

    await bench.recorded(600)
    expect(idsOf(receiver)).toEqual(ids)
  })

  test('does not delay messages to other hosts if one hangs', async () => {
    receiver.answerBy(() => undefined)
    queueMany(600, receiver, 'hanging')
    bench.clock.advance(1)
    bench.queue('msg_behind', `${other.origin}/hook`)
    bench.deliverer().start()
    await receiver.received(4)

    for (let second = 0; second < 12; second++) {
      bench.clock.advance(1_000)
      await new Promise((resolve) => setImmediate(resolve))
    }

    expect((await other.received(1)).map(({ id }) => id)).toEqual(['msg_behind'])
  })
})

describe('a store that fails', () => {
  test('is reported and asked again within 5 seconds', async () => {
    let faults = 1
    const leaseDue: WebhookStore['leaseDue'] = (query) => {
      if (faults-- > 0) throw new Error('the database restarts')
      return bench.webhooks.leaseDue(query)
    }
    bench.queue('msg_one', `${receiver.origin}/hook`)
    bench.deliverer({}, { leaseDue }).start()
    await new Promise((resolve) => setImmediate(resolve))

    bench.clock.advance(5_000)

    await bench.recorded(1)
    expect(bench.events[0]).toEqual({
      type: 'internal-error',
      requestId: undefined,
      where: 'webhooks: take',
      error: new Error('the database restarts'),
    })
  })

  test.each(['secrets', 'record'] as const)(
    'in %s is reported, and the message comes again when its lease has run out',
    async (method) => {
      let faults = 1
      const failsOnce = <Value>(value: () => Value): Value => {
        if (faults-- > 0) throw new Error('the database restarts')
        return value()
      }
      const { secrets, record } = bench.webhooks
      const faulty: Record<typeof method, Partial<WebhookStore>> = {
        secrets: { secrets: (...query) => failsOnce(() => secrets(...query)) },
        record: { record: (...outcome) => failsOnce(() => record(...outcome)) },
      }
      const reported = bench.nextEvent()
      bench.queue('msg_one', `${receiver.origin}/hook`)
      const deliverer = bench.deliverer({}, faulty[method])
      deliverer.start()
      expect(await reported).toMatchObject({ type: 'internal-error', where: 'webhooks: deliver msg_one' })
      await new Promise((resolve) => setImmediate(resolve))

      bench.clock.advance(LEASE_MS)
      deliverer.wake()

      const sent = method === 'record' ? 2 : 1
      expect((await receiver.received(sent)).map(({ id }) => id)).toEqual(Array(sent).fill('msg_one'))
    },
  )
})

describe('stop', () => {
  test('waits for attempts under way and begins no more', async () => {
    const open: ServerResponse[] = []
    receiver.answerBy((response) => void open.push(response))
    queueMany(10, receiver)
    const deliverer = bench.deliverer()
    deliverer.start()
    await receiver.received(4)

    const stopped = deliverer.stop()
    for (const response of open) response.writeHead(204).end()
    await stopped
    deliverer.wake()
    bench.clock.advance(60_000)

    expect(await bench.recorded(4)).toHaveLength(4)
    expect(receiver.messages).toHaveLength(4)
  })

  test('cuts off what takes longer than the drain, which is made again elsewhere', async () => {
    receiver.answerBy(() => undefined)
    bench.queue('msg_one', `${receiver.origin}/hook`)
    const deliverer = bench.deliverer()
    deliverer.start()
    await receiver.received(1)

    const stopped = deliverer.stop({ drainMs: 1_000 })
    bench.clock.advance(1_000)
    await stopped

    expect(await bench.delivery('msg_one')).toMatchObject({ state: 'pending', attempts: [] })
    receiver.answerBy((response) => void response.writeHead(204).end())
    bench.clock.advance(LEASE_MS)
    bench.deliverer().start()
    await bench.recorded(1)
    expect(receiver.messages.map(({ id }) => id)).toEqual(['msg_one', 'msg_one'])
  })

  test('leaves no timer behind, and start begins again', async () => {
    const deliverer = bench.deliverer()
    deliverer.start()
    await deliverer.stop()
    const waiting = bench.clock.pending

    bench.queue('msg_one', `${receiver.origin}/hook`)
    deliverer.start()
    await bench.recorded(1)

    expect(waiting).toBe(0)
  })
})
