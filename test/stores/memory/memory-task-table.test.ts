import { describe, expect, it } from 'vitest'
import { MemoryTaskTable } from '../../../src/stores/memory/memory-task-table.ts'
import type { TaskState } from '../../../src/stores/task-store.ts'
import { exampleTask } from '../../../src/testing/contracts/contract-runner.ts'

const ACCOUNT = 'account_1'

function idsOf(entries: Iterable<{ readonly record: { readonly id: string } }>): string[] {
  return [...entries].map(({ record }) => record.id)
}

describe('a table of tasks', () => {
  it('lists every open task once among the open ones, whether or not a vendor is polled about it', () => {
    const table = new MemoryTaskTable()
    const states: TaskState[] = ['submitting', 'unknown', 'queued', 'in_progress', 'completed', 'failed', 'cancelled']
    for (const state of states)
      table.insert(exampleTask({ id: state, upstreamId: undefined, state, accountId: ACCOUNT }))

    expect(idsOf(table.open()).sort()).toEqual(['in_progress', 'queued', 'submitting', 'unknown'])
    expect(idsOf(table.finished())).toEqual(['completed', 'failed', 'cancelled'])
    expect(states.filter((id) => table.isOpen(id))).toEqual(['submitting', 'unknown', 'queued', 'in_progress'])
  })

  it('follows a task through its states and from one vendor account to another', () => {
    const table = new MemoryTaskTable()
    table.insert(exampleTask({ state: 'submitting', credentialId: '', upstreamId: undefined, accountId: ACCOUNT }))
    const replace = (changes: Parameters<typeof exampleTask>[0]) =>
      table.replace(exampleTask({ accountId: ACCOUNT, ...changes }))

    replace({ state: 'queued', credentialId: 'v:1', upstreamId: 'u1' })
    expect([idsOf(table.open()), idsOf(table.polled('v:1'))]).toEqual([['task_1'], ['task_1']])
    expect(table.find(ACCOUNT, 'u1')?.state).toBe('queued')
    replace({ state: 'in_progress', credentialId: 'v:2', upstreamId: 'u2' })
    expect([idsOf(table.polled('v:1')), idsOf(table.polled('v:2'))]).toEqual([[], ['task_1']])
    expect([table.find(ACCOUNT, 'u1'), table.find(ACCOUNT, 'u2')?.state]).toEqual([undefined, 'in_progress'])
    replace({ state: 'completed', credentialId: 'v:2', upstreamId: 'u2' })
    expect([idsOf(table.open()), idsOf(table.polled('v:2')), idsOf(table.finished())]).toEqual([[], [], ['task_1']])
    table.remove('task_1')
    expect([table.find(ACCOUNT, 'task_1'), table.find(ACCOUNT, 'u2'), idsOf(table.finished())]).toEqual([
      undefined,
      undefined,
      [],
    ])
  })

  it("keeps a vendor's id of one account apart from the same id of another", () => {
    const table = new MemoryTaskTable()
    table.insert(exampleTask({ id: 'task_1', accountId: 'account_1', upstreamId: 'same' }))
    table.insert(exampleTask({ id: 'task_2', accountId: 'account_2', upstreamId: 'same' }))
    table.remove('task_1')

    expect(table.find('account_1', 'same')).toBeUndefined()
    expect(table.find('account_2', 'same')?.id).toBe('task_2')
    expect(table.find('account_3', 'same')).toBeUndefined()
  })

  it.each([1, 31, 32, 33, 34, 200])('lists %i tasks by creation, then id, in whatever order they came', (count) => {
    const tasks = Array.from({ length: count }, (_, index) => {
      const id = `task_${((index * 7_919) % 1_000).toString().padStart(3, '0')}`
      return exampleTask({ id, accountId: ACCOUNT, upstreamId: undefined, createdAtMs: Math.floor((index * 31) % 17) })
    })
    const table = new MemoryTaskTable()
    for (const task of tasks) table.insert(task)
    const newestFirst = [...tasks].sort(
      (one, other) => other.createdAtMs - one.createdAtMs || (one.id < other.id ? 1 : -1),
    )

    const page = table.list(ACCOUNT, { limit: count })

    expect(page.tasks.map(({ id }) => id)).toEqual(newestFirst.map(({ id }) => id))
    for (const task of tasks) table.remove(task.id)
    expect(table.list(ACCOUNT, { limit: count }).tasks).toEqual([])
  })
})
