import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, json } from '../streams/answering-vendor.ts'

const CHAT = '/v1/chat/completions'

/** Malformed whole answers that report usage, by the model that returns them. */
const ANSWERS = {
  'chat-pro': {
    ...{ id: 'resp_1', object: 'response', status: 'failed', model: 'gpt-5.4-pro', output: [] },
    error: { code: 'server_error', message: 'The model failed.' },
    usage: { input_tokens: 700, output_tokens: 9_000, output_tokens_details: { reasoning_tokens: 9_000 } },
  },
  'chat-relayed': {
    ...{ id: 'gen-1', object: 'chat.completion', created: 1, model: 'gpt-5.4' },
    choices: [{ index: 0, message: { role: 'assistant', content: 'Half' }, finish_reason: 'error' }],
    usage: {
      ...{ prompt_tokens: 700, completion_tokens: 9_000, total_tokens: 9_700 },
      completion_tokens_details: { reasoning_tokens: 9_000 },
    },
  },
  'gmn-2.5-flash': {
    candidates: [{ content: {}, finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'call:f(a=' }],
    usageMetadata: { promptTokenCount: 700, thoughtsTokenCount: 9_000, totalTokenCount: 9_700 },
  },
} as const

const USED = { inputTokens: 700, outputTokens: 9_000, reasoningTokens: 9_000 }

let started: StartedGateway
let vendor: AnsweringVendor

afterEach(async () => {
  await started.close()
  await vendor.close()
})

async function ask(model: keyof typeof ANSWERS, path: string): Promise<Response> {
  vendor = await answeringVendor((response) => json(response, ANSWERS[model]))
  const { origin: baseURL } = vendor
  const vendors = [openai({ apiKey: 'key', baseURL }), gemini({ apiKey: 'key', baseURL })]
  started = await startGateway({ vendors })
  const body = path === '/v1/responses' ? { model, input: 'hello' } : chatBody(model, 'hello', { max_tokens: 16_000 })
  const response = await started.post(path, body)
  await response.text()
  return response
}

function told(): Extract<GatewayEvent, { type: 'unbilled-usage' }>[] {
  return started.events.filter((event) => event.type === 'unbilled-usage')
}

describe('a malformed whole answer that reports usage', () => {
  test.each([
    ['chat-pro', CHAT],
    ['chat-pro', '/v1/messages'],
    ['chat-pro', '/v1/responses'],
    ['chat-relayed', CHAT],
    ['chat-relayed', '/v1/messages'],
    ['gmn-2.5-flash', CHAT],
    ['gmn-2.5-flash', '/v1/messages'],
    ['gmn-2.5-flash', '/v1/responses'],
  ] as const)('is free, and each time told as reported: %s by %s', async (model, path) => {
    const response = await ask(model, path)

    expect(response.status).toBe(model === 'gmn-2.5-flash' ? 502 : 503)
    expect((await started.ended(response)).costNanoDollars).toBe(0n)
    expect(told()).toHaveLength(vendor.calls)
    for (const event of told()) expect(event).toMatchObject({ model, usage: USED, isEstimated: false })
    const failed = started.events.filter((event) => event.type === 'attempt-failed')
    expect(failed.map(({ status }) => status)).toEqual(Array.from({ length: vendor.calls }, () => 200))
  })
})
