import { Buffer } from 'node:buffer'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FakeClock, fakeClock, type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import type { Json } from './support/running-sandbox.ts'

const SUBMIT = '/api/v1/services/aigc/video-generation/video-synthesis'
/** 17:00:00.118 in China. */
const START_MS = Date.UTC(2026, 7, 3, 9, 0, 0, 118)
const DAY_MS = 86_400_000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

let clock: FakeClock
let sandbox: Sandbox
let origin: string
let keys = 0
let key: string

beforeAll(async () => {
  clock = fakeClock({ startMs: START_MS })
  sandbox = sandboxVendors({ clock, videoPendingMs: 1000, videoRunningMs: 2000 })
  origin = (await sandbox.listen()).origin
})
beforeEach(() => {
  sandbox.reset()
  // Tasks outlive a reset, so each test has an account of its own.
  key = `sk-test-${keys++}`
})
afterAll(() => sandbox.close())

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Json
}

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(origin + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(body === undefined ? {} : { body: text }),
  })
  const answer = await response.text()
  return { status: response.status, headers: response.headers, text: answer, json: JSON.parse(answer) as Json }
}

const ASYNC = { 'content-type': 'application/json', 'x-dashscope-async': 'enable' }
const submit = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  call('POST', SUBMIT, body, { ...ASYNC, ...headers })
const query = (id: string): Promise<Answer> => call('GET', `/api/v1/tasks/${id}`)
const cancel = (id: string): Promise<Answer> => call('POST', `/api/v1/tasks/${id}/cancel`)

const request = (model: string, input: object = {}, parameters?: object): object => ({
  model,
  input: { prompt: 'A paper boat', ...input },
  ...(parameters === undefined ? {} : { parameters }),
})
const marked = (mark: string, model = 'wan2.7-t2v'): object =>
  request(model, { prompt: `A paper boat ${mark}`, ...MEDIA_OF[model] })

const media = (...types: string[]): object => ({
  media: types.map((type) => ({ type, url: 'https://cdn.example.net/file' })),
})
const PICTURE = { img_url: 'https://cdn.example.net/p.png' }
const REFERENCES = { reference_urls: ['https://cdn.example.net/a.mp4'] }
const MEDIA_OF: Readonly<Record<string, object>> = {
  'wan2.5-i2v-preview': PICTURE,
  'wan2.6-i2v': PICTURE,
  'wan2.6-i2v-flash': PICTURE,
  'wan2.6-r2v': REFERENCES,
  'wan2.7-i2v': media('first_frame'),
  'wan2.7-r2v': media('reference_image'),
}

async function submitted(body: unknown): Promise<string> {
  const answer = await submit(body)
  expect([answer.status, answer.json.code, answer.json.message]).toEqual([200, undefined, undefined])
  return answer.json.output.task_id
}

/** The record of a task once it has ended. */
async function ended(body: unknown): Promise<Json> {
  const id = await submitted(body)
  clock.advance(3000)
  return (await query(id)).json
}

