import { describe, expect, it, test } from 'vitest'
import { videoEndpoint } from '../../../src/endpoints/videos/video-endpoint.ts'
import { CLIP, PICTURE, parse, refusal, SOUND } from './support/parsed-video.ts'

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
      { url: 'https://example.net/hook', param: 'webhook_url' },
    ])
  })

  it('lists those of 2.6 too', () => {
    const r2v = parse('wv2.6-r2v', { input: { prompt: 'x', reference_urls: [CLIP, PICTURE] } })

    expect(videoEndpoint.callerUrls?.(parse('wv2.6-i2v'))).toEqual([
      { url: PICTURE, param: 'input.img_url' },
      { url: SOUND, param: 'input.audio_url' },
    ])
    expect(videoEndpoint.callerUrls?.(r2v).map(({ param }) => param)).toEqual([
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
  ])('that are none are refused: %s %j', (model, input, param) => {
    expect(refusal(model, { input })).toMatchObject({ code: 'invalid_request', param })
  })

  it('take inline pictures and uploaded files where the vendor does', () => {
    expect(() => parse('wv2.6-i2v', { input: { img_url: inline } })).not.toThrow()
    expect(() => parse('wv2.6-i2v', { input: { img_url: 'oss://bucket/own.png' } })).not.toThrow()
    expect(() => parse('wv2.7-i2v', { input: { media: [{ type: 'first_frame', url: inline }] } })).not.toThrow()
  })
})
