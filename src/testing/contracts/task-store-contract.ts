import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleTask, type TaskContractStore } from './store-example.ts'
import { describeTaskChanges } from './task-changes-contract.ts'
import { describeTaskForgetting } from './task-forgetting-contract.ts'
import { describeTaskSubmission } from './task-submission-contract.ts'
import { describeTaskTaking } from './task-taking-contract.ts'

/**
 * One case for each guarantee of the task store, and of what it shares with the ledger, the idempotency keys and the
 * webhooks of the same driver.
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

    check('lists what stands between two tasks', async (store) => {
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
  describeTaskChanges(runner, subject)
  describeTaskTaking(runner, subject)
  describeTaskForgetting(runner, subject)
}

/** `task_1` is the oldest; `task_3` and `task_4` are of one moment. Not written in their order. */
async function insertFive({ tasks }: TaskContractStore): Promise<void> {
  const ages = { task_4: 3, task_1: 1, task_5: 5, task_3: 3, task_2: 2 }
  for (const [id, age] of Object.entries(ages)) {
    const upstreamId = id.replace('task_', 'upstream-')
    await tasks.insert(exampleTask({ id, upstreamId, createdAtMs: EXAMPLE_NOW_MS + age }))
  }
}
