import { Buffer } from 'node:buffer'
import { describe, expect, it, test } from 'vitest'
import { type CatalogModel, defineModel } from '../../../src/catalog/model.ts'
import { readCallerJson } from '../../../src/core/json.ts'
import { videoEndpoint } from '../../../src/endpoints/videos/video-endpoint.ts'
import type { VideoRequest } from '../../../src/endpoints/videos/video-request.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import type { VendorCall, WireRequest } from '../../../src/vendors/vendor.ts'
import { refusalOf, videoModel } from '../../endpoints/videos/support/video-model.ts'
import { NOW_MS } from '../shared/vendor-call.ts'

const API_KEY = 'sk-test-0123456789abcdef'
const PICTURE = 'https://cdn.example.net/first.png'
const videos = dashscope({ apiKey: API_KEY }).videos!

/** Returns a submission like the pipeline's: parsed for the requested model and sent to `model`. */
function submit(text: string, options: { model?: CatalogModel; hasBytes?: boolean } = {}): WireRequest {
  const body = JSON.parse(text) as { model: string }
  const asked = videoModel(body.model)
  const call: VendorCall<VideoRequest> = {
    request: videoEndpoint.parse(body, asked),
    bytes: options.hasBytes === false ? undefined : readCallerJson(Buffer.from(text)).bytes,
    model: options.model ?? asked,
    publicModel: body.model,
    apiKey: API_KEY,
    stream: false,
    nowMs: NOW_MS,
  }
  return videos.toWire(call)
}

function sentText({ body }: WireRequest): string {
  if (typeof body === 'string') return body
  return Buffer.concat(body instanceof Uint8Array ? [body] : body).toString('utf8')
}

function sent(wire: WireRequest): unknown {
  return JSON.parse(sentText(wire))
}

