import type { TaskState } from '../../stores/task-store.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleDelivery, exampleTask, type TaskContractStore } from './store-example.ts'

const STATES: readonly TaskState[] = [
  ...(['submitting', 'unknown', 'queued', 'in_progress'] as const),
  ...(['completed', 'failed', 'cancelled'] as const),
]

/** What is kept of tasks that have ended, and for how long. */
export function describeTaskForgetting(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<TaskContractStore>,
): void {
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))
  const idsOf = async ({ tasks }: TaskContractStore) =>
    (await tasks.list(ACCOUNT_ID, { limit: 100 })).tasks.map(({ id }) => id).sort()
  const forget = ({ tasks }: TaskContractStore, changedUntilMs: number, limit = 100) =>
    tasks.purge({ changedUntilMs, limit })

  describe('task store contract: forgetting', () => {
    check('forgets tasks that ended by then, in every final state, and no open one', async (store) => {
      for (const state of STATES) {
        await store.tasks.insert(exampleTask({ id: `task_${state}`, upstreamId: `upstream-${state}`, state }))
      }
      await store.tasks.insert(exampleTask({ id: 'task_later', state: 'failed', updatedAtMs: EXAMPLE_NOW_MS + 1 }))
      expect(await forget(store, EXAMPLE_NOW_MS - 1)).toEqual(0)
      expect(await forget(store, EXAMPLE_NOW_MS)).toEqual(3)
      const left = ['task_in_progress', 'task_later', 'task_queued', 'task_submitting', 'task_unknown']
      expect(await idsOf(store)).toEqual(left)
      expect(await store.tasks.find(ACCOUNT_ID, 'task_completed')).toEqual(undefined)
      expect(await store.tasks.find(ACCOUNT_ID, 'upstream-completed')).toEqual(undefined)
      expect(await forget(store, EXAMPLE_NOW_MS)).toEqual(0)
    })

    check('forgets at most as many as asked, the oldest first', async (store) => {
      for (const age of [3, 1, 2]) {
        const updatedAtMs = EXAMPLE_NOW_MS - age
        await store.tasks.insert(exampleTask({ id: `task_${age}`, state: 'completed', updatedAtMs }))
      }
      expect(await forget(store, EXAMPLE_NOW_MS, 0)).toEqual(0)
      expect(await forget(store, EXAMPLE_NOW_MS, 2)).toEqual(2)
      expect(await idsOf(store)).toEqual(['task_1'])
    })

    check('forgets the messages about a task with it, and no others', async (store) => {
      await ended(store, 'task_1', 'msg_1')
      await ended(store, 'task_2', 'msg_2', EXAMPLE_NOW_MS + 1)
      for (const id of ['msg_1', 'msg_2']) await delivered(store, id)
      expect(await forget(store, EXAMPLE_NOW_MS)).toEqual(1)
      expect(await store.webhooks.list(ACCOUNT_ID, 'task_1')).toEqual([])
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_2')).map(({ id }) => id)).toEqual(['msg_2'])
      expect(await store.webhooks.resend(ACCOUNT_ID, 'msg_1', EXAMPLE_NOW_MS)).toEqual(false)
    })

    check('keeps a task whose message waits for delivery, and passes over it', async (store) => {
      await ended(store, 'task_1', 'msg_1', EXAMPLE_NOW_MS - 2)
      await ended(store, 'task_2', 'msg_2', EXAMPLE_NOW_MS - 1)
      await delivered(store, 'msg_2')
      expect(await forget(store, EXAMPLE_NOW_MS, 1)).toEqual(1)
      expect(await idsOf(store)).toEqual(['task_1'])
      await delivered(store, 'msg_1')
      await store.webhooks.resend(ACCOUNT_ID, 'msg_1', EXAMPLE_NOW_MS)
      expect(await forget(store, EXAMPLE_NOW_MS)).toEqual(0)
      await delivered(store, 'msg_1')
      expect(await forget(store, EXAMPLE_NOW_MS)).toEqual(1)
    })

    check('forgets each task once, however many do it at once', async (store) => {
      for (let index = 0; index < 40; index++) {
        await store.tasks.insert(exampleTask({ id: `task_${index}`, state: 'completed' }))
      }
      const counts = await Promise.all(Array.from({ length: 10 }, async () => forget(store, EXAMPLE_NOW_MS, 5)))
      let forgotten = counts.reduce((sum, count) => sum + count, 0)
      forgotten += await forget(store, EXAMPLE_NOW_MS)
      expect(forgotten).toEqual(40)
      expect(await idsOf(store)).toEqual([])
    })
  })
}

/** A task that has ended, and the message about it. */
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
