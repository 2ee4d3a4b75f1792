import { afterEach, expect, test } from 'vitest'
import { TEST_KEY } from '../support/start-gateway.ts'
import { type TaskBench, taskBench, VIDEOS } from './support/task-bench.ts'

let bench: TaskBench

afterEach(() => bench.close())

function get(path: string): Promise<Response> {
  const request = new Request(`http://gateway.example${path}`, { headers: { authorization: `Bearer ${TEST_KEY}` } })
  return bench.gateway.fetch(request)
}

async function readTimes(id: string, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let index = 0; index < count; index++) statuses.push((await get(`${VIDEOS}/${id}`)).status)
  return statuses
}

test('questions about tasks take nothing from the limit of requests that generate', async () => {
  bench = await taskBench({ limits: { requestsPerMinute: 2 } })
  const id = await bench.submit('a boat')
  const statuses = await readTimes(id, 20)
  const second = await bench.post('another boat')

  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(second.status).toBe(202)
  expect((await bench.post('a third')).status).toBe(429)
})

test('answers ten polls a minute for each request of the limit, and more with 429 and the time', async () => {
  bench = await taskBench({ limits: { requestsPerMinute: 2 } })
  const id = await bench.submit('a boat')
  await readTimes(id, 20)

  const refused = await get(`${VIDEOS}/${id}`)
  const list = await get(VIDEOS)
  const cancel = await bench.cancel(id)
  await bench.pass(3_000)
  const afterAWhile = await readTimes(id, 2)

  expect([refused.status, list.status, cancel.status]).toEqual([429, 429, 429])
  expect(refused.headers.get('retry-after')).toBe('3')
  expect(await refused.json()).toMatchObject({ error: { code: 'Throttling.RateQuota' } })
  expect(afterAWhile).toEqual([200, 429])
})

test('a key without a limit of requests may ask without one', async () => {
  bench = await taskBench({ limits: { tokensPerMinute: 1 } })
  const id = await bench.submit('a boat')

  expect(new Set(await readTimes(id, 200))).toEqual(new Set([200]))
})
