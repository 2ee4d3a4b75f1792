import type { DueQuery, TaskRecord, TaskState } from '../../stores/task-store.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleDelivery, exampleTask, type TaskContractStore } from './store-example.ts'
import { describeTaskChanges, describeTaskSubmission } from './task-changes-contract.ts'
import { describeTaskLists } from './task-lists-contract.ts'

/**
 * Tests each guarantee of the task store, and of its shared changes with the ledger, the idempotency keys and the webhooks of the
 * same driver.
 */
export function describeTaskStore(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, it, expect } = runner
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))
  const pageOf = async (
    { tasks }: TaskContractStore,
    limit: number,
    cursor: { after?: string; before?: string } = {},
  ) => idsOf(await tasks.list(ACCOUNT_ID, { limit, ...cursor }))
  const idsOf = ({ tasks, hasMore }: { tasks: readonly { id: string }[]; hasMore: boolean }) => ({
    ids: tasks.map(({ id }) => id),
    hasMore,
  })
  const nothing = { ids: [], hasMore: false }

  describe('task store contract: records', () => {
    check('gives a task to its owner with every field, by our id and by the one of the vendor', async ({ tasks }) => {
      const details = {
        ...exampleTask().details,
        seed: 7,
        output: { list: [null, 1.5, { é: '\u{1F600}' }] },
        cost: '0.55',
      }
      const task = exampleTask({ upstreamId: 'upstream-1', holdId: 'hold_9', details })
      await tasks.insert(task)
      expect(await tasks.find(ACCOUNT_ID, 'task_1')).toEqual(task)
      expect(await tasks.find(ACCOUNT_ID, 'upstream-1')).toEqual(task)
    })

    check('knows neither unknown nor foreign ids', async ({ tasks }) => {
      await tasks.insert(exampleTask({ upstreamId: 'upstream-1' }))
      for (const id of ['task_1', 'upstream-1']) expect(await tasks.find('account_2', id)).toEqual(undefined)
      for (const id of ['task_2', 'undefined', '', '\u0000', 'constructor', "' OR '1' = '1"]) {
        expect(await tasks.find(ACCOUNT_ID, id)).toEqual(undefined)
      }
    })

    check('finds the own task when two accounts have the same id of the vendor', async ({ tasks }) => {
      await tasks.insert(exampleTask({ upstreamId: 'upstream-1' }))
      await tasks.insert(exampleTask({ id: 'task_2', accountId: 'account_2', upstreamId: 'upstream-1' }))
      expect((await tasks.find(ACCOUNT_ID, 'upstream-1'))?.id).toEqual('task_1')
      expect((await tasks.find('account_2', 'upstream-1'))?.id).toEqual('task_2')
    })

    check('keeps the first of two tasks of the same id', async ({ tasks }) => {
      await tasks.insert(exampleTask())
      await tasks.insert(exampleTask({ state: 'failed', accountId: 'account_2' }))
      expect(await tasks.find(ACCOUNT_ID, 'task_1')).toEqual(exampleTask())
      expect(await tasks.find('account_2', 'task_1')).toEqual(undefined)
    })

    check('lists own tasks only, newest first, those of one moment by id', async (store) => {
      await insertFive(store)
      await store.tasks.insert(exampleTask({ id: 'task_9', accountId: 'account_2' }))
      expect(await pageOf(store, 10)).toEqual({
        ids: ['task_5', 'task_4', 'task_3', 'task_2', 'task_1'],
        hasMore: false,
      })
      expect(idsOf(await store.tasks.list('account_3', { limit: 10 }))).toEqual(nothing)
    })

    check('goes through all tasks page by page, behind the last one seen', async (store) => {
      await insertFive(store)
      expect(await pageOf(store, 2)).toEqual({ ids: ['task_5', 'task_4'], hasMore: true })
      expect(await pageOf(store, 2, { after: 'task_4' })).toEqual({ ids: ['task_3', 'task_2'], hasMore: true })
      expect(await pageOf(store, 2, { after: 'task_2' })).toEqual({ ids: ['task_1'], hasMore: false })
      expect(await pageOf(store, 2, { after: 'task_3' })).toEqual({ ids: ['task_2', 'task_1'], hasMore: false })
      expect(await pageOf(store, 2, { after: 'task_1' })).toEqual(nothing)
    })

    check('goes back page by page, in front of the first one seen', async (store) => {
      await insertFive(store)
      expect(await pageOf(store, 2, { before: 'task_1' })).toEqual({ ids: ['task_3', 'task_2'], hasMore: true })
      expect(await pageOf(store, 2, { before: 'task_3' })).toEqual({ ids: ['task_5', 'task_4'], hasMore: false })
      expect(await pageOf(store, 2, { before: 'task_4' })).toEqual({ ids: ['task_5'], hasMore: false })
      expect(await pageOf(store, 2, { before: 'task_5' })).toEqual(nothing)
    })

    check('lists the tasks between two tasks', async (store) => {
      await insertFive(store)
      const between = { after: 'task_5', before: 'task_1' }
      expect(await pageOf(store, 10, between)).toEqual({ ids: ['task_4', 'task_3', 'task_2'], hasMore: false })
      expect(await pageOf(store, 1, between)).toEqual({ ids: ['task_4'], hasMore: true })
      expect(await pageOf(store, 10, { after: 'task_1', before: 'task_5' })).toEqual(nothing)
    })

    check('gives an empty page for an unknown, a foreign or a vendor id', async (store) => {
      await insertFive(store)
      await store.tasks.insert(exampleTask({ id: 'task_9', accountId: 'account_2' }))
      for (const id of ['task_8', 'task_9', 'upstream-3', '', '\u0000']) {
        expect(await pageOf(store, 10, { after: id })).toEqual(nothing)
        expect(await pageOf(store, 10, { before: id })).toEqual(nothing)
      }
    })
  })

  describeTaskSubmission(runner, subject)
  describeTaskLists(runner, subject)
  describeTaskChanges(runner, subject)
  describeTaskTaking(runner, subject)
  describeTaskRetention(runner, subject)
}

