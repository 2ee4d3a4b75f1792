import { describe, expect, test } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import type { ModelFacts } from '../../../src/catalog/model-facts.ts'
import { GEMINI_IMAGE_MODELS } from '../../../src/catalog/models/gemini-models.ts'
import { GatewayError } from '../../../src/core/errors.ts'
import { interactionErrors } from '../../../src/endpoints/images/image-operation.ts'
import { interactionImageEndpoint as endpoint } from '../../../src/endpoints/images/images-endpoint.ts'

const FLASH = rowOf('gmn-3.1-flash-image-preview')
const PRO = rowOf('gmn-3-pro-image-preview')
const FLASH_2_5 = rowOf('gmn-2.5-flash-image')
const HOSTS_OWN: ModelFacts = { id: 'my-image', protocol: 'interactions', limits: {} }
const MODELS = { flash: FLASH, pro: PRO, '2.5': FLASH_2_5, own: HOSTS_OWN }
type ModelName = keyof typeof MODELS

function rowOf(id: string): ModelFacts {
  const row = GEMINI_IMAGE_MODELS.find((model) => model.id === id)
  if (row === undefined) throw new Error(`no such row: ${id}`)
  return defineModel(row)
}

const text = { type: 'text', text: 'A paper crane' }
const picture = { type: 'image', mime_type: 'image/png', data: 'aGVsbG8=' }
const format = (fields: object) => ({ response_format: { type: 'image', ...fields } })

function parse(fields: object, model: ModelName = 'flash') {
  const facts = MODELS[model]
  return endpoint.parse({ model: facts.id, input: 'A paper crane', ...fields }, facts)
}

function refusalOf(fields: object, model: ModelName = 'flash'): GatewayError {
  try {
    parse(fields, model)
  } catch (error) {
    if (GatewayError.isInstance(error)) return error
    throw error
  }
  throw new Error('the request was accepted')
}

test('null means that a field is absent', () => {
  const none = { system_instruction: null, generation_config: null, previous_interaction_id: null, tools: null }
  const format = { response_format: { type: 'image', image_size: null, aspect_ratio: '1:1', mime_type: null } }
  const input = [{ type: 'text', text: 'A crane', mime_type: null, data: null }]

  expect(parse({ ...none, ...format, input, store: null, service_tier: null, stream: null })).toEqual({
    model: FLASH.id,
    input: [{ type: 'text', text: 'A crane' }],
    response_format: { type: 'image', aspect_ratio: '1:1' },
  })
  expect(parse({ generation_config: { temperature: null, thinking_level: null }, response_format: null })).toEqual({
    model: FLASH.id,
    input: 'A paper crane',
    generation_config: {},
  })
  expect(refusalOf({ input: null }).param).toBe('input')
})

describe('requests that pass, as they came', () => {
  test.each<[string, object, ModelName?]>([
    ['a text alone', {}],
    ['blocks', { input: [text, picture] }],
    ['pictures alone', { input: [picture] }],
    [
      'a picture by address',
      { input: [{ type: 'image', mime_type: 'image/png', uri: 'https://pictures.example/a.png' }] },
    ],
    ['base64 in the URL alphabet and without padding', { input: [{ ...picture, data: '_-8' }] }],
    ['an instruction', { system_instruction: 'Muted colours.' }],
    ['any picture type', format({ mime_type: 'image/png' })],
    ['temperature 0', { generation_config: { temperature: 0 } }],
    ['temperature 2', { generation_config: { temperature: 2 } }],
    ['a previous answer', { previous_interaction_id: 'v1_abc' }],
    ['no storing', { store: false }],
    ['tools, which are sifted later', { tools: [{ type: 'google_search' }, { google_search: {} }] }],
    ['fields that are not known', { labels: { team: 'a' }, n: 1, generation_config: { seed: 7 } }],
    ['background false', { background: false }],
    ...['512px', '1K', '2K', '4K'].map((size): [string, object, ModelName] => [
      `${size} on 3.1-flash`,
      format({ image_size: size }),
      'flash',
    ]),
    ...['1K', '2K', '4K'].map((size): [string, object, ModelName] => [
      `${size} on 3-pro`,
      format({ image_size: size }),
      'pro',
    ]),
    ['1K on 2.5-flash', format({ image_size: '1K' }), '2.5'],
    ...['1:1', '16:9', '9:16', '3:2', '2:3', '4:3', '3:4', '5:4', '4:5', '21:9'].flatMap((ratio) =>
      (['flash', 'pro', '2.5'] as const).map((model): [string, object, ModelName] => [
        `${ratio} on ${model}`,
        format({ aspect_ratio: ratio }),
        model,
      ]),
    ),
    ...['1:4', '4:1', '1:8', '8:1'].map((ratio): [string, object] => [
      `${ratio} on 3.1-flash`,
      format({ aspect_ratio: ratio }),
    ]),
    ...['minimal', 'high'].flatMap((level) =>
      (['flash', 'pro'] as const).map((model): [string, object, ModelName] => [
        `${level} thinking on ${model}`,
        { generation_config: { thinking_level: level } },
        model,
      ]),
    ),
    ['14 references on 3.1-flash', { input: [text, ...Array(14).fill(picture)] }, 'flash'],
    ['14 references on 3-pro', { input: [text, ...Array(14).fill(picture)] }, 'pro'],
    ['3 references on 2.5-flash', { input: [text, ...Array(3).fill(picture)] }, '2.5'],
    [
      'anything on a model that states no abilities',
      { ...format({ image_size: '8K', aspect_ratio: '9:9' }), generation_config: { thinking_level: 'medium' } },
      'own',
    ],
  ])('%s', (_case, fields, model) => {
    const body = { model: 'm', input: 'A paper crane', ...fields }
    const before = structuredClone(body)

    expect(endpoint.parse(body, MODELS[model ?? 'flash'])).toBe(body)
    expect(body).toEqual(before)
  })
})

