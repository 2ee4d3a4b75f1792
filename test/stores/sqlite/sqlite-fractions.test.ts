import { afterEach, beforeEach, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import {
  exampleAnswer,
  exampleClaim,
  exampleDelivery,
  exampleReservation,
  exampleTask,
  fundedLedger,
} from '../../../src/testing/contracts/contract-runner.ts'

const NOW_MS = 1_750_000_000_000.25

let store: GatewayStore

beforeEach(async () => {
  store = sqliteStore({ path: ':memory:', clock: 'caller' })
  await store.start()
})
afterEach(() => store.close())

test('money is held and charged at times with a fraction, as some clocks give them', async () => {
  await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
  await store.ledger.credit({ creditId: 'c', accountId: 'account_1', amount: 1_000n, description: 'gift' }, NOW_MS)
  const claim = { ...exampleClaim(), expiresAtMs: NOW_MS + 1_000 }
  const caps = { account: { amount: 900n, period: 'month' as const } }
  const times = { expiresAtMs: NOW_MS + 60_000, amount: 100n }
  const plain = exampleReservation({ ...times, holdId: 'plain' })
  const counted = exampleReservation({ ...times, holdId: 'counted', claim, caps })
  const refused = exampleReservation({ ...times, holdId: 'refused', amount: 5_000n })

  const held = await Promise.all([plain, counted, refused].map((hold) => store.ledger.reserve(hold, NOW_MS)))
  const settled = await Promise.all(
    ['plain', 'counted'].map((holdId) => store.ledger.settle({ holdId, amount: 40n, description: 'x' }, NOW_MS + 0.5)),
  )

  expect(held.map(({ status }) => status)).toEqual(['held', 'held', 'insufficient_balance'])
  expect(settled.map(({ charged }) => charged)).toEqual([40n, 40n])
  expect(await store.ledger.account('account_1')).toMatchObject({
    balance: 920n,
    held: 0n,
    createdAtMs: 1_750_000_000_000,
  })
})

test('tasks and messages keep times with a fraction to the millisecond', async () => {
  await fundedLedger(store, 1_000n)
  const times = { createdAtMs: NOW_MS, updatedAtMs: NOW_MS, nextPollAtMs: NOW_MS, deadlineAtMs: NOW_MS + 1.5 }
  await store.tasks.insert(exampleTask({ ...times, id: 'task_1', state: 'submitting' }))
  const set = {
    state: 'queued',
    updatedAtMs: NOW_MS,
    nextPollAtMs: NOW_MS + 333.4,
    deadlineAtMs: NOW_MS + 1.5,
  } as const
  const delivery = exampleDelivery({ id: 'msg_1', taskId: 'task_1', createdAtMs: NOW_MS, nextAttemptAtMs: NOW_MS })
  const changed = await store.tasks.change({ id: 'task_1', from: ['submitting'], set, delivery }, NOW_MS)
  const overdue = await store.tasks.leaseExpired({ nowMs: NOW_MS + 10, leaseUntilMs: NOW_MS + 90, limit: 5 })
  const messages = await store.webhooks.leaseDue({ nowMs: NOW_MS, leaseUntilMs: NOW_MS + 90, limit: 5 })
  const attempt = { atMs: NOW_MS, durationMs: 1.5, error: 'no' }
  await store.webhooks.record('msg_1', { attempt, state: 'pending', nextAttemptAtMs: NOW_MS + 5_000.5 })

  expect(changed).toEqual({})
  expect(overdue).toMatchObject([{ id: 'task_1', nextPollAtMs: 1_750_000_000_333 }])
  expect(messages).toMatchObject([{ id: 'msg_1' }])
  expect(await store.webhooks.list('account_1', 'task_1')).toMatchObject([{ nextAttemptAtMs: 1_750_000_005_000 }])
})

test('keys, conversations, secrets and idempotency keys take times with a fraction', async () => {
  const claim = { ...exampleClaim(), expiresAtMs: NOW_MS + 1_000 }
  await store.idempotency.claim(claim, NOW_MS)
  await store.idempotency.complete(claim, exampleAnswer('x'), NOW_MS)
  await store.webhooks.replaceSecret('account_1', 'whsec_old', NOW_MS, NOW_MS)
  await store.webhooks.replaceSecret('account_1', 'whsec_new', NOW_MS + 100.5, NOW_MS)
  await store.interactions.save({
    id: 'i',
    accountId: 'account_1',
    vendor: 'v',
    credentialId: 'k',
    upstreamId: 'u',
    model: 'm',
    createdAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 1_000,
  })

  expect((await store.idempotency.claim(claim, NOW_MS + 1)).status).toBe('replay')
  expect(await store.webhooks.secrets('account_1', NOW_MS + 1)).toHaveLength(2)
  expect(await store.interactions.find('account_1', 'i', NOW_MS + 1)).toMatchObject({ id: 'i' })
})
