import { OPEN_TASK_STATES, type TaskChange, type TaskChangeResult } from '../../stores/task-store.ts'
import { type ContractRunner, type ContractSubject, failureName, withDriver } from './contract-runner.ts'
import { exampleResponse } from './response-store-contract.ts'
import {
  ACCOUNT_ID,
  EXAMPLE_NOW_MS,
  exampleAnswer,
  exampleClaim,
  exampleDelivery,
  exampleReservation,
  exampleTask,
  fundedLedger,
  type TaskContractStore,
} from './store-example.ts'

/** Tests that a reservation and its task in one driver are stored together and removed together. */
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

    check('keeps the receipt of a task without a hold for the whole time of its key', async (store) => {
      const own = { ...claim, claimedBy: 'req_1', pendingUntilMs: EXAMPLE_NOW_MS + 1_000 }
      await store.idempotency.claim(own, EXAMPLE_NOW_MS)
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      await store.tasks.change(
        { ...acceptance, answered: { claim: own, answer: exampleAnswer('accepted') } },
        EXAMPLE_NOW_MS,
      )
      const found = await store.idempotency.claim({ ...own, claimedBy: 'req_2' }, own.expiresAtMs - 1)
      expect(found.status).toEqual('replay')
    })

    check('touches no key that an equal request has taken over from that of the task', async (store) => {
      const own = { ...claim, claimedBy: 'req_1', pendingUntilMs: EXAMPLE_NOW_MS + 1_000 }
      const later = { ...claim, claimedBy: 'req_2' }
      await store.idempotency.claim(own, EXAMPLE_NOW_MS)
      await store.idempotency.claim(later, own.pendingUntilMs + 1)
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      await store.tasks.discard('task_1', own, own.pendingUntilMs + 1)
      expect(await keyOf(store)).toEqual('in_flight')
      await store.tasks.insert(exampleTask({ state: 'submitting' }))
      await store.tasks.change(
        { ...acceptance, answered: { claim: own, answer: exampleAnswer('accepted') } },
        EXAMPLE_NOW_MS,
      )
      expect(await keyOf(store)).toEqual('in_flight')
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

const RACERS = 2_000

/** Tests changes of tasks, together with their money, keys and messages. */
export function describeTaskChanges(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<TaskContractStore>,
): void {
  const check = (name: string, body: (store: TaskContractStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))

  describe('task store contract: changes', () => {
    check('sets what is given and leaves the rest', async (store) => {
      await submitted(store)
      expect(await store.tasks.change(acceptance, EXAMPLE_NOW_MS)).toEqual({})
      expect(await store.tasks.find(ACCOUNT_ID, 'upstream-1')).toEqual({ ...task, ...acceptance.set })
      const details = { ...task.details, polls: 1, error: { code: 'c', message: 'm' } }
      const set = { state: 'in_progress', credentialId: 'dashscope:2', deadlineAtMs: 5, details } as const
      expect(await store.tasks.change({ id: 'task_1', from: ['queued'], set }, EXAMPLE_NOW_MS)).toEqual({})
      expect(await store.tasks.find(ACCOUNT_ID, 'task_1')).toEqual({ ...task, ...acceptance.set, ...set })
    })

    check('changes nothing from another state or of an unknown task', async (store) => {
      await submitted(store)
      const change = { from: ['queued', 'unknown'], set: { state: 'failed' }, resolve: { kind: 'void' } } as const
      const also = { answered: { claim, answer: exampleAnswer('x') }, delivery: exampleDelivery() }
      expect(await store.tasks.change({ id: 'task_1', ...change, ...also }, EXAMPLE_NOW_MS)).toEqual(undefined)
      expect(await store.tasks.change({ id: 'task_2', ...change, ...also }, EXAMPLE_NOW_MS)).toEqual(undefined)
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
      expect(await store.tasks.change(completion(150n), EXAMPLE_NOW_MS + 9)).toEqual(chargedFor(150n))
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
      expect(await store.tasks.change(failure, EXAMPLE_NOW_MS)).toEqual({})
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
      expect(await keyOf(store)).toEqual('replay')
    })

    check('completes the key also when the same change ends the hold', async (store) => {
      await submitted(store)
      const answered = { claim, answer: exampleAnswer('accepted') }
      expect(await store.tasks.change({ ...completion(150n), answered }, EXAMPLE_NOW_MS)).toEqual(chargedFor(150n))
      expect(await keyOf(store)).toEqual('replay')
    })

    check('charges above the hold from the balance and records what is lacking', async (store) => {
      await accepted(store)
      expect(await store.tasks.change(completion(1_200n), EXAMPLE_NOW_MS)).toEqual(chargedFor(1_000n, 200n))
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
      const told = await store.tasks.change({ ...change, resolve: { ...change.resolve, thresholds } }, EXAMPLE_NOW_MS)
      const crossing = { of: 'balance', period: undefined, bound: 1_000n, used: 800n } as const
      expect(told?.charge?.crossings).toEqual([
        { ...crossing, percent: 50 },
        { ...crossing, percent: 80 },
      ])
    })

    check('says how a hold had ended that it can charge no more', async (store) => {
      await accepted(store)
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      const told = await store.tasks.change(completion(150n), EXAMPLE_NOW_MS)
      expect(told?.charge).toEqual({ resolved: false, charged: 0n, shortfall: 0n, endedBy: 'voided' })
      expect(await stateOf(store)).toEqual('completed')
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
      expect(await store.tasks.change(completion(150n), EXAMPLE_NOW_MS)).toEqual({})
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
      expect(await store.tasks.change(late, EXAMPLE_NOW_MS)).toEqual(undefined)
      expect(await store.tasks.change({ ...late, resolve: { kind: 'void' } }, EXAMPLE_NOW_MS)).toEqual(undefined)
      expect(await stateOf(store)).toEqual('completed')
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_1')).map(({ id }) => id)).toEqual(['msg_1'])
    })

    check('keeps an answer with the end of its task, and none with an end that does not count', async (store) => {
      await accepted(store)
      const keeps = exampleResponse({ id: 'task_1' })
      const late = exampleResponse({ id: 'task_1', response: { id: 'task_1', output: [] } })
      expect(await store.tasks.change({ ...completion(150n), keeps }, EXAMPLE_NOW_MS)).toEqual(chargedFor(150n))
      expect(await store.tasks.change({ ...completion(150n), keeps: late }, EXAMPLE_NOW_MS)).toEqual(undefined)
      expect(await store.responses.find(ACCOUNT_ID, 'task_1', EXAMPLE_NOW_MS)).toEqual(keeps)
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
    })

    check(`counts one of ${RACERS} simultaneous ends by poll, cancel and sweep`, async (store) => {
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

function chargedFor(charged: bigint, shortfall = 0n): TaskChangeResult {
  return { charge: { resolved: true, charged, shortfall } }
}

/** Key, task and reservation of an example request for a video. */
export const claim = exampleClaim()
export const task = exampleTask({ state: 'submitting', holdId: 'hold_1' })
export const reservation = exampleReservation({ amount: 400n, claim, task })

/** The vendor has confirmed the submission. */
export const acceptance: TaskChange = {
  id: 'task_1',
  from: ['submitting'],
  set: {
    state: 'queued',
    upstreamId: 'upstream-1',
    updatedAtMs: EXAMPLE_NOW_MS + 3,
    nextPollAtMs: EXAMPLE_NOW_MS + 4,
  },
}

/** Credits 1,000 to the account and submits the example task with a hold of 400. */
export async function submitted(store: TaskContractStore): Promise<void> {
  await fundedLedger(store, 1_000n)
  await store.ledger.reserve(reservation, EXAMPLE_NOW_MS)
}

/** Submits the example task, with the answers of the vendor and to the caller. */
export async function accepted(store: TaskContractStore): Promise<void> {
  await submitted(store)
  const answered = { claim, answer: exampleAnswer('accepted') }
  await store.tasks.change({ ...acceptance, answered }, EXAMPLE_NOW_MS)
}

export async function balanceOf({ ledger }: TaskContractStore) {
  const account = await ledger.account(ACCOUNT_ID)
  return { balance: account?.balance, held: account?.held }
}

/** Returns the state of the example task, or `undefined` if there is none. */
export async function stateOf({ tasks }: TaskContractStore) {
  return (await tasks.find(ACCOUNT_ID, 'task_1'))?.state
}

/** Returns what another request with the example's key would find. */
export async function keyOf({ idempotency }: TaskContractStore) {
  return (await idempotency.claim(claim, EXAMPLE_NOW_MS)).status
}
