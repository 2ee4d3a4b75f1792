import { describe, expect, it } from 'vitest'
import type { CatalogModel } from '../../../src/catalog/model.ts'
import { imageEditEndpoint as endpoint } from '../../../src/endpoints/image-edits/image-edit-endpoint.ts'
import { drawPicture } from '../../../src/testing/sandbox/files/draw-image.ts'
import type { Form } from '../../../src/wire/write-form.ts'
import { builtIn, hostRow, refusal } from '../images/openai-image-facts.ts'
import { claimedPng, fieldPart, filePart, picturePart } from './edit-parts.ts'

const gp2 = builtIn('gp-image-2')
const gp1 = builtIn('gp-image-1')
const de2 = builtIn('de-2')

const fieldsOf = (fields: object): Form => Object.entries(fields).map(([name, value]) => fieldPart(name, String(value)))

/** Parses a form of one image, these fields, and more parts. */
function edit(model: CatalogModel, fields: object = {}, parts: Form = [picturePart('image')]) {
  const all = { model: model.id, prompt: 'make it blue', ...fields }
  return endpoint.parse(endpoint.formBody!([...fieldsOf(all), ...parts]), model)
}

describe('an edit request', () => {
  it.each<[string, CatalogModel, object]>([
    ['the smallest request', gp2, {}],
    ['size auto', gp2, { size: 'auto' }],
    ['size 1024x1024', gp2, { size: '1024x1024' }],
    ['size 1024x1536', gp1, { size: '1024x1536' }],
    ['size 1536x1024', gp1, { size: '1536x1024' }],
    ['size 256x256 on de-2', de2, { size: '256x256' }],
    ['size 512x512 on de-2', de2, { size: '512x512' }],
    ['size 1024x1024 on de-2', de2, { size: '1024x1024' }],
    ['size auto on de-2, the default', de2, { size: 'auto' }],
    ...['auto', 'low', 'medium', 'high', 'standard', 'hd'].flatMap((quality): [string, CatalogModel, object][] => [
      [`quality ${quality}`, gp2, { quality }],
      [`quality ${quality} on de-2`, de2, { quality }],
    ]),
    ['one picture', gp2, { n: 1 }],
    ['ten pictures', de2, { n: 10 }],
    ['base64', gp2, { response_format: 'b64_json' }],
    ['url', gp2, { response_format: 'url' }],
    ['url on de-2', de2, { response_format: 'url' }],
    ['a jpeg', gp2, { output_format: 'jpeg' }],
    ['a transparent png', gp2, { background: 'transparent', output_format: 'png' }],
    ['a transparent webp', gp1, { background: 'transparent', output_format: 'webp' }],
    ['a transparent picture of the default format', gp1, { background: 'transparent' }],
    ['an opaque jpeg', gp1, { background: 'opaque', output_format: 'jpeg' }],
    ['an end user', gp2, { user: 'user-1' }],
    ['a stream', gp2, { stream: true, partial_images: 2 }],
  ])('may ask for %s', (_, model, fields) => {
    const { form, images, ...read } = edit(model, fields)

    expect(read).toMatchObject({ model: model.id, prompt: 'make it blue', ...fields })
    expect(images).toHaveLength(1)
    expect(form).toHaveLength(Object.keys(fields).length + 3)
  })

  it.each<[string, CatalogModel, object, string]>([
    ['no prompt', gp2, { prompt: '' }, 'prompt'],
    ['no picture at all', gp2, { n: 0 }, 'n'],
    ['eleven pictures', gp2, { n: 11 }, 'n'],
    ['a number that not everybody reads alike', gp2, { n: '0x2' }, 'n'],
    ['a number with a space', gp2, { n: ' 2' }, 'n'],
    ['256x256 on gp-image-2', gp2, { size: '256x256' }, 'size'],
    ['512x512 on gp-image-1', gp1, { size: '512x512' }, 'size'],
    ['1024x1536 on de-2', de2, { size: '1024x1536' }, 'size'],
    ['a free size, which only text to image has', gp2, { size: '1536x864' }, 'size'],
    ['an unknown quality', gp2, { quality: 'ultra' }, 'quality'],
    ['an unknown response_format', gp2, { response_format: 'json' }, 'response_format'],
    ['output_format on de-2', de2, { output_format: 'png' }, 'output_format'],
    ['background on de-2', de2, { background: 'opaque' }, 'background'],
    ['an unknown output_format', gp2, { output_format: 'gif' }, 'output_format'],
    ['an unknown background', gp2, { background: 'none' }, 'background'],
    ['a transparent jpeg', gp2, { background: 'transparent', output_format: 'jpeg' }, 'background'],
    ['a stream that is neither true nor false', gp2, { stream: 'yes' }, 'stream'],
  ])('is refused with 400 for %s, naming the field', (_, model, fields, param) => {
    expect(refusal(() => edit(model, fields))).toMatchObject({ status: 400, type: 'invalid_request_error', param })
  })

  it.each(['2K', '4K', '2048x2048'])('says that 2K and 4K are not supported when %s is asked for', (size) => {
    for (const model of [gp2, gp1, de2]) {
      const { message, param } = refusal(() => edit(model, { size }))

      expect(param).toBe('size')
      expect(message).toMatch(/2K and 4K are not supported/)
    }
  })

  it('is rejected for a billion images', () => {
    expect(refusal(() => edit(gp2, { n: '1e9' }))).toMatchObject({ status: 400, param: 'n' })
    expect(refusal(() => edit(gp2, { n: '1000000000' }))).toMatchObject({ status: 400, param: 'n' })
    expect(refusal(() => edit(gp2, { n: '-5' }))).toMatchObject({ status: 400, param: 'n' })
  })
})

