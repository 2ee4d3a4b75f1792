import { describe, expect, it, test } from 'vitest'
import { defineModel } from '../../../src/catalog/model.ts'
import { videoEndpoint } from '../../../src/endpoints/videos/video-endpoint.ts'
import { CLIP, GOOD_INPUT, PICTURE, parse, refusal, refusalOf, SOUND, videoModel } from './support/video-model.ts'

describe('a video request', () => {
  for (const model of Object.keys(GOOD_INPUT)) {
    it(`gets the defaults of the specification for ${model} and keeps its input`, () => {
      const body = { model, input: GOOD_INPUT[model] }

      const request = videoEndpoint.parse(body, videoModel(model))

      expect(request).toEqual({ ...body, duration: 5, resolution: '720p', aspect_ratio: '16:9' })
      expect(request.input).toBe(body.input)
      expect(body).toEqual({ model, input: GOOD_INPUT[model] })
    })
  }

  it('takes null for an absent field, and leaves unknown fields in', () => {
    const nulls = { duration: null, resolution: null, aspect_ratio: null, parameters: null, webhook_url: null }

    expect(parse('wv2.7-t2v', { ...nulls, user: 'u1' })).toEqual({
      model: 'wv2.7-t2v',
      input: GOOD_INPUT['wv2.7-t2v'],
      duration: 5,
      resolution: '720p',
      aspect_ratio: '16:9',
      user: 'u1',
    })
  })

  it('gets the first tier that the model renders when that is not 720p', () => {
    const model = defineModel({
      id: 'own',
      kind: 'video',
      vendor: 'any',
      video: { task: 't2v', resolutions: ['1080p'], durations: [5], geometry: 'size' },
    })

    expect(videoEndpoint.parse({ model: 'own', input: {} }, model).resolution).toBe('1080p')
  })

  const ratios: [expected: string, model: string, fields: Record<string, unknown>][] = [
    ['9:16', 'wv2.7-t2v', { parameters: { ratio: '9:16' } }],
    ['3:4', 'wv2.6-t2v', { parameters: { size: '832*1088' } }],
    ['1:1', 'wv2.6-t2v', { aspect_ratio: '1:1', parameters: { size: '960x960' } }],
    ['4:3', 'wv2.7-r2v', { aspect_ratio: '4:3' }],
  ]
  for (const [expected, model, fields] of ratios) {
    it(`is billed for ${model} with ${JSON.stringify(fields)} as ${expected}`, () => {
      const request = parse(model, fields)

      expect(request.aspect_ratio).toBe(expected)
      expect(request.parameters).toEqual(fields['parameters'])
    })
  }

  test.each([
    ['duration', { duration: '8' }],
    ['duration', { duration: 5.5 }],
    ['duration', { duration: -5 }],
    ['duration', { duration: 0 }],
    ['duration', { duration: 1e9 }],
    ['duration', { duration: 16 }],
    ['duration', { duration: 1 }],
    ['resolution', { resolution: 720 }],
    ['resolution', { resolution: '480p' }],
    ['resolution', { resolution: '720P' }],
    ['aspect_ratio', { aspect_ratio: 1.5 }],
    ['aspect_ratio', { aspect_ratio: '21:9' }],
    ['input', { input: 'A paper boat' }],
    ['input', { input: [] }],
    ['input', { input: undefined }],
    ['parameters', { parameters: [] }],
    ['webhook_url', { webhook_url: 'ftp://example.net/hook' }],
    ['webhook_url', { webhook_url: '/hook' }],
    ['parameters.duration', { parameters: { duration: '5' } }],
    ['parameters.resolution', { model: 'wv2.6-i2v', parameters: { resolution: 720 } }],
    ['parameters.size', { parameters: { size: '1000*1000' } }],
  ])('a bad %s is refused before money is held: %j', (param, fields) => {
    const model = 'model' in fields ? fields.model : 'wv2.6-t2v'

    expect(refusal(model, fields)).toMatchObject({ code: 'invalid_request', param })
  })

  test.each([undefined, null, 'text', [], {}, { model: 'wv2.6-t2v' }, { model: '', input: {} }])(
    'is not %j',
    (body) => {
      expect(refusalOf(() => videoEndpoint.parse(body, videoModel('wv2.6-t2v'))).code).toBe('invalid_request')
    },
  )

  test.each([
    ['wv2.5-t2v-preview', 6, '5 or 10 seconds'],
    ['wv2.6-r2v', 11, '2 to 10 seconds'],
    ['wv2.7-i2v', 16, '2 to 15 seconds'],
  ])('%s does not render %i seconds', (model, duration, offered) => {
    expect(refusal(model, { duration }).message).toBe(`duration: ${model} renders ${offered}`)
  })

  it('is shorter with a reference video', () => {
    const media = [{ type: 'reference_video', url: CLIP }]
    const input = { prompt: 'Video 1 waves', media }

    expect(parse('wv2.7-r2v', { duration: 15 }).duration).toBe(15)
    expect(refusal('wv2.7-r2v', { input, duration: 11 }).param).toBe('duration')
    expect(parse('wv2.7-r2v', { input, duration: 10 }).duration).toBe(10)
  })

  it('may ask for 480p of the models of 2.5 alone', () => {
    expect(parse('wv2.5-i2v-preview', { resolution: '480p' }).resolution).toBe('480p')
    expect(refusal('wv2.7-t2v', { resolution: '480p' }).message).toBe('resolution: wv2.7-t2v renders 720p or 1080p')
    expect(refusal('wv2.5-t2v-preview', { resolution: '480p', aspect_ratio: '4:3' })).toEqual({
      code: 'invalid_request',
      param: 'aspect_ratio',
      message: 'aspect_ratio: must be one of 16:9, 9:16, 1:1 at 480p',
    })
  })

  it('may write its size with blanks, and any number of them is read in a moment', () => {
    const blanks = ' '.repeat(150_000)

    expect(parse('wv2.6-t2v', { resolution: '1080p', parameters: { size: ` 1920 x${blanks}1080 ` } }).resolution).toBe(
      '1080p',
    )
    expect(refusal('wv2.6-t2v', { parameters: { size: `1920${blanks}1080` } }).param).toBe('parameters.size')
  })

  it('finds no protocol for a model named like a member of every object', () => {
    const model = defineModel({ id: 'constructor', kind: 'video', vendor: 'any', protocol: 'constructor' })

    expect(videoEndpoint.parse({ model: 'constructor', input: {} }, model).resolution).toBe('720p')
  })
})

