import { describe, expect, test } from 'vitest'
import { marked, request, videoSandbox } from './support/video-sandbox.ts'

const DAY_MS = 86_400_000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const { clock, sandbox, call, submit, query, cancel, submitted, ended } = videoSandbox()

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

  test('can make a task unknown from the start, or run it indefinitely', async () => {
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
  ])('are quoted if they are malformed: %s', async (mark) => {
    const answer = await submit(marked(mark))

    expect(answer.status).toBe(400)
    expect(answer.json.message).toBe(`The stand-in cannot read the mark ${mark}.`)
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

  test('are distinguished by the names of the operations', async () => {
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
