import { describe, expect, test } from 'vitest'
import {
  type Answer,
  marked,
  media,
  PICTURE,
  REFERENCES,
  request,
  SUBMIT,
  videoSandbox,
} from './support/video-sandbox.ts'

const videos = videoSandbox()
const { clock, sandbox, call, submit, query, cancel } = videos

describe('DashScope allows 20 calls a second', () => {
  const queries = (count: number) => Promise.all(Array.from({ length: count }, () => query('any')))
  const refusedOf = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 429)

  test('per key, and reports the number of calls', async () => {
    clock.advance(1000)
    const answers = await queries(23)
    const counted = sandbox.mostTaskQueriesPerSecond
    videos.key = 'sk-other'
    const others = await queries(20)

    const [refused] = refusedOf(answers)
    expect(refusedOf(answers)).toHaveLength(3)
    expect(refused?.json.code).toBe('Throttling.RateQuota')
    expect(refusedOf(others)).toHaveLength(0)
    expect(counted).toBe(23)
    expect(sandbox.mostTaskQueriesPerSecond).toBe(23)
    sandbox.reset()
    expect(sandbox.mostTaskQueriesPerSecond).toBe(0)
  })

  test('in any second, not in each second of the clock', async () => {
    await queries(12)
    clock.advance(900)
    expect(refusedOf(await queries(12))).toHaveLength(4)
    clock.advance(99)
    expect(refusedOf(await queries(1))).toHaveLength(1)
    clock.advance(1)
    expect(refusedOf(await queries(13))).toHaveLength(1)
    expect(sandbox.mostTaskQueriesPerSecond).toBe(26)
  })

  test('separately to cancel and to list', async () => {
    const statuses = async (make: () => Promise<Answer>) =>
      (await Promise.all(Array.from({ length: 21 }, make))).filter(({ status }) => status === 429)

    expect(await statuses(() => cancel('any'))).toHaveLength(1)
    expect(await statuses(() => call('GET', '/api/v1/tasks'))).toHaveLength(1)
    expect(refusedOf(await queries(20))).toHaveLength(0)
  })
})