describe('a video submission', () => {
  const rows: [name: string, body: Record<string, unknown>, expected: Record<string, unknown>][] = [
    [
      '2.6 text',
      {
        model: 'wv2.6-t2v',
        duration: 6,
        resolution: '720p',
        aspect_ratio: '16:9',
        input: { prompt: 'A paper boat drifts', negative_prompt: 'text, logo' },
        parameters: { shot_type: 'single', prompt_extend: true, watermark: false, seed: 77 },
        webhook_url: 'https://example.net/hook',
      },
      {
        model: 'wan2.6-t2v',
        input: { prompt: 'A paper boat drifts', negative_prompt: 'text, logo' },
        parameters: {
          shot_type: 'single',
          prompt_extend: true,
          watermark: false,
          seed: 77,
          size: '1280*720',
          duration: 6,
        },
      },
    ],
    [
      '2.6 picture, silent',
      {
        model: 'wv2.6-i2v-flash',
        duration: 4,
        input: { prompt: 'She turns', img_url: PICTURE },
        parameters: { resolution: '720P', duration: 4, audio: false },
      },
      {
        model: 'wan2.6-i2v-flash',
        input: { prompt: 'She turns', img_url: PICTURE },
        parameters: { resolution: '720P', duration: 4, audio: false },
      },
    ],
    [
      '2.6 references',
      {
        model: 'wv2.6-r2v',
        aspect_ratio: '9:16',
        input: { prompt: 'character1 waves', reference_urls: ['https://cdn.example.net/a.mp4'] },
      },
      {
        model: 'wan2.6-r2v',
        input: { prompt: 'character1 waves', reference_urls: ['https://cdn.example.net/a.mp4'] },
        parameters: { size: '720*1280', duration: 5 },
      },
    ],
    [
      '2.7 text',
      { model: 'wv2.7-t2v', resolution: '1080p', input: { prompt: 'Harbour at dawn' }, parameters: { ratio: '9:16' } },
      {
        model: 'wan2.7-t2v',
        input: { prompt: 'Harbour at dawn' },
        parameters: { ratio: '9:16', resolution: '1080P', duration: 5 },
      },
    ],
    [
      '2.7 picture',
      { model: 'wv2.7-i2v-2026-04-25', input: { media: [{ type: 'first_frame', url: PICTURE }] } },
      {
        model: 'wan2.7-i2v-2026-04-25',
        input: { media: [{ type: 'first_frame', url: PICTURE }] },
        parameters: { resolution: '720P', duration: 5 },
      },
    ],
  ]
  for (const [name, body, expected] of rows) {
    it(`contains only what the vendor needs for ${name}`, () => {
      const text = JSON.stringify(body)

      expect(sent(submit(text))).toEqual(expected)
      expect(sentText(submit(text, { hasBytes: false }))).toBe(sentText(submit(text)))
      expect(submit(text).dropped).toEqual([])
    })
  }

  it('goes to the native API, asynchronously, under the prefix of a proxy too', () => {
    const wire = submit(JSON.stringify({ model: 'wv2.7-t2v', input: { prompt: 'x' } }))
    const proxied = dashscope({ apiKey: API_KEY, baseURL: 'https://example.net/proxy/compatible-mode/v1' }).videos!

    expect(wire.path).toBe('/api/v1/services/aigc/video-generation/video-synthesis')
    expect(wire.headers).toEqual([
      'content-type',
      'application/json',
      'accept',
      'application/json',
      'accept-encoding',
      'identity',
      'authorization',
      `Bearer ${API_KEY}`,
      'x-dashscope-async',
      'enable',
    ])
    expect(proxied.read('t1', API_KEY).path).toBe('/proxy/api/v1/tasks/t1')
  })

  test.each([
    ['wv2.7-r2v', { prompt: 'x', media: [{ type: 'reference_image', url: 'oss://bucket/a.png' }] }],
    [
      'wv2.7-i2v',
      {
        media: [
          { type: 'first_frame', url: PICTURE },
          { type: 'driving_audio', url: 'OSS://bucket/a' },
        ],
      },
    ],
    ['wv2.6-r2v', { prompt: 'x', reference_urls: [PICTURE, 'oss://bucket/a.mp4'] }],
    ['wv2.6-t2v', { prompt: 'x', audio_url: 'oss://bucket/a.mp3' }],
  ])('has uploaded files looked up: %s %j', (model, input) => {
    expect(submit(JSON.stringify({ model, input })).headers.slice(-2)).toEqual([
      'x-dashscope-ossresourceresolve',
      'enable',
    ])
  })

  it('names the fields that the vendor does not get', () => {
    const body = { model: 'wv2.7-t2v', input: { prompt: 'x' }, user: 'u1', n: 2, webhook_url: 'https://example.net/h' }

    expect(submit(JSON.stringify(body)).dropped).toEqual(['user', 'n'])
  })

  it("holds the caller's own bytes of input and parameters", () => {
    const input = '{ "prompt" : "Stra\\u00dfe \\/ x", "own": 1.50, "big": 12345678901234567890 }'
    const parameters = '{ "seed" : 7.0, "2": 1, "1": 2 }'

    const text = sentText(submit(`{ "model": "wv2.6-t2v", "input": ${input}, "parameters": ${parameters} }`))

    expect(text).toBe(
      `{"model":"wan2.6-t2v","input":${input},"parameters":${parameters.slice(0, -1)},"size":"1280*720","duration":5}}`,
    )
  })

  test.each([
    ['{}', '{"size":"1280*720","duration":5}'],
    ['{ }', '{"size":"1280*720","duration":5}'],
    ['null', '{"size":"1280*720","duration":5}'],
    ['{"size":null, "duration":5}', '{"size":"1280*720","duration":5}'],
    ['{ "size":"1280*720", "duration":5.0 }', '{ "size":"1280*720", "duration":5.0 }'],
    // Readers differ in which of two members counts, so only the checked one is sent.
    ['{"duration":15,"duration":5}', '{"duration":5,"size":"1280*720"}'],
    ['{"duration":15,"\\u0064uration":5}', '{"duration":5,"size":"1280*720"}'],
  ])('says each parameter once: %s', (parameters, expected) => {
    const text = sentText(submit(`{"model":"wv2.6-t2v","input":{"prompt":"x"},"parameters":${parameters}}`))

    expect(text).toBe(`{"model":"wan2.6-t2v","input":{"prompt":"x"},"parameters":${expected}}`)
  })
})

