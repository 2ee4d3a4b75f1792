import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import { openaiErrors } from '../../../src/endpoints/error-dialect.ts'
import { openaiImageEndpoint as endpoint } from '../../../src/endpoints/images/images-endpoint.ts'
import { builtIn, hostRow, refusal } from './openai-image-facts.ts'

const model = builtIn('gp-image-2')
const parse = (fields: object, facts = model) =>
  endpoint.parse({ model: 'gp-image-2', prompt: 'a paper boat', ...fields }, facts)

describe('a request for text to image', () => {
  it.each([
    ['nothing but the prompt', {}],
    ['null for what is not set', { n: null, size: null, quality: null, stream: null, response_format: null }],
    ['auto', { size: 'auto' }],
    ['a listed size', { size: '1024x1536' }],
    ['a free size', { size: '1536x864' }],
    ['the largest size', { size: '3840x2160' }],
    ['the same on end', { size: '2160x3840' }],
    ['the widest shape', { size: '3072x1024' }],
    ['a size that only the vendor finds too small', { size: '16x16' }],
    ['ten pictures', { n: 10 }],
    ['every quality', { quality: 'low' }],
    ['the quality hd', { quality: 'hd' }],
    ['the quality standard', { quality: 'standard' }],
    ['transparent by default png', { background: 'transparent' }],
    ['transparent webp', { background: 'transparent', output_format: 'webp' }],
    ['compressed jpeg', { output_format: 'jpeg', output_compression: 0 }],
    ['compressed webp', { output_format: 'webp', output_compression: 100 }],
    ['less moderation', { moderation: 'low' }],
    ['a stream with three unfinished pictures', { stream: true, partial_images: 3 }],
    ['a url, which the model never gives', { response_format: 'url' }],
    ['the longest prompt', { prompt: 'x'.repeat(32_000) }],
    ['the longest prompt of characters that are two units each', { prompt: '\u{1F600}'.repeat(32_000) }],
    ['fields that nobody here knows', { input_fidelity: 'high', complexity: { of: 'any kind' } }],
  ])('may hold %s', (_, fields) => {
    expect(parse(fields)).toMatchObject({ model: 'gp-image-2', ...fields })
  })

  it.each<[string, object, string]>([
    ['no prompt', { prompt: undefined }, 'prompt'],
    ['an empty prompt', { prompt: '' }, 'prompt'],
    ['a prompt of another type', { prompt: ['a boat'] }, 'prompt'],
    ['a prompt that is too long', { prompt: 'x'.repeat(32_001) }, 'prompt'],
    ['a prompt of too many wide characters', { prompt: '\u{1F600}'.repeat(32_001) }, 'prompt'],
    ['no picture', { n: 0 }, 'n'],
    ['eleven pictures', { n: 11 }, 'n'],
    ['half a picture', { n: 1.5 }, 'n'],
    ['a number in quotes', { n: '2' }, 'n'],
    ['2K', { size: '2K' }, 'size'],
    ['4K', { size: '4K' }, 'size'],
    ['an asterisk', { size: '1024*1024' }, 'size'],
    ['a capital X', { size: '1024X1024' }, 'size'],
    ['a leading zero', { size: '01024x1024' }, 'size'],
    ['a size that is no text', { size: 1024 }, 'size'],
    ['a width that 16 does not divide', { size: '1000x1024' }, 'size'],
    ['a height that 16 does not divide', { size: '1024x1000' }, 'size'],
    ['a side that is too long', { size: '3856x2048' }, 'size'],
    ['a shape that is too wide', { size: '3088x1024' }, 'size'],
    ['more pixels than the vendor draws', { size: '3840x3840' }, 'size'],
    ['an unknown quality', { quality: 'ultra' }, 'quality'],
    ['an unknown background', { background: 'blue' }, 'background'],
    ['transparent jpeg', { background: 'transparent', output_format: 'jpeg' }, 'background'],
    ['an unknown file format', { output_format: 'bmp' }, 'output_format'],
    ['compressed png', { output_compression: 50 }, 'output_compression'],
    ['too much compression', { output_format: 'jpeg', output_compression: 101 }, 'output_compression'],
    ['negative compression', { output_format: 'jpeg', output_compression: -1 }, 'output_compression'],
    ['an unknown moderation', { moderation: 'none' }, 'moderation'],
    ['four unfinished pictures', { stream: true, partial_images: 4 }, 'partial_images'],
    ['a stream that is no boolean', { stream: 'true' }, 'stream'],
    ['an unknown response_format', { response_format: 'file' }, 'response_format'],
  ])('is refused with 400 for %s, naming the field', (_, fields, param) => {
    expect(refusal(() => parse(fields))).toMatchObject({ status: 400, type: 'invalid_request_error', param })
  })

  it('is rejected for a billion images and for minus five', () => {
    expect(refusal(() => parse({ n: 1e9 }))).toMatchObject({ status: 400, param: 'n', code: 'invalid_request' })
    expect(refusal(() => parse({ n: -5 }))).toMatchObject({ status: 400, param: 'n', code: 'invalid_request' })
  })

  it('leaves sizes and qualities of an unknown model to its vendor', () => {
    expect(parse({ size: '2K', quality: 'ultra' }, hostRow())).toMatchObject({ size: '2K', quality: 'ultra' })
  })

  it('is held to the abilities that a host wrote down', () => {
    const row = hostRow({
      maxImages: 2,
      freeSize: { minPixels: 655_360 },
      refusedFields: ['background'],
      qualities: ['max'],
    })

    expect(refusal(() => parse({ n: 3 }, row))).toMatchObject({ status: 400, param: 'n' })
    expect(refusal(() => parse({ size: '512x512' }, row))).toMatchObject({ status: 400, param: 'size' })
    expect(refusal(() => parse({ background: 'opaque' }, row))).toMatchObject({
      status: 400,
      param: 'background',
      code: 'unsupported_parameter',
    })
    expect(parse({ size: '1000x1000', quality: 'max', background: null }, row)).toMatchObject({ quality: 'max' })
    expect(parse({ size: '1000x1000', background: 'auto' }, row)).toMatchObject({ background: 'auto' })
  })
})