describe('a video task of DashScope', () => {
  test('waits, runs and ends by the clock, with times as they are in China', async () => {
    const startMs = clock.now()
    const time = (afterMs: number) =>
      new Date(startMs + afterMs + 8 * 3_600_000).toISOString().replace('T', ' ').slice(0, -1)
    const answer = await submit(
      request('wan2.7-t2v-2026-06-12', {}, { resolution: '720P', ratio: '9:16', duration: 6 }),
    )
    const id = answer.json.output.task_id
    clock.advance(999)
    const pending = await query(id)
    clock.advance(1)
    const running = await query(id)
    clock.advance(1999)
    const stillRunning = await query(id)
    clock.advance(1)
    const done = await query(id)

    expect(answer.json).toEqual({
      request_id: answer.headers.get('x-request-id'),
      output: { task_id: expect.stringMatching(UUID), task_status: 'PENDING' },
    })
    expect(pending.json.output).toEqual({ task_id: id, task_status: 'PENDING', submit_time: time(0) })
    expect(running.json.output).toEqual({
      task_id: id,
      task_status: 'RUNNING',
      submit_time: time(0),
      scheduled_time: time(1000),
    })
    expect(stillRunning.json).toEqual(running.json)
    expect(done.json).toEqual({
      request_id: expect.any(String),
      output: {
        task_id: id,
        task_status: 'SUCCEEDED',
        submit_time: time(0),
        scheduled_time: time(1000),
        end_time: time(3000),
        orig_prompt: 'A paper boat',
        video_url: expect.stringContaining(`/sandbox-files/${id}-720x1280-6000ms.mp4?Expires=`),
      },
      usage: {
        duration: 6,
        input_video_duration: 0,
        output_video_duration: 6,
        video_count: 1,
        SR: 720,
        ratio: '9:16',
      },
    })
  })

  test('names a time with its zone left out', async () => {
    const own = sandboxVendors({ clock: fakeClock({ startMs: START_MS }), videoPendingMs: 0, videoRunningMs: 0 })
    const at = (await own.listen()).origin
    const headers = { ...ASYNC, authorization: 'Bearer sk-1' }
    const body = JSON.stringify(request('wan2.7-t2v'))
    const { output } = (await (await fetch(at + SUBMIT, { method: 'POST', headers, body })).json()) as Json
    const done = (await (await fetch(`${at}/api/v1/tasks/${output.task_id}`, { headers })).json()) as Json
    await own.close()

    expect(done.output).toMatchObject({ task_status: 'SUCCEEDED', end_time: '2026-08-03 17:00:00.118' })
  })

  test('takes one second of waiting and two of running unless set otherwise', async () => {
    const ownClock = fakeClock()
    const own = sandboxVendors({ clock: ownClock })
    const at = (await own.listen()).origin
    const headers = { ...ASYNC, authorization: 'Bearer sk-1' }
    const body = JSON.stringify(request('wan2.7-t2v'))
    const { output } = (await (await fetch(at + SUBMIT, { method: 'POST', headers, body })).json()) as Json
    const statuses: string[] = []
    for (const waitMs of [999, 1, 1999, 1]) {
      ownClock.advance(waitMs)
      const record = (await (await fetch(`${at}/api/v1/tasks/${output.task_id}`, { headers })).json()) as Json
      statuses.push(record.output.task_status)
    }
    await own.close()

    expect(statuses).toEqual(['PENDING', 'RUNNING', 'RUNNING', 'SUCCEEDED'])
  })

  test('is another one each time, so that a submission sent twice shows', async () => {
    const ids = [await submitted(request('wan2.7-t2v')), await submitted(request('wan2.7-t2v'))]

    expect(new Set(ids).size).toBe(2)
    expect((await call('GET', '/api/v1/tasks/')).json.total).toBe(2)
  })

  test('links to a video of its size and length, good for a day from its end', async () => {
    const first = await ended(request('wan2.6-t2v', {}, { size: '1280*720', duration: 3 }))
    clock.advance(60_000)
    const again = (await query(first.output.task_id)).json
    const response = await fetch(first.output.video_url)
    const bytes = Buffer.from(await response.arrayBuffer())
    clock.advance(DAY_MS - 61_000)
    const lastMoment = await fetch(first.output.video_url)
    clock.advance(2000)
    const late = await fetch(first.output.video_url)

    expect(again.output.video_url).toBe(first.output.video_url)
    expect(new URL(first.output.video_url).origin).toBe(origin)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4'])
    expect(bytes.toString('latin1', 4, 8)).toBe('ftyp')
    const header = bytes.indexOf('mvhd') + 4
    expect(bytes.readUInt32BE(header + 16) / bytes.readUInt32BE(header + 12)).toBe(3)
    expect([lastMoment.status, late.status]).toEqual([200, 403])
  })

  test.each([
    ['wan2.7-t2v', { resolution: '720P', ratio: '4:3' }, '1104x832', 720],
    ['wan2.7-t2v', {}, '1920x1080', 1080],
    ['wan2.7-i2v', { resolution: '720P', ratio: '1:1' }, '1280x720', 720],
    ['wan2.6-t2v', { size: '832*1088' }, '832x1088', 720],
    ['wan2.6-r2v', {}, '1920x1080', 1080],
    ['wan2.6-i2v-flash', { resolution: '720P' }, '1280x720', 720],
    ['wan2.6-i2v', {}, '1920x1080', 1080],
    ['wan2.6-i2v', { resolution: '720P', ratio: '1:1' }, '1280x720', 720],
    ['wan2.7-r2v', { resolution: '720P', ratio: '1:1' }, '960x960', 720],
  ])('of %s with %j has %s pixels', async (model, parameters, pixels, tier) => {
    const record = await ended(request(model, MEDIA_OF[model], parameters))

    expect(record.output.video_url).toContain(`-${pixels}-5000ms.mp4`)
    expect(record.usage.SR).toBe(tier)
  })

  test('renders 1080P when the size stands in the field of the other protocol', async () => {
    const legacy = await ended(request('wan2.6-t2v', {}, { resolution: '720P' }))
    const newer = await ended(request('wan2.7-t2v', {}, { size: '1280*720' }))

    expect([legacy.usage.SR, newer.usage.SR]).toEqual([1080, 1080])
  })

  test('is known to the key that submitted it, and unknown to all others and after a day', async () => {
    const id = await submitted(request('wan2.7-t2v'))
    const owner = key
    key = 'sk-other'
    const foreign = await query(id)
    const foreignCancel = await cancel(id)
    key = owner
    clock.advance(DAY_MS - 1)
    const old = await query(id)
    clock.advance(1)
    const expired = await query(id)
    const neverMade = await query('b7c9e1d2-5a40-4f3f-8e19-2f6b0d4c7a55')

    expect([foreign.status, foreign.json.output]).toEqual([200, { task_id: id, task_status: 'UNKNOWN' }])
    expect(foreignCancel.json.code).toBe('UnsupportedOperation')
    expect(old.json.output.task_status).toBe('SUCCEEDED')
    expect(expired.json.output).toEqual({ task_id: id, task_status: 'UNKNOWN' })
    expect(neverMade.json.output.task_status).toBe('UNKNOWN')
    expect((await call('GET', '/api/v1/tasks/')).json.total).toBe(0)
  })

  test('outlives a reset, so that a gateway that comes back finds it', async () => {
    const id = await submitted(request('wan2.7-t2v'))
    sandbox.reset()
    clock.advance(3000)

    expect((await query(id)).json.output.task_status).toBe('SUCCEEDED')
  })

  test('answers queries in process as it does over sockets', async () => {
    const id = await submitted(request('wan2.7-t2v'))
    const chunks: Uint8Array[] = []
    await new Promise<void>((resolve, reject) => {
      sandbox.transport().send(
        {
          method: 'GET',
          origin: 'https://dashscope.example',
          path: `/api/v1/tasks/${id}`,
          headers: ['authorization', `Bearer ${key}`],
          body: null,
          firstByteTimeoutMs: 1000,
          idleTimeoutMs: 1000,
        },
        {
          onHead: () => undefined,
          onData: (chunk) => void chunks.push(chunk),
          onEnd: resolve,
          onFailure: ({ error }) => reject(error),
        },
      )
    })

    expect(JSON.parse(Buffer.concat(chunks).toString()).output.task_id).toBe(id)
  })
})

