import { describe, expect, it, test } from 'vitest'
import { type CatalogModel, defineModel } from '../../../src/catalog/model.ts'
import { videoEndpoint } from '../../../src/endpoints/videos/video-endpoint.ts'
import { videoProtocolOf } from '../../../src/endpoints/videos/video-protocols.ts'
import type { VideoRequest } from '../../../src/endpoints/videos/video-request.ts'
import { CLIP, GOOD_INPUT, PICTURE, parse, refusal, refusalOf, SOUND, videoModel } from './support/video-model.ts'

describe('the two protocols', () => {
  const misplaced: [model: string, fields: Record<string, unknown>, message: string][] = [
    ['wv2.7-i2v', { input: { img_url: PICTURE } }, 'input.img_url: wv2.7-i2v is a 2.7 model: use input.media'],
    [
      'wv2.7-r2v',
      { input: { prompt: 'x', reference_urls: [CLIP] } },
      'input.reference_urls: wv2.7-r2v is a 2.7 model: use input.media',
    ],
    [
      'wv2.7-i2v',
      { input: { ...GOOD_INPUT['wv2.7-i2v'], audio_url: SOUND } },
      'input.audio_url: wv2.7-i2v is a 2.7 model: use input.media with driving_audio',
    ],
    [
      'wv2.7-t2v',
      { parameters: { size: '1280*720' } },
      'parameters.size: wv2.7-t2v is a 2.7 model: use parameters.resolution and parameters.ratio',
    ],
    [
      'wv2.7-i2v',
      { parameters: { size: '1280*720' } },
      'parameters.size: wv2.7-i2v is a 2.7 model: use parameters.resolution',
    ],
    [
      'wv2.6-i2v',
      { input: GOOD_INPUT['wv2.7-i2v'] },
      'input.media: wv2.6-i2v is a 2.5 or 2.6 model: use input.img_url',
    ],
    [
      'wv2.6-r2v',
      { input: GOOD_INPUT['wv2.7-r2v'] },
      'input.media: wv2.6-r2v is a 2.5 or 2.6 model: use input.reference_urls',
    ],
    [
      'wv2.6-t2v',
      { parameters: { ratio: '9:16' } },
      'parameters.ratio: wv2.6-t2v is a 2.5 or 2.6 model: use parameters.size',
    ],
    [
      'wv2.6-t2v',
      { parameters: { resolution: '720P' } },
      'parameters.resolution: wv2.6-t2v is a 2.5 or 2.6 model: use parameters.size',
    ],
  ]
  for (const [model, fields, message] of misplaced) {
    it(`are not mixed: ${message}`, () => {
      expect(refusal(model, fields)).toEqual({
        code: 'invalid_request',
        param: message.slice(0, message.indexOf(':')),
        message,
      })
    })
  }

  test.each([
    ['wv2.6-t2v', {}, 'input.prompt'],
    ['wv2.6-t2v', { prompt: '' }, 'input.prompt'],
    ['wv2.5-i2v-preview', { prompt: 'x' }, 'input.img_url'],
    ['wv2.6-i2v', { img_url: null }, 'input.img_url'],
    ['wv2.6-r2v', { prompt: 'x' }, 'input.reference_urls'],
    ['wv2.6-r2v', { prompt: 'x', reference_urls: [] }, 'input.reference_urls'],
    ['wv2.6-r2v', { reference_urls: [CLIP] }, 'input.prompt'],
    ['wv2.7-t2v', {}, 'input.prompt'],
    ['wv2.7-i2v', { prompt: 'x' }, 'input.media'],
    ['wv2.7-i2v', { media: [] }, 'input.media'],
    ['wv2.7-i2v', { media: [{ url: PICTURE }] }, 'input.media[0].type'],
    ['wv2.7-i2v', { media: [{ type: 'first_frame' }] }, 'input.media[0].url'],
    ['wv2.7-r2v', { prompt: 'x' }, 'input.media'],
    ['wv2.7-r2v', { media: [{ type: 'reference_image', url: PICTURE }] }, 'input.prompt'],
  ])('require their fields: %s %j', (model, input, param) => {
    expect(refusal(model, { input })).toEqual({ code: 'invalid_request', param, message: `Field required: ${param}` })
  })

  it('accept a size for an image model of 2.6, as listed in the specification', () => {
    expect(parse('wv2.6-i2v', { parameters: { size: '1280*720' } }).parameters).toEqual({ size: '1280*720' })
  })

  it('take the older field for reference videos', () => {
    const input = { prompt: 'x', reference_video_urls: [CLIP] }

    expect(parse('wv2.6-r2v', { input }).input).toBe(input)
  })

  it('are not asked about where the catalog does not know them', () => {
    const model = defineModel({ id: 'own', kind: 'video', vendor: 'any' })
    const body = { model: 'own', duration: 20, input: { img_url: PICTURE, media: [] }, parameters: { size: 'large' } }

    expect(videoEndpoint.parse(body, model)).toMatchObject(body)
  })

  it('are distinguished, unlike the kinds, for a row without abilities', () => {
    const model = defineModel({ id: 'own', kind: 'video', vendor: 'any', protocol: 'wan-2-7' })

    expect(videoEndpoint.parse({ model: 'own', duration: 20, input: {} }, model).duration).toBe(20)
    expect(refusalOf(() => videoEndpoint.parse({ model: 'own', input: { img_url: PICTURE } }, model)).param).toBe(
      'input.img_url',
    )
  })
})

