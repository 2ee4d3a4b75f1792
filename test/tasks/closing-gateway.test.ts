import { afterEach, expect, test } from 'vitest'
import { type TaskBench, taskBench } from './support/task-bench.ts'

let bench: TaskBench

afterEach(() => bench.close())

test('a gateway that closes gives up questions that are not answered, and the next one asks again', async () => {
  bench = await taskBench()
  bench.sandbox.fault({ kind: 'hang', vendor: 'dashscope', operation: 'video-task' })
  const id = await bench.submit('a boat')
  await bench.pass(16_000, 1_000)
  const asked = bench.polls()
  let isClosed = false
  const closed = bench.gateway.close({ drainMs: 5_000 }).then(() => {
    isClosed = true
  })

  await bench.pass(4_000, 1_000)
  const wasClosedEarly = isClosed
  await bench.pass(2_000, 1_000)
  const wasClosedInTime = isClosed
  bench = await bench.another()
  await bench.pass(40_000, 1_000)

  expect(asked).toBe(1)
  expect([wasClosedEarly, wasClosedInTime]).toEqual([false, true])
  expect(await bench.read(id)).toMatchObject({ status: 'completed' })
  await closed
})

test('waits no longer than the drain time when it closes, even if the clock is set back in the meantime', async () => {
  const hanging = { name: 'hanging', request: () => undefined, close: () => new Promise<void>(() => undefined) }
  bench = await taskBench({ hooks: [hanging] })
  bench.sandbox.fault({ kind: 'hang', vendor: 'dashscope', operation: 'video-task' })
  await bench.submit('a boat')
  await bench.pass(16_000, 1_000)
  let isClosed = false
  const closed = bench.gateway.close({ drainMs: 10_000 }).then(() => {
    isClosed = true
  })
  bench.setClockBack(3_600_000)
  await bench.pass(30_000, 1_000)

  expect(isClosed).toBe(true)
  await closed
})
