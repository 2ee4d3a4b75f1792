import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import type { CatalogModel } from '../../../src/catalog/model.ts'
import { readIntent } from '../../../src/endpoints/videos/read-intent.ts'
import { videoEndpoint } from '../../../src/endpoints/videos/video-endpoint.ts'
import type { VideoProtocolName } from '../../../src/endpoints/videos/video-protocol.ts'
import type { VideoRequest } from '../../../src/endpoints/videos/video-request.ts'
import { convertBody, protocolOfBody } from '../../../src/vendors/dashscope/video-operation.ts'
import {
  anyNewBody,
  anyOldBody,
  commonNewBody,
  commonOldBody,
  type Drawn,
  NEW,
  OLD,
  type TASKS,
} from './support/drawn-bodies.ts'
import { videoModel } from './support/video-model.ts'

/** Members that only repeat the top-level fields. */
const BILLED = ['duration', 'resolution', 'size', 'ratio']

/** Returns every value in the vendor's part of a body other than defaults and repeated billed fields. */
function saidIn(request: VideoRequest): string[] {
  const { input, parameters = {} } = request
  return [
    ...Object.entries(input).flatMap(([name, value]) => leaves(value, `input.${name}`)),
    ...Object.entries(parameters)
      .filter(([name]) => !BILLED.includes(name))
      .flatMap(([name, value]) => leaves(value, `parameters.${name}`)),
  ]
}

function leaves(value: unknown, param: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => leaves(item, `${param}[${index}]`))
  if (typeof value !== 'object' || value === null) return [`${param}=${JSON.stringify(value)}`]
  return Object.entries(value).flatMap(([name, member]) => leaves(member, `${param}.${name}`))
}

function isEndpointFit(request: VideoRequest, model: CatalogModel): void {
  videoEndpoint.parse({ ...request, model: model.id }, model)
}