/** Inserts five tasks out of order. `task_1` is the oldest; `task_3` and `task_4` have the same time. */
async function insertFive({ tasks }: TaskContractStore): Promise<void> {
  const ages = { task_4: 3, task_1: 1, task_5: 5, task_3: 3, task_2: 2 }
  for (const [id, age] of Object.entries(ages)) {
    const upstreamId = id.replace('task_', 'upstream-')
    await tasks.insert(exampleTask({ id, upstreamId, createdAtMs: EXAMPLE_NOW_MS + age }))
  }
}

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

/** Tests how workers share tasks. */
export function describeTaskTaking(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<TaskContractStore>,
): void {
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))
  const idsOf = (tasks: readonly TaskRecord[]) => tasks.map(({ id }) => id)
  const dueIds = async ({ tasks }: TaskContractStore, query: Partial<DueQuery> = {}) => {
    const nowMs = query.nowMs ?? EXAMPLE_NOW_MS
    const defaults = { credentialId: 'dashscope:1', nowMs, leaseUntilMs: nowMs + LEASE_MS, limit: 100 }
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
      expect(await store.tasks.leaseDue({ ...rest, credentialId: 'dashscope:1', budget })).toEqual([dueTask()])
    })

    check('takes only tasks of the vendor account, in a state that needs a poll', async (store) => {
      for (const state of STATES) await store.tasks.insert(dueTask({ id: `task_${state}`, state }))
      await store.tasks.insert(dueTask({ id: 'task_other', credentialId: 'dashscope:2' }))
      expect((await dueIds(store)).sort()).toEqual(['task_in_progress', 'task_queued'])
      expect(await dueIds(store, { credentialId: 'dashscope:2' })).toEqual(['task_other'])
    })

    check('skips the given accounts, for due tasks and by id', async (store) => {
      for (const [index, accountId] of ['account_1', 'account_2', 'account_1', 'account_3', 'account_2'].entries())
        await store.tasks.insert(dueTask({ id: `task_${index}`, accountId, nextPollAtMs: EXAMPLE_NOW_MS - 9 + index }))
      const exceptAccounts = ['account_1', "account_'2", 'account_3']
      expect(await dueIds(store, { exceptAccounts, id: 'task_0' })).toEqual([])
      expect(await dueIds(store, { exceptAccounts, limit: 1 })).toEqual(['task_1'])
      expect(await dueIds(store, { exceptAccounts })).toEqual(['task_4'])
      expect(await dueIds(store, { exceptAccounts: [] })).toEqual(['task_0', 'task_2', 'task_3'])
    })

    check('takes a task no more that has ended or is asked about elsewhere', async (store) => {
      for (const id of ['task_1', 'task_2']) await store.tasks.insert(dueTask({ id }))
      await store.tasks.change({ id: 'task_1', from: ['queued'], set: { state: 'completed' } }, EXAMPLE_NOW_MS)
      const set = { credentialId: 'dashscope:2' }
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
      await store.tasks.insert(dueTask({ id: 'task_other', credentialId: 'dashscope:2' }))
      const budget = { takes: 3, windowMs: 1_000 }
      expect((await dueIds(store, { budget, limit: 2 })).length).toEqual(2)
      expect((await dueIds(store, { budget, limit: 2 })).length).toEqual(1)
      expect(await dueIds(store, { budget, nowMs: EXAMPLE_NOW_MS + 999 })).toEqual([])
      expect(await dueIds(store, { budget, credentialId: 'dashscope:2' })).toEqual(['task_other'])
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
      expect(await dueIds(store, { id: 'task_in_progress', credentialId: 'dashscope:2' })).toEqual([])
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
      const first = { deadlineAtMs: EXAMPLE_NOW_MS - 5, credentialId: 'dashscope:2' }
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

    check('names the credential ids of tasks that are polled, each once', async (store) => {
      await store.tasks.insert(dueTask({ id: 'task_1', credentialId: 'vendor:one' }))
      await store.tasks.insert(dueTask({ id: 'task_2', credentialId: 'vendor:one', state: 'in_progress' }))
      await store.tasks.insert(dueTask({ id: 'task_3', credentialId: 'vendor:two' }))
      await store.tasks.insert(dueTask({ id: 'task_4', credentialId: 'vendor:three', state: 'completed' }))
      expect([...(await store.tasks.credentialIds())].sort()).toEqual(['vendor:one', 'vendor:two'])
    })
  })
}

