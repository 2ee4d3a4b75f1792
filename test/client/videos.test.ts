import { http } from 'msw'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { VideoProgress } from '../../src/client/index.ts'
import { advance, BASE_URL, json, type StandIn, showing, startStandIn, unreachable } from './stand-in.ts'

const PATH = '/videos/generations/task_1'
const record = (status: string) => json({ id: 'task_1', task_id: 'task_1', status, request_id: 'req_1' })

let standIn: StandIn

beforeAll(() => {
  standIn = startStandIn()
})
afterEach(() => standIn.server.resetHandlers())
afterAll(() => standIn.server.close())

describe('waiting for a video', () => {
  test('polls less and less often, reports each poll, and returns the record in the end', async () => {
    standIn.server.use(
      showing(PATH, record('queued'), record('in_progress'), record('in_progress'), record('completed')),
    )
    const seen: VideoProgress[] = []
    const waiting = standIn.client.videos.wait('task_1', { onProgress: (progress) => void seen.push(progress) })
    for (const delayMs of [1_000, 1_500, 2_250]) {
      await untilSeen(seen, seen.length + 1)
      await advance(standIn.clock, delayMs)
    }
    const task = await waiting

    expect(task.status).toBe('completed')
    expect(seen.map((progress) => [progress.task.status, progress.elapsedMs])).toEqual([
      ['queued', 0],
      ['in_progress', 1_000],
      ['in_progress', 2_500],
      ['completed', 4_750],
    ])
    expect(standIn.clock.pending).toBe(0)
  })

  test.each(['failed', 'cancelled'])('gives the record of one that %s, too', async (status) => {
    standIn.server.use(showing(PATH, record(status)))

    expect(await standIn.client.videos.wait({ id: 'task_1' })).toMatchObject({ status })
  })

  test('gives up after its timeout, and the video continues', async () => {
    standIn.server.use(showing(PATH, record('queued')))
    const seen: VideoProgress[] = []
    const waiting = standIn.client.videos
      .wait('task_1', { timeoutMs: 5_000, intervalMs: 4_000, onProgress: (progress) => void seen.push(progress) })
      .catch((error: unknown) => error)
    await untilSeen(seen, 1)
    await advance(standIn.clock, 4_000)
    await untilSeen(seen, 2)
    await advance(standIn.clock, 1_000)

    expect(await waiting).toMatchObject({ code: 'task_not_finished', retryable: true, requestId: 'req_1' })
    expect(seen.map(({ elapsedMs }) => elapsedMs)).toEqual([0, 4_000])
    expect(standIn.clock.pending).toBe(0)
  })

  test('gives up in time even when the gateway does not answer', async () => {
    standIn.server.use(http.get(`${BASE_URL}${PATH}`, () => new Promise<Response>(() => {})))
    const count = standIn.requests.length
    const waiting = standIn.client.videos.wait('task_1', { timeoutMs: 5_000 }).catch((error: unknown) => error)
    while (standIn.requests.length === count) await new Promise((resolve) => setImmediate(resolve))
    standIn.clock.advance(5_000)

    expect(await waiting).toMatchObject({ code: 'task_not_finished', message: expect.stringContaining('task_1') })
    expect(standIn.clock.pending).toBe(0)
  })

  test('tolerates a gateway that is unreachable for half a minute', async () => {
    const away = Array.from({ length: 6 }, () => unreachable)
    standIn.server.use(showing(PATH, record('queued'), ...away, record('completed')))
    const count = standIn.requests.length
    const waiting = standIn.client.videos.wait('task_1')
    let isOver = false
    void waiting.then(() => {
      isOver = true
    })
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve))
      standIn.clock.advance(50)
    }

    expect(await waiting).toMatchObject({ status: 'completed' })
    expect(standIn.requests.length - count).toBe(8)
  })

  test('does not, where retries are off', async () => {
    standIn.server.use(showing(PATH, unreachable, record('completed')))
    const waiting = standIn.clientWith({ maxRetries: 0 }).videos.wait('task_1')

    await expect(waiting).rejects.toMatchObject({ code: 'upstream_unavailable' })
    expect(standIn.clock.pending).toBe(0)
  })

  test("ends at once with the reason of the caller's signal", async () => {
    standIn.server.use(showing(PATH, record('queued')))
    const leaving = new AbortController()
    const seen: VideoProgress[] = []
    const waiting = standIn.client.videos
      .wait('task_1', { signal: leaving.signal, onProgress: (progress) => void seen.push(progress) })
      .catch((error: unknown) => error)
    await untilSeen(seen, 1)
    leaving.abort()

    expect(await waiting).toMatchObject({ name: 'AbortError' })
    expect(standIn.clock.pending).toBe(0)
  })
})

test('a page of videos is asked for by its cursors, and an id is written so that it stays one', async () => {
  standIn.server.use(
    showing('/videos/generations', json({ object: 'list', data: [], has_more: false, first_id: null, last_id: null })),
    showing('/videos/generations/:id', record('completed')),
  )
  await standIn.client.videos.list({ limit: 5, after: 'task_9' })
  await standIn.client.videos.list()
  await standIn.client.videos.get('../models?x')
  const urls = standIn.requests.slice(-3).map(({ url }) => new URL(url))

  expect(urls[0]?.search).toBe('?limit=5&after=task_9')
  expect(urls[1]?.search).toBe('')
  expect(urls[2]?.pathname).toBe('/v1/videos/generations/..%2Fmodels%3Fx')
})

/** Waits until `count` polls were reported, and the wait for the next one has begun. */
async function untilSeen(seen: readonly unknown[], count: number): Promise<void> {
  while (seen.length < count) await new Promise((resolve) => setImmediate(resolve))
}