describe('a video submission to a fallback model', () => {
  it('is converted to the other protocol if nothing is lost', () => {
    const old = { model: 'wv2.6-i2v', duration: 4, input: { prompt: 'x', img_url: PICTURE }, parameters: { seed: 1 } }

    expect(sent(submit(JSON.stringify(old), { model: videoModel('wv2.7-i2v') }))).toEqual({
      model: 'wan2.7-i2v',
      input: { prompt: 'x', media: [{ type: 'first_frame', url: PICTURE }] },
      parameters: { resolution: '720P', duration: 4, seed: 1 },
    })
  })

  it('gets a size for a ratio, and a ratio for a size', () => {
    const body = { input: { prompt: 'x' }, resolution: '1080p' }
    const old = JSON.stringify({ ...body, model: 'wv2.6-t2v', parameters: { size: '1080*1920' } })
    const fresh = JSON.stringify({ ...body, model: 'wv2.7-t2v', parameters: { ratio: '4:3' } })

    expect(sent(submit(old, { model: videoModel('wv2.7-t2v') }))).toMatchObject({
      parameters: { resolution: '1080P', ratio: '9:16', duration: 5 },
    })
    expect(sent(submit(fresh, { model: videoModel('wv2.6-t2v') }))).toMatchObject({
      parameters: { size: '1632*1248', duration: 5 },
    })
  })

  it('is unchanged for the same protocol', () => {
    const text = '{"model":"wv2.7-t2v","input":{ "prompt":"x", "own": 1.0 },"parameters":{ "camera": [ ] }}'

    expect(sentText(submit(text, { model: videoModel('wv2.7-t2v-2026-04-25') }))).toBe(
      '{"model":"wan2.7-t2v-2026-04-25","input":{ "prompt":"x", "own": 1.0 },' +
        '"parameters":{ "camera": [ ] ,"resolution":"720P","duration":5}}',
    )
  })

  test.each([
    ['wv2.6-t2v', { prompt: 'x' }, { shot_type: 'multi' }, 'wv2.7-t2v', 'parameters.shot_type'],
    ['wv2.6-i2v-flash', { img_url: PICTURE }, { audio: false }, 'wv2.6-i2v', 'parameters.audio'],
    ['wv2.6-i2v', { img_url: PICTURE }, {}, 'wv2.7-t2v', 'input.img_url'],
    ['wv2.7-t2v', { prompt: 'x' }, {}, 'wv2.7-i2v', 'input.media'],
    ['wv2.6-t2v', { prompt: 'x' }, { duration: 15 }, 'wv2.5-t2v-preview', 'duration'],
  ])('is refused when something is lost: %s %j %j → %s', (asked, input, parameters, standIn, param) => {
    const { duration } = { duration: 5, ...parameters }
    const text = JSON.stringify({ model: asked, duration, input, parameters })

    expect(refusalOf(() => submit(text, { model: videoModel(standIn) }))).toMatchObject({
      code: 'unsupported_parameter',
      param,
    })
  })

  it('blames the operator if the model names no protocol', () => {
    const model = defineModel({ id: 'own', kind: 'video', vendor: 'dashscope' })
    const text = JSON.stringify({ model: 'wv2.7-t2v', input: { prompt: 'x' } })

    expect(refusalOf(() => submit(text, { model }))).toMatchObject({ code: 'model_not_configured', param: 'model' })
  })

  it('is not converted for an alias or the vendor’s own id of the model', () => {
    const asked = videoModel('wv2.7-t2v')
    const request = videoEndpoint.parse(
      { model: 'wan2.7-t2v', input: { prompt: 'x' }, parameters: { shot_type: 'multi' } },
      asked,
    )
    const call = {
      request,
      bytes: undefined,
      model: asked,
      publicModel: 'wan2.7-t2v',
      apiKey: API_KEY,
      stream: false,
      nowMs: 0,
    }

    expect(sent(videos.toWire(call))).toMatchObject({ parameters: { shot_type: 'multi' } })
  })
})

describe('calls about a video task', () => {
  it('read and cancel it, with the key and without a body', () => {
    const headers = ['accept', 'application/json', 'accept-encoding', 'identity', 'authorization', `Bearer ${API_KEY}`]

    expect(videos.read('b7c9-1', API_KEY)).toEqual({ method: 'GET', path: '/api/v1/tasks/b7c9-1', headers })
    expect(videos.cancel('b7c9-1', API_KEY)).toEqual({ method: 'POST', path: '/api/v1/tasks/b7c9-1/cancel', headers })
    expect(videos.read('a/../b?c', API_KEY).path).toBe('/api/v1/tasks/a%2F..%2Fb%3Fc')
  })

  it('are at most 20 in any second', () => {
    const { takes, windowMs } = videos.pollBudget
    const touchedWindows = Math.ceil(1000 / windowMs) + 1

    expect(takes * touchedWindows).toBeLessThanOrEqual(20)
    expect(videos.pollIntervalMs).toBe(15_000)
  })
})
