import {
  type DueQuery,
  OPEN_TASK_STATES,
  type TaskChange,
  type TaskChangeResult,
  type TaskRecord,
  type TaskState,
  type TaskStore,
} from '../../stores/task-store.ts'
import {
  ACCOUNT_ID,
  balanceOf,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleAnswer,
  exampleClaim,
  exampleDelivery,
  exampleReservation,
  exampleTask,
  failureName,
  fundedLedger,
  NOW_MS,
  placeHold,
  type TaskContractStore,
} from './contract-runner.ts'
import { exampleResponse } from './response-store-contract.ts'

/**
 * Tests each guarantee of the task store, and of its shared changes with the ledger, the idempotency keys and the webhooks of the
 * same driver.
 */
export function describeTaskStore(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
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
  for (const [id, age] of Object.entries({ task_4: 3, task_1: 1, task_5: 5, task_3: 3, task_2: 2 })) {
    const upstreamId = id.replace('task_', 'upstream-')
    await tasks.insert(exampleTask({ id, upstreamId, createdAtMs: NOW_MS + age }))
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
function describeTaskTaking(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const idsOf = (tasks: readonly TaskRecord[]) => tasks.map(({ id }) => id)
  const dueIds = async ({ tasks }: TaskContractStore, query: Partial<DueQuery> = {}) => {
    const nowMs = query.nowMs ?? NOW_MS
    const defaults = { credentialId: 'dashscope:1', nowMs, leaseUntilMs: nowMs + LEASE_MS, limit: 100 }
    return idsOf(await tasks.leaseDue({ ...defaults, budget: { takes: 100, windowMs: 1_000 }, ...query }))
  }
  const overdueIds = async ({ tasks }: TaskContractStore, nowMs = NOW_MS, limit = 100) =>
    idsOf(await tasks.leaseExpired({ nowMs, leaseUntilMs: nowMs + LEASE_MS, limit }))

  describe('task store contract: asking vendors', () => {
    check('takes what is due, longest overdue first, at most as many as asked, whole', async (store) => {
      for (const [id, dueInMs] of Object.entries({ task_1: 0, task_2: -5, task_3: 1, task_4: -9 })) {
        await store.tasks.insert(dueTask({ id, nextPollAtMs: NOW_MS + dueInMs }))
      }
      expect(await dueIds(store, { limit: 0 })).toEqual([])
      expect(await dueIds(store, { limit: 2 })).toEqual(['task_4', 'task_2'])
      const rest = { nowMs: NOW_MS, leaseUntilMs: NOW_MS + LEASE_MS, limit: 9 }
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
        await store.tasks.insert(dueTask({ id: `task_${index}`, accountId, nextPollAtMs: NOW_MS - 9 + index }))
      const exceptAccounts = ['account_1', "account_'2", 'account_3']
      expect(await dueIds(store, { exceptAccounts, id: 'task_0' })).toEqual([])
      expect(await dueIds(store, { exceptAccounts, limit: 1 })).toEqual(['task_1'])
      expect(await dueIds(store, { exceptAccounts })).toEqual(['task_4'])
      expect(await dueIds(store, { exceptAccounts: [] })).toEqual(['task_0', 'task_2', 'task_3'])
    })

    check('takes a task no more that has ended or is asked about elsewhere', async (store) => {
      for (const id of ['task_1', 'task_2']) await store.tasks.insert(dueTask({ id }))
      await store.tasks.change({ id: 'task_1', from: ['queued'], set: { state: 'completed' } }, NOW_MS)
      const set = { credentialId: 'dashscope:2' }
      await store.tasks.change({ id: 'task_2', from: ['queued'], set }, NOW_MS)
      expect(await dueIds(store)).toEqual([])
      expect(await dueIds(store, set)).toEqual(['task_2'])
    })

    check('gives a task to nobody else before its lease is over', async (store) => {
      await store.tasks.insert(dueTask())
      expect(await dueIds(store)).toEqual(['task_1'])
      expect(await dueIds(store, { nowMs: NOW_MS + LEASE_MS - 1 })).toEqual([])
      expect(await dueIds(store, { nowMs: NOW_MS + LEASE_MS })).toEqual(['task_1'])
    })

    check('ends the lease with a change', async (store) => {
      await store.tasks.insert(dueTask())
      await dueIds(store)
      const set = { nextPollAtMs: NOW_MS + 15_000 }
      await store.tasks.change({ id: 'task_1', from: ['queued'], set }, NOW_MS)
      expect(await dueIds(store, { nowMs: NOW_MS + 14_999 })).toEqual([])
      expect(await dueIds(store, { nowMs: NOW_MS + 15_000 })).toEqual(['task_1'])
    })

    check('keeps to the budget of a window, for each vendor account of its own', async (store) => {
      for (let index = 1; index <= 5; index++) await store.tasks.insert(dueTask({ id: `task_${index}` }))
      await store.tasks.insert(dueTask({ id: 'task_other', credentialId: 'dashscope:2' }))
      const budget = { takes: 3, windowMs: 1_000 }
      expect((await dueIds(store, { budget, limit: 2 })).length).toEqual(2)
      expect((await dueIds(store, { budget, limit: 2 })).length).toEqual(1)
      expect(await dueIds(store, { budget, nowMs: NOW_MS + 999 })).toEqual([])
      expect(await dueIds(store, { budget, credentialId: 'dashscope:2' })).toEqual(['task_other'])
      expect((await dueIds(store, { budget, nowMs: NOW_MS + 1_000 })).length).toEqual(2)
      expect((await dueIds(store, { budget, nowMs: NOW_MS + LEASE_MS })).length).toEqual(3)
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
      expect((await dueIds(store, { budget, nowMs: NOW_MS + 3_600_000 })).length).toEqual(1)
      expect((await dueIds(store, { budget })).length).toEqual(1)
    })

    check('takes one task by its id before it is due, within the budget', async (store) => {
      const later = { nextPollAtMs: NOW_MS + 60_000 }
      for (const id of ['task_1', 'task_2']) await store.tasks.insert(dueTask({ id, ...later }))
      const budget = { takes: 1, windowMs: 1_000 }
      expect(await dueIds(store, { id: 'task_2', budget })).toEqual(['task_2'])
      expect(await dueIds(store, { id: 'task_1', budget })).toEqual([])
      expect(await dueIds(store, { id: 'task_1', budget, nowMs: NOW_MS + 1_000 })).toEqual(['task_1'])
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
      const first = { deadlineAtMs: NOW_MS - 5, credentialId: 'dashscope:2' }
      await store.tasks.insert(overdueTask({ id: 'task_first', ...first }))
      await store.tasks.insert(overdueTask({ id: 'task_later', deadlineAtMs: NOW_MS + 1 }))
      expect(await overdueIds(store, NOW_MS, 1)).toEqual(['task_first'])
      const open = ['task_in_progress', 'task_queued', 'task_submitting', 'task_unknown']
      expect((await overdueIds(store)).sort()).toEqual(open)
      expect(await overdueIds(store)).toEqual([])
      expect((await overdueIds(store, NOW_MS + LEASE_MS)).length).toEqual(6)
    })

    check('shares its leases with the asking of vendors', async (store) => {
      await store.tasks.insert(overdueTask({ nextPollAtMs: NOW_MS }))
      expect(await overdueIds(store)).toEqual(['task_1'])
      expect(await dueIds(store)).toEqual([])
      expect(await dueIds(store, { nowMs: NOW_MS + LEASE_MS })).toEqual(['task_1'])
      expect(await overdueIds(store, NOW_MS + LEASE_MS)).toEqual([])
    })

    check('ignores the budget', async (store) => {
      for (const id of ['task_1', 'task_2']) {
        await store.tasks.insert(overdueTask({ id, nextPollAtMs: NOW_MS }))
      }
      const taken = [...(await dueIds(store, { budget: { takes: 1, windowMs: 1_000 } })), ...(await overdueIds(store))]
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
  return exampleTask({ nextPollAtMs: NOW_MS, ...overrides })
}

function overdueTask(overrides: Partial<TaskRecord> = {}): TaskRecord {
  return exampleTask({ deadlineAtMs: NOW_MS, ...overrides })
}

/** Tests what is kept of ended tasks, and for how long. */
function describeTaskRetention(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const idsOf = async ({ tasks }: TaskContractStore) =>
    (await tasks.list(ACCOUNT_ID, { limit: 100 })).tasks.map(({ id }) => id).sort()
  const purge = ({ tasks }: TaskContractStore, changedUntilMs: number, limit = 100) =>
    tasks.purge({ changedUntilMs, limit })

  describe('task store contract: retention', () => {
    check('deletes tasks that ended by then, in every final state, and no open one', async (store) => {
      for (const state of STATES) {
        await store.tasks.insert(exampleTask({ id: `task_${state}`, upstreamId: `upstream-${state}`, state }))
      }
      await store.tasks.insert(exampleTask({ id: 'task_later', state: 'failed', updatedAtMs: NOW_MS + 1 }))
      expect(await purge(store, NOW_MS - 1)).toEqual(0)
      expect(await purge(store, NOW_MS)).toEqual(3)
      const left = ['task_in_progress', 'task_later', 'task_queued', 'task_submitting', 'task_unknown']
      expect(await idsOf(store)).toEqual(left)
      expect(await store.tasks.find(ACCOUNT_ID, 'task_completed')).toEqual(undefined)
      expect(await store.tasks.find(ACCOUNT_ID, 'upstream-completed')).toEqual(undefined)
      expect(await purge(store, NOW_MS)).toEqual(0)
    })

    check('deletes at most as many as asked, the oldest first', async (store) => {
      for (const age of [3, 1, 2]) {
        const updatedAtMs = NOW_MS - age
        await store.tasks.insert(exampleTask({ id: `task_${age}`, state: 'completed', updatedAtMs }))
      }
      expect(await purge(store, NOW_MS, 0)).toEqual(0)
      expect(await purge(store, NOW_MS, 2)).toEqual(2)
      expect(await idsOf(store)).toEqual(['task_1'])
    })

    check('deletes the messages about a task with it, and no others', async (store) => {
      await ended(store, 'task_1', 'msg_1')
      await ended(store, 'task_2', 'msg_2', NOW_MS + 1)
      for (const id of ['msg_1', 'msg_2']) await delivered(store, id)
      expect(await purge(store, NOW_MS)).toEqual(1)
      expect(await store.webhooks.list(ACCOUNT_ID, 'task_1')).toEqual([])
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_2')).map(({ id }) => id)).toEqual(['msg_2'])
      expect(await store.webhooks.resend(ACCOUNT_ID, 'msg_1', NOW_MS)).toEqual(false)
    })

    check('keeps a task whose message waits for delivery, and passes over it', async (store) => {
      await ended(store, 'task_1', 'msg_1', NOW_MS - 2)
      await ended(store, 'task_2', 'msg_2', NOW_MS - 1)
      await delivered(store, 'msg_2')
      expect(await purge(store, NOW_MS, 1)).toEqual(1)
      expect(await idsOf(store)).toEqual(['task_1'])
      await delivered(store, 'msg_1')
      await store.webhooks.resend(ACCOUNT_ID, 'msg_1', NOW_MS)
      expect(await purge(store, NOW_MS)).toEqual(0)
      await delivered(store, 'msg_1')
      expect(await purge(store, NOW_MS)).toEqual(1)
    })

    check('deletes each task once, however many do it at once', async (store) => {
      for (let index = 0; index < 40; index++) {
        await store.tasks.insert(exampleTask({ id: `task_${index}`, state: 'completed' }))
      }
      const counts = await Promise.all(Array.from({ length: 10 }, async () => purge(store, NOW_MS, 5)))
      let deleted = counts.reduce((sum, count) => sum + count, 0)
      deleted += await purge(store, NOW_MS)
      expect(deleted).toEqual(40)
      expect(await idsOf(store)).toEqual([])
    })
  })
}

/** Ends a task with its message. */
async function ended({ tasks }: TaskContractStore, id: string, messageId: string, updatedAtMs = NOW_MS): Promise<void> {
  await tasks.insert(exampleTask({ id }))
  const delivery = exampleDelivery({ id: messageId, taskId: id })
  await tasks.change({ id, from: ['queued'], set: { state: 'completed', updatedAtMs }, delivery }, updatedAtMs)
}

async function delivered({ webhooks }: TaskContractStore, id: string): Promise<void> {
  const attempt = { atMs: NOW_MS, status: 204, durationMs: 1 }
  await webhooks.record(id, { attempt, state: 'delivered', nextAttemptAtMs: NOW_MS })
}

/** Tests that a reservation and its task in one driver are stored together and removed together. */
function describeTaskSubmission(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('task store contract: submission', () => {
    check('writes the task down with the hold', async (store) => {
      await submitted(store)
      expect(await store.tasks.find(ACCOUNT_ID, 'task_1')).toEqual(task)
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
    })

    check('writes the task down also without an Idempotency-Key, among reservations without a task', async (store) => {
      await fundedLedger(store, 1_000n)
      const plain = exampleReservation({ holdId: 'hold_2', amount: 100n })
      const both = [{ ...reservation, claim: undefined }, plain].map(async (wanted) =>
        store.ledger.reserve(wanted, NOW_MS),
      )
      expect(await Promise.all(both)).toEqual([{ status: 'held' }, { status: 'held' }])
      expect((await store.tasks.list(ACCOUNT_ID, { limit: 5 })).tasks).toEqual([task])
      expect(await balanceOf(store)).toEqual({ balance: 500n, held: 500n })
    })

    check('writes no task down when the money is not held', async (store) => {
      await fundedLedger(store, 399n)
      expect(await store.ledger.reserve(reservation, NOW_MS)).toEqual({ status: 'insufficient_balance' })
      expect(await stateOf(store)).toEqual(undefined)
    })

    check('writes no second task down for a key that is taken', async (store) => {
      await submitted(store)
      const second = { ...reservation, holdId: 'hold_2', task: { ...task, id: 'task_2', holdId: 'hold_2' } }
      expect(await store.ledger.reserve(second, NOW_MS)).toEqual({ status: 'in_flight' })
      expect(await store.tasks.find(ACCOUNT_ID, 'task_2')).toEqual(undefined)
    })

    check('changes nothing when the same hold is reserved again', async (store) => {
      await accepted(store)
      expect(await store.ledger.reserve(reservation, NOW_MS)).toEqual({ status: 'held' })
      expect(await stateOf(store)).toEqual('queued')
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
    })

    check('removes a task that the vendor refused, with its hold, and frees the key', async (store) => {
      await submitted(store)
      expect(await store.tasks.discard('task_1', claim, NOW_MS)).toEqual(true)
      expect(await stateOf(store)).toEqual(undefined)
      expect((await store.tasks.list(ACCOUNT_ID, { limit: 5 })).tasks).toEqual([])
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
      expect(await keyOf(store)).toEqual('claimed')
      expect(await store.tasks.discard('task_1', claim, NOW_MS)).toEqual(false)
    })

    check('does not bring a removed task back when its hold is reserved again', async (store) => {
      await submitted(store)
      await store.tasks.discard('task_1', claim, NOW_MS)
      expect(await store.ledger.reserve(reservation, NOW_MS)).toEqual({ status: 'held' })
      expect(await stateOf(store)).toEqual(undefined)
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
    })

    check('removes a task without a hold, and frees the key that is named', async (store) => {
      await store.idempotency.claim(claim, NOW_MS)
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      expect(await store.tasks.discard('task_1', claim, NOW_MS)).toEqual(true)
      expect(await stateOf(store)).toEqual(undefined)
      expect(await keyOf(store)).toEqual('claimed')
    })

    check('keeps the receipt of a task without a hold for the whole time of its key', async (store) => {
      const own = { ...claim, claimedBy: 'req_1', pendingUntilMs: NOW_MS + 1_000 }
      await store.idempotency.claim(own, NOW_MS)
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      await store.tasks.change({ ...acceptance, answered: { claim: own, answer: exampleAnswer('accepted') } }, NOW_MS)
      const found = await store.idempotency.claim({ ...own, claimedBy: 'req_2' }, own.expiresAtMs - 1)
      expect(found.status).toEqual('replay')
    })

    check('touches no key that an equal request has taken over from that of the task', async (store) => {
      const own = { ...claim, claimedBy: 'req_1', pendingUntilMs: NOW_MS + 1_000 }
      const later = { ...claim, claimedBy: 'req_2' }
      await store.idempotency.claim(own, NOW_MS)
      await store.idempotency.claim(later, own.pendingUntilMs + 1)
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      await store.tasks.discard('task_1', own, own.pendingUntilMs + 1)
      expect(await keyOf(store)).toEqual('in_flight')
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      await store.tasks.change({ ...acceptance, answered: { claim: own, answer: exampleAnswer('accepted') } }, NOW_MS)
      expect(await keyOf(store)).toEqual('in_flight')
    })

    check('removes no task that was accepted', async (store) => {
      await accepted(store)
      expect(await store.tasks.discard('task_1', claim, NOW_MS)).toEqual(false)
      expect(await stateOf(store)).toEqual('queued')
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      expect(await keyOf(store)).toEqual('replay')
    })

    for (const state of OPEN_TASK_STATES) {
      check(`does not expire the hold of a task in state ${state}, but others`, async (store) => {
        await submitted(store)
        await store.tasks.change({ id: 'task_1', from: ['submitting'], set: { state } }, NOW_MS)
        await placeHold(store, { holdId: 'hold_2', amount: 50n })
        expect(await store.ledger.expire(reservation.expiresAtMs + 1, 10)).toEqual(1)
        expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      })
    }

    check('expires the hold of a task that ended and left it', async (store) => {
      await accepted(store)
      await store.tasks.change({ id: 'task_1', from: OPEN_TASK_STATES, set: { state: 'failed' } }, NOW_MS)
      expect(await store.ledger.expire(reservation.expiresAtMs + 1, 10)).toEqual(1)
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
    })
  })
}

const RACERS = 2_000

/** Tests changes of tasks, together with their money, keys and messages. */
function describeTaskChanges(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('task store contract: changes', () => {
    check('sets what is given and leaves the rest', async (store) => {
      await submitted(store)
      expect(await store.tasks.change(acceptance, NOW_MS)).toEqual({})
      expect(await store.tasks.find(ACCOUNT_ID, 'upstream-1')).toEqual({ ...task, ...acceptance.set })
      const details = { ...task.details, polls: 1, error: { code: 'c', message: 'm' } }
      const set = { state: 'in_progress', credentialId: 'dashscope:2', deadlineAtMs: 5, details } as const
      expect(await store.tasks.change({ id: 'task_1', from: ['queued'], set }, NOW_MS)).toEqual({})
      expect(await store.tasks.find(ACCOUNT_ID, 'task_1')).toEqual({ ...task, ...acceptance.set, ...set })
    })

    check('changes nothing from another state or of an unknown task', async (store) => {
      await submitted(store)
      const change = { from: ['queued', 'unknown'], set: { state: 'failed' }, resolve: { kind: 'void' } } as const
      const also = { answered: { claim, answer: exampleAnswer('x') }, delivery: exampleDelivery() }
      expect(await store.tasks.change({ id: 'task_1', ...change, ...also }, NOW_MS)).toEqual(undefined)
      expect(await store.tasks.change({ id: 'task_2', ...change, ...also }, NOW_MS)).toEqual(undefined)
      expect(await store.tasks.find(ACCOUNT_ID, 'task_1')).toEqual(task)
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      expect(await keyOf(store)).toEqual('in_flight')
      expect(await store.webhooks.list(ACCOUNT_ID, 'task_1')).toEqual([])
    })

    check('completes the key with the answer of the submission', async (store) => {
      await accepted(store)
      expect(await keyOf(store)).toEqual('replay')
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
    })

    check('charges what was used, gives the rest back and keeps the answer for replay', async (store) => {
      await accepted(store)
      expect(await store.tasks.change(completion(150n), NOW_MS + 9)).toEqual(chargedFor(150n))
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
      expect(await keyOf(store)).toEqual('replay')
      const [charge] = await store.ledger.entries(ACCOUNT_ID, 1)
      const { amount, holdId, description, createdAtMs } = charge ?? {}
      expect({ amount, holdId, description, createdAtMs }).toEqual({
        amount: -150n,
        holdId: 'hold_1',
        description: 'video wv2.7-t2v',
        createdAtMs: NOW_MS + 9,
      })
    })

    check('gives the whole hold back for a task that failed, and keeps the answer for replay', async (store) => {
      await accepted(store)
      const failure = {
        id: 'task_1',
        from: OPEN_TASK_STATES,
        set: { state: 'failed' },
        resolve: { kind: 'void' },
      } as const
      expect(await store.tasks.change(failure, NOW_MS)).toEqual({})
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
      expect(await keyOf(store)).toEqual('replay')
    })

    check('completes the key also when the same change ends the hold', async (store) => {
      await submitted(store)
      const answered = { claim, answer: exampleAnswer('accepted') }
      expect(await store.tasks.change({ ...completion(150n), answered }, NOW_MS)).toEqual(chargedFor(150n))
      expect(await keyOf(store)).toEqual('replay')
    })

    check('charges above the hold from the balance and records what is lacking', async (store) => {
      await accepted(store)
      expect(await store.tasks.change(completion(1_200n), NOW_MS)).toEqual(chargedFor(1_000n, 200n))
      expect(await balanceOf(store)).toEqual({ balance: 0n, held: 0n })
      const kinds = (await store.ledger.entries(ACCOUNT_ID, 2)).map(({ kind, amount }) => ({ kind, amount }))
      expect(kinds).toEqual([
        { kind: 'owed', amount: 0n },
        { kind: 'charge', amount: -1_000n },
      ])
    })

    check('says which thresholds its charge has passed', async (store) => {
      await accepted(store)
      const end = completion(800n)
      const thresholds = { caps: [], balance: [50, 80, 100] }
      const change = {
        ...end,
        resolve: { ...end.resolve, kind: 'settle', amount: 800n, description: 'video' },
      } as const
      const told = await store.tasks.change({ ...change, resolve: { ...change.resolve, thresholds } }, NOW_MS)
      const crossing = { of: 'balance', period: undefined, bound: 1_000n, used: 800n } as const
      expect(told?.charge?.crossings).toEqual([
        { ...crossing, percent: 50 },
        { ...crossing, percent: 80 },
      ])
    })

    check('says how a hold had ended that it can charge no more', async (store) => {
      await accepted(store)
      await store.ledger.void('hold_1', NOW_MS)
      const told = await store.tasks.change(completion(150n), NOW_MS)
      expect(told?.charge).toEqual({ resolved: false, charged: 0n, shortfall: 0n, endedBy: 'voided' })
      expect(await stateOf(store)).toEqual('completed')
    })

    check('refuses an amount below zero before anything is changed', async (store) => {
      await submitted(store)
      const wrong = { ...completion(-1n), answered: { claim, answer: exampleAnswer('accepted') } }
      expect(await failureName(() => store.tasks.change(wrong, NOW_MS))).toEqual('RangeError')
      expect(await stateOf(store)).toEqual('submitting')
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      expect(await keyOf(store)).toEqual('in_flight')
    })

    check('ends a task without a hold, whatever the change says about money', async (store) => {
      await store.tasks.insert(exampleTask())
      expect(await store.tasks.change(completion(150n), NOW_MS)).toEqual({})
      expect(await stateOf(store)).toEqual('completed')
    })

    check('a second end changes nothing: no charge, no refund, no message', async (store) => {
      await accepted(store)
      await store.tasks.change({ ...completion(150n), delivery: exampleDelivery() }, NOW_MS)
      const late = {
        ...completion(90n),
        set: { state: 'cancelled' },
        delivery: exampleDelivery({ id: 'msg_2' }),
      } as const
      expect(await store.tasks.change(late, NOW_MS)).toEqual(undefined)
      expect(await store.tasks.change({ ...late, resolve: { kind: 'void' } }, NOW_MS)).toEqual(undefined)
      expect(await stateOf(store)).toEqual('completed')
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_1')).map(({ id }) => id)).toEqual(['msg_1'])
    })

    check('keeps an answer with the end of its task, and none with an end that does not count', async (store) => {
      await accepted(store)
      const keeps = exampleResponse({ id: 'task_1' })
      const late = exampleResponse({ id: 'task_1', response: { id: 'task_1', output: [] } })
      expect(await store.tasks.change({ ...completion(150n), keeps }, NOW_MS)).toEqual(chargedFor(150n))
      expect(await store.tasks.change({ ...completion(150n), keeps: late }, NOW_MS)).toEqual(undefined)
      expect(await store.responses.find(ACCOUNT_ID, 'task_1', NOW_MS)).toEqual(keeps)
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
    })

    check(`counts one of ${RACERS} simultaneous ends by poll, cancel and sweep`, async (store) => {
      await accepted(store)
      const won = await Promise.all(
        Array.from({ length: RACERS }, async (_, index) => {
          const delivery = exampleDelivery({ id: `msg_${index}` })
          const { resolve, state } = RACE[index % RACE.length]!
          const change = { id: 'task_1', from: OPEN_TASK_STATES, set: { state }, resolve, delivery }
          return (await store.tasks.change(change, NOW_MS)) ? state : undefined
        }),
      )
      const winners = won.filter((state) => state !== undefined)
      const charged = winners[0] === 'completed' ? 150n : 0n
      expect(winners).toEqual([await stateOf(store)])
      expect(await balanceOf(store)).toEqual({ balance: 1_000n - charged, held: 0n })
      expect((await store.ledger.entries(ACCOUNT_ID, 10)).length).toEqual(charged === 0n ? 1 : 2)
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_1')).length).toEqual(1)
    })
  })
}

const RACE = [
  { state: 'completed', resolve: { kind: 'settle', amount: 150n, description: 'video wv2.7-t2v' } },
  { state: 'cancelled', resolve: { kind: 'void' } },
  { state: 'failed', resolve: { kind: 'void' } },
] as const

function completion(amount: bigint): TaskChange {
  return {
    id: 'task_1',
    from: OPEN_TASK_STATES,
    set: { state: 'completed' },
    resolve: { kind: 'settle', amount, description: 'video wv2.7-t2v' },
  }
}

function chargedFor(charged: bigint, shortfall = 0n): TaskChangeResult {
  return { charge: { resolved: true, charged, shortfall } }
}

/** Key, task and reservation of an example request for a video. */
export const claim = exampleClaim()
export const task = exampleTask({ state: 'submitting', holdId: 'hold_1' })
export const reservation = exampleReservation({ amount: 400n, claim, task })

/** The vendor has confirmed the submission. */
const acceptance: TaskChange = {
  id: 'task_1',
  from: ['submitting'],
  set: {
    state: 'queued',
    upstreamId: 'upstream-1',
    updatedAtMs: NOW_MS + 3,
    nextPollAtMs: NOW_MS + 4,
  },
}

/** Credits 1,000 to the account and submits the example task with a hold of 400. */
export async function submitted(store: TaskContractStore): Promise<void> {
  await fundedLedger(store, 1_000n)
  await store.ledger.reserve(reservation, NOW_MS)
}

/** Submits the example task, with the answers of the vendor and to the caller. */
export async function accepted(store: TaskContractStore): Promise<void> {
  await submitted(store)
  const answered = { claim, answer: exampleAnswer('accepted') }
  await store.tasks.change({ ...acceptance, answered }, NOW_MS)
}

/** Returns the state of the example task, or `undefined` if there is none. */
export async function stateOf({ tasks }: TaskContractStore) {
  return (await tasks.find(ACCOUNT_ID, 'task_1'))?.state
}

/** Returns what another request with the example's key would find. */
export async function keyOf({ idempotency }: TaskContractStore) {
  return (await idempotency.claim(claim, NOW_MS)).status
}

/** The tasks of all accounts, as operators list them. */
function describeTaskLists(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const listed = async (tasks: TaskStore, query: Partial<Parameters<TaskStore['listAll']>[0]> = {}) =>
    (await tasks.listAll({ limit: 10, ...query })).map(({ id }) => id)

  describe('task store contract: tasks of all accounts', () => {
    check('are listed newest first, by account and state', async ({ tasks }) => {
      await insertFour(tasks)
      expect(await listed(tasks)).toEqual(['task_9', 'task_3', 'task_2', 'task_1'])
      expect(await listed(tasks, { limit: 2 })).toEqual(['task_9', 'task_3'])
      expect(await listed(tasks, { limit: 0 })).toEqual([])
      expect(await listed(tasks, { state: 'failed' })).toEqual(['task_9'])
      expect(await listed(tasks, { accountId: ACCOUNT_ID })).toEqual(['task_3', 'task_2', 'task_1'])
      expect(await listed(tasks, { accountId: 'account_2', state: 'queued' })).toEqual([])
      expect(await listed(tasks, { accountId: '\u0000' })).toEqual([])
      expect(await tasks.listAll({ state: 'failed', limit: 1 })).toEqual([FOREIGN])
    })

    check('go on behind the last one seen, also of one moment', async ({ tasks }) => {
      await insertFour(tasks)
      const after = { createdAtMs: NOW_MS + 2, id: 'task_3' }
      expect(await listed(tasks, { after })).toEqual(['task_2', 'task_1'])
      expect(await listed(tasks, { after, state: 'queued', accountId: ACCOUNT_ID })).toEqual(['task_2', 'task_1'])
      expect(await listed(tasks, { after: { ...after, id: 'task_2' } })).toEqual(['task_1'])
      expect(await listed(tasks, { after, state: 'failed' })).toEqual([])
    })
  })
}

const FOREIGN = exampleTask({
  id: 'task_9',
  accountId: 'account_2',
  state: 'failed',
  createdAtMs: NOW_MS + 3,
})

async function insertFour(tasks: TaskStore): Promise<void> {
  for (const [id, age] of Object.entries({ task_2: 2, task_1: 1, task_3: 2 }))
    await tasks.insert(exampleTask({ id, createdAtMs: NOW_MS + age }))
  await tasks.insert(FOREIGN)
}
