import { readFileSync } from 'node:fs'
import OpenAI from 'openai'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { imageFamilyOf } from '../../src/catalog/models/image-families.ts'
import { drawPicture } from '../../src/testing/sandbox/files/draw-image.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { type OpenAIClient, openaiClient } from './support/openai-clients.ts'

/** Ids in the type `ImageModel` of OpenAI's SDK 7.59, and later ones without a row. Each is billed by tokens. */
const BY_TOKENS = [
  'gpt-image-1',
  'gpt-image-1-mini',
  'gpt-image-1.5',
  'chatgpt-image-latest',
  'gpt-image-2',
  'gpt-image-2-2026-04-21',
  'gpt-image-2.5',
  'gpt-image-2.5-sunburst',
  'gpt-image-2.5-sunburst-2026-09-08',
  'gpt-image-2.5-flare',
  'gpt-image-2.5-flare-2026-09-08',
  'gpt-image-2.6-sunburst',
  'gpt-image-2.6-flare',
  'gpt-image-3',
]

/** Nano-dollars of one token, by the prices below. */
const TEXT_IN = 5_000n
const PICTURE_IN = 8_000n
const PICTURE_OUT = 30_000n

const PRICES = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    ...['gpt-image-*', 'chatgpt-image-*', 'gemini-*', 'nano-banana-*'].flatMap((model) => [
      { model, meter: 'input_token' as const, amount: '5', per: 1_000_000 },
      { model, meter: 'input_image_token' as const, amount: '8', per: 1_000_000 },
      { model, meter: 'output_token' as const, amount: '10', per: 1_000_000 },
      { model, meter: 'output_image_token' as const, amount: '30', per: 1_000_000 },
    ]),
    { model: 'dall-e-3', meter: 'image' as const, amount: '0.04', when: { quality: 'standard' } },
    { model: 'dall-e-3', meter: 'image' as const, amount: '0.12', when: { quality: 'hd', size: '1792x1024' } },
  ],
}

let started: StartedGateway
let client: OpenAIClient

beforeEach(async () => {
  started = await startGateway({ prices: PRICES })
  client = openaiClient(OpenAI, started.url)
})
afterEach(() => started.close())

function picture(seed: string): File {
  const bytes = drawPicture({ width: 64, height: 64, format: 'png', seed })
  return new File([Buffer.from(bytes)], `${seed}.png`, { type: 'image/png' })
}

/** Cost of all calls since the start. Expects that no money is held. */
async function spent(): Promise<bigint> {
  const { balance, held } = await started.account()
  expect(held).toBe(0n)
  return 100_000_000_000n - balance
}

async function refusal(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  )
}

