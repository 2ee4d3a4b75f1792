import { expect, test } from 'vitest'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { listen } from '../support/listen.ts'
import { startGateway } from '../support/start-gateway.ts'

const VIDEOS = '/v1/videos/generations'
const BOAT = { model: 'wv2.6-t2v', duration: 5, resolution: '720p', input: { prompt: 'a boat' } }
const PENDING = { request_id: 'r', output: { task_id: 'upstream-1', task_status: 'PENDING' } }
const REFUSED = { code: 'UnsupportedOperation', message: 'The task is running.', request_id: 'r' }

test.each([
  ['confirms it', { request_id: 'r' }, 200, 'cancelled', 0n],
  ['refuses it with a status of success', REFUSED, 409, 'queued', 500_000_000n],
  ['says nothing that can be read', '<html>Welcome</html>', 503, 'queued', 500_000_000n],
])('a cancellation where the vendor %s', async (_, body, status, state, held) => {
  const vendor = await listen((request, response) => {
    const answer = request.url?.endsWith('/cancel') === true ? body : PENDING
    request.resume().on('end', () => response.end(typeof answer === 'string' ? answer : JSON.stringify(answer)))
  })
  const started = await startGateway({ vendors: [dashscope({ apiKey: 'vendor-key', baseURL: vendor.origin })] })
  const { id } = (await (await started.post(VIDEOS, BOAT)).json()) as { id: string }

  const answer = await started.post(`${VIDEOS}/${id}/cancel`, {})
  const [task] = (await started.gateway.tasks.list('acct_test')).tasks

  expect(answer.status).toBe(status)
  expect(task).toMatchObject({ id, state })
  expect(await started.account()).toMatchObject({ held })
  await started.close()
  await vendor.close()
})
