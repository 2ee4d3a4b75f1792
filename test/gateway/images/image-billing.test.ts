import { afterEach, describe, expect, test } from 'vitest'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import { type RequestEnded, type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { CREDIT } from './image-error-shapes.ts'
import {
  EDITS,
  editBody,
  editForm,
  generation,
  IMAGES,
  interaction,
  multimodal,
  png,
  postForm,
} from './image-requests.ts'

// Nano-dollars a token, from the prices of the tests.
const TEXT_IN = 5_000n
const PICTURE_IN = 8_000n
const TEXT_OUT = 10_000n
const PICTURE_OUT = 30_000n

/** Eight bytes, which the stand-ins count as two tokens. */
const PROMPT = 'a kettle'
const PROMPT_COST = 2n * TEXT_IN

let started: StartedGateway

afterEach(() => started.close())

/** Reads an answer to its end; what it was charged must be all that is missing. */
async function endedOf(answer: Response): Promise<RequestEnded> {
  await answer.arrayBuffer()
  const ended = await started.ended(answer)
  expect(answer.status).toBe(200)
  expect(await started.account()).toEqual({ balance: CREDIT - ended.costNanoDollars, held: 0n })
  return ended
}

async function costOf(path: string, body: object): Promise<bigint> {
  started = await startGateway()
  return (await endedOf(await started.post(path, body))).costNanoDollars
}

describe('prices per image', () => {
  test.each([
    ['qw-image-2.0', {}, 50_000_000n],
    ['qw-image-2.0', { size: '1024*1024' }, 50_000_000n],
    ['qw-image-2.0', { size: '1664*928' }, 80_000_000n],
    ['qw-image-2.0', { size: '928*1664' }, 50_000_000n],
    ['qw-image-max', { size: '1664*928' }, 50_000_000n],
  ])('%s with %j', async (model, parameters, cost) => {
    expect(await costOf(IMAGES, multimodal(PROMPT, { model, parameters }))).toBe(cost)
  })

  test('an edit in the multimodal shape', async () => {
    const content = [{ image: 'https://pictures.example/a.png' }, { text: PROMPT }]

    expect(await costOf(IMAGES, { model: 'qw-image-edit', input: { messages: [{ role: 'user', content }] } })).toBe(
      50_000_000n,
    )
  })

  test.each([
    [{}, 20_000_000n],
    [{ size: '256x256' }, 16_000_000n],
    [{ size: '512x512', n: '3' }, 54_000_000n],
    [{ size: '1024x1024', response_format: 'url' }, 20_000_000n],
    [{ size: 'auto', n: '10', quality: 'hd', background: 'auto' }, 200_000_000n],
  ])('de-2 with %j', async (fields, cost) => {
    started = await startGateway()
    const form = editForm({ model: 'de-2', ...fields }, [{ name: 'image', bytes: png(64) }])

    expect((await endedOf(await postForm(started.url, form))).costNanoDollars).toBe(cost)
  })
})

describe('prices per token, whole and streamed', () => {
  const square = { response_format: { type: 'image', image_size: '1K', aspect_ratio: '1:1' } }
  const reference = { type: 'image', mime_type: 'image/png', data: Buffer.from(png(16)).toString('base64') }
  const WHOLE_AND_STREAM = [false, true] as const

  const cases: readonly (readonly [string, string, object, bigint])[] = [
    [
      'text to image',
      IMAGES,
      generation(PROMPT, { quality: 'low', size: '1024x1024' }),
      PROMPT_COST + 272n * PICTURE_OUT,
    ],
    ['text to image, high', IMAGES, generation(PROMPT, { quality: 'high' }), PROMPT_COST + 4160n * PICTURE_OUT],
    ['text to image, hd', IMAGES, generation(PROMPT, { quality: 'hd' }), PROMPT_COST + 4160n * PICTURE_OUT],
    [
      'text to image, a free size',
      IMAGES,
      generation(PROMPT, { quality: 'low', size: '2048x1024' }),
      PROMPT_COST + 544n * PICTURE_OUT,
    ],
    [
      'an edit',
      EDITS,
      editBody(PROMPT, { quality: 'low', size: '1024x1024' }),
      PROMPT_COST + 194n * PICTURE_IN + 272n * PICTURE_OUT,
    ],
    ['an interaction', IMAGES, interaction(PROMPT, square), PROMPT_COST + 1120n * PICTURE_OUT],
    [
      'an interaction at 512px',
      IMAGES,
      interaction(PROMPT, { response_format: { type: 'image', image_size: '512px' } }),
      PROMPT_COST + 747n * PICTURE_OUT,
    ],
    [
      'an interaction at 4K of the dearer model',
      IMAGES,
      interaction(PROMPT, {
        model: 'gmn-3-pro-image-preview',
        response_format: { type: 'image', image_size: '4K', mime_type: 'image/jpeg' },
      }),
      PROMPT_COST + 2000n * PICTURE_OUT + 24n * TEXT_OUT,
    ],
    [
      'an interaction with a reference picture',
      IMAGES,
      interaction([{ type: 'text', text: PROMPT }, reference], square),
      PROMPT_COST + 1120n * PICTURE_IN + 1120n * PICTURE_OUT,
    ],
    [
      'an interaction that thinks',
      IMAGES,
      interaction(PROMPT, { ...square, generation_config: { thinking_level: 'high' } }),
      PROMPT_COST + 1120n * PICTURE_OUT + 24n * TEXT_OUT,
    ],
    // The caption has five words and six tokens, which the vendor counts but does not itemise.
    ['an interaction that also writes', IMAGES, interaction(PROMPT), PROMPT_COST + 1120n * PICTURE_OUT + 6n * TEXT_OUT],
  ]

  test.each(cases.flatMap((row) => WHOLE_AND_STREAM.map((stream) => [...row, stream] as const)))(
    '%s (%s)',
    async (_name, path, body, cost, stream) => {
      expect(await costOf(path, { ...body, stream })).toBe(cost)
    },
  )

  test('charges several images as many times as one', async () => {
    expect(await costOf(IMAGES, generation(PROMPT, { quality: 'low', n: 3 }))).toBe(
      PROMPT_COST + 3n * 272n * PICTURE_OUT,
    )
  })

  test('charges each partial image of a stream as the vendor reports', async () => {
    const body = generation(PROMPT, { quality: 'low', stream: true, partial_images: 3 })

    expect(await costOf(IMAGES, body)).toBe(PROMPT_COST + (272n + 300n) * PICTURE_OUT)
  })

  test('charges a form with three images and a mask for four', async () => {
    started = await startGateway()
    const files = ['image[]', 'image[]', 'image[]', 'mask'].map((name) => ({ name, bytes: png(64, 64, name) }))
    const form = editForm({ prompt: PROMPT, quality: 'low' }, files)

    const ended = await endedOf(await postForm(started.url, form))

    expect(ended.costNanoDollars).toBe(PROMPT_COST + 4n * 194n * PICTURE_IN + 272n * PICTURE_OUT)
    expect(ended.usage).toMatchObject({ images: 1, inputImageTokens: 776, outputImageTokens: 272 })
  })

  test('an answer without a report is charged as it was held, never nothing', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'no-usage' })

    const ended = await endedOf(await started.post(IMAGES, generation(PROMPT, { quality: 'low', size: '1024x1024' })))

    // One token per three bytes of the prompt, and the image of the model's table.
    expect(ended.costNanoDollars).toBe(3n * TEXT_IN + 272n * PICTURE_OUT)
  })

  test('the cost header of a whole answer says what is charged', async () => {
    started = await startGateway()

    const answer = await started.post(IMAGES, generation(PROMPT, { quality: 'low' }))

    expect(answer.headers.get('x-signalbox-cost')).toBe('0.00817')
    expect((await endedOf(answer)).costNanoDollars).toBe(8_170_000n)
  })
})