describe.each(BY_TOKENS)('%s', (model) => {
  test('makes an image and charges its tokens', async () => {
    const ended = started.nextEnded()
    const answer = await client.images.generate({ model, prompt: 'a paper boat', size: '1024x1024', quality: 'low' })
    await ended

    expect(answer.data?.[0]?.b64_json).toBeTruthy()
    expect(answer.usage).toMatchObject({ output_tokens: 272 })
    expect(started.sandbox.requests[0]?.body).toMatchObject({ model })
    expect(await spent()).toBe(BigInt(answer.usage!.input_tokens) * TEXT_IN + 272n * PICTURE_OUT)
  })

  test('streams unfinished images and charges them too', async () => {
    const ended = started.nextEnded()
    const stream = await client.images.generate({
      model,
      prompt: 'a paper boat',
      size: '1024x1024',
      quality: 'low',
      stream: true,
      partial_images: 2,
    })
    const types: string[] = []
    let input = 0
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === 'image_generation.completed') input = event.usage.input_tokens
    }
    await ended

    expect(types).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
    expect(await spent()).toBe(BigInt(input) * TEXT_IN + 472n * PICTURE_OUT)
  })

  test('edits an image within a mask and charges both', async () => {
    const ended = started.nextEnded()
    const answer = await client.images.edit({
      model,
      image: picture('harbour'),
      mask: picture('mask'),
      prompt: 'add a gull',
      size: '1024x1024',
      quality: 'low',
    })
    await ended
    const { text_tokens: text, image_tokens: pictures } = answer.usage!.input_tokens_details

    expect(pictures).toBe(2 * 194)
    expect(await spent()).toBe(BigInt(text) * TEXT_IN + BigInt(pictures) * PICTURE_IN + 272n * PICTURE_OUT)
  })

  test('streams an edit', async () => {
    const stream = await client.images.edit({
      model,
      image: picture('harbour'),
      prompt: 'add a gull',
      stream: true,
      partial_images: 1,
    })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)

    expect(types).toEqual(['image_edit.partial_image', 'image_edit.completed'])
  })

  test('drops response_format url, which its vendor refuses', async () => {
    const { data, response } = await client.images
      .generate({ model, prompt: 'a boat', response_format: 'url', quality: 'low' })
      .withResponse()

    expect(data.data?.[0]?.b64_json).toBeTruthy()
    expect(response.headers.get('x-signalbox-dropped')).toBe('response_format')
  })

  test("refuses an unknown size and quality in OpenAI's shape before its vendor is called", async () => {
    for (const [field, value] of [
      ['size', '100x100'],
      ['quality', 'ultra'],
    ] as const) {
      const error = await refusal(client.images.generate({ model, prompt: 'a boat', [field]: value }))
      const expected = { status: 400, code: 'invalid_request', param: field, type: 'invalid_request_error' }

      expect(error).toMatchObject(expected)
      expect(Object.keys((error as { error: object }).error).sort()).toEqual(['code', 'message', 'param', 'type'])
    }
    expect(started.sandbox.requests).toEqual([])
  })
})

describe('qualities and sizes of generations', () => {
  test.each(['xhigh', 'max'])('%s is held for and charged at gpt-image-2.5-sunburst', async (quality) => {
    const body = { model: 'gpt-image-2.5-sunburst', prompt: 'a boat', size: '1536x864', quality }
    const estimate = await started.post('/v1/estimate', { endpoint: 'images', body })
    const { held } = (await estimate.json()) as { held: string }
    const ended = started.nextEnded()
    const answer = await client.images.generate({ ...body, quality: quality as 'high' })
    const { costNanoDollars } = await ended

    expect(answer.size).toBe('1536x864')
    expect(await spent()).toBe(costNanoDollars)
    expect(Number(held) * 1e9).toBeGreaterThanOrEqual(Number(costNanoDollars))
  })

  test.each(['gpt-image-1.5', 'gpt-image-2'])('xhigh is refused at %s', async (model) => {
    const error = await refusal(client.images.generate({ model, prompt: 'a boat', quality: 'xhigh' as 'high' }))

    expect(error).toMatchObject({ status: 400, param: 'quality', code: 'invalid_request' })
  })

  test.each(['gif', 'svg'])('%s, whose tokens have no hold, is refused', async (format) => {
    const request = { model: 'gpt-image-2.6-flare', prompt: 'a boat', output_format: format as 'png' }

    expect(await refusal(client.images.generate(request))).toMatchObject({ status: 400, param: 'output_format' })
  })
})

describe('dall-e-2', () => {
  test('makes images, as base64 by default, at the price of their size', async () => {
    const ended = started.nextEnded()
    const answer = await client.images.generate({ model: 'dall-e-2', prompt: 'a boat', n: 3, size: '512x512' })
    await ended

    expect(answer.data?.map((item) => typeof item.b64_json)).toEqual(['string', 'string', 'string'])
    expect(await spent()).toBe(54_000_000n)
  })

  test('answers with addresses on request', async () => {
    const answer = await client.images.generate({ model: 'dall-e-2', prompt: 'a boat', response_format: 'url' })

    expect(answer.data?.[0]?.url).toMatch(/^http/)
  })

  test('edits an image', async () => {
    const ended = started.nextEnded()
    await client.images.edit({ model: 'dall-e-2', image: picture('harbour'), prompt: 'a gull', size: '256x256' })
    await ended

    expect(await spent()).toBe(16_000_000n)
  })
})

