import { afterEach, expect, test } from 'vitest'
import type { GatewayOptions } from '../../src/gateway/gateway-options.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'

const MODEL = 'chat-relayed'
const IMAGE_MODEL = 'gpt-image-2.6-sunburst'
const million = { per: 1_000_000 }
const CHAT = [
  { model: MODEL, meter: 'input_token', amount: '1.00', ...million },
  { model: MODEL, meter: 'output_token', amount: '4.00', ...million },
] as const
const IMAGES = [
  { model: IMAGE_MODEL, meter: 'input_token', amount: '5.00', ...million },
  { model: IMAGE_MODEL, meter: 'output_token', amount: '30.00', ...million },
] as const
/** Tools of Cline's `openai-native` provider, which are in every request. */
const TOOLS = [
  { type: 'function', name: 'read_file', parameters: { type: 'object', properties: {} } },
  { type: 'image_generation' },
]
const DRAW = { model: MODEL, input: 'Draw a signal.', tools: TOOLS, tool_choice: { type: 'image_generation' } }

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

async function start(prices: readonly object[], options: Partial<GatewayOptions> = {}): Promise<StartedGateway> {
  started = await startGateway({ prices: { currency: 'USD', prices: prices as typeof CHAT }, ...options })
  return started
}

interface Answer {
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number }
  readonly output: readonly { readonly type: string; readonly result?: string }[]
}

test.each([false, true])('charges the image tool at the prices of its image model (stream: %s)', async (stream) => {
  const gateway = await start([...CHAT, ...IMAGES])
  const { balance } = await gateway.account()
  const answer = await gateway.post('/v1/responses', { ...DRAW, stream })
  const text = await answer.text()
  expect(answer.status, text).toBe(200)
  await gateway.ended(answer)
  const last = stream ? text.slice(text.lastIndexOf('data: {') + 6) : undefined
  const { usage, output } = (last ? (JSON.parse(last) as { response: Answer }).response : JSON.parse(text)) as Answer
  expect(output.at(-1)).toMatchObject({ type: 'image_generation_call', result: expect.stringContaining('iVBOR') })
  const ofChat = BigInt(usage.input_tokens) * 1_000n + BigInt(usage.output_tokens) * 4_000n
  const after = await gateway.account()
  expect(after).toEqual({ balance: balance - ofChat - 50n * 5_000n - 272n * 30_000n, held: 0n })
})

test('charges nothing for an image tool that was not called', async () => {
  const gateway = await start([...CHAT, ...IMAGES])
  const { balance } = await gateway.account()
  const answer = await gateway.post('/v1/responses', { ...DRAW, tool_choice: 'auto' })
  const { usage } = (await answer.json()) as Answer
  await gateway.ended(answer)
  const ofChat = BigInt(usage.input_tokens) * 1_000n + BigInt(usage.output_tokens) * 4_000n
  expect((await gateway.account()).balance).toBe(balance - ofChat)
})

test.each([
  ['of the request', { tools: TOOLS }, 'tools[1]'],
  ['of an item', { input: [{ type: 'additional_tools', tools: TOOLS }] }, 'input[0].tools[1]'],
  ['with another model', { tools: [{ type: 'image_generation', model: 'gpt-image-1-mini' }] }, 'tools[0]'],
])('rejects an image tool %s without a price of its model', async (_where, rest, param) => {
  const gateway = await start(param === 'tools[0]' ? [...CHAT, ...IMAGES] : CHAT)
  const answer = await gateway.post('/v1/responses', { model: MODEL, input: 'hi', ...rest })
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({ error: { code: 'unsupported_parameter', param } })
  expect((await gateway.account()).held).toBe(0n)
})

test('passes the image tool at its own vendor if billing is off', async () => {
  started = await startGateway({ billing: 'off' })
  expect((await started.post('/v1/responses', DRAW)).status).toBe(200)
})

test('drops the image tool at models that are reached by a translation, holds nothing for it and reports it', async () => {
  started = await startGateway()
  const answer = await started.post('/v1/responses', { model: 'cl-sonnet-4-6', input: 'hi', tools: TOOLS })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-signalbox-dropped')).toContain('tools.image_generation')
  const ended = await started.ended(answer)
  expect(ended.usage).not.toHaveProperty('otherModels')
})
