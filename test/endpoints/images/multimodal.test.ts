import { describe, expect, it } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import type { ModelFacts } from '../../../src/catalog/model-facts.ts'
import { DASHSCOPE_IMAGE_MODELS } from '../../../src/catalog/models/dashscope-models.ts'
import type { GatewayError } from '../../../src/core/errors.ts'
import { multimodalErrors } from '../../../src/endpoints/images/image-operation.ts'
import { multimodalImageEndpoint as endpoint } from '../../../src/endpoints/images/images-endpoint.ts'
import { errorBody } from '../../support/error-body.ts'

const BUILT_IN = DASHSCOPE_IMAGE_MODELS.map(defineModel)
/** A host's own row without known abilities. */
const OWN = defineModel({ id: 'own-image', kind: 'image', vendor: 'dashscope', protocol: 'multimodal' })

function model(id: string): ModelFacts {
  return [...BUILT_IN, OWN].find((row) => row.id === id)!
}

const FROM_TEXT = ['qw-image-2.0', 'qw-image-2.0-pro', 'qw-image-max']
const EDITORS = ['qw-image-edit', 'qw-image-edit-plus', 'qw-image-edit-max']
const SIZES = '1024*1024 1664*928 1472*1140 1328*1328 1140*1472 928*1664 1280*720 720*1280'.split(' ')
const VENDOR_SIZES = ['1472*1104', '1104*1472']
const CONTENT = 'input.messages[0].content'

const text = (words = 'A red bridge at dawn') => ({ text: words })
const image = (url = 'https://cdn.example.net/1.png') => ({ image: url })
const images = (count: number) =>
  Array.from({ length: count }, (_, index) => image(`https://cdn.example.net/${index}.png`))

function body(id: string, content: unknown = [text()], parameters?: unknown): Record<string, unknown> {
  return {
    model: id,
    input: { messages: [{ role: 'user', content }] },
    ...(parameters === undefined ? {} : { parameters }),
  }
}

/** Parses by the rules of the model in the body. */
function parse(value: unknown) {
  return endpoint.parse(value, model((value as { model: string }).model ?? 'qw-image-2.0') ?? OWN)
}

function refusal(value: unknown): GatewayError {
  try {
    parse(value)
  } catch (error) {
    return error as GatewayError
  }
  throw new Error('the request was taken')
}

