import { beforeEach, describe, expect, it } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/sqlite-database.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import type { TaskChange } from '../../../src/stores/task-store.ts'
import {
  exampleAnswer,
  exampleClaim,
  exampleDelivery,
  exampleReservation,
  exampleTask,
  fundedLedger,
} from '../../../src/testing/contracts/contract-runner.ts'
import { defaultEngine } from './support/sqlite-engines.ts'
import { temporaryPaths } from './support/temporary-folder.ts'

const newPath = temporaryPaths()
const NOW_MS = 1_750_000_000_000

describe('tasks on SQLite', () => {
  let path: string
  let database: SqliteDatabase
  let store: GatewayStore

  beforeEach(async () => {
    path = newPath()
    database = defaultEngine.open(path)
    store = sqliteStore({ database, clock: 'caller' })
    await store.start()
    return async () => {
      await store.close()
      database.close()
    }
  })

  const countOf = (table: string): number =>
    Number((database.prepare(`SELECT count(*) AS count FROM signalbox_${table}`).get() as { count: number }).count)

  it('finishes a change of a task that waits when the store is closed', async () => {
    await store.tasks.insert(exampleTask({ state: 'queued', holdId: undefined }))
    const change: TaskChange = { id: 'task_1', from: ['queued'], set: { state: 'completed' } }

    const changed = store.tasks.change(change, NOW_MS)
    await store.close()

    expect(await changed).toEqual({})
    expect(database.prepare('SELECT state FROM signalbox_tasks').all()).toEqual([{ state: 'completed' }])
  })

  it('forgets expired conversations as new ones come', async () => {
    const save = (index: number, createdAtMs: number) => {
      const record = { accountId: 'account_1', vendor: 'gemini', credentialId: 'f', upstreamId: 'u', model: 'm' }
      return store.interactions.save({ ...record, id: `v1_${index}`, createdAtMs, expiresAtMs: createdAtMs + 10 })
    }
    for (let index = 0; index < 30; index++) await save(index, NOW_MS)
    for (let index = 30; index < 45; index++) await save(index, NOW_MS + 10)

    expect(countOf('interactions')).toBe(15)
  })

  it('leaves task, hold, key and messages as they were when a change cannot be finished', async () => {
    const claim = exampleClaim()
    const task = exampleTask({ holdId: 'hold_1' })
    await fundedLedger(store, 1_000n)
    await store.ledger.reserve(exampleReservation({ claim, task, amount: 400n }), NOW_MS)
    database.exec(`CREATE TRIGGER refuse BEFORE INSERT ON signalbox_deliveries
      BEGIN SELECT RAISE(ABORT, 'refused by a test'); END`)
    const change: TaskChange = {
      id: 'task_1',
      from: ['queued'],
      set: { state: 'completed' },
      resolve: { kind: 'settle', amount: 150n, description: 'video' },
      answered: { claim, answer: exampleAnswer('accepted') },
      delivery: exampleDelivery(),
    }

    await expect(store.tasks.change(change, NOW_MS)).rejects.toThrow('refused by a test')

    expect(await store.tasks.find('account_1', 'task_1')).toEqual(task)
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 600n, held: 400n })
    expect(await store.idempotency.claim(claim, NOW_MS)).toEqual({ status: 'in_flight' })
    expect(countOf('deliveries')).toBe(0)
  })

  it('shares 60 tasks out among three connections to one file, none twice, no more than the budget', async () => {
    for (let index = 0; index < 60; index++) {
      await store.tasks.insert(exampleTask({ id: `task_${index}`, nextPollAtMs: NOW_MS }))
    }
    const others = [sqliteStore({ path, clock: 'caller' }), sqliteStore({ path, clock: 'caller' })]
    for (const other of others) await other.start()
    const budget = { takes: 50, windowMs: 1_000 }
    const query = { credentialId: 'dashscope:1', nowMs: NOW_MS, leaseUntilMs: NOW_MS + 30_000, limit: 4, budget }
    const takers = Array.from({ length: 10 }, () => [store, ...others]).flat()

    const taken = (await Promise.all(takers.map(async ({ tasks }) => tasks.leaseDue(query)))).flat()

    expect(taken).toHaveLength(50)
    expect(new Set(taken.map(({ id }) => id)).size).toBe(50)
    for (const other of others) await other.close()
  })

  it('keeps tasks, messages, secrets and conversations over a restart', async () => {
    const delivery = exampleDelivery()
    await store.tasks.insert(exampleTask())
    await store.tasks.change({ id: 'task_1', from: ['queued'], set: { upstreamId: 'upstream-1' }, delivery }, NOW_MS)
    await store.webhooks.replaceSecret('account_1', 'whsec_1', NOW_MS, NOW_MS)
    await store.close()
    const again = sqliteStore({ path, clock: 'caller' })
    await again.start()

    expect(await again.tasks.find('account_1', 'upstream-1')).toEqual(exampleTask({ upstreamId: 'upstream-1' }))
    expect(await again.webhooks.list('account_1', 'task_1')).toMatchObject([delivery])
    expect(await again.webhooks.secrets('account_1', NOW_MS)).toEqual([{ secret: 'whsec_1', expiresAtMs: undefined }])
    await again.close()
  })
})
