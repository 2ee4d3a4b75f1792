import type { DueQuery, TaskRecord, TaskState } from '../../stores/task-store.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleTask, type TaskContractStore } from './store-example.ts'

const LEASE_MS = 30_000
const STATES: readonly TaskState[] = [
  'submitting',
  'unknown',
  'queued',
  'in_progress',
  'completed',
  'failed',
  'cancelled',
]

/** How workers share tasks out among themselves. */
export function describeTaskTaking(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<TaskContractStore>,
): void {
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))
  const idsOf = (tasks: readonly TaskRecord[]) => tasks.map(({ id }) => id)
  const dueIds = async ({ tasks }: TaskContractStore, query: Partial<DueQuery> = {}) => {
    const nowMs = query.nowMs ?? EXAMPLE_NOW_MS
    const defaults = { vendorAccount: 'dashscope:1', nowMs, leaseUntilMs: nowMs + LEASE_MS, limit: 100 }
    return idsOf(await tasks.leaseDue({ ...defaults, budget: { takes: 100, windowMs: 1_000 }, ...query }))
  }
  const overdueIds = async ({ tasks }: TaskContractStore, nowMs = EXAMPLE_NOW_MS, limit = 100) =>
    idsOf(await tasks.leaseExpired({ nowMs, leaseUntilMs: nowMs + LEASE_MS, limit }))

  describe('task store contract: asking vendors', () => {
    check('takes what is due, longest overdue first, at most as many as asked, whole', async (store) => {
      for (const [id, dueInMs] of Object.entries({ task_1: 0, task_2: -5, task_3: 1, task_4: -9 })) {
        await store.tasks.insert(dueTask({ id, nextPollAtMs: EXAMPLE_NOW_MS + dueInMs }))
      }
      expect(await dueIds(store, { limit: 0 })).toEqual([])
      expect(await dueIds(store, { limit: 2 })).toEqual(['task_4', 'task_2'])
      const rest = { nowMs: EXAMPLE_NOW_MS, leaseUntilMs: EXAMPLE_NOW_MS + LEASE_MS, limit: 9 }
      const budget = { takes: 100, windowMs: 1_000 }
      expect(await store.tasks.leaseDue({ ...rest, vendorAccount: 'dashscope:1', budget })).toEqual([dueTask()])
    })

    check('takes tasks of the vendor account only, and in a state that a vendor is asked about', async (store) => {
      for (const state of STATES) await store.tasks.insert(dueTask({ id: `task_${state}`, state }))
      await store.tasks.insert(dueTask({ id: 'task_other', vendorAccount: 'dashscope:2' }))
      expect((await dueIds(store)).sort()).toEqual(['task_in_progress', 'task_queued'])
      expect(await dueIds(store, { vendorAccount: 'dashscope:2' })).toEqual(['task_other'])
    })

    check('takes a task no more that has ended or is asked about elsewhere', async (store) => {
      for (const id of ['task_1', 'task_2']) await store.tasks.insert(dueTask({ id }))
      await store.tasks.change({ id: 'task_1', from: ['queued'], set: { state: 'completed' } }, EXAMPLE_NOW_MS)
      const set = { vendorAccount: 'dashscope:2' }
      await store.tasks.change({ id: 'task_2', from: ['queued'], set }, EXAMPLE_NOW_MS)
      expect(await dueIds(store)).toEqual([])
      expect(await dueIds(store, set)).toEqual(['task_2'])
    })

    check('gives a task to nobody else before its lease is over', async (store) => {
      await store.tasks.insert(dueTask())
      expect(await dueIds(store)).toEqual(['task_1'])
      expect(await dueIds(store, { nowMs: EXAMPLE_NOW_MS + LEASE_MS - 1 })).toEqual([])
      expect(await dueIds(store, { nowMs: EXAMPLE_NOW_MS + LEASE_MS })).toEqual(['task_1'])
    })

    check('ends the lease with a change', async (store) => {
      await store.tasks.insert(dueTask())
      await dueIds(store)
      const set = { nextPollAtMs: EXAMPLE_NOW_MS + 15_000 }
      await store.tasks.change({ id: 'task_1', from: ['queued'], set }, EXAMPLE_NOW_MS)
      expect(await dueIds(store, { nowMs: EXAMPLE_NOW_MS + 14_999 })).toEqual([])
      expect(await dueIds(store, { nowMs: EXAMPLE_NOW_MS + 15_000 })).toEqual(['task_1'])
    })

    check('keeps to the budget of a window, for each vendor account of its own', async (store) => {
      for (let index = 1; index <= 5; index++) await store.tasks.insert(dueTask({ id: `task_${index}` }))
      await store.tasks.insert(dueTask({ id: 'task_other', vendorAccount: 'dashscope:2' }))
      const budget = { takes: 3, windowMs: 1_000 }
      expect((await dueIds(store, { budget, limit: 2 })).length).toEqual(2)
      expect((await dueIds(store, { budget, limit: 2 })).length).toEqual(1)
      expect(await dueIds(store, { budget, nowMs: EXAMPLE_NOW_MS + 999 })).toEqual([])
      expect(await dueIds(store, { budget, vendorAccount: 'dashscope:2' })).toEqual(['task_other'])
      expect((await dueIds(store, { budget, nowMs: EXAMPLE_NOW_MS + 1_000 })).length).toEqual(2)
      expect((await dueIds(store, { budget, nowMs: EXAMPLE_NOW_MS + LEASE_MS })).length).toEqual(3)
    })

    check('counts nothing against the budget where nothing was due', async (store) => {
      const budget = { takes: 1, windowMs: 1_000 }
      for (let count = 0; count < 5; count++) await dueIds(store, { budget })
      await store.tasks.insert(dueTask())
      expect(await dueIds(store, { budget })).toEqual(['task_1'])
    })

    check('goes on when the clock was far ahead and is set right', async (store) => {
      await store.tasks.insert(dueTask())
      await store.tasks.insert(dueTask({ id: 'task_2' }))
      const budget = { takes: 1, windowMs: 1_000 }
      expect((await dueIds(store, { budget, nowMs: EXAMPLE_NOW_MS + 3_600_000 })).length).toEqual(1)
      expect((await dueIds(store, { budget })).length).toEqual(1)
    })

    check('takes one task by its id before it is due, within the budget', async (store) => {
      const later = { nextPollAtMs: EXAMPLE_NOW_MS + 60_000 }
      for (const id of ['task_1', 'task_2']) await store.tasks.insert(dueTask({ id, ...later }))
      const budget = { takes: 1, windowMs: 1_000 }
      expect(await dueIds(store, { id: 'task_2', budget })).toEqual(['task_2'])
      expect(await dueIds(store, { id: 'task_1', budget })).toEqual([])
      expect(await dueIds(store, { id: 'task_1', budget, nowMs: EXAMPLE_NOW_MS + 1_000 })).toEqual(['task_1'])
    })

    check('takes no task by an id that is leased, unknown, ended or of another vendor account', async (store) => {
      for (const state of STATES) await store.tasks.insert(dueTask({ id: `task_${state}`, state }))
      await dueIds(store, { id: 'task_queued' })
      for (const id of ['task_queued', 'task_submitting', 'task_unknown', 'task_completed', 'task_9', '']) {
        expect(await dueIds(store, { id })).toEqual([])
      }
      expect(await dueIds(store, { id: 'task_in_progress', vendorAccount: 'dashscope:2' })).toEqual([])
      expect(await dueIds(store, { id: 'task_in_progress' })).toEqual(['task_in_progress'])
    })

    check('shares 60 tasks out among 40 takers at once, none twice, no more than the budget', async (store) => {
      for (let index = 0; index < 60; index++) await store.tasks.insert(dueTask({ id: `task_${index}` }))
      const budget = { takes: 50, windowMs: 1_000 }
      const taken = await Promise.all(Array.from({ length: 40 }, async () => dueIds(store, { budget, limit: 3 })))
      expect(new Set(taken.flat()).size).toEqual(taken.flat().length)
      expect(taken.flat().length).toEqual(50)
    })
  })

  describe('task store contract: deadlines', () => {
    check('takes open tasks of all vendor accounts whose deadline has passed, the longest first', async (store) => {
      for (const state of STATES) await store.tasks.insert(overdueTask({ id: `task_${state}`, state }))
      const first = { deadlineAtMs: EXAMPLE_NOW_MS - 5, vendorAccount: 'dashscope:2' }
      await store.tasks.insert(overdueTask({ id: 'task_first', ...first }))
      await store.tasks.insert(overdueTask({ id: 'task_later', deadlineAtMs: EXAMPLE_NOW_MS + 1 }))
      expect(await overdueIds(store, EXAMPLE_NOW_MS, 1)).toEqual(['task_first'])
      const open = ['task_in_progress', 'task_queued', 'task_submitting', 'task_unknown']
      expect((await overdueIds(store)).sort()).toEqual(open)
      expect(await overdueIds(store)).toEqual([])
      expect((await overdueIds(store, EXAMPLE_NOW_MS + LEASE_MS)).length).toEqual(6)
    })

    check('shares its leases with the asking of vendors', async (store) => {
      await store.tasks.insert(overdueTask({ nextPollAtMs: EXAMPLE_NOW_MS }))
      expect(await overdueIds(store)).toEqual(['task_1'])
      expect(await dueIds(store)).toEqual([])
      expect(await dueIds(store, { nowMs: EXAMPLE_NOW_MS + LEASE_MS })).toEqual(['task_1'])
      expect(await overdueIds(store, EXAMPLE_NOW_MS + LEASE_MS)).toEqual([])
    })

    check('ignores the budget', async (store) => {
      for (const id of ['task_1', 'task_2']) {
        await store.tasks.insert(overdueTask({ id, nextPollAtMs: EXAMPLE_NOW_MS }))
      }
      const budget = { takes: 1, windowMs: 1_000 }
      const taken = [...(await dueIds(store, { budget })), ...(await overdueIds(store))]
      expect(taken.sort()).toEqual(['task_1', 'task_2'])
      expect((await store.tasks.find(ACCOUNT_ID, 'task_1'))?.state).toEqual('queued')
    })
  })
}

function dueTask(overrides: Partial<TaskRecord> = {}): TaskRecord {
  return exampleTask({ nextPollAtMs: EXAMPLE_NOW_MS, ...overrides })
}

function overdueTask(overrides: Partial<TaskRecord> = {}): TaskRecord {
  return exampleTask({ deadlineAtMs: EXAMPLE_NOW_MS, ...overrides })
}
