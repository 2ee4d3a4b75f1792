import type { TaskChange } from '../../stores/task-store.ts'
import {
  ACCOUNT_ID,
  EXAMPLE_NOW_MS,
  exampleAnswer,
  exampleClaim,
  exampleReservation,
  exampleTask,
  fundedLedger,
  type TaskContractStore,
} from './store-example.ts'

/** The key, the task and the reservation of one example request for a video. */
export const claim = exampleClaim()
export const task = exampleTask({ state: 'submitting', holdId: 'hold_1' })
export const reservation = exampleReservation({ amount: 400n, claim, task })

/** The vendor has said yes. */
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

/** Puts 1,000 on the account and submits the example task, for which 400 are held. */
export async function submitted(store: TaskContractStore): Promise<void> {
  await fundedLedger(store, 1_000n)
  await store.ledger.reserve(reservation, EXAMPLE_NOW_MS)
}

/** The same, answered by the vendor and to the caller. */
export async function accepted(store: TaskContractStore): Promise<void> {
  await submitted(store)
  const answered = { claim, answer: exampleAnswer('accepted') }
  await store.tasks.change({ ...acceptance, answered }, EXAMPLE_NOW_MS)
}

export async function balanceOf({ ledger }: TaskContractStore) {
  const account = await ledger.account(ACCOUNT_ID)
  return { balance: account?.balance, held: account?.held }
}

/** State of the example task; undefined when there is none. */
export async function stateOf({ tasks }: TaskContractStore) {
  return (await tasks.find(ACCOUNT_ID, 'task_1'))?.state
}

/** What another request with the example's key would find. */
export async function keyOf({ idempotency }: TaskContractStore) {
  return (await idempotency.claim(claim, EXAMPLE_NOW_MS)).status
}
