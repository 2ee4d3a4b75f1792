import { afterEach, describe, expect, test } from 'vitest'
import type { Transport } from '../../src/transport/transport.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { CREDIT, type TaskBench, taskBench, VENDOR_KEY } from './support/task-bench.ts'

const HELD = { balance: CREDIT - 400_000_000n, held: 400_000_000n }
const CHARGED = { balance: CREDIT - 400_000_000n, held: 0n }
const FREED = { balance: CREDIT, held: 0n }

let bench: TaskBench

afterEach(() => bench.close())

describe('a task that the vendor does not know', () => {
  test('is given up at the third report in a row, and its money is free', async () => {
    bench = await taskBench()
    const id = await bench.submit('[[video:unknown]] a boat')

    await bench.pass(33_000, 1_000)
    const second = await bench.read(id)
    const heldMeanwhile = await bench.account()
    const asked = bench.polls()
    await bench.pass(20_000, 1_000)

    expect(second).toMatchObject({ status: 'queued', output: { task_status: 'PENDING' } })
    expect(heldMeanwhile).toEqual(HELD)
    expect([asked, bench.polls()]).toEqual([2, 3])
    expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'task_expired' } })
    expect(await bench.account()).toEqual(FREED)
    expect(bench.events.filter(({ type }) => type === 'unbilled-usage')).toMatchObject([{ isEstimated: true }])
  })
})

describe('an inconclusive answer changes nothing', () => {
  const noVerdicts = [
    ['no connection', { kind: 'refuse' }],
    ['a connection that breaks', { kind: 'reset' }],
    ['a vendor that never answers', { kind: 'hang' }],
    ['an answer that stops halfway', { kind: 'hang-body' }],
    ['bytes that mean nothing', { kind: 'garbage' }],
    ['an empty body', { kind: 'empty' }],
    ['JSON that breaks off', { kind: 'half-json' }],
    ['an error within an answer of success', { kind: 'error-event' }],
    ['a page of a proxy', { kind: 'html', status: 502 }],
    ['a redirect', { kind: 'redirect' }],
    ['a failure of the vendor', { kind: 'status', status: 500 }],
    ['a 404', { kind: 'status', status: 404 }],
    ['a 400', { kind: 'status', status: 400 }],
    ['a storm of 429', { kind: 'status', status: 429 }],
    ['a key that is refused', { kind: 'bad-key' }],
    ['an account without money', { kind: 'quota' }],
  ] as const

  test.each(noVerdicts)(
    '%s: the hold stays, and the video that the vendor made is charged once',
    async (_name, fault) => {
      bench = await taskBench()
      bench.sandbox.fault({ ...fault, vendor: 'dashscope', operation: 'video-task', times: 3 })
      const id = await bench.submit('a boat')

      // Three polls fail, each after its timeout if there is one: at 15, 30 and 60 seconds, or later.
      for (let count = 0; count < 30 && bench.polls() < 3; count++) await bench.pass(10_000)
      const meanwhile = await bench.account()
      const asked = bench.polls()
      for (let count = 0; count < 30 && bench.polls() < 4; count++) await bench.pass(10_000)

      expect(asked).toBe(3)
      expect(meanwhile).toEqual(HELD)
      expect(await bench.read(id)).toMatchObject({ status: 'completed' })
      expect(await bench.account()).toEqual(CHARGED)
      expect(bench.events.filter(({ type }) => type === 'task-ended')).toHaveLength(1)
    },
  )

  test('an account at the vendor that is refused is told to the operator', async () => {
    bench = await taskBench()
    bench.sandbox.fault({ kind: 'bad-key', vendor: 'dashscope', operation: 'video-task' })
    await bench.submit('a boat')

    await bench.pass(20_000, 5_000)

    expect(bench.events).toContainEqual(
      expect.objectContaining({ type: 'vendor-account-problem', vendor: 'dashscope' }),
    )
  })
})