describe('marks in the prompt', () => {
  const SECONDS = { duration: 5, input_video_duration: 0, output_video_duration: 5 }
  test.each<[mark: string, model: string, usage: object | undefined]>([
    ['', 'wan2.7-t2v', { ...SECONDS, video_count: 1, SR: 1080, ratio: '16:9' }],
    ['', 'wan2.7-i2v', { ...SECONDS, video_count: 1, SR: 1080 }],
    ['', 'wan2.6-r2v', { ...SECONDS, size: '1920*1080', video_count: 1, SR: 1080 }],
    ['', 'wan2.5-t2v-preview', { video_count: 1, video_duration: 5 }],
    ['[[video:usage=ratio]]', 'wan2.6-t2v', { ...SECONDS, video_count: 1, SR: 1080, ratio: '16:9' }],
    ['[[video:usage=size]]', 'wan2.7-t2v', { ...SECONDS, size: '1920*1080', video_count: 1, SR: 1080 }],
    ['[[video:usage=size-x]]', 'wan2.6-t2v', { ...SECONDS, size: '1920x1080', video_count: 1, SR: 1080 }],
    ['[[video:usage=video-duration]]', 'wan2.6-t2v', { video_count: 1, video_duration: 5 }],
    ['[[video:usage=video-ratio]]', 'wan2.6-t2v', { video_count: 1, video_duration: 5, video_ratio: '1920*1080' }],
    ['[[video:usage=sr-text]]', 'wan2.7-t2v', { ...SECONDS, video_count: 1, SR: '1080', ratio: '16:9' }],
    ['[[video:usage=none]]', 'wan2.7-t2v', undefined],
    [
      '[[video:usage=negative]]',
      'wan2.7-t2v',
      {
        duration: -1,
        input_video_duration: -1,
        output_video_duration: -1,
        video_count: 1,
        SR: 1080,
        ratio: '16:9',
      },
    ],
    [
      '[[video:usage=absurd]]',
      'wan2.7-t2v',
      {
        duration: 2_147_483_648,
        input_video_duration: -1.5,
        output_video_duration: '12',
        video_count: 0,
        SR: 'NaN',
        ratio: '0:0',
      },
    ],
  ])('%s on %s makes it report this usage', async (mark, model, usage) => {
    expect((await ended(marked(mark, model))).usage).toEqual(usage)
  })

  test('make seconds look like decimals', async () => {
    const id = await submitted(marked('[[video:usage=float]]'))
    clock.advance(3000)

    expect((await query(id)).text).toContain(
      '"usage":{"duration":5.0,"input_video_duration":0.0,"output_video_duration":5.0,',
    )
  })

  test('give the older shapes without times and with counts', async () => {
    const { output } = await ended(marked('[[video:usage=video-ratio]]', 'wan2.6-t2v'))

    expect(output).toEqual({
      task_id: expect.stringMatching(UUID),
      task_status: 'SUCCEEDED',
      video_url: expect.any(String),
      task_metrics: { TOTAL: 1, SUCCEEDED: 1, FAILED: 0 },
    })
  })

  test('set the seconds that were rendered and those that were given', async () => {
    const record = await ended(marked('[[video:seconds=10]] [[video:input=5]]'))
    const fraction = await ended(marked('[[video:seconds=6.5]]'))

    expect(record.usage).toMatchObject({ duration: 15, input_video_duration: 5, output_video_duration: 10 })
    expect(record.output.video_url).toContain('-10000ms.mp4')
    expect(fraction.usage.duration).toBe(6.5)
    expect(fraction.output.video_url).toContain('-6500ms.mp4')
  })

  test('are not echoed, and prompts are rewritten and cut as the model does it', async () => {
    const { output } = await ended(marked('[[video:seconds=10]] [[fault:cut=100]]', 'wan2.6-t2v'))
    const plain = await ended(request('wan2.6-t2v', { prompt: 'x'.repeat(1600) }, { prompt_extend: false }))

    expect(output.orig_prompt).toBe('A paper boat')
    expect(output.actual_prompt).toContain('A paper boat, ')
    expect(plain.output.orig_prompt).toHaveLength(1500)
    expect(plain.output).not.toHaveProperty('actual_prompt')
  })

  test.each([
    ['[[video:fail]]', 'wan2.7-t2v', 'DataInspectionFailed', 'Input data may contain inappropriate content.'],
    ['[[video:missing-field]]', 'wan2.7-i2v', 'InvalidParameter', 'Field required: input.media'],
    ['[[video:missing-field]]', 'wan2.6-i2v', 'InvalidParameter', 'Field required: input.img_url'],
    ['[[video:missing-field]]', 'wan2.6-r2v', 'InvalidParameter', 'Field required: input.reference_urls'],
  ])('%s lets a task of %s fail', async (mark, model, code, message) => {
    const id = await submitted(marked(mark, model))
    clock.advance(2999)
    const running = await query(id)
    clock.advance(1)
    const failed = await query(id)

    const metrics = model.startsWith('wan2.6') ? { task_metrics: { TOTAL: 1, SUCCEEDED: 0, FAILED: 1 } } : {}
    expect(running.json.output.task_status).toBe('RUNNING')
    expect(failed.status).toBe(200)
    expect(failed.json).toEqual({
      request_id: expect.any(String),
      output: { task_id: id, task_status: 'FAILED', code, message, ...metrics },
    })
  })

  test('let a task be unknown from the start, or run for ever', async () => {
    const unknown = await submitted(marked('[[video:unknown]]'))
    const stuck = await submitted(marked('[[video:stuck]]'))
    expect((await query(unknown)).json.output).toEqual({ task_id: unknown, task_status: 'UNKNOWN' })
    clock.advance(DAY_MS - 1)

    expect((await query(stuck)).json.output.task_status).toBe('RUNNING')
  })

  test('set how long the task waits and runs', async () => {
    const id = await submitted(marked('[[video:pending=0]] [[video:running=60000]]'))
    const atOnce = await query(id)
    clock.advance(59_999)
    const late = await query(id)
    clock.advance(1)

    expect([atOnce, late].map(({ json }) => json.output.task_status)).toEqual(['RUNNING', 'RUNNING'])
    expect((await query(id)).json.output.task_status).toBe('SUCCEEDED')
  })

  test.each([
    '[[video:usage=strange]]',
    '[[video:seconds=0]]',
    '[[video:seconds=601]]',
    '[[video:seconds]]',
    '[[video:input=-1]]',
    '[[video:fail=1]]',
    '[[video:explode]]',
  ])('that cannot be read are quoted: %s', async (mark) => {
    const answer = await submit(marked(mark))

    expect(answer.status).toBe(400)
    expect(answer.json.message).toBe(`The stand-in cannot read the mark ${mark}.`)
  })
})

