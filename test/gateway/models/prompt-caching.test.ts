import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ModelDefinition, PromptCaching } from '../../../src/catalog/model.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, json } from '../streams/answering-vendor.ts'

const USAGE = { input_tokens: 5, cache_creation_input_tokens: 4_000, cache_read_input_tokens: 0, output_tokens: 10 }
const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', stop_sequence: null }
const CONVERSED = {
  output: { message: { role: 'assistant', content: [{ text: 'hello' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 5, outputTokens: 10, totalTokens: 15 },
}
const PRICES = {
  currency: 'USD' as const,
  prices: (['claude', 'nova'] as const).flatMap((model) => [
    { model, meter: 'input_token' as const, amount: '4', per: 1_000_000 },
    { model, meter: 'cache_write_token' as const, amount: '5', per: 1_000_000 },
    { model, meter: 'output_token' as const, amount: '20', per: 1_000_000 },
  ]),
}

let vendor: AnsweringVendor
let started: StartedGateway
let bodies: Record<string, unknown>[]
let held: bigint[]

beforeEach(async () => {
  bodies = []
  held = []
  vendor = await answeringVendor(async (response, body) => {
    bodies.push(body)
    held.push((await started.account()).held)
    const message = { ...MESSAGE, content: [{ type: 'text', text: 'hello' }], stop_reason: 'end_turn', usage: USAGE }
    json(response, 'inferenceConfig' in body ? CONVERSED : message)
  })
})

afterEach(async () => {
  await started?.close()
  await vendor.close()
})

async function start(
  row: Partial<ModelDefinition>,
  options: Partial<GatewayOptions> = {},
  keys: readonly string[] = ['key-one'],
): Promise<void> {
  started = await startGateway({
    vendors: [
      anthropic({ apiKey: keys, baseURL: vendor.origin }),
      amazonBedrock({ apiKey: 'bedrock-key-0123456789', endpoint: vendor.origin }),
    ],
    models: [
      { id: 'claude', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-4-5', ...row },
      { id: 'nova', kind: 'chat', vendor: 'amazon-bedrock', upstream: 'amazon.nova-pro-v1:0', ...row },
    ],
    prices: PRICES,
    ...options,
  })
}

const LONG = 'word '.repeat(2_400)
const PATHS: Readonly<Record<string, object>> = {
  '/v1/chat/completions': {
    messages: [
      { role: 'system', content: LONG },
      { role: 'user', content: 'Hi' },
    ],
  },
  '/v1/messages': { system: LONG, messages: [{ role: 'user', content: 'Hi' }] },
  '/v1/responses': { instructions: LONG, input: 'Hi', store: false },
}
const bound = (path: string): object => (path === '/v1/responses' ? { max_output_tokens: 50 } : { max_tokens: 50 })

async function ask(path: string, rest: object = {}, headers = {}): Promise<Response> {
  const response = await started.post(path, { model: 'claude', ...PATHS[path], ...bound(path), ...rest }, headers)
  await response.text()
  return response
}

const CONTROL = { cache_control: { type: 'ephemeral' } }
const marksIn = (body: unknown): number => JSON.stringify(body).split('"cache_control"').length - 1

describe('promptCaching: auto', () => {
  test.each(Object.keys(PATHS))('%s: marks both ends of a long prompt, held and charged as written', async (path) => {
    await start({ promptCaching: 'auto' })
    const before = await started.account()
    const response = await ask(path)
    const { costNanoDollars } = await started.ended(response)

    expect(bodies[0]!['system']).toEqual([{ type: 'text', text: LONG, ...CONTROL }])
    expect(bodies[0]!['messages']).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Hi', ...CONTROL }] }])
    // 5 tokens of input, 4,000 written, 10 of output.
    expect(costNanoDollars).toBe(5n * 4_000n + 4_000n * 5_000n + 10n * 20_000n)
    expect((await started.account()).held).toBe(0n)
    expect((await started.account()).balance).toBe(before.balance - costNanoDollars)
    const [marked] = held
    await started.close()

    await start({})
    await ask(path)

    expect(marksIn(bodies[1])).toBe(0)
    // A token of input is held at 5,000 and not at 4,000.
    expect(marked! - 50n * 20_000n).toBe(((held[1]! - 50n * 20_000n) * 5n) / 4n)
  })

  test('leaves prompts of a model without a price of cache writes unmarked, and warns once', async () => {
    const prices = { ...PRICES, prices: PRICES.prices.filter(({ meter }) => meter !== 'cache_write_token') }
    await start({ promptCaching: 'auto' }, { prices })
    await ask('/v1/messages')
    await ask('/v1/chat/completions')
    const warnings = started.gateway.warnings().filter(({ code }) => code === 'cache-writes-unpriced')

    expect(bodies.map(marksIn)).toEqual([0, 0])
    expect(warnings).toHaveLength(1)
    expect(warnings[0]?.message).toContain('{ model: "claude", meter: "cache_write_token", amount: "…" }')
  })

  test('sets cache points at Bedrock', async () => {
    await start({ promptCaching: 'auto' })
    await ask('/v1/chat/completions', { model: 'nova' })
    await ask('/v1/messages', { model: 'nova' })
    const point = { cachePoint: { type: 'default' } }

    for (const body of bodies)
      expect(body).toMatchObject({
        system: [{ text: LONG }, point],
        messages: [{ role: 'user', content: [{ text: 'Hi' }, point] }],
      })
  })

  test('leaves a prompt alone that is short or has a mark of its caller’s', async () => {
    await start({ promptCaching: 'auto' })
    const own = { type: 'text', text: LONG, ...CONTROL }
    await ask('/v1/messages', { system: 'short' })
    await ask('/v1/messages', { system: [own, { type: 'text', text: 'more' }] })
    await ask('/v1/chat/completions', { messages: [{ role: 'user', content: [own] }] })
    await ask('/v1/chat/completions', {
      model: 'nova',
      messages: [{ role: 'user', content: [own, { type: 'text', text: 'more' }] }],
    })

    expect(bodies.slice(0, 3).map(marksIn)).toEqual([0, 1, 1])
    expect(JSON.stringify(bodies[3]).split('cachePoint').length - 1).toBe(1)
  })

  test('marks only calls that name their conversation if there are several keys', async () => {
    await start({ promptCaching: 'auto' }, {}, ['key-one', 'key-two'])
    await ask('/v1/messages')
    await ask('/v1/messages', {}, { 'x-session-id': 'one' })
    await ask('/v1/messages', { metadata: { user_id: 'u' } })

    expect(bodies.map(marksIn)).toEqual([0, 2, 2])
  })

  test.each<readonly [PromptCaching | undefined, PromptCaching | undefined, number]>([
    [undefined, undefined, 0],
    [undefined, 'auto', 2],
    ['off', 'auto', 0],
    ['auto', 'off', 2],
  ])('is %s for the model and %s for the gateway', async (ofModel, ofGateway, marks) => {
    await start({ promptCaching: ofModel }, ofGateway === undefined ? {} : { promptCaching: ofGateway })
    await ask('/v1/messages')

    expect(marksIn(bodies[0])).toBe(marks)
  })

  test('does not mark what is only counted', async () => {
    await start({ promptCaching: 'auto' })
    await ask('/v1/messages/count_tokens', { system: LONG, messages: [{ role: 'user', content: 'Hi' }] })

    expect(bodies.map(marksIn)).toEqual([0])
  })
})

test('marks of a chat are held for as written', async () => {
  await start({})
  const part = { type: 'text', text: LONG }
  const mark = { prompt_cache_breakpoint: { mode: 'explicit' } }
  await ask('/v1/chat/completions', { messages: [{ role: 'user', content: [part] }] })
  await ask('/v1/chat/completions', { messages: [{ role: 'user', content: [{ ...part, ...mark }] }] })

  expect(bodies.map(marksIn)).toEqual([0, 1])
  // 51 bytes more of JSON, at a third of a token each.
  const tokens = (amount: bigint, price: bigint): bigint => (amount - 50n * 20_000n) / price
  expect(tokens(held[1]!, 5_000n) - tokens(held[0]!, 4_000n)).toBeLessThan(20n)
  expect(held[1]!).toBeGreaterThan((held[0]! * 6n) / 5n)
})

test.each([
  [{ promptCaching: 'yes' }, /promptCaching must be auto or off/],
  [{ models: [{ id: 'm', kind: 'chat', vendor: 'openai', promptCaching: 'yes' }] }, /promptCaching of a model/],
])('refuses %j', (options, message) => {
  expect(() => createGateway({ vendors: [], billing: 'off', ...options } as never)).toThrow(message)
})
