import { afterEach, expect, test } from 'vitest'
import { type TaskBench, taskBench } from './support/task-bench.ts'

const DAY_MS = 86_400_000

let bench: TaskBench

afterEach(() => bench.close())

/** Submits a video and waits for its end. */
async function rendered(): Promise<string> {
  const id = await bench.submit('a boat')
  await bench.pass(60_000, 1_000)
  expect((await bench.task(id)).state).toBe('completed')
  return id
}

test('a task is forgotten 90 days after its end, and not a day earlier', async () => {
  bench = await taskBench()
  const id = await rendered()
  await bench.pass(89 * DAY_MS)
  const before = await bench.read(id)
  await bench.pass(DAY_MS)

  const after = await bench.read(id)

  expect(before).toMatchObject({ id, status: 'completed' })
  expect(after).toMatchObject({ error: { code: 'task_not_found' } })
})

test('old tasks are deleted also after the clock was set back by an hour', async () => {
  bench = await taskBench()
  const template = await bench.task(await rendered())
  bench.setClockBack(3_600_000)
  await bench.store.tasks.insert({ ...template, id: 'task_old', updatedAtMs: template.updatedAtMs - 91 * DAY_MS })
  await bench.pass(10_000, 1_000)

  expect(await bench.read('task_old')).toMatchObject({ error: { code: 'task_not_found' } })
})

test('the operator says how long tasks are kept', async () => {
  bench = await taskBench({ taskRetentionDays: 1.5 })
  const id = await rendered()
  await bench.pass(1.4 * DAY_MS)
  const before = await bench.read(id)
  await bench.pass(0.2 * DAY_MS)

  expect(before).toMatchObject({ status: 'completed' })
  expect(await bench.read(id)).toMatchObject({ error: { code: 'task_not_found' } })
})

test('lets the operator keep tasks indefinitely', async () => {
  bench = await taskBench({ taskRetentionDays: Number.POSITIVE_INFINITY })
  const id = await rendered()
  await bench.pass(4_000 * DAY_MS)

  expect(await bench.read(id)).toMatchObject({ status: 'completed' })
})

test('more tasks than one step forgets are all forgotten', async () => {
  bench = await taskBench()
  const template = await bench.task(await rendered())
  for (let index = 0; index < 350; index++) await bench.store.tasks.insert({ ...template, id: `task_old${index}` })
  await bench.pass(91 * DAY_MS)
  await bench.pass(10_000, 1_000)

  const { tasks } = await bench.store.tasks.list(template.accountId, { limit: 1_000 })

  expect(tasks).toEqual([])
})

test.each([0, -1, 0.99, Number.NaN])(
  'a retention of %d days, under which a key could name a forgotten task, is an error at start',
  async (taskRetentionDays) => {
    await expect(taskBench({ taskRetentionDays })).rejects.toThrow(
      'createGateway: taskRetentionDays must be at least 1, because an Idempotency-Key returns its task for 24 hours',
    )
    bench = await taskBench({ taskRetentionDays: 1 })
  },
)