describe('requests that are refused with 400 naming the field', () => {
  test.each<[string, object, string, ModelName?]>([
    ['no input', { input: undefined }, 'input'],
    ['an empty text', { input: '' }, 'input'],
    ['no blocks', { input: [] }, 'input'],
    ['a single block that is no list', { input: text }, 'input'],
    ['a number', { input: 7 }, 'input'],
    ['a block of another type', { input: [text, { type: 'audio', data: 'aa' }] }, 'input[1].type'],
    ['a text block without text', { input: [{ type: 'text' }] }, 'input[0].text'],
    ['a picture without data', { input: [text, { type: 'image', mime_type: 'image/png' }] }, 'input[1].data'],
    ['a picture without its type', { input: [{ type: 'image', data: 'aGVsbG8=' }] }, 'input[0].mime_type'],
    ['a type that is no picture', { input: [{ ...picture, mime_type: 'text/html' }] }, 'input[0].mime_type'],
    ['a data: prefix', { input: [text, { ...picture, data: 'data:image/png;base64,aGVsbG8=' }] }, 'input[1].data'],
    ['data that is no base64', { input: [{ ...picture, data: 'a picture!' }] }, 'input[0].data'],
    ['padding in the middle', { input: [{ ...picture, data: 'aG=sbG8=' }] }, 'input[0].data'],
    ['empty data', { input: [{ ...picture, data: '' }] }, 'input[0].data'],
    ['data and address', { input: [{ ...picture, uri: 'https://pictures.example/a.png' }] }, 'input[0].uri'],
    [
      'an address of another scheme',
      { input: [{ type: 'image', mime_type: 'image/png', uri: 'file:///etc/passwd' }] },
      'input[0].uri',
    ],
    ['an instruction that is no text', { system_instruction: ['x'] }, 'system_instruction'],
    ['a format without type', { response_format: { image_size: '1K' } }, 'response_format.type'],
    ['a format of another type', { response_format: { type: 'text' } }, 'response_format.type'],
    ['a list of formats', { response_format: [{ type: 'image' }] }, 'response_format'],
    ['a bare 512', format({ image_size: '512' }), 'response_format.image_size'],
    ['a bare 512 on a model without abilities', format({ image_size: '512' }), 'response_format.image_size', 'own'],
    ['512 as a number', format({ image_size: 512 }), 'response_format.image_size'],
    ['a lower-case k', format({ image_size: '2k' }), 'response_format.image_size'],
    ['512px on 3-pro', format({ image_size: '512px' }), 'response_format.image_size', 'pro'],
    ['512px on 2.5-flash', format({ image_size: '512px' }), 'response_format.image_size', '2.5'],
    ['2K on 2.5-flash', format({ image_size: '2K' }), 'response_format.image_size', '2.5'],
    ['4K on 2.5-flash', format({ image_size: '4K' }), 'response_format.image_size', '2.5'],
    ['an unknown ratio', format({ aspect_ratio: '7:5' }), 'response_format.aspect_ratio'],
    ...['1:4', '4:1', '1:8', '8:1'].flatMap((ratio) =>
      (['pro', '2.5'] as const).map((model): [string, object, string, ModelName] => [
        `${ratio} on ${model}`,
        format({ aspect_ratio: ratio }),
        'response_format.aspect_ratio',
        model,
      ]),
    ),
    ['a ratio named like a member of objects', format({ aspect_ratio: 'constructor' }), 'response_format.aspect_ratio'],
    ['temperature above 2', { generation_config: { temperature: 2.1 } }, 'generation_config.temperature'],
    ['temperature below 0', { generation_config: { temperature: -0.1 } }, 'generation_config.temperature'],
    ['temperature as text', { generation_config: { temperature: '1' } }, 'generation_config.temperature'],
    ['another thinking level', { generation_config: { thinking_level: 'low' } }, 'generation_config.thinking_level'],
    [
      'thinking on 2.5-flash',
      { generation_config: { thinking_level: 'minimal' } },
      'generation_config.thinking_level',
      '2.5',
    ],
    ['an id that is no text', { previous_interaction_id: 7 }, 'previous_interaction_id'],
    ['continuing without storing', { previous_interaction_id: 'v1_a', store: false }, 'previous_interaction_id'],
    ['tools that are no list', { tools: { type: 'function' } }, 'tools'],
    ['a tool that is a text', { tools: ['google_search'] }, 'tools[0]'],
    ['store as text', { store: 'false' }, 'store'],
    ['stream as text', { stream: 'yes' }, 'stream'],
    ['background work', { background: true }, 'background'],
    ['content that is kept at the vendor', { cached_content: 'cachedContents/1' }, 'cached_content'],
    ['an unfinished answer of anybody', { continuation_token: 'x' }, 'continuation_token'],
    ['an address for the vendor to call', { webhook_config: { uris: ['https://a.example'] } }, 'webhook_config'],
    ['an agent', { agent: 'deep-research' }, 'agent'],
    [
      'the older place of the size',
      { generation_config: { image_config: { image_size: '4K' } } },
      'generation_config.image_config',
    ],
    ['the size in camel case', format({ imageSize: '4K' }), 'response_format.imageSize'],
    ['a foreign id in camel case', { previousInteractionId: 'v1_a' }, 'previousInteractionId'],
    ['settings in camel case', { generationConfig: {} }, 'generationConfig'],
    ['15 references on 3.1-flash', { input: [text, ...Array(15).fill(picture)] }, 'input'],
    ['15 references on 3-pro', { input: [text, ...Array(15).fill(picture)] }, 'input', 'pro'],
    ['4 references on 2.5-flash', { input: [text, ...Array(4).fill(picture)] }, 'input', '2.5'],
  ])('%s', (_case, fields, param, model) => {
    const error = refusalOf(fields, model)

    expect(error).toMatchObject({ status: 400, code: 'invalid_request', publicCode: 'invalid_request', param })
    expect(error.message.startsWith(`${param}: `)).toBe(true)
    expect(error.message).not.toContain('\n')
  })

  test('a body that is not an object', () => {
    expect(() => endpoint.parse([], FLASH)).toThrow(expect.objectContaining({ status: 400 }))
  })

  test('the text for a data: prefix says what is wrong', () => {
    const error = refusalOf({ input: [{ ...picture, data: 'data:image/png;base64,aGVsbG8=' }] })

    expect(error.message).toBe('input[0].data: must be base64 without a data: URI prefix')
  })
})