describe('a body for the other protocol', () => {
  it('survives the way from 2.6 to 2.7 and back with its meaning, if both can say it', () => {
    fc.assert(
      fc.property(commonOldBody, ({ task, request }) => {
        isEndpointFit(request, OLD[task])
        const there = convertBody(request, 'wan-2-6', NEW[task])
        isEndpointFit(there.body, NEW[task])
        const back = convertBody(there.body, 'wan-2-7', OLD[task])
        isEndpointFit(back.body, OLD[task])

        expect([there.lost, back.lost]).toEqual([[], []])
        expect(readIntent(back.body, 'wan-2-6').intent).toEqual(readIntent(request, 'wan-2-6').intent)
      }),
      { numRuns: 300 },
    )
  })

  it('survives the way from 2.7 to 2.6 and back with its meaning, if both can say it', () => {
    fc.assert(
      fc.property(commonNewBody, ({ task, request }) => {
        isEndpointFit(request, NEW[task])
        const there = convertBody(request, 'wan-2-7', OLD[task])
        isEndpointFit(there.body, OLD[task])
        const back = convertBody(there.body, 'wan-2-6', NEW[task])
        isEndpointFit(back.body, NEW[task])

        expect([there.lost, back.lost]).toEqual([[], []])
        const { prompt: text, ...rest } = readIntent(request, 'wan-2-7').intent
        const { prompt: textBack, ...restBack } = readIntent(back.body, 'wan-2-7').intent
        expect(restBack).toEqual(rest)
        // Names of references return in one spelling.
        expect(spelled(textBack)).toBe(spelled(text))
      }),
      { numRuns: 300 },
    )
  })

  const directions: [string, Drawn, VideoProtocolName, Record<(typeof TASKS)[number], CatalogModel>][] = [
    ['2.6', anyOldBody, 'wan-2-6', NEW],
    ['2.7', anyNewBody, 'wan-2-7', OLD],
  ]
  for (const [version, bodies, protocol, targets] of directions) {
    it(`loses nothing of ${version} without listing it`, () => {
      fc.assert(
        fc.property(bodies, ({ task, request }) => {
          const { body, lost } = convertBody(request, protocol, targets[task])
          const there = saidIn(body).map(valueIn)
          for (const said of saidIn(request)) {
            const isListed = lost.some((param) => said.startsWith(param))
            const isDefault = /^parameters\.(?:shot_type="single"|audio=true)$/.test(said) && protocol === 'wan-2-6'
            const isName = /^input\.media\[\d+\]\.type=/.test(said)
            const isRewritten = said.startsWith('input.prompt=') && task === 'r2v'
            if (isListed || isDefault || isName || isRewritten) continue
            expect(there, said).toContain(valueIn(said))
          }
        }),
        { numRuns: 300 },
      )
    })
  }

  const lostRows: [string, VideoProtocolName, CatalogModel, Partial<VideoRequest>, string[]][] = [
    ['shots', 'wan-2-6', NEW.t2v, { parameters: { shot_type: 'multi' } }, ['parameters.shot_type']],
    ['silence', 'wan-2-6', NEW.t2v, { parameters: { audio: false } }, ['parameters.audio']],
    ['a template', 'wan-2-6', NEW.i2v, { input: { template: 'squish' } }, ['input.template']],
    ['a tier of its own kind', 'wan-2-6', NEW.t2v, { aspect_ratio: '21:9' }, ['aspect_ratio']],
    [
      'a reference that may be either',
      'wan-2-6',
      NEW.r2v,
      { input: { reference_urls: ['https://e.net/a'] } },
      ['input.reference_urls[0]'],
    ],
    [
      'a second place',
      'wan-2-6',
      NEW.t2v,
      { input: { negative_prompt: 'a' }, parameters: { negative_prompt: 'b' } },
      ['parameters.negative_prompt'],
    ],
    [
      'an end',
      'wan-2-7',
      OLD.i2v,
      {
        input: {
          media: [
            { type: 'first_frame', url: 'https://e.net/a.png' },
            { type: 'last_frame', url: 'https://e.net/b.png' },
          ],
        },
      },
      ['input.media[1]'],
    ],
    [
      'a voice',
      'wan-2-7',
      OLD.r2v,
      {
        input: {
          media: [{ type: 'reference_image', url: 'https://e.net/a.png', reference_voice: 'https://e.net/b.wav' }],
        },
      },
      ['input.media[0].reference_voice'],
    ],
    [
      'an inline reference',
      'wan-2-7',
      OLD.r2v,
      { input: { media: [{ type: 'reference_image', url: 'data:image/png;base64,AA==' }] } },
      ['input.media[0]'],
    ],
    [
      'media of a new type',
      'wan-2-7',
      OLD.t2v,
      { input: { media: [{ type: 'video', url: 'https://e.net/a.mp4' }] } },
      ['input.media[0]'],
    ],
    [
      'a member of media',
      'wan-2-7',
      OLD.i2v,
      { input: { media: [{ type: 'first_frame', url: 'https://e.net/a.png', weight: 2 }] } },
      ['input.media[0].weight'],
    ],
    ['the end of a long prompt', 'wan-2-7', OLD.t2v, { input: { prompt: 'x'.repeat(1501) } }, ['input.prompt']],
    [
      'words that would become names',
      'wan-2-6',
      NEW.r2v,
      { input: { prompt: 'an image 1 m wide', reference_urls: ['https://e.net/a.png'] } },
      ['input.prompt'],
    ],
    [
      'words that would become numbers',
      'wan-2-7',
      OLD.r2v,
      { input: { prompt: 'character1', media: [{ type: 'reference_image', url: 'https://e.net/a.png' }] } },
      ['input.prompt'],
    ],
    ['a seed that is none', 'wan-2-7', OLD.t2v, { parameters: { seed: '7' } }, ['parameters.seed']],
  ]
  for (const [what, from, to, fields, lost] of lostRows) {
    it(`lists ${what}`, () => {
      const request = { model: 'any', duration: 5, resolution: '720p', aspect_ratio: '16:9', input: {}, ...fields }

      expect(convertBody(request, from, to).lost).toEqual(lost)
    })
  }

  test.each([
    ['character2 waves at character1 and character3', 'Image 1 waves at Video 1 and Image 2'],
    ['Character1让character2挥手', 'Video 1让Image 1挥手'],
    ['character4 and characters stay', 'character4 and characters stay'],
  ])('renames references: %s', (old, renamed) => {
    const reference_urls = ['https://e.net/a.mp4', 'https://e.net/b.png', 'https://e.net/c.png']
    const input = { prompt: old, reference_urls }
    const request = { model: 'any', duration: 5, resolution: '720p', aspect_ratio: '16:9', input }

    const { body, lost } = convertBody(request, 'wan-2-6', NEW.r2v)

    expect(lost).toEqual([])
    expect(body.input['prompt']).toBe(renamed)
  })

  test.each([
    ['图1 hands a cup to Video 1', 'character2 hands a cup to character1'],
    ['see视频1 and image 2', 'see character1 and character3'],
  ])('renames references back: %s', (prompt, renamed) => {
    const media = [
      { type: 'reference_video', url: 'https://e.net/a.mp4' },
      { type: 'reference_image', url: 'https://e.net/b.png' },
      { type: 'reference_image', url: 'https://e.net/c.png' },
    ]
    const request = { model: 'any', duration: 5, resolution: '720p', aspect_ratio: '16:9', input: { prompt, media } }

    expect(convertBody(request, 'wan-2-7', OLD.r2v).body.input['prompt']).toBe(renamed)
  })

  it('is unchanged for the same protocol, with a list of unsupported fields', () => {
    const parameters = { shot_type: 'multi', audio: false, own: 1 }
    const input = { img_url: 'https://e.net/a.png', template: 'squish' }
    const request = { model: 'any', duration: 5, resolution: '720p', aspect_ratio: '16:9', input, parameters }

    expect(convertBody(request, 'wan-2-6', videoModel('wv2.6-i2v-flash'))).toEqual({ body: request, lost: [] })
    expect(convertBody(request, 'wan-2-6', videoModel('wv2.5-i2v-preview')).lost).toEqual([
      'parameters.audio',
      'parameters.shot_type',
    ])
  })

  test.each([
    [{ input: { prompt: 'x' } }, undefined],
    [{ input: { prompt: 'x', img_url: 'y' }, parameters: { resolution: '720P' } }, 'wan-2-6'],
    [{ input: { prompt: 'x' }, parameters: { size: '1280*720' } }, 'wan-2-6'],
    [{ input: { prompt: 'x' }, parameters: { resolution: '720P', shot_type: 'multi' } }, 'wan-2-7'],
    [{ input: { prompt: 'x' }, parameters: { shot_type: 'multi' } }, 'wan-2-6'],
    [{ input: { prompt: 'x', media: [] } }, 'wan-2-7'],
  ])('is identified by its fields: %j', (parts, protocol) => {
    expect(protocolOfBody(parts)).toBe(protocol)
  })
})

function valueIn(said: string): string {
  return said.slice(said.indexOf('=') + 1)
}

function spelled(prompt: string | undefined): string {
  return (prompt ?? '')
    .replace(/图(?=\d)/g, 'image')
    .replace(/视频(?=\d)/g, 'video')
    .replace(/\b(image|video)\s?(?=\d)/gi, (word) => word.trim().toLowerCase())
    .replace(/\s+/g, ' ')
}
