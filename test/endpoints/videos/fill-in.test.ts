import { describe, expect, it, test } from 'vitest'
import { type CatalogModel, defineModel } from '../../../src/catalog/model.ts'
import { videoProtocolOf } from '../../../src/endpoints/videos/video-protocols.ts'
import type { VideoRequest } from '../../../src/endpoints/videos/video-request.ts'
import { refusalOf, videoModel } from './support/video-model.ts'

/** The parameters that go to the vendor. */
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
    it(`to ${model} with ${JSON.stringify(fields)} say what is billed`, () => {
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
