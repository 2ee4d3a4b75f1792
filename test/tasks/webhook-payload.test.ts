import { describe, expect, test } from 'vitest'
import { videoTask } from '../../src/endpoints/videos/video-endpoint.ts'
import type { TaskRecord, TaskState } from '../../src/stores/task-store.ts'
import { newDelivery } from '../../src/tasks/webhook-payload.ts'
import { countingIds } from '../../src/testing/index.ts'

const NOW_MS = Date.UTC(2026, 4, 5, 6, 7, 8, 90)
const record = { id: 'task_one', status: 'completed', content: { video_url: 'https://cdn.example.com/v.mp4' } }

function task(state: TaskState, webhookUrl?: string): TaskRecord {
  return {
    id: 'task_one',
    accountId: 'acct_one',
    keyId: 'key_one',
    state,
    upstreamId: 'upstream-1',
    credentialId: 'vendor:1',
    holdId: undefined,
    createdAtMs: 1,
    updatedAtMs: 2,
    nextPollAtMs: 3,
    deadlineAtMs: 4,
    details: {
      requestId: 'req_one',
      model: 'wv2.7-t2v',
      vendor: 'vendor',
      heldUsage: {},
      endpoint: 'videos',
      variant: '720p',
      facts: {},
      polls: 1,
      unknownReports: 0,
      ...(webhookUrl === undefined ? {} : { webhookUrl }),
    },
  }
}

const delivered = (state: TaskState, webhookUrl?: string) =>
  newDelivery({
    ids: countingIds(),
    nowMs: NOW_MS,
    task: task(state, webhookUrl),
    message: { eventType: videoTask.eventType, eventData: () => record },
  })

describe('newDelivery', () => {
  test.each(['completed', 'failed', 'cancelled'] as const)('tells that a task is %s, with its record', (state) => {
    const delivery = delivered(state, 'https://receiver.example.com/hook?a=1')

    expect(delivery).toEqual({
      id: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
      accountId: 'acct_one',
      taskId: 'task_one',
      url: 'https://receiver.example.com/hook?a=1',
      body: expect.any(String),
      createdAtMs: NOW_MS,
      nextAttemptAtMs: NOW_MS,
    })
    expect(JSON.parse(delivery?.body ?? '')).toEqual({
      id: delivery?.id,
      object: 'event',
      type: `video.generation.${state}`,
      created_at: Math.floor(NOW_MS / 1000),
      timestamp: '2026-05-05T06:07:08.090Z',
      data: record,
    })
  })

  test('is undefined for a task without a webhook_url', () => {
    expect(delivered('completed')).toBeUndefined()
  })

  test.each(['submitting', 'unknown', 'queued', 'in_progress'] as const)('refuses a task that is %s', (state) => {
    expect(() => delivered(state, 'https://receiver.example.com')).toThrow(
      new RangeError(`a task in state ${state} has no message`),
    )
  })
})