describe('the multimodal image request', () => {
  it('is a shape of the generations route, and a paid job that never streams', () => {
    const request = parse(body('qw-image-2.0'))

    expect(endpoint).toMatchObject({
      id: 'images',
      path: '/v1/images/generations',
      kind: 'image',
      errors: multimodalErrors,
      isPaidJob: true,
    })
    expect(endpoint.isStream(request)).toBe(false)
    expect(endpoint.estimate(request, 1000, model('qw-image-2.0'))).toEqual({ images: 1 })
  })

  it('comes back as it was, unknown fields included', () => {
    const given = {
      ...body('qw-image-2.0', [{ ...text(), note: 1 }], { size: '1664*928', style: 'ink', n: 1 }),
      user: 'u-1',
    }

    expect(parse(given)).toBe(given)
  })

  it.each<[string, unknown]>([
    ...FROM_TEXT.map((id): [string, unknown] => [`${id} with a text`, body(id)]),
    ...EDITORS.flatMap((id) =>
      [1, 2, 3].map((count): [string, unknown] => [`${id} with ${count} images`, body(id, [...images(count), text()])]),
    ),
    ['text before the images', body('qw-image-edit', [text(), image()])],
    ['qw-image-2.0 with three images', body('qw-image-2.0', [...images(3), text()])],
    ['qw-image-2.0-pro with one image', body('qw-image-2.0-pro', [image(), text()])],
    ...[...SIZES, ...VENDOR_SIZES].flatMap((size) =>
      FROM_TEXT.map((id): [string, unknown] => [`${id} at ${size}`, body(id, [text()], { size })]),
    ),
    ...[...SIZES, ...VENDOR_SIZES].map((size): [string, unknown] => [
      `qw-image-edit-max at ${size}`,
      body('qw-image-edit-max', [image(), text()], { size }),
    ]),
    ['no parameters at all', body('qw-image-max', [text()], {})],
    ['n of 1', body('qw-image-2.0', [text()], { n: 1 })],
    ['the least seed', body('qw-image-2.0', [text()], { seed: 0 })],
    ['the largest seed', body('qw-image-2.0', [text()], { seed: 2_147_483_647 })],
    ['a watermark', body('qw-image-2.0', [text()], { watermark: true })],
    ['a negative prompt of 500 characters', body('qw-image-2.0', [text()], { negative_prompt: 'x'.repeat(500) })],
    ['500 characters of two units', body('qw-image-2.0', [text()], { negative_prompt: '🌉'.repeat(500) })],
    ['an empty negative prompt', body('qw-image-2.0', [text()], { negative_prompt: '' })],
    ['no prompt expansion', body('qw-image-2.0', [text()], { prompt_extend: false })],
    ['an edit with prompt expansion', body('qw-image-edit-plus', [image(), text()], { prompt_extend: true })],
    ['two texts, which the vendor may refuse', body('qw-image-2.0', [text(), text('another')])],
    ['the default size of qw-image-edit', body('qw-image-edit', [image(), text()], { size: '1024*1024' })],
    ['prompt expansion of qw-image-edit', body('qw-image-edit', [image(), text()], { prompt_extend: true })],
    ['no prompt expansion of qw-image-edit', body('qw-image-edit', [image(), text()], { prompt_extend: false })],
    ['an image URL in capitals', body('qw-image-edit', [image('HTTPS://cdn.example.net/1.png'), text()])],
    ['a size that only the vendor may know', body('own-image', [text()], { size: '512*512' })],
    ['as many images as the vendor may take', body('own-image', [...images(9), text()])],
  ])('takes %s', (_, value) => {
    expect(parse(value)).toBe(value)
  })

  it('takes null for a parameter that is absent, and for all of them', () => {
    const parameters = { size: null, n: null, seed: 7, watermark: null, negative_prompt: null, prompt_extend: null }

    expect(parse(body('qw-image-2.0', [text()], parameters))).toEqual(body('qw-image-2.0', [text()], { seed: 7 }))
    expect(parse(body('qw-image-2.0', [text()], null))).not.toHaveProperty('parameters')
    expect(parse(body('qw-image-2.0', [{ ...text(), image: null }]))).toEqual(body('qw-image-2.0', [text()]))
    expect(refusal({ model: 'qw-image-2.0', input: null }).param).toBe('input')
  })

  const good = { role: 'user', content: [text()] }
  it.each<[what: string, value: unknown, param: string | undefined, message: RegExp]>([
    ['no object', 'text', undefined, /object/],
    ['no input', { model: 'qw-image-2.0' }, 'input', /object/],
    ['input as text', { model: 'qw-image-2.0', input: 'A bridge' }, 'input', /object/],
    ['no messages', { model: 'qw-image-2.0', input: {} }, 'input.messages', /array/],
    ['an empty list of messages', { model: 'qw-image-2.0', input: { messages: [] } }, 'input.messages', /exactly one/],
    ['two messages', { model: 'qw-image-2.0', input: { messages: [good, good] } }, 'input.messages', /exactly one/],
    [
      'the role system',
      { model: 'qw-image-2.0', input: { messages: [{ ...good, role: 'system' }] } },
      'input.messages[0].role',
      /"user"/,
    ],
    ['content as text', body('qw-image-2.0', 'A bridge'), CONTENT, /array/],
    ['no block', body('qw-image-2.0', []), CONTENT, /at least one text/],
    ['an image alone', body('qw-image-edit', [image()]), CONTENT, /at least one text/],
    ['a block with both', body('qw-image-edit', [{ ...text(), ...image() }]), `${CONTENT}[0]`, /either text or image/],
    ['a block with neither', body('qw-image-2.0', [text(), { video: 'x' }]), `${CONTENT}[1]`, /either text or image/],
    ['an empty text', body('qw-image-2.0', [text('')]), `${CONTENT}[0].text`, />=1/],
    ['a text that is a number', body('qw-image-2.0', [{ text: 5 }]), `${CONTENT}[0].text`, /string/],
    ['an image that is an object', body('qw-image-edit', [{ image: {} }, text()]), `${CONTENT}[0].image`, /string/],
    ...['http://cdn.example.net/1.png', 'data:image/png;base64,AAAA', 'oss://bucket/1.png', 'file:///etc/passwd'].map(
      (url): [string, unknown, string, RegExp] => [
        `an image at ${url.slice(0, 16)}`,
        body('qw-image-edit', [image(), image(url), text()]),
        `${CONTENT}[1].image`,
        /https URL/,
      ],
    ),
    ['an image at https://', body('qw-image-edit', [image('https://'), text()]), `${CONTENT}[0].image`, /https URL/],
    ['an image at no URL', body('qw-image-edit', [image('1.png'), text()]), `${CONTENT}[0].image`, /https URL/],
    ...EDITORS.map((id): [string, unknown, string, RegExp] => [
      `${id} without an image`,
      body(id),
      CONTENT,
      /1 to 3 reference images/,
    ]),
    ...EDITORS.map((id): [string, unknown, string, RegExp] => [
      `${id} with four images`,
      body(id, [...images(4), text()]),
      CONTENT,
      /1 to 3 reference images, and the request has 4/,
    ]),
    ['qw-image-2.0 with four images', body('qw-image-2.0', [...images(4), text()]), CONTENT, /0 to 3 reference images/],
    ['qw-image-max with an image', body('qw-image-max', [image(), text()]), CONTENT, /takes no reference images/],
    ['parameters as a list', body('qw-image-2.0', [text()], []), 'parameters', /object/],
    ...['1024x1024', '1024', '1024 * 1024', '01024*1024', '2K', ''].map((size): [string, unknown, string, RegExp] => [
      `the size "${size}"`,
      body('own-image', [text()], { size }),
      'parameters.size',
      /joined by \*/,
    ]),
    ['a size as a number', body('qw-image-2.0', [text()], { size: 1024 }), 'parameters.size', /string/],
    ...['512*512', '2048*2048', '1024*1536'].map((size): [string, unknown, string, RegExp] => [
      `the size ${size}`,
      body('qw-image-2.0', [text()], { size }),
      'parameters.size',
      /must be one of 1024\*1024, 1664\*928, 1472\*1140/,
    ]),
    [
      'a size of qw-image-edit',
      body('qw-image-edit', [image(), text()], { size: '1328*1328' }),
      'parameters.size',
      /does not support it/,
    ],
    ...[0, 2, 1.5, 1e9, '1'].map((n): [string, unknown, string, RegExp] => [
      `n of ${JSON.stringify(n)}`,
      body('qw-image-2.0', [text()], { n }),
      'parameters.n',
      /exactly 1/,
    ]),
    ...[-1, 2_147_483_648, 1.5, '7'].map((seed): [string, unknown, string, RegExp] => [
      `a seed of ${JSON.stringify(seed)}`,
      body('qw-image-2.0', [text()], { seed }),
      'parameters.seed',
      /./,
    ]),
    ['a watermark as text', body('qw-image-2.0', [text()], { watermark: 'true' }), 'parameters.watermark', /boolean/],
    [
      'prompt expansion as 1',
      body('qw-image-2.0', [text()], { prompt_extend: 1 }),
      'parameters.prompt_extend',
      /boolean/,
    ],
    [
      'a negative prompt of 501 characters',
      body('qw-image-2.0', [text()], { negative_prompt: 'x'.repeat(501) }),
      'parameters.negative_prompt',
      /at most 500/,
    ],
    [
      '501 characters of two units',
      body('qw-image-2.0', [text()], { negative_prompt: '🌉'.repeat(501) }),
      'parameters.negative_prompt',
      /at most 500/,
    ],
  ])('refuses %s', (_, value, param, message) => {
    const error = refusal(value)

    expect([error.status, error.code, error.publicCode, error.type]).toEqual([
      400,
      'invalid_request',
      'InvalidParameter',
      'invalid_request_error',
    ])
    expect(error.param).toBe(param)
    expect(error.message).toMatch(message)
  })

  it('members called constructor or toString are unknown fields like others, and fill in nothing', () => {
    const value = JSON.parse('{"constructor":{"size":"1*1"},"toString":1}') as object
    const request = parse({ ...body('qw-image-edit', [image(), text()], value), ...value })

    expect(endpoint.priceFields!(request, model('qw-image-edit'))).toEqual({})
    expect(refusal(body('qw-image-2.0', [JSON.parse('{"constructor":"x"}')])).param).toBe(`${CONTENT}[0]`)
  })

  it('words a refusal in the shape of the vendor and in that of OpenAI at once', () => {
    const error = refusal(body('qw-image-edit'))

    expect(JSON.parse(errorBody(error, 'multimodal', 'req_1'))).toEqual({
      code: 'InvalidParameter',
      message: `${CONTENT}: this model needs 1 to 3 reference images, and the request has 0`,
      request_id: 'req_1',
      error: {
        message: `${CONTENT}: this model needs 1 to 3 reference images, and the request has 0`,
        type: 'invalid_request_error',
        param: CONTENT,
        code: 'InvalidParameter',
      },
    })
  })
})

