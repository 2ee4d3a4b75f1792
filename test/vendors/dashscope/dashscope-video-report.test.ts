import { describe, expect, it, test } from 'vitest'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { wireAnswer } from '../shared/vendor-call.ts'

const API_KEY = 'sk-test-0123456789abcdef'
const videos = dashscope({ apiKey: API_KEY }).videos!
const TASK_ID = 'b7c9e1d2-5a40-4f3f-8e19-2f6b0d4c7a55'
const VIDEO_URL = 'https://dashscope-x.oss.example.net/a.mp4?Expires=1'

function reportOf(output: Record<string, unknown>, usage?: unknown, top: Record<string, unknown> = {}) {
  return videos.report(wireAnswer({ request_id: 'r1', output: { task_id: TASK_ID, ...output }, usage, ...top }))
}

function succeeded(usage: unknown) {
  return reportOf({ task_status: 'SUCCEEDED', video_url: VIDEO_URL }, usage)
}

describe('an accepted video task', () => {
  it('is known by the vendor’s id', () => {
    const output = { task_id: TASK_ID, task_status: 'PENDING' }

    expect(videos.accepted(wireAnswer({ request_id: 'r1', output }))).toEqual({ upstreamId: TASK_ID, output })
    expect(videos.accepted(wireAnswer({ request_id: 'r1', output, usage: {} }))?.upstreamId).toBe(TASK_ID)
  })

  test.each([
    [{ code: 'InvalidParameter', message: 'Field required: input.media', request_id: 'r1' }],
    [{ output: {} }],
    [{ output: { task_id: '' } }],
    [{ output: { task_id: 7 } }],
    [{ output: { task_id: '..' } }],
    [{ output: { task_id: 'a/b' } }],
    [{ output: [] }],
    [{ output: null }],
    [[]],
    ['<html>'],
    [''],
  ])('is not made of %j', (body) => {
    expect(videos.accepted(wireAnswer(body))).toBeUndefined()
  })
})

