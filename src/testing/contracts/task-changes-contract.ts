import { OPEN_TASK_STATES, type TaskChange } from '../../stores/task-store.ts'
import { type ContractRunner, type ContractSubject, failureName, withDriver } from './contract-runner.ts'
import {
  ACCOUNT_ID,
  EXAMPLE_NOW_MS,
  exampleAnswer,
  exampleDelivery,
  exampleTask,
  type TaskContractStore,
} from './store-example.ts'
import { acceptance, accepted, balanceOf, claim, keyOf, stateOf, submitted, task } from './submitted-task.ts'

const RACERS = 2_000

/** Changes of tasks, with the money, the keys and the messages that go with them. */
export function describeTaskChanges(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<TaskContractStore>,
): void {
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))

  describe('task store contract: changes', () => {
    check('sets what is given and leaves the rest', async (store) => {
      await submitted(store)
      expect(await store.tasks.change(acceptance, EXAMPLE_NOW_MS)).toEqual(true)
      expect(await store.tasks.find(ACCOUNT_ID, 'upstream-1')).toEqual({ ...task, ...acceptance.set })
      const details = { ...task.details, polls: 1, error: { code: 'c', message: 'm' } }
      const set = { state: 'in_progress', vendorAccount: 'dashscope:2', deadlineAtMs: 5, details } as const
      expect(await store.tasks.change({ id: 'task_1', from: ['queued'], set }, EXAMPLE_NOW_MS)).toEqual(true)
      expect(await store.tasks.find(ACCOUNT_ID, 'task_1')).toEqual({ ...task, ...acceptance.set, ...set })
    })

    check('changes nothing from another state or of an unknown task', async (store) => {
      await submitted(store)
      const change = { from: ['queued', 'unknown'], set: { state: 'failed' }, resolve: { kind: 'void' } } as const
      const also = { answered: { claim, answer: exampleAnswer('x') }, delivery: exampleDelivery() }
      expect(await store.tasks.change({ id: 'task_1', ...change, ...also }, EXAMPLE_NOW_MS)).toEqual(false)
      expect(await store.tasks.change({ id: 'task_2', ...change, ...also }, EXAMPLE_NOW_MS)).toEqual(false)
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
      expect(await store.tasks.change(completion(150n), EXAMPLE_NOW_MS + 9)).toEqual(true)
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
      expect(await keyOf(store)).toEqual('replay')
      const [charge] = await store.ledger.entries(ACCOUNT_ID, 1)
      const { amount, holdId, description, createdAtMs } = charge ?? {}
      expect({ amount, holdId, description, createdAtMs }).toEqual({
        amount: -150n,
        holdId: 'hold_1',
        description: 'video wv2.7-t2v',
        createdAtMs: EXAMPLE_NOW_MS + 9,
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
      expect(await store.tasks.change(failure, EXAMPLE_NOW_MS)).toEqual(true)
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
      expect(await keyOf(store)).toEqual('replay')
    })

    check('completes the key also when the same change ends the hold', async (store) => {
      await submitted(store)
      const answered = { claim, answer: exampleAnswer('accepted') }
      expect(await store.tasks.change({ ...completion(150n), answered }, EXAMPLE_NOW_MS)).toEqual(true)
      expect(await keyOf(store)).toEqual('replay')
    })

    check('charges above the hold from the balance and records what is lacking', async (store) => {
      await accepted(store)
      expect(await store.tasks.change(completion(1_200n), EXAMPLE_NOW_MS)).toEqual(true)
      expect(await balanceOf(store)).toEqual({ balance: 0n, held: 0n })
      const kinds = (await store.ledger.entries(ACCOUNT_ID, 2)).map(({ kind, amount }) => ({ kind, amount }))
      expect(kinds).toEqual([
        { kind: 'shortfall', amount: 0n },
        { kind: 'charge', amount: -1_000n },
      ])
    })

    check('refuses an amount below zero before anything is changed', async (store) => {
      await submitted(store)
      const wrong = { ...completion(-1n), answered: { claim, answer: exampleAnswer('accepted') } }
      expect(await failureName(() => store.tasks.change(wrong, EXAMPLE_NOW_MS))).toEqual('RangeError')
      expect(await stateOf(store)).toEqual('submitting')
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      expect(await keyOf(store)).toEqual('in_flight')
    })

    check('ends a task without a hold, whatever the change says about money', async (store) => {
      await store.tasks.insert(exampleTask())
      expect(await store.tasks.change(completion(150n), EXAMPLE_NOW_MS)).toEqual(true)
      expect(await stateOf(store)).toEqual('completed')
    })

    check('a second end changes nothing: no charge, no refund, no message', async (store) => {
      await accepted(store)
      await store.tasks.change({ ...completion(150n), delivery: exampleDelivery() }, EXAMPLE_NOW_MS)
      const late = {
        ...completion(90n),
        set: { state: 'cancelled' },
        delivery: exampleDelivery({ id: 'msg_2' }),
      } as const
      expect(await store.tasks.change(late, EXAMPLE_NOW_MS)).toEqual(false)
      expect(await store.tasks.change({ ...late, resolve: { kind: 'void' } }, EXAMPLE_NOW_MS)).toEqual(false)
      expect(await stateOf(store)).toEqual('completed')
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_1')).map(({ id }) => id)).toEqual(['msg_1'])
    })

    check(`of ${RACERS} ends at once by poll, cancel and sweep one counts`, async (store) => {
      await accepted(store)
      const won = await Promise.all(
        Array.from({ length: RACERS }, async (_, index) => {
          const delivery = exampleDelivery({ id: `msg_${index}` })
          const { resolve, state } = RACE[index % RACE.length]!
          const change = { id: 'task_1', from: OPEN_TASK_STATES, set: { state }, resolve, delivery }
          return (await store.tasks.change(change, EXAMPLE_NOW_MS)) ? state : undefined
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