describe('what the gateway reads from a request', () => {
  test('is a paid job in the OpenAI dialect on the generations route', () => {
    expect(endpoint).toMatchObject({
      id: 'images',
      path: '/v1/images/generations',
      kind: 'image',
      errors: interactionErrors,
      isPaidJob: true,
    })
  })

  test.each([
    [{}, false],
    [{ stream: false }, false],
    [{ stream: true }, true],
  ])('%o streams: %s', (fields, streams) => {
    expect(endpoint.isStream(parse(fields))).toBe(streams)
  })

  test('only text counts as text', () => {
    const request = parse({
      input: [{ type: 'text', text: 'grün' }, picture, { type: 'text', text: 'ab' }],
      system_instruction: 'xyz',
    })

    expect(endpoint.textBytes?.(request)).toBe(5 + 2 + 3)
    expect(endpoint.textBytes?.(parse({ input: 'grün' }))).toBe(5)
  })

  test.each<[string, object, ModelName, object]>([
    ['the defaults', {}, 'flash', { image_size: '1K' }],
    [
      'what is asked for',
      format({ image_size: '4K', aspect_ratio: '21:9' }),
      'pro',
      { image_size: '4K', aspect_ratio: '21:9' },
    ],
    ['a model without abilities', {}, 'own', { image_size: '1K' }],
  ])('billing fields: %s', (_case, fields, model, billing) => {
    expect(endpoint.priceFields!(parse(fields, model), MODELS[model])).toEqual(billing)
  })

  test.each<[string, object, ModelName, object]>([
    ['512px on 3.1-flash', format({ image_size: '512px' }), 'flash', { in: 0, picture: 747, rest: 1024 + 4096 }],
    ['1K by default', {}, 'flash', { in: 0, picture: 1120, rest: 1024 + 4096 }],
    ['2K', format({ image_size: '2K' }), 'flash', { in: 0, picture: 1680, rest: 1024 + 4096 }],
    ['4K', format({ image_size: '4K' }), 'flash', { in: 0, picture: 2520, rest: 1024 + 4096 }],
    ['4K on 3-pro', format({ image_size: '4K' }), 'pro', { in: 0, picture: 2000, rest: 1024 + 4096 }],
    [
      'high thinking',
      { generation_config: { thinking_level: 'high' } },
      'pro',
      { in: 0, picture: 1120, rest: 1024 + 8192 },
    ],
    ['2.5-flash, which does not think', {}, '2.5', { in: 0, picture: 1290, rest: 1024 }],
    [
      'two references on 3.1-flash',
      { input: [text, picture, picture] },
      'flash',
      { in: 2240, picture: 1120, rest: 5120 },
    ],
    ['a reference on 3-pro', { input: [text, picture] }, 'pro', { in: 560, picture: 1120, rest: 5120 }],
    ['a reference on 2.5-flash', { input: [text, picture] }, '2.5', { in: 258, picture: 1290, rest: 1024 }],
    ['a model without abilities', { input: [picture] }, 'own', { in: 1120, picture: 2520, rest: 5120 }],
  ])('estimate from above: %s', (_case, fields, model, expected) => {
    const { in: inputImageTokens, picture: drawn, rest } = expected as { in: number; picture: number; rest: number }

    expect(endpoint.estimate(parse(fields, model), 10, MODELS[model])).toEqual({
      inputTokens: 10 + inputImageTokens,
      inputImageTokens,
      outputTokens: drawn + rest,
      outputImageTokens: drawn,
      images: 1,
    })
  })

  test('the estimate of output stays within the model\u2019s own limit', () => {
    const small: ModelFacts = { ...HOSTS_OWN, limits: { maxOutputTokens: 2000 } }

    expect(endpoint.estimate(parse({}, 'own'), 10, small)).toMatchObject({
      outputTokens: 2000,
      outputImageTokens: 2000,
    })
  })

  test('names addresses of images with their path', () => {
    const request = parse({
      input: [text, picture, { type: 'image', mime_type: 'image/png', uri: 'http://127.0.0.1/x' }],
    })

    expect(endpoint.callerUrls?.(request)).toEqual([{ url: 'http://127.0.0.1/x', param: 'input[2].uri' }])
    expect(endpoint.callerUrls?.(parse({}))).toEqual([])
  })

  test.each([
    [{}, { previousId: undefined, isStored: true }],
    [
      { store: true, previous_interaction_id: 'v1_a' },
      { previousId: 'v1_a', isStored: true },
    ],
    [{ store: false }, { previousId: undefined, isStored: false }],
  ])('the conversation of %o', (fields, wish) => {
    expect(endpoint.continuation?.of(parse(fields))).toEqual(wish)
  })

  test('an error inside a stream is an event of the shape', () => {
    expect(endpoint.errors.streamEvent(new GatewayError('upstream_unavailable', { message: 'gone' }))).toBe(
      'event: error\ndata: {"error":{"message":"gone","type":"server_error","param":null,"code":"upstream_unavailable"},"event_type":"error"}\n\n',
    )
  })
})

test('the rows of the catalog give the abilities of the specification, and the alias is the same model', () => {
  expect(GEMINI_IMAGE_MODELS.map(({ id, protocol, image }) => [id, protocol, image?.aspectRatios?.length])).toEqual([
    ['gmn-3.1-flash-image-preview', 'interactions', 14],
    ['gmn-3-pro-image-preview', 'interactions', 10],
    ['gmn-2.5-flash-image', 'interactions', 10],
  ])
  expect(GEMINI_IMAGE_MODELS[2]?.aliases).toContain('gmn-2.5-flash-image-preview')
})
