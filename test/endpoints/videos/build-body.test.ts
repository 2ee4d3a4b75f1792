import { describe, expect, it, test } from 'vitest'
import { videoEndpoint } from '../../../src/endpoints/videos/video-endpoint.ts'
import type { VideoIntent } from '../../../src/endpoints/videos/video-protocol.ts'
import { buildBody } from '../../../src/endpoints/videos/video-protocols.ts'
import { refusalOf, videoModel } from './support/video-model.ts'

const PICTURE = 'https://cdn.example.net/first.png'
const CLIP = 'https://cdn.example.net/clip.mp4'
const SOUND = 'https://cdn.example.net/voice.mp3'
const BASE: VideoIntent = { prompt: 'A paper boat', resolution: '720p', seconds: 6 }

const built: [model: string, intent: Partial<VideoIntent>, parts: object][] = [
  [
    'wv2.6-t2v',
    { negativePrompt: 'text', aspectRatio: '9:16', seed: 7, shotType: 'multi', promptExtend: true, audio: SOUND },
    {
      aspect_ratio: '9:16',
      input: { prompt: 'A paper boat', negative_prompt: 'text', audio_url: SOUND },
      parameters: {
        size: '720*1280',
        duration: 6,
        shot_type: 'multi',
        prompt_extend: true,
        watermark: false,
        seed: 7,
      },
    },
  ],
  [
    'wv2.6-i2v-flash',
    { firstFrame: PICTURE, mute: true, watermark: true },
    {
      input: { prompt: 'A paper boat', img_url: PICTURE },
      parameters: { resolution: '720P', duration: 6, audio: false, watermark: true },
    },
  ],
  [
    'wv2.6-r2v',
    {
      prompt: 'Image 1 waves at Video 1',
      references: [
        { kind: 'video', url: CLIP },
        { kind: 'image', url: PICTURE },
      ],
    },
    {
      input: { prompt: 'character2 waves at character1', reference_urls: [CLIP, PICTURE] },
      parameters: { size: '1280*720', duration: 6, watermark: false },
    },
  ],
  [
    'wv2.7-t2v',
    { audio: SOUND, aspectRatio: '1:1', shotType: 'single' },
    {
      aspect_ratio: '1:1',
      input: { prompt: 'A paper boat', audio_url: SOUND },
      parameters: { resolution: '720P', ratio: '1:1', duration: 6, watermark: false },
    },
  ],
  [
    'wv2.7-i2v',
    { firstFrame: PICTURE, lastFrame: PICTURE, audio: SOUND },
    {
      input: {
        prompt: 'A paper boat',
        media: [
          { type: 'first_frame', url: PICTURE },
          { type: 'last_frame', url: PICTURE },
          { type: 'driving_audio', url: SOUND },
        ],
      },
      parameters: { resolution: '720P', duration: 6, watermark: false },
    },
  ],
  [
    'wv2.7-r2v',
    { firstFrame: PICTURE, references: [{ kind: 'image', url: PICTURE, voice: SOUND }] },
    {
      input: {
        prompt: 'A paper boat',
        media: [
          { type: 'first_frame', url: PICTURE },
          { type: 'reference_image', url: PICTURE, reference_voice: SOUND },
        ],
      },
      parameters: { resolution: '720P', duration: 6, watermark: false },
    },
  ],
]

describe('an intent', () => {
  for (const [id, intent, parts] of built) {
    it(`is written for ${id}, and passes the endpoint unchanged`, () => {
      const model = videoModel(id)

      const body = buildBody({ ...BASE, ...intent }, model)

      expect(body).toEqual({ model: id, duration: 6, resolution: '720p', aspect_ratio: '16:9', ...parts })
      expect(videoEndpoint.parse(body, model)).toEqual(body)
    })
  }

  const impossible: [model: string, intent: Partial<VideoIntent>, field: string][] = [
    ['wv2.6-t2v', { resolution: '480p' }, 'resolution'],
    ['wv2.6-t2v', { seconds: 16 }, 'seconds'],
    ['wv2.7-r2v', { seconds: 11, references: [{ kind: 'video', url: CLIP }] }, 'seconds'],
    ['wv2.6-t2v', { prompt: '舟'.repeat(1501) }, 'prompt'],
    ['wv2.6-t2v', { aspectRatio: '21:9' }, 'aspectRatio'],
    ['wv2.7-t2v', { aspectRatio: '21:9' }, 'aspectRatio'],
    ['wv2.6-t2v', { firstFrame: PICTURE }, 'firstFrame'],
    ['wv2.7-t2v', { firstFrame: PICTURE }, 'firstFrame'],
    ['wv2.6-i2v', { firstFrame: PICTURE, lastFrame: PICTURE }, 'lastFrame'],
    ['wv2.6-i2v', { firstClip: CLIP }, 'firstClip'],
    ['wv2.7-i2v', { firstClip: CLIP, firstFrame: PICTURE }, 'firstFrame'],
    ['wv2.7-i2v', { firstClip: CLIP, audio: SOUND }, 'audio'],
    ['wv2.7-i2v', { references: [{ kind: 'image', url: PICTURE }] }, 'references'],
    [
      'wv2.6-r2v',
      { references: Array.from({ length: 4 }, () => ({ kind: 'video' as const, url: CLIP })) },
      'references',
    ],
    ['wv2.6-r2v', { references: [{ kind: 'image', url: PICTURE, voice: SOUND }] }, 'references[0].voice'],
    ['wv2.7-r2v', { references: [{ kind: 'image', url: PICTURE }], audio: SOUND }, 'audio'],
    ['wv2.6-r2v', { references: [{ kind: 'image', url: PICTURE }], audio: SOUND }, 'audio'],
    ['wv2.6-i2v', { firstFrame: PICTURE, mute: true }, 'mute'],
    ['wv2.7-t2v', { mute: true }, 'mute'],
    ['wv2.7-t2v', { shotType: 'multi' }, 'shotType'],
    ['wv2.5-t2v-preview', { seconds: 5, shotType: 'multi' }, 'shotType'],
  ]
  test.each(impossible)('is rejected with the field that %s does not support: %j', (id, intent, param) => {
    expect(refusalOf(() => buildBody({ ...BASE, ...intent }, videoModel(id)))).toMatchObject({
      code: 'unsupported_parameter',
      param,
    })
  })
})