describe('a report about a video task', () => {
  test.each([
    ['PENDING', 'queued'],
    ['RUNNING', 'in_progress'],
    ['SUSPENDED', 'in_progress'],
    ['SUCCEEDED', 'completed'],
    ['FAILED', 'failed'],
    ['CANCELED', 'cancelled'],
    ['CANCELLED', 'cancelled'],
    ['UNKNOWN', 'unknown'],
  ])('maps the status %s to %s', (task_status, status) => {
    expect(reportOf({ task_status })).toMatchObject({ status, billed: undefined, contentUrl: undefined })
  })

  test.each([
    [{ output: { task_id: TASK_ID, task_status: 'RENDERED' } }],
    [{ output: { task_id: TASK_ID, task_status: 'constructor' } }],
    [{ output: { task_id: TASK_ID, task_status: ['FAILED'] } }],
    [{ output: { task_id: TASK_ID } }],
    [{ output: 'FAILED' }],
    [{ code: 'Throttling', message: 'slow down' }],
    [null],
    ['<html>'],
  ])('is ignored if its status is unknown: %j', (body) => {
    expect(videos.report(wireAnswer(body))).toBeUndefined()
  })

  it('holds the vendor’s members as they are', () => {
    const output = {
      task_id: TASK_ID,
      task_status: 'SUCCEEDED',
      submit_time: '2026-08-03 09:12:40.118',
      orig_prompt: 'x',
      video_url: VIDEO_URL,
    }
    const usage = {
      duration: 11,
      input_video_duration: 5,
      output_video_duration: 6,
      video_count: 1,
      SR: 720,
      ratio: '9:16',
    }

    expect(videos.report(wireAnswer({ request_id: 'r1', output, usage }))).toEqual({
      status: 'completed',
      output,
      usage,
      billed: { videoSeconds: 11 },
      variant: '720p',
      contentUrl: VIDEO_URL,
      facts: undefined,
      error: undefined,
    })
  })

  test.each([
    ['2.7', { duration: 11, input_video_duration: 5, output_video_duration: 6, SR: 720 }, 11],
    ['2.6', { duration: 5, size: '1280*720', output_video_duration: 5, video_count: 1, SR: 720 }, 5],
    ['2.6 in the other shape', { video_count: 1, video_duration: 5 }, 5],
    ['older models', { video_count: 1, video_duration: 10, video_ratio: '1920*1080' }, 10],
    ['fractions', { duration: 10.0 }, 10],
    ['parts alone', { input_video_duration: 2.5, output_video_duration: 6 }, 8.5],
    ['output alone', { output_video_duration: 6 }, 6],
    ['zero', { duration: 0, video_duration: 5 }, 0],
    ['null', { duration: null, video_duration: 5 }, 5],
  ])('bills the seconds of %s', (_name, usage, videoSeconds) => {
    expect(succeeded(usage)?.billed).toEqual({ videoSeconds })
  })

  test.each([[{}], [undefined], [null], ['5'], [[5]], [{ video_count: 1 }]])(
    'bills nothing that it does not say: %j',
    (usage) => {
      expect(succeeded(usage)?.billed).toBeUndefined()
    },
  )

  test.each([
    [{ duration: -1 }, -1],
    [{ duration: 2 ** 31 }, 2 ** 31],
    [{ duration: '12' }, Number.NaN],
    [{ duration: {} }, Number.NaN],
    [{ output_video_duration: 5, input_video_duration: '5' }, Number.NaN],
  ])('lets absurd seconds through as such, and never takes them for silence: %j', (usage, videoSeconds) => {
    expect(succeeded(usage)?.billed).toEqual({ videoSeconds })
  })

  test.each([
    [{ SR: 480 }, '480p'],
    [{ SR: '1080' }, '1080p'],
    [{ SR: '720P' }, '720p'],
    [{ SR: '540' }, '540p'],
    [{ size: '1280*720' }, '720p'],
    [{ size: '1920x1080' }, '1080p'],
    [{ size: '1104x832' }, '720p'],
    [{ video_ratio: '1920*1080' }, '1080p'],
    [{ SR: null, size: '1248*1648' }, '1080p'],
    [{ SR: -720, size: '832*480' }, '480p'],
    [{ video_ratio: '16:9' }, undefined],
    [{ ratio: '3368:3409' }, undefined],
    [{ size: '7*7' }, undefined],
    [{ SR: 720.5 }, undefined],
    [{}, undefined],
  ])('reads the tier of %j', (usage, resolution) => {
    expect(succeeded(usage)?.variant).toBe(resolution)
  })

  test.each([
    [{ seed: 7 }, 7],
    [{ seed: 0 }, 0],
    [{ seed: '7' }, undefined],
    [{ video_url: 7 }, undefined],
  ])('reads the seed, if any: %j', (fields, seed) => {
    expect(reportOf({ task_status: 'SUCCEEDED', ...fields })?.facts?.['seed']).toBe(seed)
  })

  test.each([[7], [''], [null]])('has no content when the address is %j', (video_url) => {
    expect(reportOf({ task_status: 'SUCCEEDED', video_url })?.contentUrl).toBeUndefined()
  })

  const failure = { code: 'DataInspectionFailed', message: 'Input data may contain inappropriate content.' }

  it('names a fault of the account only to the operator', () => {
    const arrears = { code: 'Arrearage', message: `Access denied for ${API_KEY}, is your account in good standing?` }
    const report = reportOf({ task_status: 'FAILED', ...arrears })

    expect(report?.error).toEqual({
      code: 'upstream_unavailable',
      message: 'Service unavailable: the model vendor cannot answer at the moment.',
    })
    expect(report?.output).toMatchObject({ task_status: 'FAILED', ...report?.error })
    expect(report?.accountProblem).toMatchObject({ kind: 'operator', code: 'Arrearage' })
    expect(report?.accountProblem?.message).toContain('is your account in good standing?')
    expect(JSON.stringify(report)).not.toContain(API_KEY)
  })

  it('contains the reason of a failed task, wherever the vendor puts it', () => {
    expect(reportOf({ task_status: 'FAILED', ...failure })?.error).toEqual(failure)
    expect(reportOf({ task_status: 'FAILED' }, undefined, failure)?.error).toEqual(failure)
    expect(reportOf({ task_status: 'FAILED' })?.error).toEqual({
      code: 'task_failed',
      message: 'The vendor could not render the video.',
    })
    expect(reportOf({ task_status: 'RUNNING', ...failure })?.error).toBeUndefined()
  })

  it('holds no key of the operator', () => {
    const report = reportOf({ task_status: 'FAILED', code: 'X', message: `bad key ${API_KEY}` })

    expect(report?.error?.message).toBe('bad key [redacted]')
    expect(JSON.stringify(report)).not.toContain(API_KEY)
  })
})