describe('dall-e-3', () => {
  test('makes an image at the price of its quality and size, in a style', async () => {
    const ended = started.nextEnded()
    const answer = await client.images.generate({
      model: 'dall-e-3',
      prompt: 'a boat',
      quality: 'hd',
      size: '1792x1024',
      style: 'natural',
      response_format: 'url',
    })
    await ended

    expect(answer.data?.[0]?.url).toMatch(/^http/)
    expect(started.sandbox.requests[0]?.body).toMatchObject({ quality: 'hd', style: 'natural' })
    expect(await spent()).toBe(120_000_000n)
  })

  test('makes a standard image by default', async () => {
    const ended = started.nextEnded()
    await client.images.generate({ model: 'dall-e-3', prompt: 'a boat' })
    await ended

    expect(await spent()).toBe(40_000_000n)
  })

  test("is refused for edits in OpenAI's shape", async () => {
    const error = await refusal(client.images.edit({ model: 'dall-e-3', image: picture('a'), prompt: 'a gull' }))

    expect(error).toMatchObject({ status: 400, code: 'endpoint_model_mismatch', param: 'model' })
  })
})

test.each([
  ['dall-e-3', { n: 2 }, 'n', 'invalid_request'],
  ['dall-e-3', { size: '512x512' }, 'size', 'invalid_request'],
  ['dall-e-2', { size: '1792x1024' }, 'size', 'invalid_request'],
  ['dall-e-2', { stream: true }, 'stream', 'unsupported_parameter'],
  ['dall-e-3', { stream: true }, 'stream', 'unsupported_parameter'],
  ['dall-e-3', { output_format: 'png' }, 'output_format', 'unsupported_parameter'],
] as const)('%s with %j is refused before the vendor is called', async (model, fields, param, code) => {
  const error = await refusal(client.images.generate({ model, prompt: 'a boat', ...fields } as never))

  expect(error).toMatchObject({ status: 400, code, param, type: 'invalid_request_error' })
  expect(started.sandbox.requests).toEqual([])
  expect(await spent()).toBe(0n)
})

test("passes on a refusal of OpenAI in OpenAI's shape", async () => {
  const request = { model: 'gpt-image-1', prompt: 'a boat [[fault:blocked]]' }

  expect(await refusal(client.images.generate(request))).toMatchObject({
    status: 400,
    code: 'moderation_blocked',
    type: expect.any(String),
  })
  expect(await spent()).toBe(0n)
})

test("every image model in the types of OpenAI's SDK has a family", () => {
  const types = readFileSync('node_modules/openai/resources/images.d.ts', 'utf8')
  const ids = /type ImageModel = ([^;]+);/.exec(types)?.[1]?.match(/[\w.-]{5,}/g) ?? []

  expect(ids.length).toBeGreaterThan(3)
  expect(ids.filter((id) => imageFamilyOf(id)?.protocol !== 'generations')).toEqual([])
})

/** Image models in the types of Google's SDK 3.3, and a later one. */
test.each([
  'gemini-2.5-flash-image',
  'gemini-3-pro-image',
  'gemini-3.1-flash-image',
  'gemini-3.1-flash-lite-image',
  'gemini-nano-banana-2.1',
  'nano-banana-pro-preview',
  'gemini-4-flash-image',
])('%s makes an image in the interactions shape', async (model) => {
  const answer = await started.post('/v1/images/generations', { model, input: 'a mug' })
  const body = (await answer.json()) as { status: string; steps: { content?: { type: string }[] }[] }
  const { costNanoDollars } = await started.ended(answer)

  expect(answer.status).toBe(200)
  expect(body.status).toBe('completed')
  expect(body.steps.flatMap(({ content = [] }) => content).filter(({ type }) => type === 'image')).toHaveLength(1)
  expect(await spent()).toBe(costNanoDollars)
  expect(costNanoDollars).toBeGreaterThan(0n)
})
