import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { FailingStore } from './support/failing-store.ts'
import { CREDIT, type TaskBench, taskBench } from './support/task-bench.ts'

const FREED = { balance: CREDIT, held: 0n }
const ONCE = { headers: { 'idempotency-key': 'once' } }

let bench: TaskBench

afterEach(() => bench.close())

function submissions(): number {
  return bench.sandbox.requests.filter(({ method }) => method === 'POST').length
}

/** Store whose first reservation times out for the gateway, and still succeeds when `arrive` is called. */
function tardy(inner: GatewayStore): { readonly store: GatewayStore; arrive(): Promise<void> } {
  let late: (() => unknown) | undefined
  const ledger: GatewayStore['ledger'] = {
    ...inner.ledger,
    reserve(reservation, nowMs) {
      if (late !== undefined) return inner.ledger.reserve(reservation, nowMs)
      late = () => inner.ledger.reserve(reservation, nowMs)
      return Promise.reject(new Error('no answer within 5000 ms'))
    },
  }
  return {
    store: { ...inner, ledger },
    async arrive() {
      await late?.()
    },
  }
}

test('still undoes a hold that a store creates only after the gateway has stopped waiting for it', async () => {
  const inner = memoryStore()
  const { store, arrive } = tardy(inner)
  bench = await taskBench({ store })

  const answer = await bench.post('a boat', ONCE)
  await bench.pass(1_000, 250)
  await arrive()
  await bench.pass(1_000, 250)
  const tasks = await inner.tasks.list('acct_test', { limit: 10 })
  const account = await bench.account()
  const again = await bench.post('a boat', ONCE)

  expect(answer.status).toBe(503)
  expect(tasks.tasks).toEqual([])
  expect(account).toEqual(FREED)
  expect(again.status).toBe(202)
  expect(submissions()).toBe(1)
})

describe.each(['refuse', 'forget'] as const)('without billing, a store that is down for a while (%s)', (how) => {
  test('when the task is written down: nothing is sent, and the key is free again', async () => {
    const failing = new FailingStore()
    bench = await taskBench({ store: failing.store, billing: 'off' })
    failing.failAt('hold the money', how, 3)

    const answer = await bench.post('a boat', ONCE)
    await bench.pass(10_000, 250)
    const { tasks } = await failing.inner.tasks.list('acct_test', { limit: 10 })
    const again = await bench.post('a boat', ONCE)

    expect(answer.status).toBe(503)
    expect(tasks).toEqual([])
    expect(again.status).toBe(202)
    expect(submissions()).toBe(1)
  })

  test('when that is undone: a caller who has come again in between keeps the key', async () => {
    const failing = new FailingStore()
    bench = await taskBench({ store: failing.store, billing: 'off' })
    failing.failAt('hold the money', 'refuse', 1)
    await bench.post('a boat', ONCE)
    failing.failAt('undo the submission', how, 1)
    await bench.pass(500, 250)

    await bench.pass(5_000, 250)
    const second = await bench.submit('a boat', ONCE)
    await bench.pass(5_000, 250)

    expect(await bench.submit('a boat', ONCE)).toBe(second)
    expect(submissions()).toBe(1)
  })
})

test('without billing, a task that is written down after its key was taken over is undone, and the key stays', async () => {
  const inner = memoryStore()
  let writeDown: (() => void) | undefined
  const slow: GatewayStore['tasks'] = {
    ...inner.tasks,
    async insert(task) {
      if (writeDown === undefined) await new Promise<void>((resolve) => (writeDown = resolve))
      return await inner.tasks.insert(task)
    },
  }
  const first = await taskBench({ store: { ...inner, tasks: slow }, billing: 'off' })
  bench = await first.another({ store: inner })
  const late = first.post('a boat', ONCE)
  await first.settle()
  await bench.pass(16 * 60_000, 60_000)
  const second = await bench.submit('a boat', ONCE)
  writeDown?.()
  await first.pass(10_000, 250)
  const { tasks } = await inner.tasks.list('acct_test', { limit: 10 })
  const again = await bench.submit('a boat', ONCE)
  await first.close()

  expect((await late).status).toBeGreaterThanOrEqual(500)
  expect(tasks.map(({ id }) => id)).toEqual([second])
  expect(again).toBe(second)
  expect(submissions()).toBe(1)
})

test('a refusal that could be noted only after the submission was taken for lost frees the money then', async () => {
  const failing = new FailingStore()
  bench = await taskBench({ store: failing.store })
  failing.failAt('undo the submission', 'refuse', 150)

  const answer = await bench.post('[[fault:blocked]] a boat', ONCE)
  const [task] = (await failing.inner.tasks.list('acct_test', { limit: 1 })).tasks
  await bench.pass(11 * 60_000 + 15_000, 5_000)
  const takenForLost = await bench.read(task!.id)
  await bench.pass(4 * 60_000, 5_000)

  expect(answer.status).toBe(400)
  expect(takenForLost).toMatchObject({ status: 'unknown' })
  expect(await bench.read(task!.id)).toMatchObject({ status: 'failed' })
  expect(await bench.account()).toEqual(FREED)
})
