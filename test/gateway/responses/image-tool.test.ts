import { afterEach, describe, expect, test } from 'vitest'
import { imageFamilyOf } from '../../../src/catalog/models/image-families.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import {
  type AnswerCall,
  type AnsweringVendor,
  answeringVendor,
  eventStream,
  json,
} from '../streams/answering-vendor.ts'

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
let vendor: AnsweringVendor | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
  await vendor?.close()
  vendor = undefined
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

const OTHER_MODEL = 'gpt-image-2'
const OTHER_IMAGES = IMAGES.map((row) => ({ ...row, model: 'gp-image-2' }))

test('rejects image tools of two models, naming the member, because the report names no model', async () => {
  const gateway = await start([...CHAT, ...IMAGES, ...OTHER_IMAGES])
  const tools = [...TOOLS, { type: 'image_generation', model: OTHER_MODEL }]
  const answer = await gateway.post('/v1/responses', { model: MODEL, input: 'hi', tools })

  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    error: { code: 'unsupported_parameter', param: 'tools[2].model', message: expect.stringContaining(IMAGE_MODEL) },
  })
  expect(gateway.sandbox.requests).toEqual([])
})

test('charges two image tools of one model once', async () => {
  const gateway = await start([...CHAT, ...IMAGES])
  const answer = await gateway.post('/v1/responses', { ...DRAW, tools: [...TOOLS, { type: 'image_generation' }] })
  const ended = await gateway.ended(answer)

  expect([answer.status, ended.usage?.otherModels]).toMatchObject([200, [{ model: IMAGE_MODEL, usage: { images: 1 } }]])
})

test.each([
  ['by its size and quality', { size: '1024x1024', quality: 'low' }, 272],
  ['by the most expensive quality of its size', { size: '1024x1024' }, 4_160],
  ['by the most expensive image without options', {}, 6_240],
  ['with its partial images', { quality: 'low', size: '1024x1024', partial_images: 2 }, 472],
])('holds for an image of the tool %s, from the table of its model', async (_how, options, tokens) => {
  const gateway = await start([...CHAT, ...OTHER_IMAGES])
  const body = {
    model: MODEL,
    input: 'hi',
    max_tool_calls: 1,
    tools: [{ type: 'image_generation', model: OTHER_MODEL, ...options }],
  }

  const { usage } = await gateway.gateway.estimate(
    { accountId: TEST_ACCOUNT, keyId: 'key_1', tier: 'paid' },
    { endpoint: 'responses', body },
  )

  expect(usage.otherModels).toMatchObject([{ model: OTHER_MODEL, usage: { images: 1, outputTokens: tokens } }])
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

describe('the image tool of a scripted vendor', () => {
  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 1, ...members })}\n\n`
  const item = { type: 'image_generation_call', id: 'ig_1' }
  const response = { id: 'resp_1', object: 'response', model: 'gpt', status: 'in_progress', output: [] }
  const BEGUN = event('response.created', { response })
  const ADDED = event('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress' } })
  const PARTIAL = event('response.image_generation_call.partial_image', { item_id: 'ig_1', partial_image_b64: 'aGk=' })
  const MADE = event('response.output_item.done', {
    output_index: 0,
    item: { ...item, status: 'completed', result: 'aGk=' },
  })
  const FAILED = event('response.output_item.done', {
    output_index: 0,
    item: { ...item, status: 'failed', result: null },
  })
  /** Tokens of the most expensive image in the table of the model's family. */
  const MAX_IMAGE_TOKENS = Math.max(...Object.values(imageFamilyOf(IMAGE_MODEL)!.image.outputTokens!))
  /** Half of the hold, which is for two images. */
  const ONE_IMAGE = [
    { model: IMAGE_MODEL, usage: expect.objectContaining({ images: 1, outputTokens: MAX_IMAGE_TOKENS }) },
  ]

  async function startBefore(answer: AnswerCall): Promise<StartedGateway> {
    vendor = await answeringVendor(answer)
    return start([...CHAT, ...IMAGES], { vendors: [openai({ apiKey: 'key', baseURL: vendor.origin })] })
  }

  test.each([
    ['an item of the image tool', [ADDED]],
    ['a partial image', [PARTIAL]],
    ['a whole image', [ADDED, PARTIAL, MADE]],
  ])('charges a stream that the vendor cuts after %s for one image', async (_what, events) => {
    const gateway = await startBefore((reply) => {
      eventStream(reply)
      reply.write([BEGUN, ...events].join(''), () => reply.socket?.resetAndDestroy())
    })
    const { balance } = await gateway.account()
    const answer = await gateway.post('/v1/responses', { ...DRAW, stream: true })
    await answer.text()
    const ended = await gateway.ended(answer)

    expect(ended).toMatchObject({ ending: 'failed', usage: { otherModels: ONE_IMAGE } })
    expect(balance - (await gateway.account()).balance).toBeGreaterThanOrEqual(BigInt(MAX_IMAGE_TOKENS) * 30_000n)
  })

  test('charges a stream that its caller abandons after an image for one image', async () => {
    const gateway = await startBefore((reply) => {
      eventStream(reply)
      reply.write(BEGUN + ADDED + PARTIAL)
    })
    const caller = rawPost(gateway.url, '/v1/responses', { ...DRAW, stream: true })
    await caller.received('partial_image_b64')
    const ending = gateway.nextEnded()
    caller.leave()

    expect(await ending).toMatchObject({ ending: 'abandoned', usage: { otherModels: ONE_IMAGE } })
    expect((await gateway.account()).held).toBe(0n)
  })

  test('charges no image for a call of the tool that failed before the stream was cut', async () => {
    const gateway = await startBefore((reply) => {
      eventStream(reply)
      reply.write([BEGUN, ADDED, FAILED].join(''), () => reply.socket?.resetAndDestroy())
    })
    const answer = await gateway.post('/v1/responses', { ...DRAW, stream: true })
    await answer.text()

    expect((await gateway.ended(answer)).usage).not.toHaveProperty('otherModels')
  })

  test.each([
    ['no usage', {}],
    ['no usage of its tools', { usage: { input_tokens: 20, output_tokens: 5 } }],
  ])('charges images of an answer that reports %s as they were held for', async (_what, report) => {
    const whole = { ...response, status: 'completed', output: [{ ...item, result: 'aGk=' }], ...report }
    for (const stream of [false, true]) {
      const gateway = await startBefore((reply) => {
        if (!stream) return json(reply, whole)
        eventStream(reply)
        reply.end(BEGUN + MADE + event('response.completed', { response: whole }))
      })
      const answer = await gateway.post('/v1/responses', { ...DRAW, stream })
      await answer.text()
      const ended = await gateway.ended(answer)
      await gateway.close()
      await vendor?.close()

      expect(ended).toMatchObject({ ending: 'completed', usage: { otherModels: ONE_IMAGE } })
    }
  })
})