describe('cancelling', () => {
  test('ends a pending task, which stays so', async () => {
    const id = await submitted(request('wan2.7-t2v'))
    clock.advance(500)
    const answer = await cancel(id)
    clock.advance(5000)
    const { output } = (await query(id)).json

    expect([answer.status, answer.json]).toEqual([200, { request_id: answer.headers.get('x-request-id') }])
    expect(output).toEqual({
      task_id: id,
      task_status: 'CANCELED',
      submit_time: expect.any(String),
      end_time: expect.any(String),
    })
  })

  test.each([
    ['a running task', '', 1000],
    ['a finished task', '', 3000],
    ['a failed task', '[[video:fail]]', 3000],
    ['a task in an unknown state', '[[video:unknown]]', 0],
  ])('%s is refused', async (_, mark, waitMs) => {
    const id = await submitted(marked(mark))
    clock.advance(waitMs)
    const before = await query(id)
    const answer = await cancel(id)

    expect([answer.status, answer.json.code]).toEqual([400, 'UnsupportedOperation'])
    expect((await query(id)).json).toEqual(before.json)
  })

  test('a task twice, or one that does not exist, is refused', async () => {
    const id = await submitted(request('wan2.7-t2v'))
    await cancel(id)

    expect((await cancel(id)).json.code).toBe('UnsupportedOperation')
    expect((await cancel('nothing')).json.code).toBe('UnsupportedOperation')
  })
})