describe('media of 2.7', () => {
  const item = (type: string) => ({ type, url: type.includes('frame') ? PICTURE : CLIP })
  const i2v = (types: string[]) => () => parse('wv2.7-i2v', { input: { media: types.map(item) } })
  const r2v = (types: string[]) => () => parse('wv2.7-r2v', { input: { prompt: 'x', media: types.map(item) } })

  test.each([
    [['first_frame']],
    [['driving_audio', 'first_frame']],
    [['first_frame', 'last_frame']],
    [['first_frame', 'last_frame', 'driving_audio']],
    [['first_clip']],
    [['first_clip', 'last_frame']],
  ])('can be combined for an image: %j', (types) => {
    expect(i2v(types)).not.toThrow()
  })

  test.each([
    [['last_frame']],
    [['driving_audio']],
    [['first_frame', 'first_frame']],
    [['first_frame', 'first_clip']],
    [['first_clip', 'driving_audio']],
    [['reference_image']],
  ])('cannot be combined for an image: %j', (types) => {
    const refused = refusalOf(i2v(types))

    expect(refused.param).toBe('input.media')
    expect(refused.message).toContain(`${types.join(' + ')} cannot be combined`)
  })

  test.each([
    [['reference_image']],
    [['reference_video', 'reference_image', 'reference_image', 'reference_image', 'reference_image']],
    [['first_frame', 'reference_image']],
    [['reference_image', 'reference_audio']],
  ])('is taken for references: %j', (types) => {
    expect(r2v(types)).not.toThrow()
  })

  test.each([
    [['first_frame']],
    [Array.from({ length: 6 }, () => 'reference_image')],
    [['first_frame', 'first_frame', 'reference_image']],
  ])('is refused for references: %j', (types) => {
    expect(refusalOf(r2v(types)).param).toBe('input.media')
  })

  it('rejects more than five references of 2.6', () => {
    const input = { prompt: 'x', reference_urls: Array.from({ length: 6 }, () => PICTURE) }

    expect(refusal('wv2.6-r2v', { input }).param).toBe('input.reference_urls')
  })
})

/** Returns the parameters for the vendor. */
function filled(model: CatalogModel, fields: Partial<VideoRequest> = {}): Record<string, unknown> {
  const defaults = { model: model.id, duration: 5, resolution: '720p', aspect_ratio: '16:9', input: { prompt: 'x' } }
  return videoProtocolOf(model).fillIn({ ...defaults, ...fields }, model)
}