describe('the images of an edit', () => {
  it.each(['png', 'jpeg', 'webp'] as const)('may be %s files', (format) => {
    expect(edit(gp2, {}, [picturePart('image', { format })]).images).toHaveLength(1)
  })

  it.each<[string, Uint8Array]>([
    ['a GIF', Buffer.from('GIF89a\u0001\u0000\u0001\u0000')],
    ['an HTML page', Buffer.from('<html></html>')],
    ['an empty file', new Uint8Array(0)],
    ['a PNG that ends in its header', drawPicture({ width: 8, height: 8, format: 'png', seed: 'a' }).subarray(0, 20)],
  ])('are refused when one is %s, whatever its name says', (_, bytes) => {
    expect(refusal(() => edit(gp2, {}, [filePart('image', bytes)]))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      code: 'unsupported_image_format',
      param: 'image',
    })
    expect(refusal(() => edit(gp2, {}, [picturePart('image[]'), filePart('image[]', bytes)]))).toMatchObject({
      param: 'image[1]',
    })
  })

  it('are refused within no time when one claims more pixels than there are', () => {
    const huge = filePart('image', claimedPng(4_294_967_295, 4_294_967_295))

    expect(refusal(() => edit(gp2, {}, [huge]))).toMatchObject({ status: 400, code: 'invalid_image', param: 'image' })
    expect(edit(gp2, {}, [filePart('image', claimedPng(30_000, 1))]).images).toHaveLength(1)
    expect(refusal(() => edit(gp2, {}, [filePart('image', claimedPng(1, 30_001))]))).toMatchObject({
      code: 'invalid_image',
    })
  })

  it('may be sixteen for gp-image models and one for de-2', () => {
    const pictures = (count: number) => Array.from({ length: count }, () => picturePart('image[]'))

    expect(edit(gp1, {}, pictures(16)).images).toHaveLength(16)
    expect(refusal(() => edit(gp1, {}, pictures(17)))).toMatchObject({ status: 400, param: 'image' })
    expect(refusal(() => edit(de2, {}, pictures(2)))).toMatchObject({ status: 400, param: 'image' })
    expect(edit(hostRow(), {}, pictures(20)).images).toHaveLength(20)
  })

  it('must be there', () => {
    expect(refusal(() => edit(gp2, {}, []))).toMatchObject({ status: 400, param: 'image' })
    expect(refusal(() => edit(gp2, {}, [picturePart('mask')]))).toMatchObject({ status: 400, param: 'image' })
  })
})