describe('how often the vendor is polled', () => {
  test('a poll that fails late in a long rendering is made again after one interval, each time', async () => {
    bench = await taskBench()
    const id = await bench.submit('[[video:stuck]] a boat')
    for (let count = 0; count < 40 && bench.polls() < 9; count++) await bench.pass(15_000)
    expect(bench.polls()).toBe(9)
    const nextPoll = async (): Promise<void> => {
      const before = bench.polls()
      while (bench.polls() === before) await bench.pass(1_000)
    }
    for (let failures = 0; failures < 2; failures++) {
      bench.sandbox.fault({ kind: 'status', status: 500, vendor: 'dashscope', operation: 'video-task' })
      await nextPoll()
      const { nextPollAtMs } = await bench.task(id)

      expect(nextPollAtMs - bench.clock.now()).toBeLessThanOrEqual(15_000)
      // This one is answered.
      await nextPoll()
    }
  })

  test('it is asked more and more seldom while it does not answer, and at least every five minutes', async () => {
    bench = await taskBench()
    bench.sandbox.fault({ kind: 'status', status: 500, vendor: 'dashscope', operation: 'video-task', times: 100 })
    const id = await bench.submit('a boat')
    const delaysMs: number[] = []

    for (let count = 0; count < 25; count++) {
      const dueAtMs = (await bench.task(id)).nextPollAtMs
      await bench.pass(dueAtMs - bench.clock.now())
      await bench.pass(1_000)
      delaysMs.push((await bench.task(id)).nextPollAtMs - dueAtMs)
    }

    expect(bench.polls()).toBe(25)
    expect(delaysMs.slice(0, 3).map((delayMs) => Math.floor(delayMs / 15_000))).toEqual([1, 2, 3])
    expect(Math.max(...delaysMs)).toBeLessThanOrEqual(301_000)
    expect(delaysMs.at(-1)).toBeGreaterThanOrEqual(300_000)
  })

  test('callers who ask all the time do not make the gateway ask more often', async () => {
    bench = await taskBench()
    const id = await bench.submit('[[video:stuck]] a boat')

    for (let count = 0; count < 40; count++) {
      await bench.read(id)
      await bench.pass(500)
    }

    expect(bench.polls()).toBe(1)
  })

  test('a caller who asks when it is due gets what the vendor says then', async () => {
    bench = await taskBench({ taskPollIntervalMs: 600_000 })
    const id = await bench.submit('a boat')
    const early = await bench.read(id)
    // The clock moves on without the loop having its turn: the worker has not asked yet.
    bench.clock.advance(600_000)
    const due = await bench.read(id)

    expect(early).toMatchObject({ status: 'queued' })
    expect(due).toMatchObject({ status: 'completed' })
    expect(bench.polls()).toBe(1)
  })

  test('a task in the hands of another process is answered from the record', async () => {
    bench = await taskBench()
    const id = await bench.submit('a boat')
    const { credentialId } = await bench.task(id)
    const nowMs = bench.clock.now()
    const budget = { takes: 20, windowMs: 250 }
    await bench.store.tasks.leaseDue({ credentialId, nowMs, leaseUntilMs: nowMs + 90_000, limit: 1, budget, id })

    await bench.pass(60_000, 5_000)

    expect(await bench.read(id)).toMatchObject({ status: 'queued' })
    expect(bench.polls()).toBe(0)
    await bench.pass(40_000, 5_000)
    expect(await bench.read(id)).toMatchObject({ status: 'completed' })
  })

  test('a hundred tasks that fall due at once are asked about within the vendor’s limit', async () => {
    bench = await taskBench()
    for (let count = 0; count < 100; count++) await bench.submit('a boat')

    await bench.pass(15_000)
    await bench.pass(10_000, 125)

    expect(bench.sandbox.mostTaskQueriesPerSecond).toBeLessThanOrEqual(20)
    expect(bench.polls()).toBe(100)
  })

  test('polls tasks that expire at the same time within the vendor’s limit, and charges every completed one', async () => {
    bench = await taskBench({ taskDeadlineMs: 60_000, taskPollIntervalMs: 3_600_000 })
    for (let count = 0; count < 60; count++) await bench.submit('a boat')

    await bench.pass(60_000)
    await bench.pass(30_000, 125)

    expect(bench.sandbox.mostTaskQueriesPerSecond).toBeLessThanOrEqual(20)
    expect(bench.events.filter((event) => event.type === 'task-ended' && event.state === 'completed')).toHaveLength(60)
    expect(await bench.account()).toEqual({ balance: CREDIT - 60n * 400_000_000n, held: 0n })
  })
})