describe('what is billed and what is rendered', () => {
  const rows: [model: string, fields: Record<string, unknown>, param: string, other: string][] = [
    ['wv2.6-t2v', { duration: 4, parameters: { duration: 10 } }, 'parameters.duration', 'duration: 4'],
    ['wv2.6-t2v', { parameters: { duration: 10 } }, 'parameters.duration', 'duration: 5 (the default)'],
    [
      'wv2.7-t2v',
      { resolution: '720p', parameters: { resolution: '1080P' } },
      'parameters.resolution',
      'resolution: 720p',
    ],
    ['wv2.6-i2v', { parameters: { resolution: '1080P' } }, 'parameters.resolution', 'resolution: 720p (the default)'],
    ['wv2.6-t2v', { parameters: { size: '1920*1080' } }, 'parameters.size', 'resolution: 720p'],
    ['wv2.6-r2v', { aspect_ratio: '16:9', parameters: { size: '720*1280' } }, 'parameters.size', 'aspect_ratio: 16:9'],
    ['wv2.7-t2v', { aspect_ratio: '16:9', parameters: { ratio: '9:16' } }, 'parameters.ratio', 'aspect_ratio: 16:9'],
    ['wv2.6-i2v', { parameters: { size: '1920*1080' } }, 'parameters.size', 'resolution: 720p'],
  ]
  for (const [model, fields, param, other] of rows) {
    it(`must agree: ${model} ${JSON.stringify(fields)}`, () => {
      const refused = refusal(model, fields)

      expect(refused).toMatchObject({ code: 'invalid_request', param })
      expect(refused.message).toContain(`does not agree with ${other}`)
    })
  }

  it('may be written in both places', () => {
    const fields = { duration: 6, resolution: '1080p', aspect_ratio: '9:16' }

    expect(parse('wv2.6-t2v', { ...fields, parameters: { size: '1080*1920', duration: 6 } })).toMatchObject(fields)
    expect(
      parse('wv2.7-t2v', { ...fields, parameters: { resolution: '1080P', ratio: '9:16', duration: 6 } }),
    ).toMatchObject(fields)
  })

  it('are seconds, tier and ratio, and silence where the model can be silent', () => {
    const silent = { parameters: { audio: false } }

    expect(videoEndpoint.estimate(parse('wv2.6-t2v', { duration: 7 }), 0, videoModel('wv2.6-t2v'))).toEqual({
      videoSeconds: 7,
    })
    expect(videoEndpoint.priceFields!(parse('wv2.6-i2v-flash', silent), videoModel('wv2.6-i2v-flash'))).toEqual({
      resolution: '720p',
      aspect_ratio: '16:9',
      audio: 'false',
    })
    expect(videoEndpoint.priceFields!(parse('wv2.6-i2v', silent), videoModel('wv2.6-i2v'))).toEqual({
      resolution: '720p',
      aspect_ratio: '16:9',
    })
  })

  it('counts text alone against limits of tokens', () => {
    const input = { prompt: 'Straße', negative_prompt: 'text', img_url: `data:image/png;base64,${'A'.repeat(4000)}` }

    expect(videoEndpoint.textBytes?.(parse('wv2.6-i2v', { input }))).toBe(11)
  })
})

