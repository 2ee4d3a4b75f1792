import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { TEST_KEY } from '../support/start-gateway.ts'
import { CREDIT, type TaskBench, taskBench } from './support/task-bench.ts'

const HOUR_MS = 3_600_000
const HELD = { balance: CREDIT - 400_000_000n, held: 400_000_000n }
const FREED = { balance: CREDIT, held: 0n }

let bench: TaskBench

afterEach(() => bench.close())

const ONCE = { headers: { 'idempotency-key': 'once' } }

/** A store in which a process finds no work of those that died. */
function unseeing(store: GatewayStore): GatewayStore {
  return { ...store, tasks: { ...store.tasks, leaseDue: () => [], leaseExpired: () => [] } }
}

/** A store on which a submission that the vendor has taken can never be noted, as if the process had died before. */
function forgetful(store: GatewayStore): GatewayStore {
  return {
    ...store,
    tasks: {
      ...store.tasks,
      change: (change, nowMs) =>
        change.set.upstreamId === undefined ? store.tasks.change(change, nowMs) : new Promise(() => undefined),
    },
  }
}

describe('the operator’s limit', () => {
  test('gives up an endless video after 24 hours, not before, and charges nothing', async () => {
    bench = await taskBench()
    const id = await bench.submit('[[video:stuck]] a boat')

    await bench.pass(24 * HOUR_MS - 120_000, HOUR_MS)
    const before = await bench.read(id)
    const heldBefore = await bench.account()
    bench.sandbox.reset()
    await bench.pass(240_000, 5_000)

    expect(before).toMatchObject({ status: 'in_progress' })
    expect(heldBefore).toEqual(HELD)
    expect(bench.polls()).toBeGreaterThan(0)
    // The vendor forgets a task after 24 hours, too: whichever is seen first.
    expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'task_deadline_exceeded' } })
    expect(await bench.account()).toEqual(FREED)
  })

  test('can be set, and polls the vendor once more before a task is given up', async () => {
    bench = await taskBench({ taskDeadlineMs: HOUR_MS, taskPollIntervalMs: 2 * HOUR_MS })
    const made = await bench.submit('a boat')
    const stuck = await bench.submit('[[video:stuck]] a boat')

    await bench.pass(HOUR_MS)
    await bench.pass(20_000, 1_000)

    expect(await bench.read(made)).toMatchObject({ status: 'completed' })
    expect(await bench.read(stuck)).toMatchObject({ status: 'failed', error: { code: 'task_deadline_exceeded' } })
    expect(bench.polls()).toBe(2)
    expect(await bench.account()).toEqual({ balance: CREDIT - 400_000_000n, held: 0n })
  })

  test('ends a task in its time also after the clock was set back by an hour', async () => {
    bench = await taskBench({ taskDeadlineMs: 600_000 })
    await bench.pass(10_000)
    bench.setClockBack(HOUR_MS)
    const id = await bench.submit('[[fault:reset]] a boat')

    await bench.pass(620_000, 5_000)

    expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'submission_unknown' } })
    expect(await bench.account()).toEqual(FREED)
  })

  test('ends a task whose vendor cannot be reached', async () => {
    bench = await taskBench({ taskDeadlineMs: HOUR_MS })
    bench.sandbox.fault({ kind: 'refuse', vendor: 'dashscope', operation: 'video-task', times: 1_000 })
    const id = await bench.submit('a boat')

    await bench.pass(HOUR_MS - 60_000, 60_000)
    const before = await bench.read(id)
    await bench.pass(120_000, 5_000)

    expect(before).toMatchObject({ status: 'queued' })
    expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'task_deadline_exceeded' } })
    expect(await bench.account()).toEqual(FREED)
    // The vendor may have made it.
    expect(bench.events.filter(({ type }) => type === 'unbilled-usage')).toMatchObject([
      { vendor: 'dashscope', usage: { videoSeconds: 4 }, isEstimated: true },
    ])
  })

  test('ends a task whose key is configured no more', async () => {
    bench = await taskBench({ taskDeadlineMs: HOUR_MS })
    const id = await bench.submit('a boat')
    await bench.close()
    bench = await bench.another({ vendors: [dashscope({ apiKey: 'other', baseURL: 'https://vendor.example' })] })

    await bench.pass(HOUR_MS)
    await bench.pass(20_000, 5_000)

    expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'task_deadline_exceeded' } })
    expect(await bench.account()).toEqual(FREED)
  })
})

