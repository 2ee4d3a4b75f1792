import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import type { CatalogModel } from '../../src/catalog/model.ts'
import { DASHSCOPE_VIDEO_MODELS } from '../../src/catalog/models/dashscope-models.ts'
import { GatewayError, video } from '../../src/client/builders/index.ts'
import { parseVideoRequest } from '../../src/endpoints/videos/video-endpoint.ts'

const CDN = 'https://cdn.example.net'
const catalog = createCatalog(DASHSCOPE_VIDEO_MODELS)

/** Every step, as callers without types can take them. */
interface AnySteps {
  readonly [step: string]: (...parameters: readonly unknown[]) => AnySteps
}

function steps(model: string): AnySteps {
  return video(model) as never
}

/** Builds the parts that every request of the model requires. */
function begun({ id, video: abilities }: CatalogModel): AnySteps {
  const draft = steps(id)['prompt']!('a boat')
  if (abilities?.task === 'i2v') return draft['firstFrame']!(`${CDN}/a.png`)
  return abilities?.task === 'r2v' ? draft['reference']!(`${CDN}/a.png`) : draft
}

function built(draft: AnySteps): Record<string, unknown> {
  return draft['build']!() as never
}

function faultOf(run: () => unknown): { code: string; param: string | undefined } {
  try {
    run()
  } catch (error) {
    if (GatewayError.isInstance(error)) return { code: error.code, param: error.param }
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('the same steps', () => {
  test('give a 2.7 model the body of 2.7, which agrees with itself', () => {
    const body = video('wv2.7-r2v').prompt('Image 1 waves').reference(`${CDN}/a.png`).tier('720p').seconds(5).build()

    expect(body).toEqual({
      model: 'wv2.7-r2v',
      duration: 5,
      resolution: '720p',
      aspect_ratio: '16:9',
      input: { prompt: 'Image 1 waves', media: [{ type: 'reference_image', url: `${CDN}/a.png` }] },
      parameters: { resolution: '720P', duration: 5, watermark: false },
    })
  })

  test('give a 2.6 model the body of 2.6', () => {
    const body = video('wv2.6-r2v').prompt('Image 1 waves').reference(`${CDN}/a.png`).tier('720p').seconds(5).build()

    expect(body).toEqual({
      model: 'wv2.6-r2v',
      duration: 5,
      resolution: '720p',
      aspect_ratio: '16:9',
      input: { prompt: 'character1 waves', reference_urls: [`${CDN}/a.png`] },
      parameters: { size: '1280*720', duration: 5, watermark: false },
    })
  })

  test('carry shape, sound, seed and where to call', () => {
    const webhook = `${CDN}/hook`
    const newer = video('wv2.7-t2v').prompt('a boat').aspectRatio('9:16').audio(`${CDN}/a.mp3`).seed(7).webhook(webhook)
    const older = video('wv2.6-t2v').prompt('a boat').aspectRatio('9:16').audio(`${CDN}/a.mp3`).seed(7).shots('multi')

    expect(newer.build()).toMatchObject({
      aspect_ratio: '9:16',
      input: { audio_url: `${CDN}/a.mp3` },
      parameters: { ratio: '9:16', seed: 7 },
      webhook_url: webhook,
    })
    expect(older.build()).toMatchObject({ parameters: { size: '720*1280', shot_type: 'multi', seed: 7 } })
  })
})

describe('a draft', () => {
  test('never changes, so that several requests can grow from one', () => {
    const boat = video('wv2.7-t2v').prompt('a boat')
    const long = boat.seconds(10)
    const first = boat.build()

    expect(long).not.toBe(boat)
    expect(long.build().duration).toBe(10)
    expect(boat.build()).toEqual(first)
    expect(first.duration).toBe(5)
  })

  test("takes the vendor's own id, and writes the layout of the model", () => {
    expect(built(steps('wan2.6-i2v')['firstFrame']!(`${CDN}/a.png`))).toMatchObject({
      input: { img_url: `${CDN}/a.png` },
    })
  })

  test("takes a host's model with its facts, and asks for them", () => {
    const draft = video('a-model-of-mine', { protocol: 'wan-2-7' }).prompt('a boat')

    expect(draft.build()).toMatchObject({ model: 'a-model-of-mine', parameters: { resolution: '720P' } })
    expect(faultOf(() => built(steps('a-model-of-mine')['prompt']!('a boat')))).toEqual({
      code: 'model_not_configured',
      param: 'model',
    })
    expect(faultOf(() => built(steps('constructor')['prompt']!('S38')))).toMatchObject({ code: 'model_not_configured' })
  })
})

describe('where the types cannot tell, the field is named', () => {
  test.each<[string, (draft: AnySteps) => AnySteps, string, string]>([
    ['wv2.7-i2v', (draft) => draft['prompt']!('a boat'), 'invalid_request', 'input.media'],
    ['wv2.6-i2v', (draft) => draft['prompt']!('a boat'), 'invalid_request', 'input.img_url'],
    ['wv2.7-t2v', (draft) => draft, 'invalid_request', 'input.prompt'],
    ['wv2.6-r2v', (draft) => draft['prompt']!('a boat'), 'invalid_request', 'input.reference_urls'],
    ['wv2.7-t2v', (draft) => draft['prompt']!('a')['seconds']!(16), 'unsupported_parameter', 'seconds'],
    ['wv2.7-t2v', (draft) => draft['prompt']!('a')['tier']!('480p'), 'unsupported_parameter', 'resolution'],
    [
      'wv2.5-t2v-preview',
      (draft) => draft['prompt']!('a')['tier']!('480p')['aspectRatio']!('4:3'),
      'unsupported_parameter',
      'aspectRatio',
    ],
    [
      'wv2.7-t2v',
      (draft) => draft['prompt']!('a')['firstFrame']!(`${CDN}/a.png`),
      'unsupported_parameter',
      'firstFrame',
    ],
    ['wv2.6-i2v', (draft) => draft['firstFrame']!(`${CDN}/a.png`)['mute']!(), 'unsupported_parameter', 'mute'],
    ['wv2.7-i2v', (draft) => draft['firstFrame']!('ftp://a/b.png'), 'invalid_request', 'input.media[0].url'],
  ])('names the field for %s', (model, take, code, param) => {
    expect(faultOf(() => built(take(steps(model))))).toEqual({ code, param })
  })

  test('names the field in the step itself, for fractional seconds and ambiguous references', () => {
    expect(faultOf(() => steps('wv2.7-t2v')['seconds']!(2.5))).toEqual({ code: 'invalid_request', param: 'seconds' })
    expect(faultOf(() => steps('wv2.7-r2v')['reference']!(`${CDN}/picture`))).toEqual({
      code: 'invalid_request',
      param: 'references[0]',
    })
    expect(faultOf(() => steps('wv2.7-r2v')['webhook']!('/hook'))).toEqual({
      code: 'invalid_request',
      param: 'webhook_url',
    })
  })
})

test('whatever is built is accepted by the endpoint, and billed as it is rendered', () => {
  const url = fc.constantFrom(`${CDN}/a.png`, `${CDN}/b.mp4`, `${CDN}/c.mp3`)
  const step = fc.oneof(
    fc.tuple(fc.constant('prompt'), fc.string({ maxLength: 20 })),
    fc.tuple(fc.constant('tier'), fc.constantFrom('480p', '720p', '1080p')),
    fc.tuple(fc.constant('seconds'), fc.integer({ min: 0, max: 17 })),
    fc.tuple(fc.constant('aspectRatio'), fc.constantFrom('16:9', '9:16', '1:1', '4:3', '3:4')),
    fc.tuple(fc.constantFrom('audio', 'firstFrame', 'lastFrame', 'firstClip', 'reference'), url),
    fc.tuple(fc.constantFrom('watermark', 'promptExtend'), fc.boolean()),
    fc.tuple(fc.constant('shots'), fc.constantFrom('single', 'multi')),
    fc.tuple(fc.constant('mute')),
    fc.tuple(fc.constant('seed'), fc.nat()),
  )
  let builtCount = 0
  const property = fc.property(fc.constantFrom(...catalog.list()), fc.array(step, { maxLength: 7 }), (model, taken) => {
    let body: Record<string, unknown>
    try {
      body = built(
        taken.reduce<AnySteps>((draft, [name, ...parameters]) => {
          // A sound is a reference for no model.
          const isSound = name === 'reference' && String(parameters[0]).endsWith('.mp3')
          return isSound ? draft : draft[name]!(...parameters)
        }, begun(model)),
      )
    } catch (error) {
      if (GatewayError.isInstance(error) && error.param !== undefined) return
      throw error
    }
    builtCount += 1
    const parsed = parseVideoRequest(JSON.parse(JSON.stringify(body)), model)
    expect(parsed.duration).toBe((body['parameters'] as { duration: number }).duration)
    expect(parsed.resolution).toBe(body['resolution'])
  })
  fc.assert(property, { numRuns: 3_000 })

  expect(builtCount).toBeGreaterThan(300)
})