describe('conditions on the request', () => {
  const row = (model: string, amount: string, when?: Record<string, string>): PriceFile['prices'][number] => ({
    model,
    meter: 'image',
    amount,
    ...(when === undefined ? {} : { when }),
  })
  const prices: PriceFile = {
    currency: 'USD',
    prices: [
      row('gp-image-2', '0.10'),
      row('gp-image-2', '0.02', { quality: 'low' }),
      row('gp-image-2', '0.03', { quality: 'low', size: '1536x1024' }),
      row('gp-image-2', '0.40', { quality: 'high' }),
      row('gmn-3.1-flash-image-preview', '0.067', { image_size: '1K' }),
      row('gmn-3.1-flash-image-preview', '0.151', { image_size: '4K' }),
      row('gmn-3.1-flash-image-preview', '0.2', { image_size: '4K', aspect_ratio: '1:8' }),
    ],
  }
  const format = (members: object): Record<string, unknown> => ({ response_format: { type: 'image', ...members } })

  test.each<[string, object, bigint]>([
    ['no quality and no size', generation(PROMPT), 100_000_000n],
    ['quality auto', generation(PROMPT, { quality: 'auto' }), 100_000_000n],
    ['medium, by its alias', generation(PROMPT, { quality: 'standard' }), 100_000_000n],
    ['high, by its alias', generation(PROMPT, { quality: 'hd' }), 400_000_000n],
    ['low', generation(PROMPT, { quality: 'low', size: '1024x1024' }), 20_000_000n],
    ['low in the wide size', generation(PROMPT, { quality: 'low', size: '1536x1024' }), 30_000_000n],
    ['low, three times', generation(PROMPT, { quality: 'low', n: 3 }), 60_000_000n],
    ['an interaction without a size is 1K', interaction(PROMPT), 67_000_000n],
    ['an interaction at 4K', interaction(PROMPT, format({ image_size: '4K' })), 151_000_000n],
    [
      'an interaction at 4K in the long ratio',
      interaction(PROMPT, format({ image_size: '4K', aspect_ratio: '1:8' })),
      200_000_000n,
    ],
  ])('%s', async (_name, body, cost) => {
    started = await startGateway({ prices })

    expect((await endedOf(await started.post(IMAGES, body))).costNanoDollars).toBe(cost)
  })

  test('charges a stream of images with a price per image like the whole answer', async () => {
    started = await startGateway({ prices })

    const answer = await started.post(IMAGES, generation(PROMPT, { quality: 'low', stream: true, partial_images: 2 }))

    expect((await endedOf(answer)).costNanoDollars).toBe(20_000_000n)
  })

  test('a size for which there is no row is refused', async () => {
    started = await startGateway({ prices })

    const answer = await started.post(IMAGES, interaction(PROMPT, format({ image_size: '2K' })))

    expect(answer.status).toBe(400)
    expect((await answer.json()).error.code).toBe('model_not_priced')
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })
})

describe('an implausible report of images', () => {
  test.each(['-1', '1.5', "'12'", '2147483648'])('(%s) is replaced or cut, and is never a credit', async (value) => {
    started = await startGateway()
    const body = generation(`[[fault:usage=${value}]] ${PROMPT}`, { quality: 'low', size: '1024x1024' })

    const ended = await endedOf(await started.post(IMAGES, body))

    expect(ended.costNanoDollars).toBeGreaterThanOrEqual(272n * PICTURE_OUT)
    // All of the input may be images, which cost more than text.
    const [pictures, input] = value === '2147483648' ? [4n * 272n, 4_194_304n] : [272n, 200n]
    expect(ended.costNanoDollars).toBeLessThanOrEqual(pictures * PICTURE_OUT + input * PICTURE_IN)
    expect(started.events).toContainEqual(expect.objectContaining({ type: 'usage-implausible' }))
  })
})
