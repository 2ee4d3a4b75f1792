import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import { type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { expectNothingSent, openaiStyle, upstreamStyle } from './image-error-shapes.ts'
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

/** A row of the host's own, about whose abilities nothing is known. */
const HOST_ROW = { id: 'host-image', kind: 'image_edit', vendor: 'openai', upstream: 'gpt-image-1' } as const
const PRICES: PriceFile = {
  ...testPrices,
  prices: [...testPrices.prices, { model: 'host-image', meter: 'image', amount: '0.05' }],
}

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway({ models: [...TEST_MODELS, HOST_ROW], prices: PRICES })
})
afterEach(() => started.close())

const INVALID = { type: 'invalid_request_error', code: 'InvalidParameter' }

describe('400 in the multimodal shape is InvalidParameter in the upstream style', () => {
  const references = (count: number): object[] =>
    Array.from({ length: count }, (_, index) => ({ image: `https://pictures.example/${index}.png` }))
  const content = (blocks: readonly object[]): object => ({ input: { messages: [{ role: 'user', content: blocks }] } })
  const PLACE = 'input.messages[0].content'

  test.each<[string, object, string, RegExp]>([
    ['an edit without a reference image', { model: 'qw-image-edit' }, PLACE, /needs 1 to 3 reference images/],
    [
      'an edit with four reference images',
      { model: 'qw-image-edit-plus', ...content([{ text: 'x' }, ...references(4)]) },
      PLACE,
      /needs 1 to 3 reference images/,
    ],
    [
      'a reference image for text to image',
      { model: 'qw-image-max', ...content([{ text: 'x' }, ...references(1)]) },
      PLACE,
      /no reference images/,
    ],
    ['an unrecognised model', { model: 'qw-image-3' }, 'model', /no model "qw-image-3"/],
    ['an unsupported size', { parameters: { size: '999*999' } }, 'parameters.size', /must be one of 1024\*1024/],
    ['a size with an x', { parameters: { size: '1024x1024' } }, 'parameters.size', /joined by \*/],
    [
      'a size for the model that takes none',
      { model: 'qw-image-edit', ...content([{ text: 'x' }, ...references(1)]), parameters: { size: '1328*1328' } },
      'parameters.size',
      /does not support it/,
    ],
    ['two pictures', { parameters: { n: 2 } }, 'parameters.n', /exactly 1/],
    [
      'a picture by http',
      content([{ text: 'x' }, { image: 'http://pictures.example/a.png' }]),
      `${PLACE}[1].image`,
      /https/,
    ],
    ['no text', content(references(1)), PLACE, /at least one text block/],
    ['a thousand million pictures', { parameters: { n: 1e9 } }, 'parameters.n', /exactly 1/],
    ['a negative seed', { parameters: { seed: -1 } }, 'parameters.seed', /0/],
  ])('%s', async (_name, rest, param, message) => {
    const answer = await started.post(IMAGES, { ...multimodal('a boat'), ...rest })
    const body = (await answer.json()) as { message: string; request_id: string }

    expect(answer.status).toBe(400)
    expect(body).toEqual(upstreamStyle('InvalidParameter', { ...INVALID, param }))
    expect(body.message).toMatch(message)
    expect(body.request_id).toBe(answer.headers.get('x-request-id'))
    await expectNothingSent(started)
  })
})