describe('what a multimodal image request is billed by', () => {
  it.each<[string, unknown, Record<string, string>]>([
    ['text without a size', body('qw-image-2.0'), { size: '1024*1024' }],
    ['text without a size, at a model of which nothing is known', body('own-image'), { size: '1024*1024' }],
    ['text with a size', body('qw-image-max', [text()], { size: '928*1664' }), { size: '928*1664' }],
    ['an edit without a size', body('qw-image-edit-plus', [image(), text()]), {}],
    ['an edit at a model that does both', body('qw-image-2.0', [image(), text()]), {}],
    ['an edit with a size', body('qw-image-edit-max', [image(), text()], { size: '1280*720' }), { size: '1280*720' }],
  ])('%s', (_, value, fields) => {
    expect(endpoint.priceFields!(parse(value), model((value as { model: string }).model))).toEqual(fields)
  })

  it('a host can say which size its own model makes', () => {
    const own = { ...OWN, image: { defaultSize: '1664*928' } }

    expect(endpoint.priceFields!(parse(body('own-image')), own)).toEqual({ size: '1664*928' })
  })

  it('counts the bytes of the texts, not of the URLs', () => {
    const request = parse(body('qw-image-edit', [image(), text('Brücke')], { negative_prompt: 'fog' }))

    expect(endpoint.textBytes?.(request)).toBe(10)
  })

  it('names every address that the vendor will fetch from', () => {
    const request = parse(body('qw-image-edit', [image('https://a.example/1'), text(), image('https://b.example/2')]))

    expect(endpoint.callerUrls?.(request)).toEqual([
      { url: 'https://a.example/1', param: `${CONTENT}[0].image` },
      { url: 'https://b.example/2', param: `${CONTENT}[2].image` },
    ])
  })
})