describe('the mask of an edit', () => {
  const mask = (options: Parameters<typeof picturePart>[1]) => [picturePart('image'), picturePart('mask', options)]

  it.each([gp2, gp1, de2])('is accepted by $id as a PNG of the size of the image', (model) => {
    expect(edit(model, {}, mask({})).mask).toMatchObject({ name: 'mask' })
  })

  it('is compared with the first of several images', () => {
    const parts = [picturePart('image[]', { width: 32 }), picturePart('image[]'), picturePart('mask', { width: 32 })]

    expect(edit(gp2, {}, parts).mask).toMatchObject({ name: 'mask' })
  })

  it.each<[string, Form]>([
    ['another width', mask({ width: 17 })],
    ['another height', mask({ height: 17 })],
    ['another format', mask({ format: 'webp' })],
    ['no picture', [picturePart('image'), filePart('mask', Buffer.from('no picture'))]],
    ['a claim of too many pixels', [picturePart('image'), filePart('mask', claimedPng(4_294_967_295, 1))]],
  ])('is refused as invalid_mask for %s', (_, parts) => {
    expect(refusal(() => edit(gp2, {}, parts))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      code: 'invalid_mask',
      param: 'mask',
    })
  })

  it('is refused as invalid_mask by a model that does not say it takes one', () => {
    for (const model of [hostRow(), hostRow({}), hostRow({ takesMask: false })]) {
      expect(refusal(() => edit(model, {}, mask({})))).toMatchObject({ status: 400, code: 'invalid_mask' })
    }
    expect(edit(hostRow({ takesMask: true }), {}, mask({})).mask).toBeDefined()
  })
})

