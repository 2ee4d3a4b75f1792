import { describe, expect, it } from 'vitest'
import { ImageEditForm } from '../../../src/endpoints/image-edits/image-edit-request.ts'
import { refusal } from '../images/openai-image-facts.ts'
import { fieldPart, filePart, picturePart } from './edit-parts.ts'

describe('the form of an edit', () => {
  it('accepts images under every name that clients use, in order', () => {
    const names = ['image', 'image[]', 'image[]', 'image[0]', 'image[12]']

    const { images } = new ImageEditForm(names.map((name) => picturePart(name)))

    expect(images.map((image) => image.name)).toEqual(names)
  })

  it('reads numbers and booleans', () => {
    const form = new ImageEditForm([
      fieldPart('model', 'gp-image-2'),
      fieldPart('n', '2'),
      fieldPart('partial_images', '0'),
      fieldPart('output_compression', '-1'),
      fieldPart('stream', 'true'),
      fieldPart('user', '42'),
    ])

    expect(form.model).toBe('gp-image-2')
    expect(form.fields).toEqual({
      model: 'gp-image-2',
      n: 2,
      partial_images: 0,
      output_compression: -1,
      stream: true,
      user: '42',
    })
  })

  it('keeps the form itself, with what nobody here knows', () => {
    const parts = [
      fieldPart('input_fidelity', 'high'),
      picturePart('markup'),
      fieldPart('tag', 'a'),
      fieldPart('tag', 'b'),
    ]

    const form = new ImageEditForm(parts)

    expect(form.form).toBe(parts)
    expect(form.fields).toEqual({})
    expect(form.images).toEqual([])
  })

  it.each([
    ['n', '1.5', 'n: must be a whole number'],
    ['n', '', 'n: must be a whole number'],
    ['output_compression', '1e1', 'output_compression: must be a whole number'],
    ['stream', 'True', 'stream: must be true or false'],
  ])('tells that %s cannot be %j', (name, value, message) => {
    expect(refusal(() => new ImageEditForm([fieldPart(name, value)]))).toMatchObject({ status: 400, message })
  })

  it('takes no notice of empty inputs of files, as browsers send them, and does not keep them', () => {
    const nothing = (name: string) => ({ ...filePart(name, new Uint8Array(0)), filename: '' })
    const parts = [nothing('image[]'), picturePart('image[]'), nothing('mask'), nothing('markup')]

    const { images, mask, form } = new ImageEditForm(parts)

    expect(images).toEqual([parts[1]])
    expect(mask).toBeUndefined()
    expect(form).toEqual([parts[1], parts[3]])
  })

  it('is not touched by parts called after what every object has', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']

    const form = new ImageEditForm([
      ...names.map((name) => fieldPart(name, 'x')),
      picturePart('__proto__'),
      fieldPart('n', '3'),
    ])

    expect(Object.getPrototypeOf(form.fields)).toBe(Object.prototype)
    expect(Object.keys(form.fields)).toEqual(['n'])
    expect(form.model).toBeUndefined()
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })

  it.each([
    ['a file where text belongs', [picturePart('prompt')], 'prompt'],
    ['a file for the model', [picturePart('model')], 'model'],
    ['text where a picture belongs', [fieldPart('image', 'https://a.example/a.png')], 'image'],
    ['text in the list of pictures', [picturePart('image[]'), fieldPart('image[]', 'x')], 'image'],
    ['text for a mask', [fieldPart('mask', 'x')], 'mask'],
    ['two masks', [picturePart('mask'), picturePart('mask')], 'mask'],
    ['two models', [fieldPart('model', 'gp-image-2'), fieldPart('model', 'de-2')], 'model'],
    ['two counts, of which the vendor might take the other', [fieldPart('n', '1'), fieldPart('n', '10')], 'n'],
  ])('is refused for %s, naming it', (_, parts, param) => {
    expect(refusal(() => new ImageEditForm(parts))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      code: 'invalid_request',
      param,
    })
  })
})
