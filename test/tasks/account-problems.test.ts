import { afterEach, expect, test } from 'vitest'
import { TEXT_LEFT_OUT } from '../../src/pipeline/estimate.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { listen } from '../support/listen.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'

const OUTPUT = { task_id: 'b7c9e1d2-5a40-4f3f-8e19-2f6b0d4c7a55' }
const ARREARS = { code: 'Arrearage', message: 'Access denied, please make sure your account is in good standing.' }

let started: StartedGateway
afterEach(() => started.close())

test("reports a video that fails because of the operator's account to the operator, and none of the details to its owner", async () => {
  const vendor = await listen((request, response) => {
    const status = request.method === 'POST' ? { task_status: 'PENDING' } : { task_status: 'FAILED', ...ARREARS }
    request.resume()
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ request_id: 'r1', output: { ...OUTPUT, ...status } }))
  })
  const vendors = [dashscope({ apiKey: 'key', baseURL: vendor.origin })]
  started = await startGateway({ vendors, taskPollIntervalMs: 20 })
  const body = { model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } }
  const { id } = (await (await started.post('/v1/videos/generations', body)).json()) as { id: string }
  const ended = await started.taskEnded(id)
  const shown = await started.gateway.client({ accountId: 'acct_test', keyId: 'k', tier: 'paid' }).videos.get(id)
  await vendor.close()

  expect([ended.state, ended.code, ended.costNanoDollars]).toEqual(['failed', 'upstream_unavailable', 0n])
  expect(shown).toMatchObject({ status: 'failed', error: { code: 'upstream_unavailable' } })
  expect(JSON.stringify(shown)).not.toMatch(/Arrearage|good standing/)
  expect(started.events).toContainEqual(
    expect.objectContaining({
      ...{ type: 'vendor-account-problem', vendor: 'dashscope', code: ARREARS.code },
      // The vendor may quote the prompt, which is not kept with the task.
      message: TEXT_LEFT_OUT,
    }),
  )
})
