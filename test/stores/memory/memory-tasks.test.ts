import { describe, expect, it } from 'vitest'
import { longestOverdue } from '../../../src/stores/memory/account-shares.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import type { TaskPage, TaskState } from '../../../src/stores/task-store.ts'
import type { WebhookDelivery } from '../../../src/stores/webhook-store.ts'
import {
  exampleAnswer,
  exampleClaim,
  exampleDelivery,
  exampleReservation,
  exampleTask,
  fundedLedger,
} from '../../../src/testing/contracts/contract-runner.ts'
import { exampleResponse } from '../../../src/testing/contracts/response-store-contract.ts'

const NOW_MS = 1_750_000_000_000

function end(store: ReturnType<typeof memoryStore>, id: string, state: TaskState = 'completed'): void {
  store.tasks.change({ id, from: ['queued'], set: { state } }, NOW_MS)
}

describe('memory tasks', () => {
  it('answers at once, without a promise', () => {
    const { tasks, webhooks, interactions } = memoryStore()
    tasks.insert(exampleTask())

    expect(tasks.find('account_1', 'task_1')).toEqual(exampleTask())
    expect(tasks.change({ id: 'task_1', from: ['queued'], set: {} }, NOW_MS)).toEqual({})
    expect(webhooks.list('account_1', 'task_1')).toEqual([])
    expect(interactions.find('account_1', 'v1_1', NOW_MS)).toBeUndefined()
  })

  it('drops the tasks that ended first beyond the number allowed, and never an open one', () => {
    const store = memoryStore({ maxFinishedTasks: 2 })
    for (const id of ['task_1', 'task_2', 'task_3', 'task_4', 'task_5']) {
      store.tasks.insert(exampleTask({ id, upstreamId: `upstream_${id}`, createdAtMs: NOW_MS }))
    }
    for (const id of ['task_4', 'task_2', 'task_3']) end(store, id)
    const page = store.tasks.list('account_1', { limit: 10 }) as TaskPage

    expect(page.tasks.map(({ id }) => id)).toEqual(['task_5', 'task_3', 'task_2', 'task_1'])
    expect(store.tasks.find('account_1', 'task_4')).toBeUndefined()
    expect(store.tasks.find('account_1', 'upstream_task_4')).toBeUndefined()
  })

  it('leaves task, hold and key as they were where the answer of a task cannot be kept', async () => {
    const store = memoryStore()
    const claim = exampleClaim()
    const task = exampleTask({ holdId: 'hold_1' })
    await fundedLedger(store, 1_000n)
    store.ledger.reserve(exampleReservation({ amount: 400n, claim, task }), NOW_MS)
    const keeps = exampleResponse({ response: { output: [], odd: 1n } })
    const resolve = { kind: 'settle', amount: 300n, description: 'x', details: undefined } as const
    const set = { state: 'completed' } as const
    const answered = { claim, answer: exampleAnswer('{}') }

    expect(() => store.tasks.change({ id: task.id, from: ['queued'], set, resolve, keeps, answered }, NOW_MS)).toThrow(
      TypeError,
    )
    expect(store.tasks.find('account_1', task.id)).toEqual(task)
    expect(store.ledger.account('account_1')).toMatchObject({ balance: 600n, held: 400n })
    expect(store.idempotency.claim(claim, NOW_MS)).toEqual({ status: 'in_flight' })
  })

  it('drops the oldest messages that wait no more beyond the number allowed, and never a pending one', () => {
    const store = memoryStore({ maxFinishedDeliveries: 1 })
    store.tasks.insert(exampleTask())
    for (const id of ['msg_1', 'msg_2', 'msg_3']) {
      store.tasks.change({ id: 'task_1', from: ['queued'], set: {}, delivery: exampleDelivery({ id }) }, NOW_MS)
    }
    const attempt = { atMs: NOW_MS, status: 204, durationMs: 1 }
    for (const id of ['msg_2', 'msg_1']) {
      store.webhooks.record(id, { attempt, state: 'delivered', nextAttemptAtMs: NOW_MS })
    }
    const left = store.webhooks.list('account_1', 'task_1') as readonly WebhookDelivery[]

    expect(left.map(({ id, state }) => ({ id, state }))).toEqual([
      { id: 'msg_1', state: 'delivered' },
      { id: 'msg_3', state: 'pending' },
    ])
    expect(store.webhooks.resend('account_1', 'msg_2', NOW_MS)).toBe(false)
  })

  it('drops the oldest conversations beyond the number allowed', () => {
    const { interactions } = memoryStore({ maxInteractions: 2 })
    const record = { accountId: 'account_1', vendor: 'gemini', credentialId: 'f', upstreamId: 'u', model: 'm' }
    const times = { createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 60_000 }
    for (const id of ['v1_1', 'v1_2', 'v1_3']) interactions.save({ ...record, ...times, id })
    const found = ['v1_1', 'v1_2', 'v1_3'].map((id) => interactions.find('account_1', id, NOW_MS) !== undefined)

    expect(found).toEqual([false, true, true])
  })

  it('finds the longest overdue among 10,000 in any order', () => {
    const entries = Array.from({ length: 10_000 }, (_, index) => (index * 7_919) % 10_000)
    const timeOf = (entry: number) => (entry % 2 === 0 ? entry : undefined)

    expect(longestOverdue(entries, timeOf, 9_000, 5)).toEqual([0, 2, 4, 6, 8])
    expect(longestOverdue(entries, timeOf, 5, 5)).toEqual([0, 2, 4])
    expect(longestOverdue(entries, timeOf, 9_000, 0)).toEqual([])
  })
})