describe('the list of tasks', () => {
  const list = async (search = ''): Promise<Json> => (await call('GET', `/api/v1/tasks/${search}`)).json

  test('holds the tasks of the key, newest first, with times in milliseconds and without results', async () => {
    const startMs = clock.now()
    const first = await submitted(request('wan2.7-t2v'))
    clock.advance(3000)
    const second = await submitted(request('wan2.6-t2v'))
    const answer = await list()

    expect(answer).toMatchObject({ total: 2, total_page: 1, page_no: 1, page_size: 10 })
    expect(answer.data).toEqual([
      expect.objectContaining({
        task_id: second,
        status: 'PENDING',
        model_name: 'wan2.6-t2v',
        gmt_create: startMs + 3000,
      }),
      expect.objectContaining({
        task_id: first,
        status: 'SUCCEEDED',
        gmt_create: startMs,
        start_time: startMs + 1000,
        end_time: startMs + 3000,
      }),
    ])
    expect(answer.data[0]).not.toHaveProperty('start_time')
    expect(JSON.stringify(answer)).not.toContain('video_url')
  })

  test('is filtered and paged', async () => {
    const ids: string[] = []
    for (let count = 0; count < 5; count++) ids.push(await submitted(request('wan2.7-t2v')))
    await cancel(ids[1] ?? '')
    const idsOf = (answer: Json): string[] => answer.data.map((task: Json) => task.task_id)

    expect(idsOf(await list(`?task_id=${ids[3]}`))).toEqual([ids[3]])
    expect(idsOf(await list('?status=CANCELED'))).toEqual([ids[1]])
    expect((await list('?model_name=wan2.6-t2v')).total).toBe(0)
    const page = await list('?page_no=2&page_size=2')
    expect(page).toMatchObject({ total: 5, total_page: 3, page_no: 2, page_size: 2 })
    expect(idsOf(page)).toEqual([ids[2], ids[1]])
    expect(idsOf(await list('?page_no=9'))).toEqual([])
    expect((await list('?page_no=0')).code).toBe('InvalidParameter')
    expect((await list('?page_size=many')).code).toBe('InvalidParameter')
  })
})

