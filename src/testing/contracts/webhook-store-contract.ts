import type { DeliveryAttempt, DeliveryState, NewDelivery } from '../../stores/webhook-store.ts'
import {
  ACCOUNT_ID,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleDelivery,
  exampleTask,
  NOW_MS,
  type TaskContractStore,
} from './contract-runner.ts'

const LEASE_MS = 30_000

/** Tests each guarantee of the webhook store. Messages come from changes of tasks, so it needs both. */
export function describeWebhookStore(runner: ContractRunner, subject: ContractSubject<TaskContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const idsOf = (deliveries: readonly NewDelivery[]) => deliveries.map(({ id }) => id)
  const stateOf = async ({ webhooks }: TaskContractStore) => (await webhooks.list(ACCOUNT_ID, 'task_1'))[0]?.state

  describe('webhook store contract: messages', () => {
    check('gives a message as it was queued, and lists it to its owner only', async (store) => {
      await queue(store, exampleDelivery())
      const expected = { ...exampleDelivery(), state: 'pending', attempts: [], resentAtMs: undefined }
      expect(await take(store, NOW_MS)).toEqual([expected])
      expect(await store.webhooks.list(ACCOUNT_ID, 'task_1')).toEqual([expected])
      expect(await store.webhooks.list('account_2', 'task_1')).toEqual([])
      expect(await store.webhooks.list(ACCOUNT_ID, 'task_2')).toEqual([])
    })

    check('keeps the first of two messages of the same id', async (store) => {
      await queue(store, exampleDelivery())
      await queue(store, exampleDelivery({ body: '{}' }))
      const bodies = (await store.webhooks.list(ACCOUNT_ID, 'task_1')).map(({ body }) => body)
      expect(bodies).toEqual([exampleDelivery().body])
    })

    check(
      'lists the messages of all accounts, newest first, by account and state, behind the last one seen',
      async (store) => {
        const { webhooks } = store
        for (const [id, accountId, age] of [
          ['msg_1', ACCOUNT_ID, 1],
          ['msg_2', 'account_2', 2],
          ['msg_3', ACCOUNT_ID, 2],
        ] as const)
          await queue(store, exampleDelivery({ id, accountId, createdAtMs: NOW_MS + age }))
        await take(store, NOW_MS)
        await webhooks.record('msg_2', outcome('failed', attempt({ status: 500 })))
        const listed = async (query: Omit<Parameters<typeof webhooks.listAll>[0], 'limit'>, limit = 10) =>
          idsOf(await webhooks.listAll({ ...query, limit }))
        expect(await listed({})).toEqual(['msg_3', 'msg_2', 'msg_1'])
        expect(await listed({}, 1)).toEqual(['msg_3'])
        expect(await listed({ after: { createdAtMs: NOW_MS + 2, id: 'msg_3' } })).toEqual(['msg_2', 'msg_1'])
        expect(await listed({ accountId: ACCOUNT_ID })).toEqual(['msg_3', 'msg_1'])
        expect(await listed({ state: 'failed' })).toEqual(['msg_2'])
        expect(await listed({ state: 'pending', accountId: 'account_2' })).toEqual([])
        expect((await webhooks.listAll({ state: 'failed', limit: 1 }))[0]?.attempts).toEqual([attempt({ status: 500 })])
      },
    )

    check('takes what is due, longest overdue first, at most as many as asked', async (store) => {
      for (const [id, dueInMs] of [
        ['msg_1', 3],
        ['msg_2', 1],
        ['msg_3', 2],
        ['msg_4', 9],
      ] as const) {
        await queue(store, exampleDelivery({ id, nextAttemptAtMs: NOW_MS + dueInMs }))
      }
      expect(idsOf(await take(store, NOW_MS + 3, 2))).toEqual(['msg_2', 'msg_3'])
      expect(idsOf(await take(store, NOW_MS + 3, 2))).toEqual(['msg_1'])
      expect(idsOf(await take(store, NOW_MS + 3, 2))).toEqual([])
    })

    check('gives a message to one of many takers, and again when its lease is over', async (store) => {
      await queue(store, exampleDelivery())
      const taken = await Promise.all(Array.from({ length: 50 }, async () => take(store, NOW_MS)))
      expect(taken.flat().length).toEqual(1)
      expect((await take(store, NOW_MS + LEASE_MS - 1)).length).toEqual(0)
      expect((await take(store, NOW_MS + LEASE_MS)).length).toEqual(1)
    })

    check('notes an attempt, ends the lease and waits for the next time', async (store) => {
      await queue(store, exampleDelivery())
      await take(store, NOW_MS)
      const failed = attempt({ atMs: NOW_MS + 5, status: 500, error: 'the receiver failed' })
      await store.webhooks.record('msg_1', outcome('pending', failed, NOW_MS + 100))
      expect(await take(store, NOW_MS + 99)).toEqual([])
      const expected = { ...exampleDelivery(), nextAttemptAtMs: NOW_MS + 100, state: 'pending', resentAtMs: undefined }
      expect(await take(store, NOW_MS + 100)).toEqual([{ ...expected, attempts: [failed] }])
    })

    check('gives what was taken and not sent to the next at once, where the store can', async (store) => {
      await queue(store, exampleDelivery())
      await take(store, NOW_MS)
      await store.webhooks.release?.(['msg_1', 'msg_9'])
      const again = await take(store, NOW_MS)
      expect(idsOf(again)).toEqual(store.webhooks.release === undefined ? [] : ['msg_1'])
    })

    for (const state of ['delivered', 'failed', 'disabled'] as const) {
      check(`takes a message that is ${state} no more`, async (store) => {
        await queue(store, exampleDelivery())
        await store.webhooks.record('msg_1', outcome(state))
        expect(await take(store, NOW_MS + 90_000_000)).toEqual([])
        expect(await stateOf(store)).toEqual(state)
      })
    }

    check('is not reopened by an attempt that reports late, but a late success counts', async (store) => {
      await queue(store, exampleDelivery())
      await store.webhooks.record('msg_1', outcome('failed'))
      await store.webhooks.record('msg_1', outcome('delivered'))
      await store.webhooks.record('msg_1', outcome('pending'))
      expect(await stateOf(store)).toEqual('delivered')
      expect((await store.webhooks.list(ACCOUNT_ID, 'task_1'))[0]?.attempts.length).toEqual(3)
    })

    check('changes nothing by noting an attempt of an unknown message', async (store) => {
      await store.webhooks.record('msg_9', outcome('delivered'))
      expect(await store.webhooks.list(ACCOUNT_ID, 'task_1')).toEqual([])
    })

    check('keeps the newest 50 attempts, oldest first', async (store) => {
      await queue(store, exampleDelivery())
      for (let count = 0; count < 53; count++) {
        await store.webhooks.record('msg_1', outcome('pending', attempt({ atMs: NOW_MS + count })))
      }
      const times = (await store.webhooks.list(ACCOUNT_ID, 'task_1'))[0]?.attempts.map(({ atMs }) => atMs)
      expect(times).toEqual(Array.from({ length: 50 }, (_, index) => NOW_MS + 3 + index))
    })

    check('lists the messages of a task, oldest first', async (store) => {
      await queue(store, exampleDelivery({ id: 'msg_2', createdAtMs: NOW_MS + 2 }))
      await queue(store, exampleDelivery({ id: 'msg_1', createdAtMs: NOW_MS + 1 }))
      expect(idsOf(await store.webhooks.list(ACCOUNT_ID, 'task_1'))).toEqual(['msg_1', 'msg_2'])
    })

    check('sends again what its owner asks for, keeping the attempts and noting the time', async (store) => {
      await queue(store, exampleDelivery())
      await store.webhooks.record('msg_1', outcome('disabled'))
      expect(await store.webhooks.resend(ACCOUNT_ID, 'msg_1', NOW_MS + 7_000)).toEqual(true)
      expect(idsOf(await take(store, NOW_MS + 6_999))).toEqual([])
      const [resent] = await take(store, NOW_MS + 7_000)
      const { state, attempts, resentAtMs } = resent ?? {}
      expect({ state, resentAtMs }).toEqual({ state: 'pending', resentAtMs: NOW_MS + 7_000 })
      expect(attempts?.length).toEqual(1)
    })

    check(
      'sends again what its owner asks for while an attempt is under way, whatever becomes of that',
      async (store) => {
        for (const state of ['failed', 'pending', 'disabled', 'delivered'] as const) {
          await queue(store, exampleDelivery({ id: state }))
          await take(store, NOW_MS)
          await store.webhooks.resend(ACCOUNT_ID, state, NOW_MS + 5_000)
          const under = attempt({ atMs: NOW_MS })
          await store.webhooks.record(state, outcome(state, under, NOW_MS + 90_000_000))
        }
        expect(idsOf(await take(store, NOW_MS + 5_000)).sort()).toEqual(['disabled', 'failed', 'pending'])
      },
    )

    check('sends nothing again of another account or of an unknown id', async (store) => {
      await queue(store, exampleDelivery())
      await store.webhooks.record('msg_1', outcome('delivered'))
      expect(await store.webhooks.resend('account_2', 'msg_1', NOW_MS)).toEqual(false)
      for (const id of ['msg_2', '', '\u0000']) {
        expect(await store.webhooks.resend(ACCOUNT_ID, id, NOW_MS)).toEqual(false)
      }
      expect(await stateOf(store)).toEqual('delivered')
    })
  })

  describe('webhook store contract: secrets', () => {
    check('has none for an account that was given none', async ({ webhooks }) => {
      await webhooks.replaceSecret('account_2', 'whsec_other', NOW_MS, NOW_MS)
      expect(await webhooks.secrets(ACCOUNT_ID, NOW_MS)).toEqual([])
    })

    check('gives an account one first secret when several ask for it at the same time', async ({ webhooks }) => {
      const wanted = ['whsec_1', 'whsec_2', 'whsec_3', 'whsec_4']
      const given = await Promise.all(wanted.map(async (secret) => webhooks.ensureSecret(ACCOUNT_ID, secret)))
      const later = await webhooks.ensureSecret(ACCOUNT_ID, 'whsec_5')
      const other = await webhooks.ensureSecret('account_2', 'whsec_6')
      expect([...new Set([...given, later])].length).toEqual(1)
      expect(wanted.includes(later)).toEqual(true)
      expect(other).toEqual('whsec_6')
      expect(await webhooks.secrets(ACCOUNT_ID, NOW_MS)).toEqual([{ secret: later, expiresAtMs: undefined }])
    })

    check('finds the newest secret of an account that was given some', async ({ webhooks }) => {
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_1', NOW_MS, NOW_MS)
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_2', NOW_MS + 9_000, NOW_MS)
      expect(await webhooks.ensureSecret(ACCOUNT_ID, 'whsec_3')).toEqual('whsec_2')
      const secrets = await webhooks.secrets(ACCOUNT_ID, NOW_MS)
      expect(secrets.map(({ secret }) => secret)).toEqual(['whsec_2', 'whsec_1'])
    })

    check('signs with the old secret too until the overlap ends, newest secret first', async (store) => {
      const { webhooks } = store
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_b', NOW_MS, NOW_MS)
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_a', NOW_MS + 1_000, NOW_MS)
      const newest = { secret: 'whsec_a', expiresAtMs: undefined }
      const older = { secret: 'whsec_b', expiresAtMs: NOW_MS + 1_000 }
      expect(await webhooks.secrets(ACCOUNT_ID, NOW_MS + 999)).toEqual([newest, older])
      expect(await webhooks.secrets(ACCOUNT_ID, NOW_MS + 1_000)).toEqual([newest])
    })

    check('never prolongs a secret that ends earlier', async ({ webhooks }) => {
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_1', NOW_MS, NOW_MS)
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_2', NOW_MS, NOW_MS)
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_3', NOW_MS + 9_000, NOW_MS)
      const secrets = await webhooks.secrets(ACCOUNT_ID, NOW_MS + 1)
      expect(secrets.map(({ secret }) => secret)).toEqual(['whsec_3', 'whsec_2'])
    })

    check('deletes secrets that have expired when the account gets a new one', async ({ webhooks }) => {
      const end = NOW_MS + 10
      for (const secret of ['whsec_1', 'whsec_2']) await webhooks.replaceSecret(ACCOUNT_ID, secret, end, NOW_MS)
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_3', end + 10, end)
      const secrets = await webhooks.secrets(ACCOUNT_ID, NOW_MS)
      expect(secrets.map(({ secret }) => secret)).toEqual(['whsec_3', 'whsec_2'])
    })

    check('makes a secret that is given again the newest', async ({ webhooks }) => {
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_1', NOW_MS, NOW_MS)
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_2', NOW_MS + 5, NOW_MS)
      await webhooks.replaceSecret(ACCOUNT_ID, 'whsec_1', NOW_MS + 9, NOW_MS)
      expect(await webhooks.secrets(ACCOUNT_ID, NOW_MS + 1)).toEqual([
        { secret: 'whsec_1', expiresAtMs: undefined },
        { secret: 'whsec_2', expiresAtMs: NOW_MS + 9 },
      ])
    })
  })
}

/** Queues a message like a change of a task. */
async function queue({ tasks }: TaskContractStore, delivery: NewDelivery): Promise<void> {
  await tasks.insert(exampleTask())
  await tasks.change({ id: 'task_1', from: ['queued'], set: {}, delivery }, NOW_MS)
}

async function take({ webhooks }: TaskContractStore, nowMs: number, limit = 10) {
  return webhooks.leaseDue({ nowMs, leaseUntilMs: nowMs + LEASE_MS, limit })
}

function attempt(overrides: Partial<DeliveryAttempt> = {}): DeliveryAttempt {
  return { atMs: NOW_MS, durationMs: 12, ...overrides }
}

function outcome(state: DeliveryState, noted = attempt(), nextAttemptAtMs = NOW_MS) {
  return { attempt: noted, state, nextAttemptAtMs }
}
