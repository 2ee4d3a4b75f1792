import { OPEN_TASK_STATES } from '../../stores/task-store.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import {
  ACCOUNT_ID,
  EXAMPLE_NOW_MS,
  exampleReservation,
  exampleTask,
  fundedLedger,
  type TaskContractStore,
} from './store-example.ts'
import { accepted, balanceOf, claim, keyOf, reservation, stateOf, submitted, task } from './submitted-task.ts'

/** What a reservation and a task of one driver share: both are written down, and both go, together. */
export function describeTaskSubmission(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<TaskContractStore>,
): void {
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))

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
        store.ledger.reserve(wanted, EXAMPLE_NOW_MS),
      )
      expect(await Promise.all(both)).toEqual([{ status: 'held' }, { status: 'held' }])
      expect((await store.tasks.list(ACCOUNT_ID, { limit: 5 })).tasks).toEqual([task])
      expect(await balanceOf(store)).toEqual({ balance: 500n, held: 500n })
    })

    check('writes no task down when the money is not held', async (store) => {
      await fundedLedger(store, 399n)
      const refused = await store.ledger.reserve(reservation, EXAMPLE_NOW_MS)
      expect(refused).toEqual({ status: 'insufficient_balance' })
      expect(await stateOf(store)).toEqual(undefined)
    })

    check('writes no second task down for a key that is taken', async (store) => {
      await submitted(store)
      const second = { ...reservation, holdId: 'hold_2', task: { ...task, id: 'task_2', holdId: 'hold_2' } }
      expect(await store.ledger.reserve(second, EXAMPLE_NOW_MS)).toEqual({ status: 'in_flight' })
      expect(await store.tasks.find(ACCOUNT_ID, 'task_2')).toEqual(undefined)
    })

    check('changes nothing when the same hold is reserved again', async (store) => {
      await accepted(store)
      expect(await store.ledger.reserve(reservation, EXAMPLE_NOW_MS)).toEqual({ status: 'held' })
      expect(await stateOf(store)).toEqual('queued')
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
    })

    check('removes a task that the vendor refused, with its hold, and frees the key', async (store) => {
      await submitted(store)
      expect(await store.tasks.discard('task_1', claim, EXAMPLE_NOW_MS)).toEqual(true)
      expect(await stateOf(store)).toEqual(undefined)
      expect((await store.tasks.list(ACCOUNT_ID, { limit: 5 })).tasks).toEqual([])
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
      expect(await keyOf(store)).toEqual('claimed')
      expect(await store.tasks.discard('task_1', claim, EXAMPLE_NOW_MS)).toEqual(false)
    })

    check('does not bring a removed task back when its hold is reserved again', async (store) => {
      await submitted(store)
      await store.tasks.discard('task_1', claim, EXAMPLE_NOW_MS)
      expect(await store.ledger.reserve(reservation, EXAMPLE_NOW_MS)).toEqual({ status: 'held' })
      expect(await stateOf(store)).toEqual(undefined)
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
    })

    check('removes a task without a hold, and frees the key that is named', async (store) => {
      await store.idempotency.claim(claim, EXAMPLE_NOW_MS)
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      expect(await store.tasks.discard('task_1', claim, EXAMPLE_NOW_MS)).toEqual(true)
      expect(await stateOf(store)).toEqual(undefined)
      expect(await keyOf(store)).toEqual('claimed')
    })

    check('removes no task that was accepted', async (store) => {
      await accepted(store)
      expect(await store.tasks.discard('task_1', claim, EXAMPLE_NOW_MS)).toEqual(false)
      expect(await stateOf(store)).toEqual('queued')
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      expect(await keyOf(store)).toEqual('replay')
    })

    for (const state of OPEN_TASK_STATES) {
      check(`does not expire the hold of a task in state ${state}, but others`, async (store) => {
        await submitted(store)
        await store.tasks.change({ id: 'task_1', from: ['submitting'], set: { state } }, EXAMPLE_NOW_MS)
        await store.ledger.reserve(exampleReservation({ holdId: 'hold_2', amount: 50n }), EXAMPLE_NOW_MS)
        expect(await store.ledger.expire(reservation.expiresAtMs + 1, 10)).toEqual(1)
        expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      })
    }

    check('expires the hold of a task that ended and left it', async (store) => {
      await accepted(store)
      await store.tasks.change({ id: 'task_1', from: OPEN_TASK_STATES, set: { state: 'failed' } }, EXAMPLE_NOW_MS)
      expect(await store.ledger.expire(reservation.expiresAtMs + 1, 10)).toEqual(1)
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
    })
  })
}