describe('DashScope allows 20 calls a second', () => {
  const queries = (count: number) => Promise.all(Array.from({ length: count }, () => query('any')))
  const refusedOf = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 429)

  test('for each key, and says how many came', async () => {
    clock.advance(1000)
    const answers = await queries(23)
    const counted = sandbox.mostTaskQueriesPerSecond
    key = 'sk-other'
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

  test('to cancel and to list too, each for itself', async () => {
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
  ])('with the code %s: %s', async (code, _, body) => {
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
  ])('but takes %s', async (_, body) => {
    expect((await submit(body)).status).toBe(200)
  })

  test('but takes a stored file with the header for it', async () => {
    const body = request('wan2.6-i2v', { img_url: 'oss://bucket/p.png' })

    expect((await submit(body, { 'x-dashscope-ossresourceresolve': 'enable' })).status).toBe(200)
  })

  test('a missing key, a call that would wait for the video, and models that are none', async () => {
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

describe('faults', () => {
  test('strike a submission by a mark, and make no task', async () => {
    const limited = await submit(marked('[[fault:status=429,retry-after=7]]'))
    await expect(submit(marked('[[fault:reset]]'))).rejects.toThrow()

    expect([limited.status, limited.json.code]).toEqual([429, 'Throttling.RateQuota'])
    expect(limited.headers.get('retry-after')).toBe('7')
  })

  test('leave a task behind when the answer to its submission is lost', async () => {
    await expect(submit(marked('[[fault:reset]]'))).rejects.toThrow()

    expect((await call('GET', '/api/v1/tasks/')).json.total).toBe(1)
  })

  test('strike queries from the queue, and the task goes on', async () => {
    const id = await submitted(request('wan2.7-t2v'))
    clock.advance(3000)
    sandbox.fault({ kind: 'status', status: 503, operation: 'video-task' })
    sandbox.fault({ kind: 'usage', value: -1, operation: 'video-task' })
    sandbox.fault({ kind: 'no-usage', operation: 'video-task' })
    const [broken, absurd, silent, whole] = [await query(id), await query(id), await query(id), await query(id)]

    expect([broken?.status, broken?.json.code]).toEqual([503, 'ModelUnavailable'])
    expect(absurd?.json.usage).toMatchObject({ duration: -1, SR: -1 })
    expect(silent?.json).not.toHaveProperty('usage')
    expect(whole?.json.usage.duration).toBe(5)
  })

  test('are told apart by the names of the operations', async () => {
    await submitted(request('wan2.7-t2v'))
    await query('x')
    await cancel('x')
    await call('GET', '/api/v1/tasks/')

    expect(sandbox.requests.map(({ vendor, operation }) => `${vendor} ${operation}`)).toEqual([
      'dashscope videos',
      'dashscope video-task',
      'dashscope video-cancel',
      'dashscope video-list',
    ])
  })
})
