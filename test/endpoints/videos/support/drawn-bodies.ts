import fc from 'fast-check'
import { sizeFor } from '../../../../src/endpoints/videos/video-protocol.ts'
import type { VideoRequest } from '../../../../src/endpoints/videos/video-request.ts'
import { videoModel } from './video-model.ts'

/** A model of each kind in the layout of 2.6. */
export const OLD = { t2v: videoModel('wv2.6-t2v'), i2v: videoModel('wv2.6-i2v'), r2v: videoModel('wv2.6-r2v') }
/** A model of each kind in the layout of 2.7. */
export const NEW = { t2v: videoModel('wv2.7-t2v'), i2v: videoModel('wv2.7-i2v'), r2v: videoModel('wv2.7-r2v') }
export const TASKS = ['t2v', 'i2v', 'r2v'] as const

const pick = <Value>(...values: Value[]) => fc.constantFrom(...values)
const imageUrl = fc.nat(99).map((index) => `https://cdn.example.net/p${index}.png`)
const videoUrl = fc.nat(99).map((index) => `https://cdn.example.net/v${index}.mp4`)
const soundUrl = fc.nat(99).map((index) => `oss://bucket/s${index}.mp3`)
const prompt = (...names: string[]) =>
  fc.array(pick('boat', '舟', 'x', ...names), { minLength: 1 }).map((words) => words.join(' '))
const oldNames = ['character1', 'character2', 'Character9']
const newNames = ['Image 1', 'image2', 'Video 1', '图1', '视频2']
const anyPrompt = prompt(...oldNames, ...newNames)
const geometry = fc.record({
  duration: fc.integer({ min: 2, max: 10 }),
  resolution: pick('720p', '1080p'),
  aspect_ratio: pick('16:9', '9:16', '1:1', '4:3', '3:4'),
})
const settings = fc.record(
  { prompt_extend: fc.boolean(), watermark: fc.boolean(), seed: fc.nat() },
  { requiredKeys: [] },
)

/** Random bodies with the kind of their model. */
export type Drawn = fc.Arbitrary<{ task: (typeof TASKS)[number]; request: VideoRequest }>

function oldBodies(texts: fc.Arbitrary<string>, extra: fc.Arbitrary<Record<string, unknown>>): Drawn {
  return fc
    .record({
      task: pick(...TASKS),
      geometry,
      settings,
      extra,
      text: fc.record({ prompt: texts, negative_prompt: fc.string() }, { requiredKeys: ['prompt'] }),
      picture: imageUrl,
      references: fc.array(fc.oneof(imageUrl, videoUrl), { minLength: 1, maxLength: 3 }),
      sound: fc.option(soundUrl, { nil: undefined }),
      writesGeometry: fc.boolean(),
    })
    .map((drawn) => {
      const { task } = drawn
      const { resolution, aspect_ratio } = drawn.geometry
      const sound = drawn.sound === undefined || task === 'r2v' ? {} : { audio_url: drawn.sound }
      const media = { t2v: {}, i2v: { img_url: drawn.picture }, r2v: { reference_urls: drawn.references } }[task]
      const tier =
        task === 'i2v' ? { resolution: resolution.toUpperCase() } : { size: sizeFor(resolution, aspect_ratio) }
      return {
        task,
        request: {
          model: OLD[task].id,
          ...drawn.geometry,
          input: { ...drawn.text, ...media, ...sound },
          parameters: { ...drawn.settings, ...drawn.extra, ...(drawn.writesGeometry ? tier : {}) },
        },
      }
    })
}

interface NewMedia {
  readonly texts: fc.Arbitrary<string>
  readonly extra: fc.Arbitrary<Record<string, unknown>>
  /** Types of media for an image-to-video model. */
  readonly pictures: fc.Arbitrary<string[]>
  readonly references: fc.Arbitrary<{ type: string; reference_voice?: string }[]>
  /** Whether there is a first frame in addition to references. */
  readonly hasFrame: fc.Arbitrary<boolean>
}

/** Returns bodies of 2.7. */
function newBodies({ texts, ...parts }: NewMedia): Drawn {
  return fc
    .record({
      ...parts,
      task: pick(...TASKS),
      geometry,
      settings,
      text: fc.record({ prompt: texts, negative_prompt: fc.string() }, { requiredKeys: ['prompt'] }),
      sound: fc.option(soundUrl, { nil: undefined }),
    })
    .map((drawn) => {
      const { task } = drawn
      const frames = drawn.hasFrame ? [{ type: 'first_frame', url: mediaUrl('first_frame', 9) }] : []
      const references = drawn.references.map((item, index) => ({ ...item, url: mediaUrl(item.type, index) }))
      const media = {
        t2v: {},
        i2v: { media: drawn.pictures.map((type, index) => ({ type, url: mediaUrl(type, index) })) },
        r2v: { media: [...frames, ...references] },
      }[task]
      const sound = drawn.sound === undefined || task !== 't2v' ? {} : { audio_url: drawn.sound }
      return {
        task,
        request: {
          model: NEW[task].id,
          ...drawn.geometry,
          input: { ...drawn.text, ...media, ...sound },
          parameters: { ...drawn.settings, ...drawn.extra },
        },
      }
    })
}

function mediaUrl(type: string, index: number): string {
  const extension = /video|clip/.test(type) ? 'mp4' : type.includes('audio') ? 'mp3' : 'png'
  return `https://cdn.example.net/${type}${index}.${extension}`
}

/** Bodies of 2.6 that 2.7 can also express. */
export const commonOldBody = oldBodies(
  prompt(...oldNames),
  fc.record({ shot_type: fc.constant('single'), audio: fc.constant(true) }, { requiredKeys: [] }),
)
/** Bodies of 2.6. */
export const anyOldBody = oldBodies(
  anyPrompt,
  fc.record({ shot_type: pick('single', 'multi'), audio: fc.boolean(), camera: fc.string() }, { requiredKeys: [] }),
)
/** Bodies of 2.7 that 2.6 can also express. */
export const commonNewBody = newBodies({
  texts: prompt(...newNames),
  extra: fc.constant({}),
  pictures: pick(['first_frame'], ['first_frame', 'driving_audio'], ['driving_audio', 'first_frame']),
  references: fc.array(fc.record({ type: pick('reference_image', 'reference_video') }), { minLength: 1, maxLength: 3 }),
  hasFrame: fc.constant(false),
})
/** Bodies of 2.7. */
export const anyNewBody = newBodies({
  texts: anyPrompt,
  extra: fc.record({ camera: fc.string(), audio: fc.boolean() }, { requiredKeys: [] }),
  pictures: pick(['first_frame'], ['first_frame', 'last_frame'], ['first_clip'], ['driving_audio', 'first_frame']),
  references: fc.array(
    fc.record(
      { type: pick('reference_image', 'reference_video'), reference_voice: soundUrl },
      { requiredKeys: ['type'] },
    ),
    { minLength: 1, maxLength: 5 },
  ),
  hasFrame: fc.boolean(),
})