describe('a submission whose process died before it noted the answer', () => {
  test('becomes unknown once no answer can come any more, and fails at the limit with its money free', async () => {
    const store = memoryStore()
    const dying = await taskBench({ store: forgetful(store) })
    bench = dying
    void dying.post('a boat', { headers: { 'idempotency-key': 'once' } })
    await dying.settle()
    const [submitting] = (await store.tasks.list('acct_test', { limit: 10 })).tasks
    const id = submitting!.id
    bench = await dying.another({ store })

    await bench.pass(10 * 60_000, 60_000)
    const whileItMayAnswer = await bench.read(id)
    const againWhileItMayAnswer = await bench.post('a boat', { headers: { 'idempotency-key': 'once' } })
    await bench.pass(3 * 60_000, 5_000)
    const afterwards = await bench.read(id)
    const heldAfterwards = await bench.account()
    const again = await bench.post('a boat', { headers: { 'idempotency-key': 'once' } })
    await bench.pass(23 * HOUR_MS, HOUR_MS)
    const nearTheLimit = await bench.read(id)
    await bench.pass(HOUR_MS, 60_000)

    // Nobody asked the vendor a second time, whatever the callers did.
    expect(bench.sandbox.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
    expect(whileItMayAnswer).toMatchObject({ status: 'queued' })
    expect(againWhileItMayAnswer.status).toBe(409)
    expect(afterwards).toMatchObject({ status: 'unknown' })
    expect(heldAfterwards).toEqual(HELD)
    expect(again.status).toBe(202)
    expect(await again.json()).toMatchObject({ id, task_id: id, status: 'unknown' })
    expect(nearTheLimit).toMatchObject({ status: 'unknown' })
    expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'submission_unknown' } })
    expect(await bench.account()).toEqual(FREED)
    // Both follow it on the same clock; whichever ends it, it ends once.
    const events = [...dying.events, ...bench.events]
    expect(events.filter(({ type }) => type === 'task-ended')).toMatchObject([{ code: 'submission_unknown' }])
    expect(events.filter(({ type }) => type === 'unbilled-usage')).toMatchObject([{ isEstimated: true }])
  })

  test('without billing, too, its key gives the task that became unknown, also after its end', async () => {
    const store = memoryStore()
    const dying = await taskBench({ store: forgetful(store), billing: 'off', taskDeadlineMs: HOUR_MS })
    bench = dying
    void dying.post('a boat', { headers: { 'idempotency-key': 'once' } })
    await dying.settle()
    const [submitting] = (await store.tasks.list('acct_test', { limit: 10 })).tasks
    bench = await dying.another({ store })

    await bench.pass(13 * 60_000, 5_000)
    const again = await bench.submit('a boat', { headers: { 'idempotency-key': 'once' } })
    await bench.pass(HOUR_MS, 60_000)

    expect(again).toBe(submitting!.id)
    expect(await bench.read(again)).toMatchObject({ status: 'failed', error: { code: 'submission_unknown' } })
    expect(await bench.submit('a boat', { headers: { 'idempotency-key': 'once' } })).toBe(again)
    expect(bench.sandbox.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test('without billing, too, its key stays with the task while no process is there to see to it', async () => {
    const store = memoryStore()
    const dying = await taskBench({ store: unseeing(forgetful(store)), billing: 'off' })
    bench = await dying.another({ store: unseeing(store) })
    void dying.post('a boat', ONCE)
    await dying.settle()

    await bench.pass(HOUR_MS, 60_000)
    const again = await bench.post('a boat', ONCE)

    expect(again.status).toBe(409)
    expect(bench.sandbox.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test('without billing, and before the task was written down, frees its key once no call can be under way', async () => {
    const store = memoryStore()
    const dying = await taskBench({
      store: { ...store, tasks: { ...store.tasks, insert: () => new Promise(() => undefined) } },
      billing: 'off',
    })
    bench = dying
    void dying.post('a boat', ONCE)
    await dying.settle()
    bench = await dying.another({ store })

    await bench.pass(15 * 60_000 - 1, 60_000)
    const early = await bench.post('a boat', ONCE)
    await bench.pass(1)
    const again = await bench.post('a boat', ONCE)

    expect([early.status, again.status]).toEqual([409, 202])
    expect(bench.sandbox.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test('a task in state unknown is not asked about, because there is no id to ask by, and cannot be cancelled', async () => {
    bench = await taskBench()
    const id = await bench.submit('[[fault:reset]] a boat')

    await bench.pass(HOUR_MS, 60_000)
    const cancelled = await bench.cancel(id)

    expect(await bench.read(id)).toMatchObject({ status: 'unknown' })
    expect(bench.polls()).toBe(0)
    expect(cancelled.status).toBe(409)
  })
})

describe('a key that has expired before another process found its task', () => {
  /** Returns what another request with the key of the only task gets after a process has found that task. */
  async function keyAfterwards(): Promise<string> {
    const { store } = bench
    await bench.pass(25 * HOUR_MS, HOUR_MS)
    const [task] = (await store.tasks.list('acct_test', { limit: 10 })).tasks
    const { claimedBy: _, ...claim } = task!.details.claim!
    const nowMs = bench.clock.now()
    const successor = { ...claim, expiresAtMs: nowMs + 24 * HOUR_MS }
    expect(await store.idempotency.claim(successor, nowMs)).toEqual({ status: 'claimed' })
    bench = await bench.another({ store })
    await bench.pass(20_000, 1_000)
    expect((await bench.task(task!.id)).state).not.toBe(task!.state)
    return (await store.idempotency.claim(successor, bench.clock.now())).status
  }

  test('is left to the request that has it, by the worker that takes a submission for lost', async () => {
    const store = memoryStore()
    bench = await taskBench({ store: unseeing(forgetful(store)), billing: 'off', taskDeadlineMs: 72 * HOUR_MS })
    void bench.post('a boat', ONCE)
    await bench.settle()
    bench = { ...bench, store }

    expect(await keyAfterwards()).toBe('in_flight')
  })

  test('is left to the request that has it, by the process that runs a background answer', async () => {
    const store = memoryStore()
    const models = [{ id: 'chat-qwen', kind: 'chat', vendor: 'dashscope', upstream: 'qwen3-max' }] as const
    bench = await taskBench({
      store: unseeing(store),
      billing: 'off',
      taskDeadlineMs: 72 * HOUR_MS,
      models: [...models],
    })
    const accepted = await bench.gateway.fetch(
      new Request('http://gateway.example/v1/responses', {
        method: 'POST',
        headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json', ...ONCE.headers },
        body: JSON.stringify({ model: 'chat-qwen', input: 'hi', background: true }),
      }),
    )
    bench = { ...bench, store }

    expect(accepted.status).toBe(200)
    expect(await keyAfterwards()).toBe('in_flight')
  })
})
