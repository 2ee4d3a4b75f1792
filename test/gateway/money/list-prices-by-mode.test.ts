import { afterEach, expect, test } from 'vitest'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, json } from '../streams/answering-vendor.ts'

let vendor: AnsweringVendor
let started: StartedGateway

afterEach(async () => {
  await started.close()
  await vendor.close()
})

interface Report {
  readonly input: number
  readonly output: number
  readonly reasoning?: number
}

/** Charge of a chat that its vendor reports like this, and what was held for it, in dollars. */
async function charged(model: string, { input, output, reasoning }: Report, fields: object = {}) {
  let held = 0n
  vendor = await answeringVendor(async (response) => {
    held = (await started.account()).held
    json(response, {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
      usage: {
        ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
        ...(reasoning === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoning } }),
      },
    })
  })
  started = await startGateway({
    vendors: [dashscope({ apiKey: 'vendor-key-0123456789', baseURL: vendor.origin, passUnknownModels: true })],
    models: [],
    prices: listPrices(),
  })
  const messages = [{ role: 'user', content: 'hi' }]
  const response = await started.post('/v1/chat/completions', { model, messages, max_tokens: 10_000, ...fields })
  expect(response.status).toBe(200)
  const { costNanoDollars } = await started.ended(response)
  return { dollars: Number(costNanoDollars) / 1e9, held: Number(held) / 1e9 }
}

test.each([
  [300_000, 2.4],
  [100_000, 0.27],
  [32_000, 0.082],
])('charges qwen3-coder-plus by the size of its prompt: %i tokens', async (input, dollars) => {
  expect((await charged('qwen3-coder-plus', { input, output: 10_000 })).dollars).toBe(dollars)
})

test.each([
  ['a report of reasoning tokens', { input: 1_000, output: 8_100, reasoning: 100 }, {}, 0.0328],
  ['a request that turns thinking on', { input: 2_000, output: 8_000 }, { enable_thinking: true }, 0.0328],
  ['a request that turns thinking off', { input: 2_000, output: 8_000 }, { enable_thinking: false }, 0.0104],
  ['no sign of thinking', { input: 2_000, output: 8_000, reasoning: 0 }, {}, 0.0104],
])('prices all output of qwen-plus by %s', async (_what, report, fields, dollars) => {
  expect((await charged('qwen-plus', report, fields)).dollars).toBe(dollars)
})

test.each([
  [{}, 0.04],
  [{ enable_thinking: true }, 0.04],
  [{ enable_thinking: false }, 0.012],
])('holds 10,000 tokens of qwen-plus in thinking mode unless the request turns it off: %j', async (fields, dollars) => {
  const { held } = await charged('qwen-plus', { input: 10, output: 10 }, fields)

  expect(held).toBeGreaterThan(dollars)
  expect(held).toBeLessThan(dollars + 0.001)
})