describe('400 of an edit is in the style of OpenAI', () => {
  const PICTURE = { name: 'image', bytes: png(64) }
  const mask = (side: number): object[] => [{ name: 'mask', bytes: png(side, side, 'mask') }]
  const gif = new TextEncoder().encode('GIF89a\u0001\u0000\u0001\u0000')

  test.each<[string, Record<string, string>, object[], string, string]>([
    ['a mask of another size', {}, [PICTURE, ...mask(32)], 'mask', 'invalid_mask'],
    ['a mask that is no picture', {}, [PICTURE, { name: 'mask', bytes: gif }], 'mask', 'invalid_mask'],
    [
      'a mask for a model without mask support',
      { model: 'host-image' },
      [PICTURE, ...mask(64)],
      'mask',
      'invalid_mask',
    ],
    [
      'an unsupported image format',
      {},
      [{ name: 'image', bytes: gif, type: 'image/gif' }],
      'image',
      'unsupported_image_format',
    ],
    ['a format that only the type claims', {}, [{ name: 'image', bytes: gif }], 'image', 'unsupported_image_format'],
    ['an unsupported size', { size: '100x100' }, [PICTURE], 'size', 'invalid_request'],
    ['the size 2K', { size: '2K' }, [PICTURE], 'size', 'invalid_request'],
    ['the size 4K', { size: '4K' }, [PICTURE], 'size', 'invalid_request'],
    ['2048x2048, which is 2K', { size: '2048x2048' }, [PICTURE], 'size', 'invalid_request'],
    ['3840x2160, which is 4K', { size: '3840x2160' }, [PICTURE], 'size', 'invalid_request'],
    ["a small size that is de-2's", { size: '256x256' }, [PICTURE], 'size', 'invalid_request'],
    ["a large size that is not de-2's", { model: 'de-2', size: '1536x1024' }, [PICTURE], 'size', 'invalid_request'],
    ['no picture', {}, [], 'image', 'invalid_request'],
    ['two pictures for de-2', { model: 'de-2' }, [PICTURE, PICTURE], 'image', 'invalid_request'],
    ['an unknown quality', { quality: 'ultra' }, [PICTURE], 'quality', 'invalid_request'],
    [
      'a transparent JPEG',
      { background: 'transparent', output_format: 'jpeg' },
      [PICTURE],
      'background',
      'invalid_request',
    ],
    [
      'output_format for de-2',
      { model: 'de-2', output_format: 'png' },
      [PICTURE],
      'output_format',
      'unsupported_parameter',
    ],
    ['eleven pictures', { n: '11' }, [PICTURE], 'n', 'invalid_request'],
    ['a number with an exponent', { n: '1e9' }, [PICTURE], 'n', 'invalid_request'],
    ['a model of another route', { model: 'cl-sonnet-4-6' }, [PICTURE], 'model', 'endpoint_model_mismatch'],
  ])('%s', async (_name, fields, files, param, code) => {
    const answer = await postForm(started.url, editForm(fields, files as []))

    expect(answer.status).toBe(400)
    expect(await answer.json()).toEqual(openaiStyle(param, code))
    await expectNothingSent(started)
  })

  test('the size 2K is refused in JSON too, with the words of the route', async () => {
    const answer = await started.post(EDITS, editBody('more light', { size: '2K' }))

    expect(answer.status).toBe(400)
    expect((await answer.json()).error.message).toMatch(/^size: .*2K and 4K are not supported here$/)
    await expectNothingSent(started)
  })

  test('answers an unknown model with 404', async () => {
    const answer = await started.post(EDITS, editBody('more light', { model: 'gp-image-7' }))

    expect(answer.status).toBe(404)
    expect(await answer.json()).toEqual(openaiStyle('model', 'model_not_found'))
    await expectNothingSent(started)
  })
})

describe('400 in the interactions shape is brief, in the style of OpenAI, and names one field', () => {
  const format = (members: object): object => ({ response_format: { type: 'image', ...members } })

  test.each<[string, object, string]>([
    ['a size without its suffix', format({ image_size: '512' }), 'response_format.image_size'],
    ['a size in small letters', format({ image_size: '2k' }), 'response_format.image_size'],
    [
      '4K of the model for 1K',
      { model: 'gmn-2.5-flash-image', ...format({ image_size: '4K' }) },
      'response_format.image_size',
    ],
    [
      '512px of the model from 1K on',
      { model: 'gmn-3-pro-image-preview', ...format({ image_size: '512px' }) },
      'response_format.image_size',
    ],
    [
      'a ratio of one model only',
      { model: 'gmn-3-pro-image-preview', ...format({ aspect_ratio: '1:8' }) },
      'response_format.aspect_ratio',
    ],
    ['a format without its type', { response_format: { image_size: '1K' } }, 'response_format.type'],
    [
      'a level that nobody knows',
      { generation_config: { thinking_level: 'medium' } },
      'generation_config.thinking_level',
    ],
    [
      'a level for a model that does not think',
      { model: 'gmn-2.5-flash-image', generation_config: { thinking_level: 'high' } },
      'generation_config.thinking_level',
    ],
    ['a temperature of 3', { generation_config: { temperature: 3 } }, 'generation_config.temperature'],
    [
      'a picture with a data: prefix',
      { input: [{ type: 'image', mime_type: 'image/png', data: 'data:image/png;base64,aGVsbG8=' }] },
      'input[0].data',
    ],
    ['a picture without its type', { input: [{ type: 'image', data: 'aGVsbG8=' }] }, 'input[0].mime_type'],
    [
      'fifteen pictures',
      { input: Array.from({ length: 15 }, () => ({ type: 'image', mime_type: 'image/png', data: 'aGVsbG8=' })) },
      'input',
    ],
    ['a text for store', { store: 'no' }, 'store'],
    ['camel case', { generationConfig: {} }, 'generationConfig'],
  ])('%s', async (_name, rest, param) => {
    const answer = await started.post(IMAGES, { ...interaction('a mug'), ...rest })
    const body = (await answer.json()) as { error: { message: string } }

    expect(answer.status).toBe(400)
    expect(body).toEqual(openaiStyle(param, 'invalid_request'))
    expect(body.error.message.length).toBeLessThan(200)
    expect(body.error.message).not.toContain('\n')
    await expectNothingSent(started)
  })
})

describe('400 of a free size', () => {
  test.each([
    ['no multiple of 16', '1000x1000', /divisible by 16/],
    ['a side above 3840', '4096x2048', /longer than 3840/],
    ['a ratio above 3:1', '3072x1008', /3 times/],
    ['a word', '2K', /width and height/],
  ])('%s', async (_name, size, message) => {
    const answer = await started.post(IMAGES, generation('a boat', { size }))
    const body = (await answer.json()) as { error: { message: string } }

    expect(answer.status).toBe(400)
    expect(body).toEqual(openaiStyle('size', 'invalid_request'))
    expect(body.error.message).toMatch(message)
    await expectNothingSent(started)
  })
})
