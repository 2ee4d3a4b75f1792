import type { TaskStore } from '../../stores/task-store.ts'
import {
  ACCOUNT_ID,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleTask,
  NOW_MS,
  type TaskContractStore,
} from './contract-runner.ts'

/** The tasks of all accounts, as operators list them. */
export function describeTaskLists(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('task store contract: tasks of all accounts', () => {
    check('are listed newest first, by account and state', async ({ tasks }) => {
      await insertFour(tasks)
      const listed = async (query: Omit<Parameters<TaskStore['listAll']>[0], 'limit'>, limit = 10) =>
        (await tasks.listAll({ ...query, limit })).map(({ id }) => id)
      expect(await listed({})).toEqual(['task_9', 'task_3', 'task_2', 'task_1'])
      expect(await listed({}, 2)).toEqual(['task_9', 'task_3'])
      expect(await listed({}, 0)).toEqual([])
      expect(await listed({ state: 'failed' })).toEqual(['task_9'])
      expect(await listed({ accountId: ACCOUNT_ID })).toEqual(['task_3', 'task_2', 'task_1'])
      expect(await listed({ accountId: 'account_2', state: 'queued' })).toEqual([])
      expect(await listed({ accountId: '\u0000' })).toEqual([])
      expect(await tasks.listAll({ state: 'failed', limit: 1 })).toEqual([FOREIGN])
    })

    check('go on behind the last one seen, also of one moment', async ({ tasks }) => {
      await insertFour(tasks)
      const after = { createdAtMs: NOW_MS + 2, id: 'task_3' }
      const listed = async (query: Omit<Parameters<TaskStore['listAll']>[0], 'limit'>) =>
        (await tasks.listAll({ ...query, limit: 10 })).map(({ id }) => id)
      expect(await listed({ after })).toEqual(['task_2', 'task_1'])
      expect(await listed({ after, state: 'queued', accountId: ACCOUNT_ID })).toEqual(['task_2', 'task_1'])
      expect(await listed({ after: { ...after, id: 'task_2' } })).toEqual(['task_1'])
      expect(await listed({ after, state: 'failed' })).toEqual([])
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