describe('DashScope refuses', () => {
  const text26 = (parameters: object) => request('wan2.6-t2v', {}, parameters)
  const text27 = (parameters: object) => request('wan2.7-t2v', {}, parameters)
  const picture27 = (...types: string[]) => request('wan2.7-i2v', media(...types))
  const references27 = (...types: string[]) => request('wan2.7-r2v', media(...types))
  const fourVideos = { reference_urls: new Array(4).fill('https://cdn.example.net/a.mp4?x=1') }
  const olderField = { reference_video_urls: ['https://a.example/v'] }

  test.each<[message: string, what: string, body: object | string]>([
    ['We could not parse the JSON body of your request.', 'no JSON', '{'],
    ['Input should be a valid object: parameters', 'a text', { ...request('wan2.7-t2v'), parameters: 'x' }],
    ['Field required: input.prompt', 'no prompt', { model: 'wan2.6-t2v', input: {} }],
    ['Field required: input.img_url', 'a 2.7 body at 2.6', request('wan2.6-i2v', media('first_frame'))],
    ['Field required: input.img_url', 'a 2.7 body at 2.5', request('wan2.5-i2v-preview', media('first_frame'))],
    ['Field required: input.reference_urls', 'a 2.7 body', request('wan2.6-r2v', media('reference_image'))],
    ['Field required: input.media', 'a 2.6 body (i2v)', request('wan2.7-i2v', PICTURE)],
    ['Field required: input.media', 'a 2.6 body (r2v)', request('wan2.7-r2v', REFERENCES)],
    [
      'Field required: input.media.0.url',
      'media without an address',
      request('wan2.7-i2v', { media: [{ type: 'first_frame' }] }),
    ],
    [
      'media types [first_clip,first_frame] are not supported together: input.media',
      'a clip and a frame',
      picture27('first_frame', 'first_clip'),
    ],
    [
      'media types [first_frame,first_frame] are not supported together: input.media',
      'two first frames of one picture',
      picture27('first_frame', 'first_frame'),
    ],
    [
      'first_frame must be given once: input.media',
      'two first frames beside a reference',
      references27('first_frame', 'reference_image', 'first_frame'),
    ],
    [
      'media type driving_audio is not supported: input.media',
      'sound as a reference',
      references27('reference_image', 'driving_audio'),
    ],
    ['reference images and videos must be 1 to 5: input.media', 'only a first frame', references27('first_frame')],
    [
      'reference images and videos must be 1 to 5: input.media',
      'six references',
      references27(...new Array<string>(6).fill('reference_image')),
    ],
    [
      'too many references, at most 5, of which 3 videos: input.reference_urls',
      'four videos',
      request('wan2.6-r2v', fourVideos),
    ],
    [
      'audio_url cannot be combined with reference_video_urls',
      'sound beside the older field',
      request('wan2.6-r2v', { ...olderField, audio_url: 'https://a.example/s' }),
    ],
    ['Input should be a valid integer: parameters.duration', 'a text', text27({ duration: '5' })],
    ['Input should be a valid integer: parameters.duration', 'a fraction', text27({ duration: 5.5 })],
    [
      'duration must be one of 5,10: parameters.duration',
      '6 seconds of 2.5',
      request('wan2.5-t2v-preview', {}, { duration: 6 }),
    ],
    ['duration must be one of 2,3,4,5,6,7,8,9,10,11,12,13,14,15: parameters.duration', '16', text26({ duration: 16 })],
    [
      'duration must be one of 2,3,4,5,6,7,8,9,10: parameters.duration',
      '11 seconds with a reference video',
      request('wan2.7-r2v', media('reference_video'), { duration: 11 }),
    ],
    ['size 832*480 is not supported: parameters.size', 'a size of 2.5', text26({ size: '832*480' })],
    ['size 1280x720 is not supported: parameters.size', 'an x', text26({ size: '1280x720' })],
    ['resolution 720p is not supported: parameters.resolution', 'lower case', text27({ resolution: '720p' })],
    ['resolution 480P is not supported: parameters.resolution', 'a tier of 2.5', text27({ resolution: '480P' })],
    ['ratio 2:1 is not supported: parameters.ratio', 'a ratio', text27({ ratio: '2:1' })],
    ["Input should be 'single' or 'multi': parameters.shot_type", 'a shot type', text26({ shot_type: 'many' })],
    ['Input should be a valid boolean: parameters.watermark', 'a text', text27({ watermark: 'no' })],
    ['seed must be in [0, 2147483647]: parameters.seed', 'a large seed', text27({ seed: 2 ** 31 })],
  ])('with "%s": %s', async (message, _, body) => {
    const answer = await submit(body)

    expect(answer.status).toBe(400)
    expect(answer.json).toEqual({ code: 'InvalidParameter', message, request_id: answer.headers.get('x-request-id') })
    expect((await call('GET', '/api/v1/tasks/')).json.total).toBe(0)
  })

  test.each<[code: string, what: string, body: object]>([
    ['BadRequest.EmptyModel', 'no model', { input: {} }],
    ['BadRequest.EmptyInput', 'no input', { model: 'wan2.7-t2v' }],
    ['InvalidURL', 'a picture in plain base64', request('wan2.6-i2v', { img_url: 'iVBORw0KGgo=' })],
    [
      'InvalidURL',
      'a video inside the request',
      request('wan2.7-r2v', { media: [{ type: 'reference_video', url: 'data:video/mp4;base64,AA==' }] }),
    ],
    [
      'InvalidParameter.DataInspection',
      'a stored file without the header for it',
      request('wan2.6-i2v', { img_url: 'oss://bucket/p.png' }),
    ],
    ['DataInspectionFailed', 'what its filter dislikes', marked('[[fault:blocked]]')],
    ['Arrearage', 'an account in arrears', marked('[[fault:quota]]')],
  ])('requests that get the code %s: %s', async (code, _, body) => {
    const answer = await submit(body)

    expect([answer.status, answer.json.code]).toEqual([400, code])
    expect((await call('GET', '/api/v1/tasks/')).json.total).toBe(0)
  })

  test.each<[what: string, body: object]>([
    ['480P of 2.5', request('wan2.5-t2v-preview', {}, { size: '832*480', duration: 10 })],
    ['a picture inside the request', request('wan2.6-i2v', { img_url: 'data:image/png;base64,AA==' })],
    ['11 seconds with reference images', request('wan2.7-r2v', media('reference_image'), { duration: 11 })],
    ['sound and both frames', request('wan2.7-i2v', media('last_frame', 'first_frame', 'driving_audio'))],
    ['shot_type at 2.7, without effect', request('wan2.7-t2v', {}, { shot_type: 'many' })],
    ['the older field of references', request('wan2.6-r2v', olderField)],
    ['a regional id', request('wan2.6-t2v-us')],
  ])('only invalid requests and accepts %s', async (_, body) => {
    expect((await submit(body)).status).toBe(200)
  })

  test('no stored file if its header is set', async () => {
    const body = request('wan2.6-i2v', { img_url: 'oss://bucket/p.png' })

    expect((await submit(body, { 'x-dashscope-ossresourceresolve': 'enable' })).status).toBe(200)
  })

  test('a missing key, a call that would wait for the video, and unknown models', async () => {
    const body = request('wan2.7-t2v')
    const withoutKey = await submit(body, { authorization: 'Bearer ' })
    const queryWithoutKey = await call('GET', '/api/v1/tasks/x', undefined, { authorization: '' })
    const waiting = await call('POST', SUBMIT, body)
    const publicId = await submit(request('wv2.7-t2v'))
    const longer = await submit(request('wan2.7-t2vx'))

    expect([withoutKey.status, withoutKey.json.code]).toEqual([401, 'InvalidApiKey'])
    expect([queryWithoutKey.status, queryWithoutKey.json.code]).toEqual([401, 'InvalidApiKey'])
    expect([waiting.status, waiting.json.code]).toEqual([403, 'AccessDenied'])
    expect(waiting.json.message).toBe('current user api does not support synchronous calls')
    expect([publicId.json.code, longer.json.code]).toEqual(['ModelNotFound', 'ModelNotFound'])
  })
})
