import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { type FakeClock, fakeClock, type Sandbox, sandboxVendors } from '../../../../src/testing/index.ts'
import type { Json } from './running-sandbox.ts'

export const SUBMIT = '/api/v1/services/aigc/video-generation/video-synthesis'
/** 17:00:00.118 in China. */
export const START_MS = Date.UTC(2026, 7, 3, 9, 0, 0, 118)
export const ASYNC = { 'content-type': 'application/json', 'x-dashscope-async': 'enable' }

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Json
}

/** A sandbox on a port whose videos follow a clock of the test: 1 s until they run, 2 s until they end. */
export interface VideoSandbox {
  readonly clock: FakeClock
  readonly sandbox: Sandbox
  readonly origin: string
  /** Key of the caller's account. Each test uses a new one. */
  key: string
  readonly call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly submit: (body: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly query: (id: string) => Promise<Answer>
  readonly cancel: (id: string) => Promise<Answer>
  /** Submits a task and returns its id. */
  readonly submitted: (body: unknown) => Promise<string>
  /** Returns the record of a task once it has ended. */
  readonly ended: (body: unknown) => Promise<Json>
}

/** Starts the sandbox before the tests of a file and closes it after them. */
export function videoSandbox(): VideoSandbox {
  const clock = fakeClock({ startMs: START_MS })
  const sandbox = sandboxVendors({ clock, videoPendingMs: 1000, videoRunningMs: 2000 })
  let origin = ''
  let keys = 0
  let key = ''
  beforeAll(async () => {
    origin = (await sandbox.listen()).origin
  })
  beforeEach(() => {
    sandbox.reset()
    // Tasks outlive a reset, so each test has its own account.
    key = `sk-test-${keys++}`
  })
  afterAll(() => sandbox.close())

  const call: VideoSandbox['call'] = async (method, path, body, headers = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(origin + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...(body === undefined ? {} : { body: text }),
    })
    const answer = await response.text()
    return { status: response.status, headers: response.headers, text: answer, json: JSON.parse(answer) as Json }
  }
  const submit: VideoSandbox['submit'] = (body, headers = {}) => call('POST', SUBMIT, body, { ...ASYNC, ...headers })
  const query: VideoSandbox['query'] = (id) => call('GET', `/api/v1/tasks/${id}`)
  const cancel: VideoSandbox['cancel'] = (id) => call('POST', `/api/v1/tasks/${id}/cancel`)
  const submitted: VideoSandbox['submitted'] = async (body) => {
    const answer = await submit(body)
    expect([answer.status, answer.json.code, answer.json.message]).toEqual([200, undefined, undefined])
    return answer.json.output.task_id
  }
  const ended: VideoSandbox['ended'] = async (body) => {
    const id = await submitted(body)
    clock.advance(3000)
    return (await query(id)).json
  }
  return {
    clock,
    sandbox,
    get origin() {
      return origin
    },
    get key() {
      return key
    },
    set key(other) {
      key = other
    },
    call,
    submit,
    query,
    cancel,
    submitted,
    ended,
  }
}

export const request = (model: string, input: object = {}, parameters?: object): object => ({
  model,
  input: { prompt: 'A paper boat', ...input },
  ...(parameters === undefined ? {} : { parameters }),
})
/** Returns a request whose prompt has a mark that steers the stand-in. */
export const marked = (mark: string, model = 'wan2.7-t2v'): object =>
  request(model, { prompt: `A paper boat ${mark}`, ...MEDIA_OF[model] })

export const media = (...types: string[]): object => ({
  media: types.map((type) => ({ type, url: 'https://cdn.example.net/file' })),
})
export const PICTURE = { img_url: 'https://cdn.example.net/p.png' }
export const REFERENCES = { reference_urls: ['https://cdn.example.net/a.mp4'] }
export const MEDIA_OF: Readonly<Record<string, object>> = {
  'wan2.5-i2v-preview': PICTURE,
  'wan2.6-i2v': PICTURE,
  'wan2.6-i2v-flash': PICTURE,
  'wan2.6-r2v': REFERENCES,
  'wan2.7-i2v': media('first_frame'),
  'wan2.7-r2v': media('reference_image'),
}