test('a task whose model is in the catalog no more is followed to its end, as often as any other', async () => {
  const model = {
    id: 'house-video',
    kind: 'video',
    vendor: 'dashscope',
    upstream: 'wan2.7-t2v',
    protocol: 'wan-2-7',
  } as const
  const price = { model: 'house-video', meter: 'video_second', amount: '0.10' } as const
  bench = await taskBench({ models: [model], prices: { currency: 'USD', prices: [price] }, taskPollIntervalMs: 60_000 })
  const parameters = { resolution: '720P', duration: 4 }
  const id = await bench.submit('[[video:running=150000]] a boat', { fields: { model: 'house-video', parameters } })
  await bench.close()
  bench = await bench.another({ models: [] })

  await bench.pass(200_000, 1_000)

  expect(await bench.read(id)).toMatchObject({ status: 'completed', model: 'house-video', cost: '0.4' })
  expect(bench.polls()).toBe(3)
})

describe('a vendor’s key that is taken out of the configuration', () => {
  test('leaves its tasks to another key of the vendor (never polled and $0 before, now completed and charged)', async () => {
    bench = await taskBench()
    const id = await bench.submit('a boat')
    await bench.close()
    const transport = bench.sandbox.transport()
    // The vendor treats both keys as the same account.
    const sameAccount: Transport = {
      ...transport,
      send: (request, handler) =>
        transport.send(
          { ...request, headers: request.headers.map((text) => text.replace('another-key', VENDOR_KEY)) },
          handler,
        ),
    }
    const vendors = [dashscope({ apiKey: 'another-key', baseURL: 'https://vendor.example' })]
    bench = await bench.another({ vendors, transport: sameAccount })

    await bench.pass(120_000, 5_000)

    // The worker does it; nobody has read the record.
    expect((await bench.task(id)).state).toBe('completed')
    expect(await bench.account()).toEqual(CHARGED)
    expect(bench.events.filter((event) => 'code' in event && event.code === 'task-key-missing')).toEqual([])
  })

  test('leaves its tasks unchanged if the other key does not see them, and notifies the operator', async () => {
    bench = await taskBench()
    const id = await bench.submit('a boat')
    await bench.close()
    const vendors = [dashscope({ apiKey: 'key-of-another-account', baseURL: 'https://vendor.example' })]
    bench = await bench.another({ vendors })

    await bench.pass(600_000, 5_000)

    // More than three times unknown, which would end it if it were believed.
    expect(bench.polls()).toBeGreaterThan(3)
    expect((await bench.task(id)).state).toBe('queued')
    expect(await bench.account()).toEqual(HELD)
    const told = bench.events.filter((event) => 'code' in event && event.code === 'task-key-missing')
    expect(told).toEqual([expect.objectContaining({ type: 'configuration-warning' })])
  })

  test('leaves its tasks unchanged until it comes back if the vendor has no other key, and notifies the operator', async () => {
    bench = await taskBench()
    const id = await bench.submit('a boat')
    await bench.close()
    const vendors = [dashscope({ baseURL: 'https://vendor.example' })]
    const without = await bench.another({ vendors })
    await without.pass(300_000, 5_000)
    const meanwhile = await without.read(id)
    const account = await without.account()
    const cancelled = await without.cancel(id)
    const told = without.events.filter((event) => 'code' in event && event.code === 'task-key-missing')
    await without.close()

    bench = await bench.another()
    await bench.pass(10_000, 5_000)

    expect(meanwhile).toMatchObject({ status: 'queued' })
    expect(account).toEqual(HELD)
    expect(cancelled.status).toBe(503)
    expect(told).toEqual([expect.objectContaining({ type: 'configuration-warning' })])
    expect(await bench.read(id)).toMatchObject({ status: 'completed' })
    expect(await bench.account()).toEqual(CHARGED)
  })

  test('each of several keys is asked about its own tasks', async () => {
    const baseURL = 'https://vendor.example'
    bench = await taskBench({ vendors: [dashscope({ apiKey: 'first-vendor-key', baseURL })] })
    const first = await bench.submit('a boat')
    await bench.close()
    bench = await bench.another({
      vendors: [dashscope({ apiKey: ['second-vendor-key', 'first-vendor-key'], baseURL })],
    })
    const second = await bench.submit('a boat')
    const accounts = [await bench.task(first), await bench.task(second)].map(({ credentialId }) => credentialId)

    await bench.pass(60_000, 5_000)

    expect(new Set(accounts).size).toBe(2)
    for (const id of [first, second]) expect(await bench.read(id)).toMatchObject({ status: 'completed' })
  })
})
