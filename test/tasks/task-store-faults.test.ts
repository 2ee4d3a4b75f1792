import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import { FailingStore, type StoreFault } from './support/failing-store.ts'
import { CREDIT, type TaskBench, taskBench, WEBHOOK_SECRET } from './support/task-bench.ts'

const FREED = { balance: CREDIT, held: 0n }
const CHARGED = { balance: CREDIT - 400_000_000n, held: 0n }

let bench: TaskBench
let failing: FailingStore

async function start(options: Partial<GatewayOptions> = {}): Promise<void> {
  failing = new FailingStore()
  bench = await taskBench({ store: failing.store, ...options })
}

afterEach(() => bench.close())

function submissions(): number {
  return bench.sandbox.requests.filter(({ method }) => method === 'POST').length
}

const HOWS: readonly StoreFault[] = ['refuse', 'forget']

describe.each(HOWS)('a store that is down for a while (%s)', (how) => {
  test('sends nothing and leaves nothing if it fails at the hold', async () => {
    await start()
    failing.failAt('hold the money', how, 1)

    const answer = await bench.post('a boat', { headers: { 'idempotency-key': 'once' } })
    await bench.pass(1_000, 250)
    const left = await bench.account()
    const again = await bench.post('a boat', { headers: { 'idempotency-key': 'once' } })

    expect(answer.status).toBe(503)
    expect(left).toEqual(FREED)
    expect(again.status).toBe(202)
    expect(submissions()).toBe(1)
  })

  test('polls the task to its end if it fails at the note of the submission, and the caller has the id', async () => {
    await start()
    failing.failAt('note the submission', how, 5)

    const id = await bench.submit('a boat', { headers: { 'idempotency-key': 'once' } })
    await bench.pass(90_000, 1_000)

    expect(failing.failures).toBe(5)
    expect(await bench.read(id)).toMatchObject({ status: 'completed' })
    expect(await bench.submit('a boat', { headers: { 'idempotency-key': 'once' } })).toBe(id)
    expect(submissions()).toBe(1)
    expect(await bench.account()).toEqual(CHARGED)
  })

  test('still marks the task as unknown if it fails at the note of an unknown submission', async () => {
    await start()
    failing.failAt('note the submission', how, 3)

    const id = await bench.submit('[[fault:reset]] a boat')
    await bench.pass(20_000, 1_000)

    expect(await bench.read(id)).toMatchObject({ status: 'unknown' })
    expect(submissions()).toBe(1)
  })

  test('when the vendor has refused: the caller learns it, and the money comes back', async () => {
    await start()
    failing.failAt('undo the submission', how, 4)

    const answer = await bench.post('[[fault:blocked]] a boat', { headers: { 'idempotency-key': 'once' } })
    await bench.pass(30_000, 1_000)

    expect(answer.status).toBe(400)
    expect(await bench.account()).toEqual(FREED)
    expect((await bench.post('a boat', { headers: { 'idempotency-key': 'once' } })).status).toBe(202)
  })

  test('when due tasks are looked for: they are found later', async () => {
    await start()
    const id = await bench.submit('a boat')
    failing.failAt('take due tasks', how, 20)

    // A task that was leased without an acknowledgement stays leased until the lease expires.
    await bench.pass(150_000, 1_000)

    expect(failing.failures).toBe(20)
    expect(await bench.read(id)).toMatchObject({ status: 'completed' })
    expect(await bench.account()).toEqual(CHARGED)
  })

  test('polls the vendor again if it fails at the note of a report', async () => {
    await start()
    const id = await bench.submit('[[video:running=60000]] a boat')
    failing.failAt('note a report', how, 1)

    await bench.pass(240_000, 1_000)

    expect(failing.failures).toBe(1)
    expect(await bench.read(id)).toMatchObject({ status: 'completed' })
    expect(await bench.account()).toEqual(CHARGED)
  })

  test('ends and charges the task once, with one message, if it fails at the end of a task', async () => {
    await start({ webhookSecret: WEBHOOK_SECRET })
    const id = await bench.submit('a boat', { fields: { webhook_url: 'http://127.0.0.1:9/hook' } })
    failing.failAt('end the task', how, 1)

    await bench.pass(240_000, 1_000)
    const entries = await failing.inner.ledger.entries(TEST_ACCOUNT, 100)
    const messages = await failing.inner.webhooks.list(TEST_ACCOUNT, id)

    expect(failing.failures).toBe(1)
    expect(await bench.read(id)).toMatchObject({ status: 'completed' })
    expect(entries.filter(({ kind }) => kind === 'charge')).toHaveLength(1)
    expect(messages).toHaveLength(1)
    expect(await bench.account()).toEqual(CHARGED)
  })

  test('asks the caller to retry if it fails at the end of a task that the vendor has cancelled, and releases the money', async () => {
    await start()
    const id = await bench.submit('[[video:pending=600000]] a boat')
    failing.failAt('end the task', how, 1)

    const answer = await bench.cancel(id)
    await bench.pass(120_000, 1_000)

    expect(answer.status).toBe(503)
    expect(await bench.read(id)).toMatchObject({ status: 'cancelled' })
    expect(await bench.account()).toEqual(FREED)
  })

  test('gives expired tasks up later if it fails at the search for them', async () => {
    await start()
    const id = await bench.submit('[[fault:reset]] a boat')
    await bench.pass(24 * 3_600_000 - 60_000, 3_600_000)
    failing.failAt('take overdue tasks', how, 3)

    await bench.pass(240_000, 1_000)

    expect(failing.failures).toBe(3)
    expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'submission_unknown' } })
    expect(await bench.account()).toEqual(FREED)
  })
})

test('a submission that could be noted only after it was taken for lost is followed to its end', async () => {
  await start()
  failing.failAt('note the submission', 'refuse', 150)
  const id = await bench.submit('a boat')

  await bench.pass(11 * 60_000 + 15_000, 5_000)
  const takenForLost = await bench.read(id)
  await bench.pass(4 * 60_000, 5_000)

  expect(takenForLost).toMatchObject({ status: 'unknown' })
  expect(await bench.read(id)).toMatchObject({ status: 'completed' })
  expect(await bench.account()).toEqual(CHARGED)
})

describe('a store that is down while somebody asks', () => {
  test('answers a record and a list with 503, and shows no reason', async () => {
    await start()
    const id = await bench.submit('a boat')
    failing.failAt('find the task', 'refuse', 1)
    const record = await bench.read(id)
    failing.failAt('list tasks', 'refuse', 1)
    const list = await bench.list()

    expect(record).toMatchObject({ error: { code: 'store_unavailable' } })
    expect(JSON.stringify(record)).not.toContain('down')
    expect(list.status).toBe(503)
  })

  test('gives the record as it was found when only the look for due tasks fails', async () => {
    await start()
    const id = await bench.submit('a boat')
    failing.failAt('take due tasks', 'refuse', 5)
    bench.clock.advance(60_000)

    expect(await bench.read(id)).toMatchObject({ status: 'queued' })
  })

  test('holds and sends nothing when webhook secrets cannot be looked for', async () => {
    await start()
    failing.failAt('look for webhook secrets', 'refuse', 1)

    const answer = await bench.post('a boat', { fields: { webhook_url: 'https://hooks.example.net/' } })

    expect(answer.status).toBe(503)
    expect(submissions()).toBe(0)
    expect(await bench.account()).toEqual(FREED)
  })
})
