import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { TaskRecord } from '../../src/stores/task-store.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'

/** Number of tasks. Every 250th task is a video, and `task_0003` is the newest video. */
const TASKS = 1_000
const NOW_MS = Date.now()
const VIDEOS = ['task_0003', 'task_0002', 'task_0001', 'task_0000']

const store = memoryStore()
let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ store })
  for (let index = 0; index < TASKS; index++) await store.tasks.insert(ended(index))
})
afterAll(() => started.close())

function ended(index: number): TaskRecord {
  const isVideo = index % 250 === 0
  const atMs = NOW_MS - TASKS + index
  const number = String(isVideo ? index / 250 : index).padStart(4, '0')
  return {
    ...{ id: isVideo ? `task_${number}` : `resp_${number}`, accountId: TEST_ACCOUNT, keyId: 'key_1', state: 'failed' },
    ...{ upstreamId: undefined, credentialId: 'dashscope:0123456789abcdef', holdId: undefined },
    ...{ createdAtMs: atMs, updatedAtMs: atMs, nextPollAtMs: atMs, deadlineAtMs: atMs },
    details: {
      ...{ requestId: `req_${index}`, model: 'wv2.7-t2v', vendor: 'dashscope', heldUsage: {}, variant: '720p' },
      ...{ endpoint: isVideo ? 'videos' : 'responses', facts: {}, polls: 1, unknownReports: 0 },
    },
  }
}

interface List {
  readonly data: readonly { readonly id: string }[]
  readonly has_more: boolean
}

async function listed(query: string): Promise<{ ids: string[]; hasMore: boolean }> {
  const headers = { authorization: `Bearer ${TEST_KEY}` }
  const answer = await fetch(`${started.url}/v1/videos/generations?${query}`, { headers })
  const { data, has_more: hasMore } = (await answer.json()) as List
  return { ids: data.map(({ id }) => id), hasMore }
}

test.each([
  ['limit=10', VIDEOS, false],
  ['limit=2', VIDEOS.slice(0, 2), true],
  ['limit=10&after=task_0002', ['task_0001', 'task_0000'], false],
  ['limit=1&before=task_0001', ['task_0002'], true],
  ['limit=10&before=task_0001', ['task_0003', 'task_0002'], false],
  ['limit=10&after=task_0003&before=task_0000', ['task_0002', 'task_0001'], false],
])('videos among other tasks are listed with %s', async (query, ids, hasMore) => {
  const page = await listed(query)

  expect(page.ids).toEqual(ids)
  expect(page.hasMore).toBe(hasMore)
})

test('a short page of them takes few questions to the store', async () => {
  const list = vi.spyOn(store.tasks, 'list')

  await listed('limit=1&after=task_0002')

  expect(list.mock.calls.length).toBeLessThan(10)
  list.mockRestore()
})