describe('an edit in JSON', () => {
  const dataUrl = (options: Parameters<typeof picturePart>[1] = {}) => {
    const { chunks, contentType } = picturePart('image', options)
    return `data:${contentType};base64,${Buffer.concat(chunks).toString('base64')}`
  }
  const parse = (body: object, model = gp2) =>
    endpoint.parse({ model: model.id, prompt: 'make it blue', ...body }, model)

  it('names its images by data: URL, https URL or file id', () => {
    const request = parse({
      images: [{ image_url: dataUrl() }, { image_url: 'https://pictures.example/a.png' }, { file_id: 'file-1' }],
      mask: { image_url: dataUrl() },
      size: '1024x1024',
    })

    expect(request).toMatchObject({ size: '1024x1024', images: [{}, {}, { file_id: 'file-1' }], mask: {} })
    expect(request.form).toBeUndefined()
  })

  it('gives the addresses that the vendor will fetch from, and no others', () => {
    const request = parse({
      images: [{ image_url: dataUrl() }, { image_url: 'HTTPS://pictures.example/a.png' }],
      mask: { image_url: ' https://10.0.0.1/m.png' },
    })

    expect(endpoint.callerUrls?.(request)).toEqual([
      { url: 'HTTPS://pictures.example/a.png', param: 'images[1].image_url' },
      { url: ' https://10.0.0.1/m.png', param: 'mask.image_url' },
    ])
  })

  it.each<[string, object, string, string]>([
    ['no pictures', {}, 'images', 'invalid_request'],
    ['an empty list', { images: [] }, 'images', 'invalid_request'],
    ['no list', { images: { image_url: 'https://a.example/a.png' } }, 'images', 'invalid_request'],
    ['a picture that names nothing', { images: [{}] }, 'images[0]', 'invalid_request'],
    [
      'a picture that names two',
      { images: [{ image_url: 'https://a.example', file_id: 'f' }] },
      'images[0]',
      'invalid_request',
    ],
    ['plain http', { images: [{ image_url: 'http://a.example/a.png' }] }, 'images[0].image_url', 'invalid_request'],
    ['another scheme', { images: [{ image_url: 'file:///etc/passwd' }] }, 'images[0].image_url', 'invalid_request'],
    [
      'a data: URL of text',
      { images: [{ image_url: 'data:image/png;base64,AAAA' }] },
      'images[0].image_url',
      'unsupported_image_format',
    ],
    [
      'a data: URL without base64',
      { images: [{ image_url: 'data:image/png,x' }] },
      'images[0].image_url',
      'unsupported_image_format',
    ],
    [
      'a mask of plain http',
      { images: [{ file_id: 'f' }], mask: { image_url: 'http://a.example' } },
      'mask.image_url',
      'invalid_request',
    ],
    [
      'a mask of text',
      { images: [{ file_id: 'f' }], mask: { image_url: 'data:image/png;base64,AAAA' } },
      'mask',
      'invalid_mask',
    ],
    [
      'a mask of another size',
      { images: [{ image_url: dataUrl() }], mask: { image_url: dataUrl({ width: 8 }) } },
      'mask',
      'invalid_mask',
    ],
    ['a number in quotes', { images: [{ file_id: 'f' }], n: '2' }, 'n', 'invalid_request'],
    ['2K', { images: [{ file_id: 'f' }], size: '2K' }, 'size', 'invalid_request'],
  ])('obeys the same rules: %s', (_, body, param, code) => {
    expect(refusal(() => parse(body))).toMatchObject({ status: 400, type: 'invalid_request_error', param, code })
  })

  it('finds the size of a JPEG behind a large profile', () => {
    const jpeg = Buffer.from(drawPicture({ width: 16, height: 16, format: 'jpeg', seed: 'a' }))
    const profile = Buffer.alloc(60_000)
    profile.set([0xff, 0xe2, (60_000 - 2) >> 8, (60_000 - 2) & 0xff])
    const large = Buffer.concat([jpeg.subarray(0, 2), profile, profile, jpeg.subarray(2)])
    const image_url = `data:image/jpeg;base64,${large.toString('base64')}`

    expect(() => parse({ images: [{ image_url }], mask: { image_url: dataUrl() } })).not.toThrow()
    expect(refusal(() => parse({ images: [{ image_url }], mask: { image_url: dataUrl({ width: 8 }) } }))).toMatchObject(
      {
        code: 'invalid_mask',
      },
    )
  })

  it('never takes a member of the body for a form', () => {
    const form = [{ kind: 'field', name: 'model', value: 'x' }]

    expect(parse({ images: [{ file_id: 'f' }], form }).form).toBeUndefined()
  })
})

describe('what an edit may cost', () => {
  const parts = [picturePart('image[]'), picturePart('image[]'), picturePart('mask')]

  it('counts given and generated images', () => {
    const request = edit(gp2, { n: 2, size: '1024x1024', quality: 'hd' }, parts)

    expect(endpoint.estimate(request, 10, gp2)).toEqual({
      images: 2,
      inputTokens: 10 + 3 * 7000,
      inputImageTokens: 3 * 7000,
      outputTokens: 2 * 4160,
      outputImageTokens: 2 * 4160,
    })
    expect(endpoint.textBytes?.(request)).toBe('make it blue'.length)
  })

  it('counts only images for de-2', () => {
    expect(endpoint.estimate(edit(de2, { n: 4 }), 10, de2)).toEqual({ images: 4 })
  })

  it.each<[CatalogModel, object, object]>([
    [gp2, {}, { size: 'auto', quality: 'auto' }],
    [gp1, { size: '1024x1536', quality: 'standard' }, { size: '1024x1536', quality: 'medium' }],
    [de2, {}, { size: '1024x1024', quality: 'standard' }],
    [de2, { size: 'auto', quality: 'hd' }, { size: '1024x1024', quality: 'standard' }],
    [de2, { size: '256x256' }, { size: '256x256', quality: 'standard' }],
  ])('depends on size and quality: $id with %o is billed as %o', (model, fields, billed) => {
    expect(endpoint.priceFields!(edit(model, fields), model)).toEqual(billed)
  })
})
