import { afterEach, expect, test } from 'vitest'
import type { Transport } from '../../src/transport/transport.ts'
import { CREDIT, type TaskBench, taskBench, WEBHOOK_SECRET } from './support/task-bench.ts'

const HOUR_MS = 3_600_000
const FREED = { balance: CREDIT, held: 0n }

let bench: TaskBench

afterEach(() => bench.close())

test('a task whose vendor is configured no more is given up at the limit, and its money is free', async () => {
  bench = await taskBench({ taskDeadlineMs: HOUR_MS })
  const id = await bench.submit('a boat')
  await bench.close()
  bench = await bench.another({ vendors: [] })

  await bench.pass(HOUR_MS - 60_000, 60_000)
  const before = await bench.read(id)
  await bench.pass(120_000, 5_000)

  expect(before).toMatchObject({ status: 'queued' })
  expect(await bench.read(id)).toMatchObject({ status: 'failed', error: { code: 'task_deadline_exceeded' } })
  expect(await bench.account()).toEqual(FREED)
})

test('a vendor whose answer about a task never ends is given up before the lease on the task is over', async () => {
  let begun = 0
  let aborted = 0
  const trickling: Transport = {
    send(request, handler) {
      if (request.method !== 'GET') return bench.sandbox.transport().send(request, handler)
      begun++
      let isOver = false
      const trickle = (): void => {
        if (isOver) return
        handler.onData(Buffer.from(' '))
        bench.clock.schedule(10_000, trickle)
      }
      bench.clock.schedule(0, () => {
        handler.onHead(200, {})
        trickle()
      })
      return {
        pause() {},
        resume() {},
        abort() {
          if (isOver) return
          isOver = true
          aborted++
          handler.onFailure({ phase: 'body', kind: 'aborted', error: new Error('given up') })
        },
      }
    },
    close: async () => {},
  }
  bench = await taskBench({ transport: trickling })
  await bench.submit('a boat')

  await bench.pass(10 * 60_000, 1_000)

  expect(begun).toBeGreaterThan(3)
  expect(begun - aborted).toBeLessThanOrEqual(1)
})

test('the address of a webhook is kept as it is called, whatever characters the caller wrote', async () => {
  bench = await taskBench({ webhookSecret: WEBHOOK_SECRET })
  const id = await bench.submit('a boat', { fields: { webhook_url: 'http://127.0.0.1:9/\u0000\ud800 hook' } })

  expect((await bench.task(id)).details.webhookUrl).toBe('http://127.0.0.1:9/%00%EF%BF%BD%20hook')
})
