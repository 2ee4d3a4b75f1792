import { describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { chatBody, TEST_MODELS } from '../../support/start-gateway.ts'
import { gatewayBeforeVendor } from '../models/gateway-before-vendor.ts'
import { json } from './answering-vendor.ts'

const CHAT = '/v1/chat/completions'

const bench = gatewayBeforeVendor()

describe('a slow whole answer', () => {
  const models = [
    { ...TEST_MODELS[0], vendor: 'one', routes: [{ vendor: 'one' }, { vendor: 'two' }], fallbacks: ['spare'] },
    { ...TEST_MODELS[0], id: 'spare', vendor: 'two' },
  ]
  const options =
    (more: Partial<GatewayOptions>) =>
    (baseURL: string): Partial<GatewayOptions> => ({
      vendors: ['one', 'two'].map((id) => openaiCompatible({ id, baseURL, apiKey: id, models: [] })),
      models,
      billing: 'off',
      ...more,
    })

  test('is requested once, and given up when the total time has expired (3 vendor calls before, now 1)', async () => {
    await bench.start(() => undefined, options({ timeouts: { firstByteMs: 60, totalMs: 400 } }))
    const sentAtMs = Date.now()
    const response = await bench.started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(504)
    expect(Date.now() - sentAtMs).toBeGreaterThanOrEqual(390)
    expect(bench.vendor?.calls).toBe(1)
    expect(bench.eventsOf('attempt-failed')).toEqual([expect.objectContaining({ reason: 'sent timeout' })])
  })

  test('is returned once if it arrives after the first-byte timeout', async () => {
    const completion = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }]
    await bench.start(
      (response) => void setTimeout(() => json(response, { ...completion, choices }), 1_200),
      options({ timeouts: { firstByteMs: 60 } }),
    )
    const response = await bench.started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(200)
    expect(bench.vendor?.calls).toBe(1)
  })

  test('is asked for elsewhere where the host has it so', async () => {
    const timeouts = { firstByteMs: 60, totalMs: 5_000 }
    await bench.start(() => undefined, options({ timeouts, routing: { retryAfterTimeout: true } }))
    const response = await bench.started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(504)
    expect(bench.vendor?.calls).toBeGreaterThan(1)
  })

  test('is distinguished from a stream, which another vendor may still answer', async () => {
    await bench.start(() => undefined, options({ timeouts: { firstByteMs: 60, totalMs: 5_000 } }))
    await bench.started.post(CHAT, chatBody('chat-relayed', 'hello', { stream: true }))

    expect(bench.vendor?.calls).toBeGreaterThan(1)
  })
})