describe('addresses', () => {
  const inline = 'data:image/png;base64,iVBORw0KGgo='

  it('lists every address that somebody fetches from, with its place', () => {
    const input = {
      prompt: 'x',
      media: [
        { type: 'reference_image', url: inline, reference_voice: SOUND },
        { type: 'reference_video', url: CLIP },
        { type: 'reference_image', url: 'oss://bucket/own.png' },
      ],
    }

    const request = parse('wv2.7-r2v', { input, webhook_url: 'https://example.net/hook' })

    expect(videoEndpoint.callerUrls?.(request)).toEqual([
      { url: SOUND, param: 'input.media[0].reference_voice' },
      { url: CLIP, param: 'input.media[1].url' },
      { url: 'https://example.net/hook', param: 'webhook_url', isCalledHere: true },
    ])
  })

  it('lists those of 2.6 too', () => {
    const r2v = parse('wv2.6-r2v', { input: { prompt: 'x', reference_urls: [CLIP, PICTURE] } })

    expect(videoEndpoint.callerUrls?.(parse('wv2.6-i2v'))).toEqual([
      { url: PICTURE, param: 'input.img_url' },
      { url: SOUND, param: 'input.audio_url' },
    ])
    expect(videoEndpoint.callerUrls?.(r2v)?.map(({ param }) => param)).toEqual([
      'input.reference_urls[0]',
      'input.reference_urls[1]',
    ])
  })

  test.each([
    ['wv2.6-i2v', { img_url: 'file:///etc/passwd' }, 'input.img_url'],
    ['wv2.6-i2v', { img_url: 'iVBORw0KGgo=' }, 'input.img_url'],
    ['wv2.6-i2v', { img_url: 'https://' }, 'input.img_url'],
    ['wv2.6-i2v', { img_url: [PICTURE] }, 'input.img_url'],
    ['wv2.6-i2v', { img_url: 'data:text/html;base64,PGI+' }, 'input.img_url'],
    ['wv2.6-i2v', { img_url: PICTURE, audio_url: inline }, 'input.audio_url'],
    ['wv2.6-r2v', { prompt: 'x', reference_urls: PICTURE }, 'input.reference_urls'],
    ['wv2.6-r2v', { prompt: 'x', reference_urls: [PICTURE, null] }, 'input.reference_urls[1]'],
    ['wv2.6-r2v', { prompt: 'x', reference_urls: [inline] }, 'input.reference_urls[0]'],
    ['wv2.7-i2v', { media: { type: 'first_frame', url: PICTURE } }, 'input.media'],
    ['wv2.7-i2v', { media: [PICTURE] }, 'input.media[0]'],
    ['wv2.7-i2v', { media: [{ type: 'first_clip', url: inline }] }, 'input.media[0].url'],
    ['wv2.7-i2v', { media: [{ type: 'first_frame', url: 'javascript:alert(1)' }] }, 'input.media[0].url'],
  ])('are rejected if they are invalid: %s %j', (model, input, param) => {
    expect(refusal(model, { input })).toMatchObject({ code: 'invalid_request', param })
  })

  it('may be inline images and uploaded files if the vendor accepts them', () => {
    expect(() => parse('wv2.6-i2v', { input: { img_url: inline } })).not.toThrow()
    expect(() => parse('wv2.6-i2v', { input: { img_url: 'oss://bucket/own.png' } })).not.toThrow()
    expect(() => parse('wv2.7-i2v', { input: { media: [{ type: 'first_frame', url: inline }] } })).not.toThrow()
  })
})