describe('the format of the file', () => {
  it('may be one that the row lists, and no other', () => {
    const row = hostRow({ outputFormats: ['png', 'svg', 'gif'] })

    expect(parse({ output_format: 'svg' }, row)).toMatchObject({ output_format: 'svg' })
    expect(parse({}, hostRow({ outputFormats: ['svg'] }))).not.toHaveProperty('output_format')
    expect(refusal(() => parse({ output_format: 'webp' }, row))).toMatchObject({
      param: 'output_format',
      message: expect.stringContaining('png, svg, gif'),
    })
    expect(refusal(() => parse({ output_format: 'gif', output_compression: 50 }, row))).toMatchObject({
      param: 'output_compression',
    })
  })

  it('is png, jpeg or webp where no row says more, and the refusal says so', () => {
    for (const output_format of ['svg', 'gif']) {
      expect(refusal(() => parse({ output_format }, hostRow()))).toMatchObject({
        status: 400,
        param: 'output_format',
        message: expect.stringContaining('png, jpeg, webp'),
      })
    }
  })
})

describe('what text to image may cost', () => {
  const estimate = (fields: object, facts = model) => endpoint.estimate(parse(fields, facts), 30, facts)

  it.each<[string, object, number]>([
    ['the dearest picture, where the vendor chooses', {}, 6240],
    ['a listed one', { size: '1024x1024', quality: 'low' }, 272],
    ['a listed one by an alias', { size: '1536x1024', quality: 'standard' }, 1568],
    ['the dearest quality of a size', { size: '1024x1024' }, 4160],
    ['the dearest size of a quality', { quality: 'medium' }, 1584],
    ['a free size by its pixels', { size: '2048x2048', quality: 'medium' }, 4224],
    ['the largest of all', { size: '3840x2160', quality: 'high' }, 32_907],
    ['a small one as the smallest listed', { size: '256x256', quality: 'low' }, 272],
    ['unfinished pictures too', { size: '1024x1024', quality: 'low', stream: true, partial_images: 2 }, 472],
  ])('counts %s', (_, fields, outputTokens) => {
    expect(estimate({ ...fields, n: 3 })).toEqual({
      images: 3,
      inputTokens: 30,
      inputImageTokens: 0,
      outputTokens: 3 * outputTokens,
      outputImageTokens: 3 * outputTokens,
    })
  })

  it('counts only images for a model without tokens, and both for an unknown model', () => {
    expect(estimate({ n: 2 }, hostRow({}))).toEqual({ images: 2 })
    expect(estimate({ n: 2 }, hostRow())).toMatchObject({ images: 2, inputTokens: 30, outputTokens: 2 * 4096 })
    expect(estimate({}, hostRow({ outputTokens: { default: 50 } }))).toMatchObject({ outputTokens: 50 })
    expect(estimate({ size: '512x512' }, hostRow({ outputTokens: { '1024x1024': 100 } }))).toMatchObject({
      outputTokens: 100,
    })
  })

  it('counts the text of the prompt only', () => {
    expect(endpoint.textBytes?.(parse({ prompt: 'ä boat' }))).toBe(7)
  })

  it.each<[object, object]>([
    [{}, { size: 'auto', quality: 'auto' }],
    [
      { size: '1536x864', quality: 'hd' },
      { size: '1536x864', quality: 'high' },
    ],
    [{ quality: 'standard' }, { size: 'auto', quality: 'medium' }],
  ])('depends on size and quality: %o is billed as %o', (fields, billed) => {
    expect(endpoint.priceFields!(parse(fields), model)).toEqual(billed)
  })
})

describe('the endpoint', () => {
  it('streams when it is asked to, and ends a broken stream with an error event', () => {
    expect(endpoint.isStream(parse({ stream: true }))).toBe(true)
    expect(endpoint.isStream(parse({ stream: false }))).toBe(false)
    expect(endpoint.errors.streamEvent(new GatewayError('upstream_unavailable'))).toMatch(
      /^data: \{"error":\{.*\}\n\n$/,
    )
  })

  it('is one of the shapes of its path', () => {
    expect(endpoint).toMatchObject({
      id: 'images',
      path: '/v1/images/generations',
      kind: 'image',
      errors: openaiErrors,
      isPaidJob: true,
    })
  })
})
