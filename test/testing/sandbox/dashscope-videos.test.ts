import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { fakeClock, sandboxVendors } from '../../../src/testing/index.ts'
import type { Json } from './support/running-sandbox.ts'
import { ASYNC, MEDIA_OF, marked, request, START_MS, SUBMIT, videoSandbox } from './support/video-sandbox.ts'

const DAY_MS = 86_400_000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const videos = videoSandbox()
const { clock, sandbox, call, submit, query, cancel, submitted, ended } = videos

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
    expect(new URL(first.output.video_url).origin).toBe(videos.origin)
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
  ])('has for %s with %j the pixels %s', async (model, parameters, pixels, tier) => {
    const record = await ended(request(model, MEDIA_OF[model], parameters))

    expect(record.output.video_url).toContain(`-${pixels}-5000ms.mp4`)
    expect(record.usage.SR).toBe(tier)
  })

  test('renders 1080P if the size is in the field of the other protocol', async () => {
    const legacy = await ended(request('wan2.6-t2v', {}, { resolution: '720P' }))
    const newer = await ended(request('wan2.7-t2v', {}, { size: '1280*720' }))

    expect([legacy.usage.SR, newer.usage.SR]).toEqual([1080, 1080])
  })

  test('is known to the key that submitted it, and unknown to all others and after a day', async () => {
    const id = await submitted(request('wan2.7-t2v'))
    const owner = videos.key
    videos.key = 'sk-other'
    const foreign = await query(id)
    const foreignCancel = await cancel(id)
    videos.key = owner
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
          headers: ['authorization', `Bearer ${videos.key}`],
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
