import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import type { CatalogModel } from '../../src/catalog/model.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { imageEditEndpoint } from '../../src/endpoints/image-edits/image-edit-endpoint.ts'
import { interactionImageEndpoint } from '../../src/endpoints/images/images-endpoint.ts'
import { videoEndpoint } from '../../src/endpoints/videos/video-endpoint.ts'
import type { Form } from '../../src/wire/write-form.ts'
import { fieldPart, picturePart } from './image-edits/edit-parts.ts'

const catalog = createCatalog(BUILT_IN_MODELS)
const modelOf = (id: string): CatalogModel => catalog.find(id)!

/** A valid edit. */
const edit = (): Form => [fieldPart('model', 'gp-image-2'), fieldPart('prompt', 'more light'), picturePart('image')]

describe('a field of a form that stands for a known one under another spelling is refused, and not passed on unread', () => {
  test.each([
    ['n[]', '10', 'n'],
    ['n[0]', '10', 'n'],
    ['N', '10', 'n'],
    [' n', '10', 'n'],
    ['size[]', '1536x1024', 'size'],
    ['quality[0]', 'high', 'quality'],
    ['Model', 'gp-image-2', 'model'],
    ['stream[]', 'true', 'stream'],
  ])('%j', (name, value, known) => {
    const form: Form = [...edit(), fieldPart(name, value)]

    expect(() => imageEditEndpoint.parse(imageEditEndpoint.formBody?.(form), modelOf('gp-image-2'))).toThrow(
      expect.objectContaining({
        status: 400,
        param: name,
        message: expect.stringContaining(`must be written ${known}`),
      }),
    )
  })

  test.each(['mask[]', 'Mask', 'image[0][0]', 'Image', 'IMAGE[]'])('a file called %j', (name) => {
    const form: Form = [...edit(), picturePart(name)]

    expect(() => imageEditEndpoint.parse(imageEditEndpoint.formBody?.(form), modelOf('gp-image-2'))).toThrow(
      expect.objectContaining({ status: 400, param: name }),
    )
  })

  test.each(['input_fidelity', 'moderation', 'x-n', 'note[]', 'constructor', 'images_note'])('%j passes', (name) => {
    const form: Form = [...edit(), fieldPart(name, 'low')]

    expect(imageEditEndpoint.parse(imageEditEndpoint.formBody?.(form), modelOf('gp-image-2')).form).toHaveLength(
      edit().length + 1,
    )
  })
})

describe('an interaction generates one image', () => {
  const parse = (config: object) => {
    const model = modelOf('gmn-3.1-flash-image-preview')
    return interactionImageEndpoint.parse({ model: model.id, input: 'a boat', generation_config: config }, model)
  }

  test.each([['candidate_count'], ['candidateCount']])('%s asks for more than is held for', (name) => {
    expect(() => parse({ [name]: 4 })).toThrow(expect.objectContaining({ status: 400 }))
  })

  test('asking for one is asking for nothing', () => {
    expect(parse({ candidate_count: 1 }).generation_config).toEqual({ candidate_count: 1 })
  })
})

describe('a video is billed as silent only when it is', () => {
  const id = BUILT_IN_MODELS.map((row) => row.id).find((one) => modelOf(one).video?.canMute === true)!
  const model = modelOf(id)
  const input =
    model.video?.task === 'i2v'
      ? { prompt: 'x', img_url: 'https://example.com/a.png' }
      : { prompt: 'x', reference_urls: ['https://example.com/a.png'] }
  const fields = (more: object) =>
    videoEndpoint.priceFields!(
      videoEndpoint.parse({ model: id, input: { ...input, ...more }, parameters: { audio: false } }, model),
      model,
    )

  test('without sound of the caller', () => {
    expect(fields({})).toMatchObject({ audio: 'false' })
    expect(fields({ audio_url: null })).toMatchObject({ audio: 'false' })
  })

  test('a sound that is sent along is heard', () => {
    expect(fields({ audio_url: 'https://example.com/a.mp3' })).not.toHaveProperty('audio')
  })
})
