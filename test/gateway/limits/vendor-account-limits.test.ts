import { afterAll, beforeAll, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream, json } from '../streams/answering-vendor.ts'

let started: StartedGateway
let vendor: AnsweringVendor

const ANSWER = {
  candidates: [{ content: {}, finishReason: 'PUP_LIMITED_DISABLED', index: 0 }],
  usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 },
}

beforeAll(async () => {
  let calls = 0
  vendor = await answeringVendor((response) => {
    calls += 1
    if (calls % 2 === 1) return json(response, ANSWER)
    eventStream(response)
    response.end(`data: ${JSON.stringify(ANSWER)}\n\n`)
  })
  const model = { id: 'flash', kind: 'chat', vendor: 'gemini', upstream: 'gemini-2.5-flash' } as const
  started = await startGateway({
    vendors: [gemini({ apiKey: 'k', baseURL: vendor.origin })],
    models: [model],
    billing: 'off',
  })
})
afterAll(async () => {
  await started.close()
  await vendor.close()
})

test.each([
  ['/v1/chat/completions', {}, '"finish_reason":"content_filter"'],
  ['/v1/messages', { max_tokens: 50 }, '"stop_reason":"refusal"'],
])('tells the operator at %s that the vendor has limited the account', async (path, fields, ending) => {
  for (const stream of [false, true]) {
    const answer = await started.post(path, {
      model: 'flash',
      messages: [{ role: 'user', content: 'hi' }],
      stream,
      ...fields,
    })
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining(ending)])
    const problems = started.events.filter(
      (event) => event.type === 'vendor-account-problem' && event.requestId === answer.headers.get('x-request-id'),
    )
    expect(problems).toEqual([expect.objectContaining({ vendor: 'gemini', code: 'PUP_LIMITED_DISABLED' })])
  }
})