function dueTask(overrides: Partial<TaskRecord> = {}): TaskRecord {
  return exampleTask({ nextPollAtMs: EXAMPLE_NOW_MS, ...overrides })
}

function overdueTask(overrides: Partial<TaskRecord> = {}): TaskRecord {
  return exampleTask({ deadlineAtMs: EXAMPLE_NOW_MS, ...overrides })
}

/** Tests what is kept of ended tasks, and for how long. */
export function describeTaskRetention(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<TaskContractStore>,
): void {
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))
  const idsOf = async ({ tasks }: TaskContractStore) =>
    (await tasks.list(ACCOUNT_ID, { limit: 100 })).tasks.map(({ id }) => id).sort()
  const purge = ({ tasks }: TaskContractStore, changedUntilMs: number, limit = 100) =>
    tasks.purge({ changedUntilMs, limit })

  describe('task store contract: retention', () => {
    check('deletes tasks that ended by then, in every final state, and no open one', async (store) => {
      for (const state of STATES) {
        await store.tasks.insert(exampleTask({ id: `task_${state}`, upstreamId: `upstream-${state}`, state }))
      }
      await store.tasks.insert(exampleTask({ id: 'task_later', state: 'failed', updatedAtMs: EXAMPLE_NOW_MS + 1 }))
      expect(await purge(store, EXAMPLE_NOW_MS - 1)).toEqual(0)
      expect(await purge(store, EXAMPLE_NOW_MS)).toEqual(3)
      const left = ['task_in_progress', 'task_later', 'task_queued', 'task_submitting', 'task_unknown']
      expect(await idsOf(store)).toEqual(left)
      expect(await store.tasks.find(ACCOUNT_ID, 'task_completed')).toEqual(undefined)
      expect(await store.tasks.find(ACCOUNT_ID, 'upstream-completed')).toEqual(undefined)
      expect(await purge(store, EXAMPLE_NOW_MS)).toEqual(0)
    })

    check('deletes at most as many as asked, the oldest first', async (store) => {
      for (const age of [3, 1, 2]) {
        const updatedAtMs = EXAMPLE_NOW_MS - age
        await store.tasks.insert(exampleTask({ id: `task_${age}`, state: 'completed', updatedAtMs }))
      }
      expect(await purge(store, EXAMPLE_NOW_MS, 0)).toEqual(0)
      expect(await purge(store, EXAMPLE_NOW_MS, 2)).toEqual(2)
      expect(await idsOf(store)).toEqual(['task_1'])
    })

    check('deletes the messages about a task with it, and no others', async (store) => {
      await ended(store, 'task_1', 'msg_1')
      await ended(store, 'task_2', 'msg_2', EXAMPLE_NOW_MS + 1)
      for (const id of ['msg_1', 'msg_2']) await delivered(store, id)
      expect(await purge(store, EXAMPLE_NOW_MS)).toEqual(1)
      expect(await store.webhooks.list(ACCOUNT_ID, 'task_1')).toEqual([])
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_2')).map(({ id }) => id)).toEqual(['msg_2'])
      expect(await store.webhooks.resend(ACCOUNT_ID, 'msg_1', EXAMPLE_NOW_MS)).toEqual(false)
    })

    check('keeps a task whose message waits for delivery, and passes over it', async (store) => {
      await ended(store, 'task_1', 'msg_1', EXAMPLE_NOW_MS - 2)
      await ended(store, 'task_2', 'msg_2', EXAMPLE_NOW_MS - 1)
      await delivered(store, 'msg_2')
      expect(await purge(store, EXAMPLE_NOW_MS, 1)).toEqual(1)
      expect(await idsOf(store)).toEqual(['task_1'])
      await delivered(store, 'msg_1')
      await store.webhooks.resend(ACCOUNT_ID, 'msg_1', EXAMPLE_NOW_MS)
      expect(await purge(store, EXAMPLE_NOW_MS)).toEqual(0)
      await delivered(store, 'msg_1')
      expect(await purge(store, EXAMPLE_NOW_MS)).toEqual(1)
    })

    check('deletes each task once, however many do it at once', async (store) => {
      for (let index = 0; index < 40; index++) {
        await store.tasks.insert(exampleTask({ id: `task_${index}`, state: 'completed' }))
      }
      const counts = await Promise.all(Array.from({ length: 10 }, async () => purge(store, EXAMPLE_NOW_MS, 5)))
      let deleted = counts.reduce((sum, count) => sum + count, 0)
      deleted += await purge(store, EXAMPLE_NOW_MS)
      expect(deleted).toEqual(40)
      expect(await idsOf(store)).toEqual([])
    })
  })
}

/** Ends a task with its message. */
async function ended(
  { tasks }: TaskContractStore,
  id: string,
  messageId: string,
  updatedAtMs = EXAMPLE_NOW_MS,
): Promise<void> {
  await tasks.insert(exampleTask({ id }))
  const delivery = exampleDelivery({ id: messageId, taskId: id })
  await tasks.change({ id, from: ['queued'], set: { state: 'completed', updatedAtMs }, delivery }, updatedAtMs)
}

async function delivered({ webhooks }: TaskContractStore, id: string): Promise<void> {
  const attempt = { atMs: EXAMPLE_NOW_MS, status: 204, durationMs: 1 }
  await webhooks.record(id, { attempt, state: 'delivered', nextAttemptAtMs: EXAMPLE_NOW_MS })
}
