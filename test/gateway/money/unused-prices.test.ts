import { afterEach, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { chatBody, type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

async function warningsOf(options: Partial<GatewayOptions>): Promise<readonly string[]> {
  started = await startGateway(options)
  return started.events.flatMap((event) =>
    event.type === 'configuration-warning' && event.code !== 'model-unpriced' ? [event.message] : [],
  )
}

const per = 1_000_000

test('the price list of the tests has no row that no call can be charged by', async () => {
  expect(await warningsOf({})).toEqual([])
})

test('reports price rows that can never match at start (nothing before)', async () => {
  const warnings = await warningsOf({
    prices: {
      currency: 'USD',
      prices: [
        { model: 'cl-sonnet-4-7', meter: 'input_token', amount: '3', per },
        { model: 'cl-sonnet-4-6', meter: 'input_token', amount: '3', per },
        { model: 'cl-sonnet-4-6', meter: 'output_token', amount: '15', per },
        { model: 'cl-sonnet-4-6', meter: 'input_token', amount: '6', per, when: { inputTokensAbove: 200_000 } },
        { model: 'cl-sonnet-4-6', meter: 'output_token', amount: '6', per, when: { service_level: 'priority' } },
        { model: 'cl-sonnet-4-6', meter: 'input_token', amount: '7', per, when: { speed: 'fast', resolution: 'x' } },
        { model: 'cl-sonnet-4-6', meter: 'request', amount: '0', when: { web_search: 'true' } },
        { model: 'openai/gpt-5.4', meter: 'input_token', amount: '1', per },
        { model: 'openai/gpt-5.5', meter: 'input_token', amount: '1', per },
        { model: 'openai/nobody-9.9', meter: 'input_token', amount: '1', per },
        { model: 'wv2.7-t2v', meter: 'video_second', amount: '0.1', when: { resolution: '8k' } },
        { model: 'de-2', meter: 'image', amount: '0.1', when: { resolution: '720p' } },
        { model: 'alias-of-relayed', meter: 'request', amount: '1' },
        { model: 'qw-image-2.0', meter: 'image', amount: '0.08', when: { size: '1664x928' } },
        { model: 'gmn-3-pro-image-preview', meter: 'image', amount: '0.08', when: { image_size: '8K' } },
        { model: 'gp-image-2', meter: 'image', amount: '0.08', when: { size: '2048x2048' } },
      ],
    },
    models: [...TEST_MODELS.slice(1), { ...TEST_MODELS[0], aliases: ['alias-of-relayed'] }],
  })

  expect(warnings).toEqual([
    'prices[0] (input_token of cl-sonnet-4-7): there is no such model',
    'prices[4] (output_token of cl-sonnet-4-6): no call of the model has all of its conditions: service_level',
    'prices[5] (input_token of cl-sonnet-4-6): no call of the model has all of its conditions: speed, resolution',
    'prices[8] (input_token of openai/gpt-5.5): calls are charged by the id "gpt-5.5", of which this is an alias',
    'prices[9] (input_token of openai/nobody-9.9): there is no such model',
    'prices[10] (video_second of wv2.7-t2v): the model has no resolution 8k',
    'prices[11] (image of de-2): no call of the model has all of its conditions: resolution',
    'prices[12] (request of alias-of-relayed): calls are charged by the id "chat-relayed", of which this is an alias',
    'prices[13] (image of qw-image-2.0): the model has no size 1664x928',
    'prices[14] (image of gmn-3-pro-image-preview): the model has no image_size 8K',
  ])
})

test('leaves out an unpriced fallback with a warning, and refuses its own calls with 400', async () => {
  const prices = { ...testPrices, prices: testPrices.prices.filter(({ model }) => model !== 'chat-qwen') }
  const models = [{ ...TEST_MODELS[0], fallbacks: ['chat-qwen', 'gmn-2.5-flash'] }, ...TEST_MODELS.slice(1)]
  const warnings = await warningsOf({ prices, models })
  const told = 'The model "chat-qwen" has no price, so it is not used as a fallback of "chat-relayed".'
  const answered = await started!.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
  const own = await started!.post('/v1/chat/completions', chatBody('chat-qwen', 'hello'))
  await own.text()

  expect(warnings).toEqual([told])
  expect(answered.status).toBe(200)
  expect(own.status).toBe(400)
  // Told once, and not again by the request.
  expect(
    started!.events.filter((event) => event.type === 'configuration-warning' && event.code === 'fallback-unpriced'),
  ).toHaveLength(1)
})

test('never calls an unpriced fallback, but the priced one after it', async () => {
  const prices = { ...testPrices, prices: testPrices.prices.filter(({ model }) => model !== 'chat-qwen') }
  const models = [{ ...TEST_MODELS[0], fallbacks: ['chat-qwen', 'gmn-2.5-flash'] }, ...TEST_MODELS.slice(1)]
  started = await startGateway({ prices, models })
  const response = await started.post('/v1/chat/completions', chatBody('chat-relayed', '[[fault:status=500]] hello'))
  await response.text()
  const asked = new Set(started.sandbox.requests.map(({ vendor }) => vendor))

  expect(asked).toEqual(new Set(['openai', 'gemini']))
})