const rows: [model: string, fields: Partial<VideoRequest>, expected: Record<string, unknown>][] = [
  ['wv2.5-t2v-preview', { resolution: '480p' }, { size: '832*480', duration: 5 }],
  ['wv2.5-i2v-preview', { resolution: '480p', duration: 10 }, { resolution: '480P', duration: 10 }],
  ['wv2.6-t2v', {}, { size: '1280*720', duration: 5 }],
  ['wv2.6-t2v', { resolution: '1080p', aspect_ratio: '3:4' }, { size: '1248*1632', duration: 5 }],
  ['wv2.6-t2v', { parameters: { size: '720*1280' } }, { size: '720*1280', duration: 5 }],
  ['wv2.6-t2v', { parameters: { size: null, duration: null } }, { size: '1280*720', duration: 5 }],
  ['wv2.6-i2v', { aspect_ratio: '9:16' }, { resolution: '720P', duration: 5 }],
  ['wv2.6-i2v', { parameters: { size: '1280*720' } }, { size: '1280*720', resolution: '720P', duration: 5 }],
  ['wv2.6-r2v-flash', { aspect_ratio: '1:1' }, { size: '960*960', duration: 5 }],
  ['wv2.7-t2v', {}, { resolution: '720P', duration: 5 }],
  ['wv2.7-t2v', { aspect_ratio: '9:16' }, { resolution: '720P', ratio: '9:16', duration: 5 }],
  ['wv2.7-t2v', { parameters: { ratio: '16:9' } }, { resolution: '720P', ratio: '16:9', duration: 5 }],
  ['wv2.7-i2v', { aspect_ratio: '9:16', resolution: '1080p' }, { resolution: '1080P', duration: 5 }],
  ['wv2.7-r2v', { aspect_ratio: '4:3' }, { resolution: '720P', ratio: '4:3', duration: 5 }],
]

describe('parameters for the vendor', () => {
  for (const [model, fields, expected] of rows) {
    it(`contain the billed fields for ${model} with ${JSON.stringify(fields)}`, () => {
      expect(filled(videoModel(model), fields)).toEqual(expected)
    })
  }

  it('keep what the caller wrote, in its place, and are a new object', () => {
    const parameters = { watermark: false, duration: 5, own: { deep: [1] }, prompt_extend: false }

    const result = filled(videoModel('wv2.6-t2v'), { parameters })

    expect(JSON.stringify(result)).toBe(
      '{"watermark":false,"duration":5,"own":{"deep":[1]},"prompt_extend":false,"size":"1280*720"}',
    )
    expect(parameters).not.toHaveProperty('size')
  })

  it('are not made for a ratio that the tier has no size of', () => {
    const refused = refusalOf(() => filled(videoModel('wv2.6-t2v'), { aspect_ratio: '21:9' }))

    expect(refused.message).toBe('aspect_ratio: must be one of 16:9, 9:16, 1:1, 4:3, 3:4 at 720p')
  })

  const own = (protocol: string) => defineModel({ id: 'own', kind: 'video', vendor: 'any', protocol })
  const picture = { img_url: 'https://cdn.example.net/a.png' }
  const frame = { media: [{ type: 'first_frame', url: 'https://cdn.example.net/a.png' }] }
  test.each([
    ['wan-2-6', {}, { size: '1280*720', duration: 5 }],
    ['wan-2-6', { input: picture }, { resolution: '720P', duration: 5 }],
    ['wan-2-6', { parameters: { resolution: '720P' } }, { resolution: '720P', duration: 5 }],
    ['wan-2-7', { aspect_ratio: '1:1' }, { resolution: '720P', ratio: '1:1', duration: 5 }],
    ['wan-2-7', { aspect_ratio: '1:1', input: frame }, { resolution: '720P', duration: 5 }],
  ])('follow the body for a row of %s without abilities: %j', (protocol, fields, expected) => {
    expect(filled(own(protocol), fields)).toEqual(expected)
  })

  test.each(['wan-9', 'constructor', ''])('need a protocol that is known: %j', (protocol) => {
    expect(refusalOf(() => filled(own(protocol)))).toMatchObject({ code: 'model_not_configured', param: 'model' })
  })
})
